/** Columns of an output that is no terminal, and least columns that a layout is made for. */
export const DEFAULT_COLUMNS = 80;
const LEAST_COLUMNS = 40;

/** Column of a table. */
export interface Column {
  readonly title: string;
  /** True for numbers, which end at the right edge. */
  readonly isRight?: boolean;
  /** True for the column that is shortened when the table is too wide. The last such one goes first. */
  readonly isFlexible?: boolean;
}

/** Least width to which a column is shortened. */
const LEAST_WIDTH = 8;
const GAP = "  ";

/**
 * Lays out rows below their titles, two spaces apart, within `columns`. Cells that do not fit end in
 * `…`.
 */
export function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number = DEFAULT_COLUMNS,
): readonly string[] {
  const shown = [columns.map(({ title }) => title), ...rows].map((row) => row.map(plainText));
  // Not by `Math.max(...)`: a node has more sessions than a call may have arguments.
  const widths = columns.map((_, i) =>
    shown.reduce((most, row) => Math.max(most, lengthOf(row[i] ?? "")), 0)
  );
  const room = Math.max(LEAST_COLUMNS, width) - GAP.length * (columns.length - 1);
  for (const [i, { isFlexible = false }] of [...columns.entries()].toReversed()) {
    const over = widths.reduce((sum, each) => sum + each, 0) - room;
    if (isFlexible && over > 0) widths[i] = Math.max(LEAST_WIDTH, widths[i]! - over);
  }
  return shown.map((row) =>
    row.map((cell, i) => {
      const text = shorten(cell, widths[i]!);
      const pad = " ".repeat(widths[i]! - lengthOf(text));
      return columns[i]!.isRight ? pad + text : text + pad;
    }).join(GAP).trimEnd()
  );
}

/** Cuts `text` at `width` characters, the last of them `…`. */
export function shorten(text: string, width: number): string {
  const characters = [...text];
  return characters.length <= width ? text : characters.slice(0, width - 1).join("") + "…";
}

/** Breaks `text` at spaces into lines of at most `width` characters; a longer word stays whole. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of plainText(text).split(/\s+/)) {
    if (line === "") line = word;
    else if (lengthOf(line) + 1 + lengthOf(word) <= width) line += ` ${word}`;
    else {
      lines.push(line);
      line = word;
    }
  }
  return [...lines, line];
}

/** Replaces control characters, which could move the cursor or change colours. */
export function plainText(text: string): string {
  // deno-lint-ignore no-control-regex -- these are the characters to find
  return text.replace(/[\u0000-\u001f\u007f-\u009f]+/g, " ");
}

function lengthOf(text: string): number {
  return [...text].length;
}

/** Text for a time span: `350 ms`, `12 s`, `3 min`, `5 h`, `12 d`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}

/** Text for a number of bytes: `512 B`, `1.5 KiB`, `20 MiB`. */
export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let value = bytes;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at++;
  }
  return `${at > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} ${units[at]}`;
}

/** Lays out names with their values, and breaks long values. */
export function factLines(
  facts: readonly (readonly [name: string, value: string])[],
  columns: number,
): readonly string[] {
  const margin = Math.max(...facts.map(([name]) => lengthOf(name))) + GAP.length;
  const room = Math.max(LEAST_COLUMNS, columns) - margin;
  return facts.flatMap(([name, value]) =>
    wrapText(value, room).map((line, i) => (i === 0 ? name : "").padEnd(margin) + line)
  );
}
