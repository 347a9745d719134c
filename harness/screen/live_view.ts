import type { Cluster } from "../cluster/mod.ts";
import { StatusReader } from "./datacenter_status.ts";
import type { Palette } from "./palette.ts";
import { statusLine, statusTable } from "./status_view.ts";

/** Output of a live view. */
export type LiveFormat = "redraw" | "lines" | "json";

/** Options of a live view. */
export interface LiveViewOptions {
  readonly format: LiveFormat;
  readonly paint: Palette;
  /** Ends it. */
  readonly signal: AbortSignal;
  readonly write: (text: string) => void;
  /** Milliseconds between two updates. @default 1000 when redrawn, else 5000 */
  readonly everyMs?: number;
}

/** Shows every datacenter again and again, until the signal. */
export async function showLive(cluster: Cluster, options: LiveViewOptions): Promise<void> {
  const { format, paint, signal, write } = options;
  const readers = cluster.datacenters.map((datacenter) => new StatusReader(datacenter));
  const everyMs = options.everyMs ?? (format === "redraw" ? 1000 : 5000);
  let drawn = 0;
  while (!signal.aborted) {
    const statuses = await Promise.all(readers.map((reader) => reader.read()));
    if (signal.aborted) break;
    switch (format) {
      case "redraw": {
        const lines = statusTable(statuses, paint);
        const up = drawn === 0 ? "" : `\x1b[${drawn}A`;
        write(up + lines.map((line) => `\x1b[2K  ${line}\n`).join(""));
        drawn = lines.length;
        break;
      }
      case "lines":
        write(statuses.map((status) => statusLine(status) + "\n").join(""));
        break;
      case "json":
        write(JSON.stringify({ status: statuses }) + "\n");
        break;
    }
    await pause(everyMs, signal);
  }
}

/** Resolves after `ms`, or as soon as the signal comes. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const wake = () => resolve();
  signal.addEventListener("abort", wake, { once: true });
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", wake);
}
