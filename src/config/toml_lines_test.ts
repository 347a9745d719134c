import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { parse } from "smol-toml";
import type { KeyPath } from "./toml_lines.ts";
import { indexTomlLines } from "./toml_lines.ts";

const TEXT = `# a comment with hosts = 1
hosts = ["a", # ]
  'b"',
  "c\\"]"]

[[listen.c2s]]
port = 1
tls = { mode = "x", a.b = [
  1, { z = 3,
  y = 4 }
] }
motto = """
port = 99
"""""
[[listen.c2s]]
port = 2
[listen.c2s.inner]
q = '''
[x]'''
r = 1
["x y".'z.w']
date = 1979-05-27 07:32:00
dotted . "key" = -1.5e3
empty = []
last = {}
`;

const LINES: readonly (readonly [KeyPath, number | undefined])[] = [
  [["hosts"], 2],
  [["hosts", 0], 2],
  [["hosts", 1], 3],
  [["hosts", 2], 4],
  [["listen"], 6],
  [["listen", "c2s"], 6],
  [["listen", "c2s", 0], 6],
  [["listen", "c2s", 0, "port"], 7],
  [["listen", "c2s", 0, "tls", "mode"], 8],
  [["listen", "c2s", 0, "tls", "a", "b", 0], 9],
  [["listen", "c2s", 0, "tls", "a", "b", 1, "y"], 10],
  [["listen", "c2s", 0, "motto"], 12],
  [["listen", "c2s", 1], 15],
  [["listen", "c2s", 1, "port"], 16],
  [["listen", "c2s", 1, "inner", "q"], 18],
  [["listen", "c2s", 1, "inner", "r"], 20],
  [["x y", "z.w"], 21],
  [["x y", "z.w", "date"], 22],
  [["x y", "z.w", "dotted", "key"], 23],
  [["x y", "z.w", "empty"], 24],
  [["x y", "z.w", "last"], 25],
];

Deno.test("indexTomlLines() finds keys, items and tables in every notation", () => {
  parse(TEXT); // the index is for what a parser accepts
  const lines = indexTomlLines(TEXT);
  for (const [path, line] of LINES) assert.equal(lines.lineOf(path), line, path.join("."));
  const withReturns = indexTomlLines(TEXT.replaceAll("\n", "\r\n"));
  for (const [path, line] of LINES) assert.equal(withReturns.lineOf(path), line, path.join("."));
});

Deno.test("lineOf() returns the nearest written line above a key that is not written", () => {
  const lines = indexTomlLines(TEXT);
  assert.equal(lines.lineOf(["listen", "c2s", 1, "tls", "mode"]), 15);
  assert.equal(lines.lineOf(["hosts", 9]), 2);
  assert.equal(lines.lineOf(["nowhere"]), undefined);
  assert.equal(lines.lineOf([]), undefined);
});

/** Returns the paths of all keys that a parser read. */
function* pathsOf(value: unknown, path: KeyPath = []): Generator<KeyPath> {
  if (path.length > 0) yield path;
  if (Array.isArray(value)) {
    for (const [position, item] of value.entries()) yield* pathsOf(item, [...path, position]);
  } else if (typeof value === "object" && value !== null && !(value instanceof Date)) {
    for (const [key, inner] of Object.entries(value)) yield* pathsOf(inner, [...path, key]);
  }
}

Deno.test("indexTomlLines() knows every key that the parser reads from the fixtures", () => {
  for (const name of ["minimal.toml", "broken.toml"]) {
    const text = readFileSync(new URL(`../../fixtures/config/${name}`, import.meta.url), "utf8");
    const lines = indexTomlLines(text);
    const written = text.split("\n");
    for (const path of pathsOf(parse(text))) {
      const line = lines.lineOf(path);
      assert.ok(line !== undefined, path.join("."));
      const key = path.at(-1);
      if (typeof key === "string") assert.ok(written[line - 1]!.includes(key), path.join("."));
    }
  }
});

Deno.test("indexTomlLines() terminates on text that no parser would accept", () => {
  for (const text of ["[", "[[", "a", "a =", 'a = "', "a = [", "a = {", '"', "=", "a = {b", "]"]) {
    indexTomlLines(text).lineOf(["a"]);
  }
});
