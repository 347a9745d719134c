import { fileURLToPath } from "node:url";
import type { BenchContext } from "./bench_report.ts";
import type { MachinePauses } from "./machine_pauses.ts";

/** State of the machine before a bench. */
export interface MachineBefore {
  /** Load averages over 1, 5 and 15 minutes. */
  readonly load: readonly number[];
  readonly pauses: MachinePauses;
}

/**
 * Says what machine, program and commit the figures of this process belong to.
 *
 * @param command line that runs the bench
 */
export async function benchContext(
  command: readonly string[],
  { load, pauses }: MachineBefore,
): Promise<BenchContext> {
  return {
    date: new Date().toISOString().slice(0, 16).replace("T", " "),
    command: command.join(" "),
    commit: await commit(),
    cores: navigator.hardwareConcurrency,
    processor: await processor(),
    load: [load, Deno.loadavg()],
    pauses,
    versions: { deno: Deno.version.deno, v8: Deno.version.v8, redis: await redis() },
  };
}

/** The commit that is checked out, marked when files that are not in it may take part. */
async function commit(): Promise<string> {
  const hash = await firstLine("git", ["rev-parse", "--short", "HEAD"]);
  const changed = await firstLine("git", ["status", "--porcelain", "--", "src", "deno.json"]);
  if (hash === "") return "unknown";
  return changed === "" ? hash : `${hash} (changed)`;
}

async function processor(): Promise<string> {
  // Through `cat`: Deno itself opens nothing in `/proc` short of every permission there is.
  const cpuinfo = await output("cat", ["/proc/cpuinfo"]);
  return /^model name\s*:\s*(.+)$/m.exec(cpuinfo)?.[1] ?? "unknown processor";
}

async function redis(): Promise<string> {
  const line = await firstLine("redis-server", ["--version"]);
  return /\bv=(\S+)/.exec(line)?.[1] ?? "none";
}

async function firstLine(program: string, args: readonly string[]): Promise<string> {
  return (await output(program, args)).split("\n")[0] ?? "";
}

/**
 * Returns a program's output; empty when there is no such program, because the figures are useful
 * without it.
 */
async function output(program: string, args: readonly string[]): Promise<string> {
  const cwd = fileURLToPath(new URL("../../", import.meta.url));
  try {
    const command = new Deno.Command(program, { args: [...args], cwd, stderr: "null" });
    return new TextDecoder().decode((await command.output()).stdout);
  } catch {
    return "";
  }
}
