/** What a process has used since it began. */
export interface ProcessUsage {
  /** Microseconds of processor time, in user and system mode, over all its threads. */
  readonly cpuUs: number;
  /** Bytes of memory in use now. */
  readonly residentBytes: number;
}

/** Linux reports in clock ticks, of which every machine that Deno runs on has 100 a second. */
const MICROSECONDS_PER_TICK = 10_000;

/** Reads what process `pid` has used. Linux only. */
export async function processUsage(pid: number): Promise<ProcessUsage> {
  const stat = await Deno.readTextFile(`/proc/${pid}/stat`);
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return { cpuUs: cpuUsOf(stat), residentBytes: residentBytesOf(status) };
}

/** Fields 14 and 15 of `/proc/<pid>/stat`, counted behind the name, which may hold anything. */
export function cpuUsOf(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_PER_TICK;
}

function residentBytesOf(status: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
