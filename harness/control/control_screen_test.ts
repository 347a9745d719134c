import assert from "node:assert/strict";
import { stripVTControlCharacters } from "node:util";
import { palette } from "../screen/mod.ts";
import { controlLines, type ScreenParts } from "./control_screen.ts";
import { FIRST_PAGE } from "./control_state.ts";
import { SAMPLE } from "./testing/sample_view.ts";

const PARTS: ScreenParts = {
  view: SAMPLE,
  page: FIRST_PAGE,
  text: [],
  news: ["one", "two", "three", "four"],
  paint: palette(false),
};

function draw(parts: Partial<ScreenParts>, columns = 80, rows = 24) {
  return controlLines({ ...PARTS, ...parts }, { columns, rows });
}

Deno.test("controlLines() shows nodes, links, the last news and the keys", () => {
  const { lines } = draw({});
  assert.equal(lines.length, 24);
  assert.deepEqual(lines.slice(0, 11), [
    "Causeway  example.com  nodes ready 2/3  sessions 4  traffic on",
    "",
    "NODE       STATE        SESSIONS   OUT/S    IN/S    HELD  WAITING  REDIS",
    "dc1-node1  ● ready             2     3.3     4.0       5        6  up",
    "dc2-node1  ● ready             2     3.3     4.0       5        6  up",
    "dc3-node1  ○ stopped           0     3.3     4.0       5        6  down",
    "",
    "LINK       STATE           RTT     →/S     ←/S  HELD →  HELD ←",
    "dc1 ↔ dc2  ═ up         1.5 ms     1.0     2.0       3       4",
    "dc1 ↔ dc3  ╳ cut             –     1.0     2.0       3       4",
    "dc2 ↔ dc3  ╳ down       1.5 ms     1.0     2.0       3       4",
  ]);
  assert.deepEqual(lines.slice(-6), [
    "",
    "two",
    "three",
    "four",
    "c cut/mend link · k kill/start node · m move visitor · t traffic · l ledger",
    "d dashboards · i logins · q quit",
  ]);
});

Deno.test("controlLines() fits every size, and keeps the names and states of a narrow terminal", () => {
  for (const columns of [20, 40, 44, 57, 80, 200]) {
    for (const rows of [1, 5, 10, 24, 60]) {
      const { lines } = draw({ page: { kind: "table", top: 0 } }, columns, rows);
      assert.ok(lines.length <= rows, `${lines.length} lines in ${rows} rows`);
      for (const line of lines) assert.ok([...line].length <= columns, line);
    }
  }
  const narrow = draw({}, 44).lines;
  assert.ok(narrow.includes("dc3-node1  ○ stopped           0"));
  assert.ok(narrow.includes("dc1 ↔ dc3  ╳ cut             –"));
});

Deno.test("controlLines() says the same without colours", () => {
  const coloured = draw({ paint: palette(true) }).lines;
  assert.deepEqual(coloured.map(stripVTControlCharacters), draw({}).lines);
  assert.ok(coloured.some((line) => line.includes("\u001b[32m● ready\u001b[39m")));
  assert.ok(coloured.some((line) => line.includes("\u001b[31m╳ cut\u001b[39m")));
});

Deno.test("controlLines() scrolls a long list, and says how much is out of sight", () => {
  const nodes = Array.from({ length: 81 }, (_, index) => ({
    ...SAMPLE.nodes[0]!,
    name: `dc${1 + Math.floor(index / 9)}-node${1 + index % 9}`,
  }));
  const view = { ...SAMPLE, nodes };
  const first = draw({ view }).lines;
  assert.match(first.join("\n"), /^↓ \d+ more$/m);
  assert.doesNotMatch(first.join("\n"), /↑ \d+ more/);
  const end = draw({ view, page: { kind: "table", top: 10_000 } });
  assert.match(end.lines.join("\n"), /^↑ \d+ more$/m);
  assert.match(end.lines.join("\n"), /^dc2 ↔ dc3/m);
  assert.ok(end.page.kind === "table" && end.page.top < 81, "the next key moves at once");
  const choice = draw({
    view,
    page: { kind: "choice", choice: { what: "node" }, at: 80 },
  }).lines.join("\n");
  assert.match(choice, /^> {4}kill {3}dc9-node9/m);
});

Deno.test("controlLines() folds the sentences of a page of text", () => {
  const text = ["a sentence that is longer than the terminal is wide", "  dc1  5222  5223  5224"];
  const { lines } = draw({ page: { kind: "text", text: "logins", top: 0 }, text }, 24);
  assert.deepEqual(lines.slice(2, 6), [
    "a sentence that is",
    "longer than the terminal",
    "is wide",
    "  dc1  5222  5223  5224",
  ]);
});
