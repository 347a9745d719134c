import { Command } from "commander";
import type { Bounce, Datacenter, LaneState, Session } from "../admin/mod.ts";
import { CausewayError } from "../base/mod.ts";
import type { AdminCommandOptions } from "./admin_options.ts";
import { addAdminOptions, connectAdmin } from "./admin_options.ts";
import { describe } from "./command_docs.ts";
import type { CommandIo } from "./command_io.ts";
import type { Listed } from "./read_pages.ts";
import { limitOption, readPages } from "./read_pages.ts";
import {
  bytesText,
  DEFAULT_COLUMNS,
  durationText,
  shorten,
  tableLines,
  wrapText,
} from "../terminal/mod.ts";

interface ListOptions extends AdminCommandOptions {
  readonly limit: number;
}

interface LinksOptions extends ListOptions {
  readonly datacenter?: string;
}

interface SessionsOptions extends ListOptions {
  readonly account?: string;
}

/** Most datacenters that are shown; a mesh has tens. */
const MAX_DATACENTERS = 1_000;

/** Makes the command `causeway links`. Calls `done` with the exit code. */
export function linksCommand(io: CommandIo, done: (code: number) => void): Command {
  const command = new Command("links")
    .description("show the datacenters, and the links of a node to them")
    .option("--datacenter <HOST>", "only the links to this one")
    .addOption(limitOption());
  describe(addAdminOptions(command), {
    examples: [
      ["causeway links", "all links of the node on this machine"],
      ["causeway links --datacenter dc2.example.com --json", "those to one, for a program"],
    ],
    exits: {
      0: "every datacenter is linked",
      1: "one of them is not, or the node knows no such datacenter",
    },
  });
  return command.action(async (options: LinksOptions) => {
    const client = connectAdmin(options);
    const { datacenter } = options;
    const [{ items: all }, lanes] = await Promise.all([
      readPages<Datacenter>(client, "/api/v1/datacenters", { limit: MAX_DATACENTERS }),
      readPages<LaneState>(client, "/api/v1/lanes", {
        limit: options.limit,
        query: datacenter === undefined ? {} : { datacenter: datacenter.toLowerCase() },
      }),
    ]);
    const datacenters = all.filter((each) =>
      datacenter === undefined || each.datacenter === datacenter.toLowerCase()
    );
    if (datacenter !== undefined && datacenters.length === 0) {
      throw new CausewayError(
        "cli/no-datacenter",
        `Cannot show the links to ${datacenter}: the node knows no such datacenter`,
      );
    }
    if (datacenters.some(({ state }) => state === "unreachable" || state === "paused")) done(1);
    if (options.json) io.out(JSON.stringify({ datacenters, lanes }, null, 2));
    else {
      const columns = io.columns ?? DEFAULT_COLUMNS;
      for (const line of linksLines(datacenters, lanes, columns)) io.out(line);
    }
  });
}

export function linksLines(
  datacenters: readonly Datacenter[],
  lanes: Listed<LaneState>,
  columns: number,
): readonly string[] {
  const summary = datacenters.map((each) => [
    each.datacenter,
    each.state,
    String(each.nodes.length),
    `${each.openLinks}/${each.links}`,
    String(each.incomingLinks),
    millisecondsText(each.roundTripMs),
    String(each.heldItems + each.parkedItems),
  ]);
  const lines = [...tableLines(
    [
      { title: "DATACENTER", isFlexible: true },
      { title: "STATE" },
      { title: "NODES", isRight: true },
      { title: "OPEN", isRight: true },
      { title: "IN", isRight: true },
      { title: "RTT", isRight: true },
      { title: "HELD", isRight: true },
    ],
    summary,
    columns,
  )];
  if (lanes.items.length > 0) {
    lines.push("", ...laneLines(lanes.items, columns), ...restLine(lanes, "links"));
  }
  const troubles = [
    ...datacenters.filter(({ state }) => state !== "own" && state !== "linked")
      .map(({ datacenter, reason, lastError }) => troubleText(datacenter, reason, lastError)),
    ...lanes.items.filter(({ state, lastError }) => state !== "open" && lastError !== undefined)
      .map(({ endpoint, lastError }) => troubleText(endpoint, undefined, lastError)),
  ];
  for (const text of troubles) lines.push("", ...wrapText(text, columns));
  return lines;
}

function laneLines(lanes: readonly LaneState[], columns: number): readonly string[] {
  return tableLines(
    [
      { title: "ENDPOINT", isFlexible: true },
      { title: "NODE", isFlexible: true },
      { title: "STATE" },
      { title: "UP", isRight: true },
      { title: "RTT", isRight: true },
      { title: "QUEUED", isRight: true },
      { title: "UNACKED", isRight: true },
      { title: "OLDEST", isRight: true },
    ],
    lanes.map((lane) => [
      lane.endpoint,
      lane.node ?? lane.datacenter,
      lane.state,
      lane.uptimeMs === undefined ? "" : durationText(lane.uptimeMs),
      millisecondsText(lane.roundTripMs),
      String(lane.queuedItems),
      String(lane.unacknowledgedItems),
      lane.unacknowledgedForMs === undefined ? "" : durationText(lane.unacknowledgedForMs),
    ]),
    columns,
  );
}

/** Says why something is not linked: the present reason, and the last error unless it is the same. */
export function troubleText(
  about: string,
  reason: string | undefined,
  lastError: Datacenter["lastError"],
): string {
  const isSame = reason !== undefined && reason === lastError?.detail;
  const last = lastError &&
    (isSame
      ? `${lastError.reason}: ${reason} (${lastError.at})`
      : `last error ${lastError.reason}: ${lastError.detail} (${lastError.at})`);
  const texts = [isSame ? undefined : reason, last].filter((text) => text !== undefined);
  return `${about}: ${texts.join("; ") || "no link"}`;
}

/** Makes the command `causeway bounce`. */
export function bounceCommand(io: CommandIo): Command {
  const command = new Command("bounce")
    .description("show the addresses that stanzas wait for, as nobody knows where they are")
    .addOption(limitOption());
  describe(addAdminOptions(command), {
    examples: [["causeway bounce", "what bounces at the node on this machine"]],
  });
  return command.action(async (options: ListOptions) => {
    const client = connectAdmin(options);
    const { limit } = options;
    const listed = await readPages<Bounce>(client, "/api/v1/bounce", { limit });
    if (options.json) io.out(JSON.stringify(listed, null, 2));
    else for (const line of bounceLines(listed, io.columns ?? DEFAULT_COLUMNS)) io.out(line);
  });
}

export function bounceLines(listed: Listed<Bounce>, columns: number): readonly string[] {
  if (listed.items.length === 0) return ["nothing bounces at this node"];
  const rows = listed.items.map((each) => [
    each.address,
    String(each.stanzas),
    bytesText(each.bytes),
    `${each.attempts} of ${each.maxAttempts}`,
    each.isLooking
      ? "now"
      : each.nextRetryInMs === undefined
      ? ""
      : `in ${durationText(each.nextRetryInMs)}`,
  ]);
  return [
    ...tableLines(
      [
        { title: "ADDRESS", isFlexible: true },
        { title: "STANZAS", isRight: true },
        { title: "BYTES", isRight: true },
        { title: "RETRIES", isRight: true },
        { title: "NEXT" },
      ],
      rows,
      columns,
    ),
    ...restLine(listed, "addresses"),
  ];
}

/** Makes the command `causeway sessions`. */
export function sessionsCommand(io: CommandIo): Command {
  const command = new Command("sessions")
    .description("show the clients that are connected to a node")
    .option("--account <JID>", "only those of this bare JID")
    .addOption(limitOption());
  describe(addAdminOptions(command), {
    examples: [
      ["causeway sessions", "the first hundred"],
      ["causeway sessions --account alice@example.com", "the devices of a person at this node"],
    ],
  });
  return command.action(async (options: SessionsOptions) => {
    const client = connectAdmin(options);
    const { limit, account } = options;
    const query = account === undefined ? undefined : { account };
    const listed = await readPages<Session>(client, "/api/v1/sessions", {
      limit,
      ...(query === undefined ? {} : { query }),
    });
    if (options.json) io.out(JSON.stringify(listed, null, 2));
    else {
      const nobody = account === undefined
        ? "nobody is connected to this node"
        : `${account} has no session at this node`;
      const lines = sessionLines(listed, io.columns ?? DEFAULT_COLUMNS);
      for (const line of lines.length > 0 ? lines : [nobody]) io.out(line);
    }
  });
}

/** Returns a table of sessions; no line if there are none. */
export function sessionLines(listed: Listed<Session>, columns: number): readonly string[] {
  if (listed.items.length === 0) return [];
  const rows = listed.items.map((each) => [
    each.jid,
    each.state,
    each.isAvailable ? String(each.priority ?? 0) : "-",
    [
      each.isManaged ? "resumable" : "",
      each.hasCarbons ? "carbons" : "",
      each.isConfidential ? "" : "plaintext",
    ].filter((text) => text !== "").join(", "),
  ]);
  return [
    ...tableLines(
      [
        { title: "SESSION", isFlexible: true },
        { title: "STATE" },
        { title: "PRIORITY", isRight: true },
        { title: "FEATURES" },
      ],
      rows,
      columns,
    ),
    ...restLine(listed, "sessions"),
  ];
}

/** Line that says how much of a list is not shown. */
function restLine({ items, total }: Listed<unknown>, what: string): readonly string[] {
  return items.length >= total ? [] : [`${items.length} of ${total} ${what}; see --limit`];
}

/** Text for a round trip, in milliseconds. */
export function millisecondsText(ms: number | undefined): string {
  if (ms === undefined) return "";
  return shorten(ms < 10 ? `${ms.toFixed(1)} ms` : `${Math.round(ms)} ms`, 9);
}
