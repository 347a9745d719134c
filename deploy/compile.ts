/**
 * `deno task compile`: bundles the program to `dist/causeway.js`, then makes executables of it that need
 * no Deno: `dist/causeway`, or `dist/causeway-TARGET` for each `--target`.
 *
 * The bundle comes first because Deno 2.9 overflows its stack on the module graph of a dependency
 * (denoland/deno#36746), and because the binary is 25 MB smaller for it.
 *
 * The same commit gives the same bytes: nothing of the machine, the time or the directory is written.
 *
 * Environment: `DENORT_BIN` names Deno's base executable where it cannot be downloaded;
 * `CAUSEWAY_READ` and `CAUSEWAY_WRITE` add directories, divided by commas, that the binary may use;
 * `CAUSEWAY_COMPILER` names another Deno, whose version is that of `DENORT_BIN`;
 * `CAUSEWAY_COMMIT` names the commit where there is no git.
 */
import {
  parseTargets,
  programFlags,
  programPath,
  stampBundle,
  type Target,
  TARGETS,
} from "./compile_plan.ts";

const BUNDLE = "dist/causeway.js";

function directories(variable: string): readonly string[] {
  return (Deno.env.get(variable) ?? "").split(",").filter((path) => path !== "");
}

async function run(program: string, args: readonly string[]): Promise<void> {
  // The compiler parses the bundle on a thread whose stack is too small for it by default.
  const env = { RUST_MIN_STACK: "16777216" };
  const ended = await new Deno.Command(program, { args: [...args], env, stdin: "null" }).spawn()
    .status;
  if (ended.success) return;
  console.error(`Cannot make the executable: ${program} ${args[0]} ended with code ${ended.code}`);
  if (args[0] === "compile" && Deno.env.get("DENORT_BIN") === undefined) {
    console.error(
      "deno compile downloads Deno's base executable (denort) once; where it cannot be " +
        "downloaded, name a file of the same version in DENORT_BIN",
    );
  }
  Deno.exit(1);
}

/** Returns the commit with its day, `-changed` behind a commit that is not what is built. */
async function commit(): Promise<string> {
  const named = Deno.env.get("CAUSEWAY_COMMIT");
  if (named !== undefined) return named;
  const git = async (...args: string[]) => {
    const ended = await new Deno.Command("git", { args, stderr: "null" }).output();
    return ended.success ? new TextDecoder().decode(ended.stdout).trim() : undefined;
  };
  const [hash, day] = (await git("show", "-s", "--format=%h %cs", "--abbrev=12", "HEAD"))
    ?.split(" ") ?? [];
  if (hash === undefined) return "";
  const isChanged = await git("status", "--porcelain", "--untracked-files=no") !== "";
  return `${hash}${isChanged ? "-changed" : ""}, ${day}`;
}

async function compile(target: Target | undefined): Promise<void> {
  const path = programPath(target);
  await Deno.remove(path).catch(() => {}); // there may be none; an old one must not pass for the new
  const more = { read: directories("CAUSEWAY_READ"), write: directories("CAUSEWAY_WRITE") };
  const compiler = Deno.env.get("CAUSEWAY_COMPILER") ?? Deno.execPath();
  await run(compiler, [
    ...["compile", "--no-check", "--no-config"],
    ...programFlags(target, more),
    ...(target === undefined ? [] : ["--target", TARGETS[target]]),
    ...["-o", path, BUNDLE],
  ]);
}

let targets: ReturnType<typeof parseTargets>;
try {
  targets = parseTargets(Deno.args);
} catch (thrown) {
  console.error(`deno task compile: ${(thrown as Error).message}`);
  Deno.exit(2);
}
await run(Deno.execPath(), [
  ...["bundle", "--quiet", "--platform", "deno", "-o", BUNDLE, "deploy/program.ts"],
]);
await Deno.writeTextFile(BUNDLE, stampBundle(await Deno.readTextFile(BUNDLE), await commit()));
// The compiler writes this time into the executable.
await Deno.utime(BUNDLE, 0, 0);
for (const target of targets) await compile(target);
