import { stripVTControlCharacters } from "node:util";

/** A column: its heading, and on which side its cells stand. */
export interface Column {
  readonly heading: string;
  /** @default "left" */
  readonly align?: "left" | "right";
  /** Columns are at least this wide, so that a table that is redrawn keeps still. @default 0 */
  readonly minWidth?: number;
}

/** Lines of aligned columns, the headings first; colours take no room. */
export function textTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): string[] {
  const headings = columns.map((column) => column.heading);
  const widths = columns.map((column, index) =>
    Math.max(
      column.minWidth ?? 0,
      ...[headings, ...rows].map((row) => visibleWidth(row[index] ?? "")),
    )
  );
  return [headings, ...rows].map((row) =>
    columns.map((column, index) => {
      const cell = row[index] ?? "";
      const room = " ".repeat(widths[index]! - visibleWidth(cell)); // one width for each column
      return column.align === "right" ? room + cell : cell + room;
    }).join("  ").trimEnd()
  );
}

function visibleWidth(text: string): number {
  return [...stripVTControlCharacters(text)].length;
}
