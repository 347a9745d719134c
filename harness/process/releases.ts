import { randomBytes } from "node:crypto";
import { runProgram } from "./run_program.ts";
import { PROJECT_DIRECTORY } from "./own_program.ts";
import { type Command, parseServeTask } from "./serve_command.ts";

/** An earlier release, which nodes of this build have to live with. */
export interface Release {
  readonly version: string;
  /** Its commit in this repository. */
  readonly commit: string;
}

/** The release before this build (CHANGELOG.md). */
export const LAST_RELEASE: Release = {
  version: "0.1.0",
  commit: "8760b28012203bdf1a036bcec22ce059f250cf68",
};

const IN_PROJECT = { cwd: PROJECT_DIRECTORY };

/**
 * Puts the source of a release where `releaseCommand` runs it, unless it is there already.
 * @throws when this is no clone with the release's commit, such as a shallow one
 */
export async function unpackRelease(release: Release): Promise<void> {
  const directory = directoryOf(release);
  if (await isDirectory(directory)) return;
  const partial = `${directory}.${randomBytes(6).toString("hex")}`;
  await Deno.mkdir(partial, { recursive: true });
  try {
    await unpackCommit(release.commit, partial);
    await Deno.rename(partial, directory).catch(async (thrown) => {
      if (!await isDirectory(directory)) throw thrown; // else another test was first
    });
  } finally {
    await Deno.remove(partial, { recursive: true }).catch(() => {});
  }
}

/**
 * Puts the source of any commit into an empty directory.
 * @throws when this clone does not have the commit
 */
export async function unpackCommit(commit: string, directory: string): Promise<void> {
  const archive = `${directory}/commit.tar`;
  await succeed("git", ["archive", "--format=tar", `--output=${archive}`, commit]);
  await succeed("tar", ["--extract", `--file=${archive}`, `--directory=${directory}`]);
  await Deno.remove(archive);
}

/** Tells whether this clone has the commit of a release. A shallow one may lack it. */
export async function hasRelease({ commit }: Release): Promise<boolean> {
  const outcome = await runProgram("git", ["cat-file", "-e", `${commit}^{commit}`], IN_PROJECT);
  return outcome?.code === 0;
}

/**
 * Fetches the commit of a release from where this clone comes from.
 * @throws when it is out of reach
 */
export async function fetchRelease({ commit }: Release): Promise<void> {
  await succeed("git", ["fetch", "--quiet", "--depth=1", "origin", commit]);
}

/** The `causeway` command of a release that was unpacked, as its own task `serve` runs it. */
export function releaseCommand(release: Release, args: readonly string[]): Command {
  const directory = directoryOf(release);
  const project = JSON.parse(Deno.readTextFileSync(`${directory}/deno.json`)) as {
    readonly tasks: Readonly<Record<string, string>>;
  };
  const flags = parseServeTask(project.tasks["serve"] ?? "");
  return {
    program: Deno.execPath(),
    args: [...flags, `--config=${directory}/deno.json`, `${directory}/mod.ts`, ...args],
  };
}

function directoryOf({ commit }: Release): string {
  return `${PROJECT_DIRECTORY}.tmp/releases/${commit}`;
}

async function isDirectory(path: string): Promise<boolean> {
  return await Deno.stat(path).then((stat) => stat.isDirectory, () => false);
}

async function succeed(program: string, args: readonly string[]): Promise<void> {
  const outcome = await runProgram(program, args, IN_PROJECT);
  if (outcome?.code === 0) return;
  const why = outcome === undefined ? "it is not installed" : outcome.errors.trim();
  throw new Error(`Cannot run ${program} ${args[0]}: ${why}`);
}
