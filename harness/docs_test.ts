import assert from "node:assert/strict";
import { dirname, join, relative } from "node:path/posix";
import { PROJECT_DIRECTORY } from "./process/mod.ts";

const PAGES = new Map<string, string>();
const SOURCES = new Map<string, string>();
for (const path of filesBelow(".")) {
  if (path.endsWith(".md")) PAGES.set(path, read(path));
  else if (path.endsWith(".ts")) SOURCES.set(path, read(path));
}

function* filesBelow(folder: string): Generator<string> {
  for (const { name, isDirectory } of Deno.readDirSync(join(PROJECT_DIRECTORY, folder))) {
    if (name.startsWith(".") || name === "dist" || name === "node_modules") continue;
    const path = join(folder, name);
    if (isDirectory) yield* filesBelow(path);
    else yield path;
  }
}

function read(path: string): string {
  return Deno.readTextFileSync(join(PROJECT_DIRECTORY, path));
}

/** The texts of a page's headings, without emphasis and code marks. */
function headings(page: string): readonly string[] {
  return [...page.matchAll(/^#+ (.+)$/gm)].map(([, text]) => text!.replaceAll(/[`*]/g, ""));
}

/** The anchor under which a heading is reached, as code-hosting sites make it. */
function anchorOf(heading: string): string {
  return heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(/\s/g, "-");
}

/** The words that the glossary explains: the first cell of each row. */
function glossaryWords(): readonly string[] {
  return [...PAGES.get("docs/glossary.md")!.matchAll(/^\| ([^|]+?) +\|/gm)]
    .flatMap(([, cell]) => cell!.split(", "));
}

Deno.test("comments and messages name existing pages and sections", () => {
  const wrong: string[] = [];
  for (const [path, text] of SOURCES) {
    // A comment may break the line within a reference.
    const flat = text.replaceAll(/\n\s*(\*|\/\/) ?/g, " ");
    for (const [, page, section] of flat.matchAll(/\b(docs\/\w+\.md)(?:, "([^"]+)")?/g)) {
      const content = PAGES.get(page!);
      const known = content === undefined
        ? []
        : page === "docs/glossary.md"
        ? [...headings(content), ...glossaryWords()]
        : headings(content);
      if (content === undefined || (section !== undefined && !known.includes(section))) {
        wrong.push(`${path}: ${page}${section === undefined ? "" : `, "${section}"`}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("comments refer only to pages in the repository", () => {
  const wrong: string[] = [];
  for (const [path, text] of SOURCES) {
    if (path.startsWith("fixtures/")) continue;
    for (const [, name] of text.matchAll(/`([a-z_]+\.md)`/g)) {
      if (![...PAGES.keys()].some((page) => page.endsWith(`/${name}`))) {
        wrong.push(`${path}: ${name}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("links between pages lead to existing files and headings", () => {
  const wrong: string[] = [];
  for (const [path, text] of PAGES) {
    const prose = text.replaceAll(/^```.*?^```/gms, "").replaceAll(/`[^`\n]*`/g, "");
    for (const [, target] of prose.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target!)) continue;
      const [file, anchor] = target!.split("#", 2);
      const page = file === "" ? path : relative(".", join(dirname(path), file!));
      if (!exists(page)) wrong.push(`${path}: ${target}`);
      else if (anchor !== undefined && PAGES.has(page)) {
        const anchors = headings(PAGES.get(page)!).map(anchorOf);
        if (!anchors.includes(anchor)) wrong.push(`${path}: ${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

Deno.test("pages name existing source files", () => {
  const wrong: string[] = [];
  for (const [path, text] of PAGES) {
    if (path === "CHANGELOG.md") continue; // it tells of files as they were
    for (const [, file] of text.matchAll(/`([\w./-]+\/\w+\.ts)`/g)) {
      if (![...SOURCES.keys()].some((source) => `/${source}`.endsWith(`/${file}`))) {
        wrong.push(`${path}: ${file}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

function exists(path: string): boolean {
  try {
    Deno.statSync(join(PROJECT_DIRECTORY, path));
    return true;
  } catch {
    return false; // not there
  }
}
