/**
 * `deno task compile`: bundles the program to `dist/causeway.js`, then makes `dist/causeway` of it, one
 * executable that needs no Deno.
 *
 * The bundle comes first because Deno 2.9 overflows its stack on the module graph of a dependency
 * (denoland/deno#36746), and because the binary is 25 MB smaller for it.
 *
 * Environment: `DENORT_BIN` names Deno's base executable where it cannot be downloaded;
 * `CAUSEWAY_READ` and `CAUSEWAY_WRITE` add directories, divided by commas, that the binary may use;
 * `CAUSEWAY_COMPILER` names another Deno, whose version is that of `DENORT_BIN`.
 */

const BUNDLE = "dist/causeway.js";
const BINARY = "dist/causeway";

/**
 * Flags built into the binary: the permissions of a node, and the engine's room for young objects.
 */
const FLAGS = [
  ...["--no-prompt", "--v8-flags=--min-semi-space-size=16,--max-semi-space-size=16", "--allow-net"],
  `--allow-read=/etc/causeway,/var/lib/causeway${more("CAUSEWAY_READ")}`,
  `--allow-write=/var/lib/causeway${more("CAUSEWAY_WRITE")}`,
  ...["--allow-env", "--allow-sys=hostname"],
];

function more(variable: string): string {
  const directories = Deno.env.get(variable) ?? "";
  return directories === "" ? "" : `,${directories}`;
}

async function run(program: string, args: readonly string[]): Promise<void> {
  // The compiler parses the bundle on a thread whose stack is too small for it by default.
  const env = { RUST_MIN_STACK: "16777216" };
  const ended = await new Deno.Command(program, { args: [...args], env, stdin: "null" }).spawn()
    .status;
  if (ended.success) return;
  console.error(`Cannot make ${BINARY}: ${program} ${args[0]} ended with code ${ended.code}`);
  if (args[0] === "compile" && Deno.env.get("DENORT_BIN") === undefined) {
    console.error(
      "deno compile downloads Deno's base executable (denort) once; where it cannot be " +
        "downloaded, name a file of the same version in DENORT_BIN",
    );
  }
  Deno.exit(1);
}

await Deno.remove(BINARY).catch(() => {}); // there may be none; an old one must not pass for the new
const compiler = Deno.env.get("CAUSEWAY_COMPILER") ?? Deno.execPath();
await run(Deno.execPath(), ["bundle", "--quiet", "--platform", "deno", "-o", BUNDLE, "mod.ts"]);
await run(compiler, ["compile", "--no-check", "--no-config", ...FLAGS, "-o", BINARY, BUNDLE]);
