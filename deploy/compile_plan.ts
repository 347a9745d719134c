/** Systems that the executable is made for, and Deno's names of them. */
export const TARGETS = {
  "linux-x64": "x86_64-unknown-linux-gnu",
  "linux-arm64": "aarch64-unknown-linux-gnu",
  "macos-x64": "x86_64-apple-darwin",
  "macos-arm64": "aarch64-apple-darwin",
  "windows-x64": "x86_64-pc-windows-msvc",
} as const;

/** Name of a system that the executable is made for. */
export type Target = keyof typeof TARGETS;

/** Directories beside the usual ones that the executable may use. */
export interface MoreDirectories {
  readonly read?: readonly string[];
  readonly write?: readonly string[];
}

/** Flags of the engine, with a node in mind. */
const ENGINE_FLAGS: readonly string[] = [
  // Most objects of a node live as long as its stanzas. Under load at its start, the engine takes
  // them for long-lived and would put all later ones among its old objects.
  "--no-allocation-site-pretenuring",
  "--min-semi-space-size=16",
  "--max-semi-space-size=16",
  // It would look through all old objects whenever there are a tenth more. Each time stanzas wait.
  "--heap-growing-percent=100",
];

/** Directory of the demonstration cluster, below the one in which the executable is run. */
const CLUSTER_DIRECTORY = "causeway-cluster";

/**
 * Returns the flags built into the executable: its permissions, and how the engine keeps objects.
 * All commands but `cluster` give up `run`, `uid` and the directory of the cluster when they start.
 */
export function programFlags(
  target: Target | undefined,
  { read = [], write = [] }: MoreDirectories = {},
): readonly string[] {
  const [etc, ...written] = target === "windows-x64"
    ? ["C:\\ProgramData\\Causeway\\etc", "C:\\ProgramData\\Causeway\\lib"]
    : ["/etc/causeway", "/var/lib/causeway", "/run/causeway"];
  // Its datagrams to the service manager.
  const notify = target === "windows-x64" ? [] : ["/run/systemd/notify"];
  return [
    "--no-prompt",
    `--v8-flags=${ENGINE_FLAGS.join(",")}`,
    ...["--unstable-net", "--allow-net"],
    `--allow-read=${[etc, ...written, CLUSTER_DIRECTORY, ...read].join(",")}`,
    `--allow-write=${[...written, ...notify, CLUSTER_DIRECTORY, ...write].join(",")}`,
    ...["--allow-env", "--allow-sys=hostname,uid", "--allow-run"],
  ];
}

/** Name of the system with Deno's name `triple`. Undefined for one that is no target. */
export function targetOf(triple: string): Target | undefined {
  return (Object.keys(TARGETS) as Target[]).find((name) => TARGETS[name] === triple);
}

/** Returns the path of the executable. */
export function programPath(target: Target | undefined): string {
  if (target === undefined) return "dist/causeway";
  return `dist/causeway-${target}${target.startsWith("windows") ? ".exe" : ""}`;
}

/**
 * Returns the targets that a command line names; `[undefined]` stands for the system at hand.
 * @throws {RangeError} for anything else
 */
export function parseTargets(args: readonly string[]): readonly (Target | undefined)[] {
  const targets: Target[] = [];
  for (const [place, word] of args.entries()) {
    if (word === "--target") continue;
    const name = word.startsWith("--target=") ? word.slice(9) : word;
    const isNamed = word !== name || args[place - 1] === "--target";
    if (isNamed && name === "all") targets.push(...Object.keys(TARGETS) as Target[]);
    else if (isNamed && name in TARGETS) targets.push(name as Target);
    else throw new RangeError(`"${word}" is not --target ${Object.keys(TARGETS).join("|")}|all`);
  }
  if (args.at(-1) === "--target") throw new RangeError("--target names no system");
  return targets.length === 0 ? [undefined] : targets;
}

/** Returns the bundle with the commit before it, where `src/config/version.ts` finds it. */
export function stampBundle(bundle: string, commit: string): string {
  return `globalThis.causewayCommit = ${JSON.stringify(commit)};\n${bundle}`;
}
