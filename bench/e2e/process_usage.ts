/** Resources that a process has used since it began. */
export interface ProcessUsage {
  /** Microseconds of processor time, in user and system mode, over all its threads. */
  readonly cpuUs: number;
  /** Bytes of memory in use now. */
  readonly residentBytes: number;
}

/** Linux reports in clock ticks, of which every machine that Deno runs on has 100 a second. */
const MICROSECONDS_PER_TICK = 10_000;

/**
 * Reads what process `pid` has used. Linux only. Through `cat`, because Deno itself opens `/proc` of
 * other processes only with every permission there is.
 */
export async function processUsage(pid: number): Promise<ProcessUsage> {
  const args = [`/proc/${pid}/stat`, `/proc/${pid}/status`];
  const { success, stdout } = await new Deno.Command("cat", { args, stderr: "null" }).output();
  if (!success) throw new Error(`Cannot read what process ${pid} has used: it has ended`);
  return parseUsage(new TextDecoder().decode(stdout));
}

/** From `/proc/<pid>/stat` and `/proc/<pid>/status`, one after the other. */
export function parseUsage(text: string): ProcessUsage {
  return { cpuUs: cpuUsOf(text), residentBytes: residentBytesOf(text) };
}

/** Fields 14 and 15 of the first line, counted behind the name, which may hold anything. */
function cpuUsOf(text: string): number {
  const stat = text.slice(0, text.indexOf("\n"));
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) * MICROSECONDS_PER_TICK;
}

function residentBytesOf(status: string): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024;
}
