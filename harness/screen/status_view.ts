import type { DatacenterStatus } from "./datacenter_status.ts";
import type { Palette } from "./palette.ts";
import { type Column, textTable } from "./text_table.ts";

const COLUMNS: readonly Column[] = [
  { heading: "", minWidth: 3 },
  { heading: "State", minWidth: 10 },
  { heading: "Sessions", align: "right" },
  { heading: "Out/s", align: "right", minWidth: 8 },
  { heading: "In/s", align: "right", minWidth: 8 },
  { heading: "Links", align: "right" },
  { heading: "Redis", minWidth: 7 },
];

/** A table of all datacenters, for a screen that is redrawn. */
export function statusTable(statuses: readonly DatacenterStatus[], paint: Palette): string[] {
  const rows = statuses.map((status) => [
    paint.bold(status.name),
    stateText(status, paint),
    String(status.sessions),
    perSec(status.outPerSec),
    perSec(status.inPerSec),
    String(status.links),
    redisText(status, paint),
  ]);
  const [headings, ...lines] = textTable(COLUMNS, rows);
  return [paint.dim(headings!), ...lines]; // `textTable` gives the headings and a line for each row
}

/** One datacenter in a line that can be read alone, for a file or a pipe. */
export function statusLine(status: DatacenterStatus): string {
  return `${status.name}  ${status.state}  sessions ${status.sessions}  ` +
    `out ${perSec(status.outPerSec)}/s  in ${perSec(status.inPerSec)}/s  ` +
    `links ${status.links}  redis ${status.redis}`;
}

function stateText({ state }: DatacenterStatus, paint: Palette): string {
  switch (state) {
    case "ready":
      return paint.green("● ready");
    case "degraded":
    case "paused":
    case "silent":
      return paint.yellow(`● ${state}`);
    case "stopped":
      return paint.red("○ stopped");
    default:
      return state satisfies never;
  }
}

function redisText({ redis }: DatacenterStatus, paint: Palette): string {
  if (redis === "up") return paint.green("up");
  return redis === "down" ? paint.red("down") : paint.dim("unknown");
}

function perSec(rate: number): string {
  return rate >= 100 ? Math.round(rate).toLocaleString("en") : rate.toFixed(1);
}
