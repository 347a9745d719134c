import { shorten, tableLines, type TerminalSize, wrapText } from "../../src/terminal/mod.ts";
import type { Palette } from "../screen/mod.ts";
import type { ClusterView, LinkView, NodeStateView, NodeView } from "./cluster_view.ts";
import { answersOf, type Choice, type Page } from "./control_state.ts";

/** Everything that a drawing needs. */
export interface ScreenParts {
  readonly view: ClusterView;
  readonly page: Page;
  /** Lines of the page `ledger` or `logins`. */
  readonly text: readonly string[];
  /** News of what the person at the keyboard did, newest last. */
  readonly news: readonly string[];
  readonly paint: Palette;
}

/** News that a screen shows at most. */
const MAX_NEWS = 3;
/** Rows that the table keeps, however small the terminal is. */
const LEAST_ROOM = 3;

/** Keys of the table, in the order in which a small terminal drops none of them. */
const TABLE_KEYS = [
  "c cut/mend link",
  "k kill/start node",
  "m move visitor",
  "t traffic",
  "l ledger",
  "d dashboards",
  "i logins",
  "q quit",
];

/** Mark of each state. The words beside the marks say the same without colours. */
const NODE_MARKS: Readonly<Record<NodeStateView, string>> = {
  "ready": "●",
  "not ready": "◐",
  "draining": "◐",
  "starting": "◐",
  "ending": "◐",
  "silent": "?",
  "paused": "‖",
  "stopped": "○",
};
const LINK_MARKS: Readonly<Record<LinkView["state"], string>> = {
  "up": "═",
  "partly up": "╌",
  "down": "╳",
  "cut": "╳",
  "unknown": "?",
};

/**
 * Lays out the screen of a running cluster, as many lines as the terminal has rows. Also returns the
 * page with its place in a long list set right.
 */
export function controlLines(
  { view, page, text, news, paint }: ScreenParts,
  { columns, rows }: TerminalSize,
): { readonly lines: readonly string[]; readonly page: Page } {
  const keys = wrapItems(keysOf(page), columns);
  const told = news.slice(-MAX_NEWS);
  const head = [headLine(view), ""];
  const foot = ["", ...told, ...keys];
  const room = Math.max(LEAST_ROOM, rows - head.length - foot.length);
  const { body, cursor } = bodyOf(page, { view, text, columns });
  const asked = page.kind === "choice"
    // The cursor stays in sight.
    ? Math.max(0, cursor - room + 2)
    : page.top;
  const top = Math.max(0, Math.min(asked, body.length - room));
  const shown = body.slice(top, top + room);
  if (top > 0) shown[0] = `↑ ${top + 1} more`;
  const below = body.length - top - shown.length;
  if (below > 0) shown[shown.length - 1] = `↓ ${below + 1} more`;
  const filled = [...shown, ...Array.from({ length: room - shown.length }, () => "")];
  const lines = [...head, ...filled, ...foot].map((line) => shorten(line, columns)).slice(0, rows);
  return {
    lines: lines.map((line, index) => colour(line, index === 0, paint)),
    page: page.kind === "choice" ? { ...page, at: cursor } : { ...page, top },
  };
}

function headLine({ globalHost, nodes, traffic }: ClusterView): string {
  const ready = nodes.filter(({ state }) => state === "ready").length;
  const sessions = nodes.reduce((sum, each) => sum + each.sessions, 0);
  return `Causeway  ${globalHost}  nodes ready ${ready}/${nodes.length}  sessions ${sessions}  ` +
    `traffic ${traffic.state}`;
}

function bodyOf(
  page: Page,
  { view, text, columns }: {
    readonly view: ClusterView;
    readonly text: readonly string[];
    readonly columns: number;
  },
): { readonly body: readonly string[]; readonly cursor: number } {
  switch (page.kind) {
    case "table":
      return { body: tables(view, columns), cursor: 0 };
    case "text":
      return { body: text.flatMap((line) => foldLine(line, columns)), cursor: 0 };
    case "choice": {
      const answers = answersOf(page.choice, view);
      const cursor = Math.min(page.at, Math.max(0, answers.length - 1));
      const body = answers.map(({ label }, index) =>
        `${index === cursor ? ">" : " "} ${index < 9 ? index + 1 : " "}  ${label}`
      );
      return {
        body: [
          questionOf(page.choice),
          ...body,
          ...(body.length === 0 ? ["  nothing to choose"] : []),
        ],
        cursor,
      };
    }
    default:
      return page satisfies never;
  }
}

function questionOf(choice: Choice): string {
  switch (choice.what) {
    case "link":
      return "Cut or mend which link?";
    case "node":
      return "Kill or start which node?";
    case "visitor":
      return "Move which visitor?";
    case "place":
      return `Move ${choice.visitor} where?`;
    case "dashboard":
      return "Open which dashboard?";
    default:
      return choice satisfies never;
  }
}

function keysOf(page: Page): readonly string[] {
  switch (page.kind) {
    case "table":
      return TABLE_KEYS;
    case "text":
      return ["↑ ↓ scroll", "q back"];
    case "choice":
      return ["↑ ↓ choose", "Enter does it", "1–9 at once", "q back"];
    default:
      return page satisfies never;
  }
}

/** Columns of terminal that a column of a table needs to be shown. */
const ALWAYS = 0;
const MEDIUM = 56;
const WIDE = 72;

/** The nodes and the links. Narrow terminals get fewer columns. */
function tables(view: ClusterView, columns: number): readonly string[] {
  const nodes = tableOf<NodeView>(columns, view.nodes, [
    ["NODE", ALWAYS, ({ name }) => name],
    ["STATE", ALWAYS, ({ state }) => `${NODE_MARKS[state]} ${state}`, { minWidth: 11 }],
    ["SESSIONS", ALWAYS, ({ sessions }) => String(sessions), { isRight: true }],
    ["OUT/S", MEDIUM, ({ sentPerSec }) => rateText(sentPerSec), { isRight: true }],
    ["IN/S", MEDIUM, ({ receivedPerSec }) => rateText(receivedPerSec), { isRight: true }],
    ["HELD", MEDIUM, ({ held }) => String(held), { isRight: true }],
    ["WAITING", WIDE, ({ waiting }) => String(waiting), { isRight: true }],
    ["REDIS", WIDE, ({ redis }) => redis],
  ]);
  if (view.links.length === 0) return nodes;
  const links = tableOf<LinkView>(columns, view.links, [
    ["LINK", ALWAYS, ({ one, other }) => `${one} ↔ ${other}`],
    ["STATE", ALWAYS, ({ state }) => `${LINK_MARKS[state]} ${state}`, { minWidth: 11 }],
    ["RTT", ALWAYS, ({ roundTripMs }) => roundTripText(roundTripMs), { isRight: true }],
    ["→/S", MEDIUM, ({ sentPerSec }) => rateText(sentPerSec[0]), { isRight: true }],
    ["←/S", MEDIUM, ({ sentPerSec }) => rateText(sentPerSec[1]), { isRight: true }],
    ["HELD →", WIDE, ({ held }) => String(held[0]), { isRight: true }],
    ["HELD ←", WIDE, ({ held }) => String(held[1]), { isRight: true }],
  ]);
  return [...nodes, "", ...links];
}

type ColumnOf<T> = readonly [
  title: string,
  fromColumns: number,
  text: (row: T) => string,
  more?: { readonly isRight?: boolean; readonly minWidth?: number },
];

function tableOf<T>(
  width: number,
  rows: readonly T[],
  columns: readonly ColumnOf<T>[],
): readonly string[] {
  const shown = columns.filter(([, fromColumns]) => width >= fromColumns);
  return tableLines(
    // A table that is drawn again keeps still: its columns have a least width.
    shown.map(([title, , , { isRight = false, minWidth = 0 } = {}]) => ({
      title: isRight ? title.padStart(minWidth || 6) : title.padEnd(minWidth),
      isRight,
    })),
    rows.map((row) => shown.map(([, , text]) => text(row))),
    width,
  );
}

function rateText(perSec: number): string {
  return perSec >= 100 ? Math.round(perSec).toLocaleString("en") : perSec.toFixed(1);
}

function roundTripText(ms: number | undefined): string {
  return ms === undefined ? "–" : `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
}

/** Breaks a sentence into lines. Indented lines belong to tables, and stay whole. */
function foldLine(line: string, columns: number): readonly string[] {
  return line.startsWith(" ") || line.length <= columns ? [line] : wrapText(line, columns);
}

/** Joins items to lines of at most `columns` characters. */
function wrapItems(items: readonly string[], columns: number): readonly string[] {
  const lines: string[] = [];
  for (const item of items) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 3 + item.length <= columns) {
      lines[lines.length - 1] = `${last} · ${item}`;
    } else lines.push(item);
  }
  return lines;
}

/** Colours a line by what it says; without colours it says the same. */
function colour(line: string, isHead: boolean, paint: Palette): string {
  if (isHead) return paint.bold(line);
  if (/^(?:NODE|LINK) /.test(line)) return paint.dim(line);
  if (line.startsWith("> ")) return paint.bold(line);
  return line
    .replace(/[●═] (?:ready|up)/, (text) => paint.green(text))
    .replace(/[◐‖╌?] (?:[a-z]+ )?[a-z]+/, (text) => paint.yellow(text))
    .replace(/[○╳] [a-z]+/, (text) => paint.red(text));
}
