import type { AdminEvent, Overview } from "../admin/mod.ts";
import { millisecondsText } from "./list_commands.ts";
import { plainText, shorten, tableLines } from "../terminal/mod.ts";

/** Content of the screen of `causeway top`. */
export interface TopView {
  /** The last answer; undefined before the first. */
  readonly overview: Overview | undefined;
  /** Newest last. */
  readonly events: readonly AdminEvent[];
  /** Reason why the last request failed; undefined when it succeeded. */
  readonly problem: string | undefined;
}

/** Rows of the table of datacenters at least, where there are as many. */
const LEAST_DATACENTERS = 3;

/**
 * Lays out a screen of `columns` by `rows`: the node, the datacenters, then the last events in what
 * is left.
 */
export function topLines(
  { overview, events, problem }: TopView,
  { columns, rows }: { readonly columns: number; readonly rows: number },
): readonly string[] {
  const trouble = problem === undefined ? [] : [shorten(problem, columns)];
  if (overview === undefined) return [...trouble, problem === undefined ? "asking …" : ""];
  const state = overview.isDraining ? "draining" : overview.ready ? "ready" : "not ready";
  const head = [
    `${overview.node}  ${state}  ${overview.at.slice(11, 19)} UTC`,
    `sessions ${overview.sessions}  components ${overview.components}  ` +
    `sent ${rateText(overview.sentPerSec)}  received ${rateText(overview.receivedPerSec)}`,
    `bouncing ${overview.bouncing}  lookups ${overview.waitingForLookup}  ` +
    `slowed down ${overview.heldBack}`,
    ...trouble,
    "",
  ];
  const table = tableLines(
    [
      { title: "DATACENTER", isFlexible: true },
      { title: "STATE" },
      { title: "LINKS", isRight: true },
      { title: "RTT", isRight: true },
      { title: "SENT", isRight: true },
      { title: "RECEIVED", isRight: true },
      { title: "HELD", isRight: true },
    ],
    overview.datacenters.map((each) => [
      each.datacenter,
      each.state,
      each.isOwn ? "" : `${each.openLinks}/${each.links}`,
      millisecondsText(each.roundTripMs),
      each.isOwn ? "" : rateText(each.sentPerSec),
      each.isOwn ? "" : rateText(each.receivedPerSec),
      each.isOwn ? "" : String(each.heldItems),
    ]),
    columns,
  );
  // The last row tells the keys.
  const room = Math.max(0, rows - head.length - 1);
  const eventRows = Math.min(events.length, Math.max(0, room - LEAST_DATACENTERS - 3));
  const tableRows = Math.max(0, room - (eventRows > 0 ? eventRows + 2 : 0));
  const body = table.length <= tableRows
    ? [...table]
    : [...table.slice(0, tableRows - 1), `… ${table.length - tableRows + 1} more`];
  if (eventRows > 0) {
    const newest = events.slice(-(room - body.length - 2)).toReversed();
    body.push("", "LAST EVENTS");
    for (const event of newest.slice(0, room - body.length)) {
      body.push(
        shorten(`${event.at.slice(11, 19)} ${event.severity.padEnd(7)}  ${event.text}`, columns),
      );
    }
  }
  const screen = [...head, ...body].map((line) => shorten(plainText(line), columns))
    .slice(0, rows - 1);
  return [...screen, ...Array.from({ length: rows - 1 - screen.length }, () => ""), "q quits"];
}

/** Text for stanzas in a second. */
function rateText(perSec: number): string {
  return `${perSec > 0 && perSec < 10 ? perSec.toFixed(1) : Math.round(perSec)}/s`;
}
