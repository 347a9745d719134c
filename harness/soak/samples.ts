import type { ProgramOutput } from "../process/mod.ts";
import { parsePrometheusText, sumOf } from "../screen/mod.ts";

/** Resources that one node used at one moment. */
export interface Sample {
  readonly rssBytes: number;
  /** Open files and sockets; undefined when they could not be counted. */
  readonly handles: number | undefined;
  /** Stanzas in lanes and queues. */
  readonly held: number;
}

/**
 * Metrics of the stanzas that a node holds: in lanes, bouncing, waiting for a lookup, waiting for
 * another node.
 */
const HELD = [
  "mod_global_distrib_lane_items",
  "mod_global_distrib_bounce_queue_size",
  "causeway_lookup_queue_size",
  "causeway_handover_queue_size",
];

/** Largest relative change of a node's memory between the second and the last third of a run. */
export const MAX_DRIFT = 0.1;
/** Handles more than at the beginning that a node may have in the end: links that were made anew. */
export const MAX_MORE_HANDLES = 16;

/** Reads a sample from a node's `/metrics`. */
export function readSample(metrics: string): Omit<Sample, "handles"> {
  const samples = parsePrometheusText(metrics);
  return {
    rssBytes: sumOf(samples, "process_resident_memory_bytes"),
    held: HELD.reduce((sum, name) => sum + sumOf(samples, name), 0),
  };
}

/**
 * Handles in a listing of `/proc/<pid>/fd`, one a line. Undefined when it could not be listed; none on
 * a platform without `/proc`, where there is nothing to list.
 */
export function readHandles(
  listed: ProgramOutput | undefined,
  platform: typeof Deno.build.os = Deno.build.os,
): number | undefined {
  if (platform !== "linux") return 0;
  return listed?.code === 0 ? listed.output.trim().split("\n").length : undefined;
}

/** Medians of the resident memory in each third of `samples`. */
export function rssByThird(samples: readonly Sample[]): readonly [number, number, number] {
  const third = (index: number) => {
    const from = Math.floor(index * samples.length / 3);
    const to = Math.floor((index + 1) * samples.length / 3);
    return median(samples.slice(from, to).map(({ rssBytes }) => rssBytes));
  };
  return [third(0), third(1), third(2)];
}

/** Lists the leaks of a node that ran through the whole soak. `calm` is its state before. */
export function leaks(
  calm: Sample,
  samples: readonly Sample[],
  end: Sample,
): readonly string[] {
  const found: string[] = [];
  const [, second, last] = rssByThird(samples);
  const drift = last / second - 1;
  if (Number.isNaN(drift)) found.push("nothing is known of its memory");
  if (drift > MAX_DRIFT) {
    found.push(`memory grew by ${(100 * drift).toFixed(1)} % in the last third`);
  }
  if (end.held > 0) found.push(`${end.held} stanzas are still held`);
  if (calm.handles === undefined || end.handles === undefined) {
    found.push("nothing is known of its handles");
  } else if (end.handles > calm.handles + MAX_MORE_HANDLES) {
    found.push(`${end.handles} handles are open, ${calm.handles} at the beginning`);
  }
  return found;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
