import { readFileSync, writeFileSync } from "node:fs";
import { CATALOGUE, DATA_KINDS, describeKinds } from "./catalogue.ts";
import type { BackendRow, ServerProduct } from "./catalogue.ts";

const PAGE = new URL("../../../docs/databases.md", import.meta.url);
const BEGIN =
  "<!-- backends: written by `deno run -RW src/storage/catalogue/databases_page.ts` -->\n" +
  "<!-- deno-fmt-ignore-start -->";
const END = "<!-- deno-fmt-ignore-end -->";

/** Renders the tables of docs/databases.md that come from the catalogue, as Markdown. */
export function renderCatalogue(): string {
  return [
    "| backend | name in the configuration | servers | kinds of data |",
    "| --- | --- | --- | --- |",
    ...CATALOGUE.map((row) =>
      `| ${backendCell(row)} | \`${row.id}\` | ${row.products.map(serverCell).join("; ")} ` +
      `| ${describeKinds(row)} |`
    ),
    "",
    "| kind of data | meaning |",
    "| --- | --- |",
    ...Object.entries(DATA_KINDS).map(([kind, meaning]) => `| \`${kind}\` | ${meaning} |`),
    "",
  ].join("\n");
}

/** Returns `page` with its generated part renewed. */
export function withCatalogue(page: string): string {
  const begin = page.indexOf(BEGIN);
  const end = page.indexOf(END);
  if (begin < 0 || end < begin) throw new TypeError(`Cannot find ${BEGIN} and ${END} in the page`);
  return `${page.slice(0, begin)}${BEGIN}\n\n${renderCatalogue()}\n${page.slice(end)}`;
}

function backendCell({ name, note }: BackendRow): string {
  return note === undefined ? name : `${name} (${note})`;
}

function serverCell({ name, minimumVersion, note }: ServerProduct): string {
  const versioned = minimumVersion === undefined ? name : `${name} ≥ ${minimumVersion}`;
  return note === undefined ? versioned : `${versioned} (${note})`;
}

if (import.meta.main) writeFileSync(PAGE, withCatalogue(readFileSync(PAGE, "utf8")));
