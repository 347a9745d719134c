/**
 * `deno task compile`: bundles the program to `dist/causeway.js`, and makes executables that need no
 * Deno: `dist/causeway`, or `dist/causeway-TARGET` for each `--target`.
 *
 * They are made of a bundle, too, because Deno 2.9 overflows its stack on the module graph of a
 * dependency (denoland/deno#36746), and because the binary is 25 MB smaller for it. It has files of its
 * own for what is loaded at need, such as the drivers of databases: an executable of one file takes
 * twice as long to start.
 *
 * The same commit gives the same bytes: nothing of the machine, the time or the directory is written.
 *
 * Environment: `DENORT_BIN` names Deno's base executable where it cannot be downloaded, or a directory
 * with one for each target, `denort-x86_64-unknown-linux-gnu` and so on;
 * `CAUSEWAY_READ` and `CAUSEWAY_WRITE` add directories, divided by commas, that the binary may use;
 * `CAUSEWAY_COMPILER` names another Deno, whose version is that of `DENORT_BIN`;
 * `CAUSEWAY_COMMIT` names the commit where there is no git.
 */
import project from "../deno.json" with { type: "json" };
import { systemOfFile, tryOut } from "./base_executable.ts";
import { bundle } from "./bundle.ts";
import {
  parseTargets,
  programFlags,
  programPath,
  stampBundle,
  type Target,
  targetOf,
  TARGETS,
} from "./compile_plan.ts";

const PROGRAM = "deploy/program.ts";
/** The program as one file, for those who have Deno. */
const BUNDLE = "dist/causeway.js";
/** The program as the executable holds it. */
const PARTS = "dist/program";
const ENTRY = `${PARTS}/causeway.js`;

function directories(variable: string): readonly string[] {
  return (Deno.env.get(variable) ?? "").split(",").filter((path) => path !== "");
}

async function run(
  program: string,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  // The compiler parses the bundle on a thread whose stack is too small for it by default.
  const env = { RUST_MIN_STACK: "16777216", ...more };
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

/**
 * Returns the base executable for `target`, or undefined for one that Deno downloads. The compiler
 * itself would put the program behind any file, of whatever system.
 */
async function baseFor(target: Target | undefined): Promise<string | undefined> {
  const named = Deno.env.get("DENORT_BIN");
  if (named === undefined) return undefined;
  const triple = target === undefined ? Deno.build.target : TARGETS[target];
  const path = (await Deno.stat(named)).isDirectory ? `${named}/denort-${triple}` : named;
  const [wanted, found] = [target ?? targetOf(triple), await systemOfFile(path)];
  if (wanted === undefined || found === wanted) return path;
  throw new Error(
    `Cannot make an executable for ${wanted}: the base executable ${path} is for ` +
      (found ?? "none of the systems that are known here"),
  );
}

async function compile(target: Target | undefined, base: string | undefined): Promise<void> {
  const path = programPath(target);
  await Deno.remove(path).catch(() => {}); // there may be none; an old one must not pass for the new
  const more = { read: directories("CAUSEWAY_READ"), write: directories("CAUSEWAY_WRITE") };
  const compiler = Deno.env.get("CAUSEWAY_COMPILER") ?? Deno.execPath();
  await run(compiler, [
    ...["compile", "--no-check", "--no-config"],
    ...programFlags(target, more),
    ...(target === undefined ? [] : ["--target", TARGETS[target]]),
    ...["-o", path, ENTRY],
  ], base === undefined ? {} : { DENORT_BIN: base });
  if (target !== undefined && target !== targetOf(Deno.build.target)) return;
  try {
    await tryOut(path, project.version);
  } catch (thrown) {
    await Deno.remove(path);
    fail(thrown, 1);
  }
}

function fail(thrown: unknown, code: number): never {
  console.error(`deno task compile: ${thrown instanceof Error ? thrown.message : thrown}`);
  Deno.exit(code);
}

let targets: ReturnType<typeof parseTargets>;
let bases: readonly (string | undefined)[];
try {
  targets = parseTargets(Deno.args);
  bases = await Promise.all(targets.map(baseFor));
} catch (thrown) {
  fail(thrown, 2);
}
try {
  await bundle(PROGRAM, { file: BUNDLE });
  await bundle(PROGRAM, { directory: PARTS });
} catch (thrown) {
  fail(thrown, 1);
}
const stamp = await commit();
await Deno.writeTextFile(BUNDLE, stampBundle(await Deno.readTextFile(BUNDLE), stamp));
await Deno.writeTextFile(ENTRY, stampBundle(`await import("./program.js");\n`, stamp));
// The compiler writes these times into the executable.
for await (const { name } of Deno.readDir(PARTS)) await Deno.utime(`${PARTS}/${name}`, 0, 0);
for (const [place, target] of targets.entries()) await compile(target, bases[place]);
