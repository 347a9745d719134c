import { readFileSync, writeFileSync } from "node:fs";
import { z } from "zod";
import { FILE_SCHEMA } from "./file_schema.ts";
import type { ReloadEffect } from "./reload_table.ts";
import { reloadEffectOf } from "./reload_table.ts";
import { branchesOf, describeAllowed, shapeOf, unwrap } from "./schema_walk.ts";

const PAGE = new URL("../../docs/configuration.md", import.meta.url);
const BEGIN = "<!-- options: written by `deno run -RW src/config/reference_page.ts` -->\n" +
  "<!-- deno-fmt-ignore-start -->";
const END = "<!-- deno-fmt-ignore-end -->";

/** One option as the page shows it. */
interface Row {
  readonly name: string;
  readonly allowed: string;
  readonly byDefault: string;
  readonly onReload: ReloadEffect;
  readonly meaning: string;
}

interface Section {
  readonly heading: string;
  readonly meaning: string;
  readonly rows: Row[];
}

/**
 * Renders the part of the page that lists every option with its type, default and meaning, as
 * Markdown.
 */
export function renderOptions(): string {
  const sections: Section[] = [];
  collectSection("", "Top level", "", FILE_SCHEMA, sections);
  return sections.filter(({ rows }) => rows.length > 0).map(renderSection).join("\n");
}

/** Returns `page` with its generated part renewed. */
export function withOptions(page: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new TypeError(`Cannot find ${BEGIN} and ${END} in the page`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${renderOptions()}\n${page.slice(end)}`;
}

/** Adds the section of a table, followed by the sections of its inner tables. */
function collectSection(
  path: string,
  heading: string,
  meaning: string,
  schema: z.ZodType,
  sections: Section[],
): void {
  const section: Section = { heading, meaning, rows: [] };
  sections.push(section);
  for (const [key, option] of Object.entries(shapeOf(schema) ?? {})) {
    const name = path === "" ? key : `${path}.${key}`;
    const inner = innerTable(name, option);
    if (inner === undefined) {
      section.rows.push(rowOf(name, option));
      continue;
    }
    if (!inner.isPlain) section.rows.push(rowOf(name, option));
    collectSection(inner.path, inner.heading, unwrap(option).meaning ?? "", inner.table, sections);
  }
}

interface InnerTable {
  readonly path: string;
  readonly heading: string;
  readonly table: z.ZodType;
  /** True for a table that may be left out as a whole. Its own row would add nothing. */
  readonly isPlain: boolean;
}

/**
 * Returns the table that an option is, or that its items are. Undefined when the page shows the
 * option as a row.
 */
function innerTable(path: string, option: z.ZodType): InnerTable | undefined {
  const { schema, words, isOptional } = unwrap(option);
  if (words.isWhole === true) return undefined;
  if (schema instanceof z.ZodArray) {
    const table = schema.element as z.ZodType; // zod declares its core type here; the value is a classic one
    if (shapeOf(table) === undefined || unwrap(table).words.isWhole === true) return undefined;
    return { path, heading: `[[${path}]]`, table, isPlain: false };
  }
  if (schema instanceof z.ZodRecord) {
    const table = unwrap(schema.valueType as z.ZodType).schema;
    if (Object.keys(shapeOf(table) ?? {}).length === 0) return undefined;
    const inside = `${path}."NAME"`;
    return { path: inside, heading: `[${inside}]`, table, isPlain: true };
  }
  const table = branchesOf(schema).find((branch) => Object.keys(shapeOf(branch) ?? {}).length > 0);
  if (table === undefined) return undefined;
  return { path, heading: `[${path}]`, table, isPlain: isOptional && table === schema };
}

/** @param path as in a heading, such as `outgoing_pools.rdbms."NAME".workers` */
function rowOf(path: string, option: z.ZodType): Row {
  const keys = path.replaceAll('"', "").split(".");
  const { meaning, words, isOptional, defaultValue } = unwrap(option);
  const isEmptyTable = typeof defaultValue === "object" && defaultValue !== null &&
    !Array.isArray(defaultValue) && Object.keys(defaultValue).length === 0;
  let byDefault = isOptional ? "absent" : "**required**";
  if (words.defaultText !== undefined) byDefault = words.defaultText;
  else if (isEmptyTable) byDefault = "its defaults";
  else if (defaultValue !== undefined) byDefault = `\`${formatToml(defaultValue)}\``;
  return {
    name: keys.at(-1)!,
    allowed: describeAllowed(option),
    byDefault,
    onReload: reloadEffectOf(keys) ?? "restart",
    meaning: meaning ?? "",
  };
}

function formatToml(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(formatToml).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const keys = Object.entries(value).map(([key, item]) => `${key} = ${formatToml(item)}`);
  return `{ ${keys.join(", ")} }`;
}

function renderSection({ heading, meaning, rows }: Section): string {
  const title = heading.startsWith("[") ? `\`${heading}\`` : heading;
  const lines = [`### ${title}`, ""];
  if (meaning !== "") lines.push(`${meaning[0]!.toUpperCase()}${meaning.slice(1)}.`, "");
  lines.push(
    "| option | value | default | reload | meaning |",
    "| --- | --- | --- | --- | --- |",
  );
  for (const { name, allowed, byDefault, onReload, meaning: text } of rows) {
    const cells = [`\`${name}\``, allowed, byDefault, onReload, text].map((cell) =>
      cell.replaceAll("|", "\\|")
    );
    lines.push(`| ${cells.join(" | ")} |`);
  }
  return `${lines.join("\n")}\n`;
}

if (import.meta.main) writeFileSync(PAGE, withOptions(readFileSync(PAGE, "utf8")));
