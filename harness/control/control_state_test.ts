import assert from "node:assert/strict";
import { SAMPLE } from "./testing/sample_view.ts";
import { answersOf, type Deed, FIRST_PAGE, type Page, pressKey } from "./control_state.ts";

const UP = "\u001b[A";
const DOWN = "\u001b[B";
const ESCAPE = "\u001b";

/** Presses keys one after another, and gives the deeds and the last page. */
function press(
  ...keys: readonly string[]
): { readonly deeds: readonly Deed[]; readonly page: Page } {
  let page: Page = FIRST_PAGE;
  const deeds: Deed[] = [];
  for (const key of keys) {
    const step = pressKey(page, key, SAMPLE);
    page = step.page;
    if (step.deed !== undefined) deeds.push(step.deed);
  }
  return { deeds, page };
}

Deno.test("pressKey() turns keys into deeds, by number or with the arrows and Enter", () => {
  const link: Deed = { kind: "toggle-link", one: "dc2", other: "dc3" };
  const rows: readonly (readonly [readonly string[], Deed])[] = [
    [["q"], { kind: "quit" }],
    [["\u0003"], { kind: "quit" }],
    [["c", "3"], link],
    [["c", DOWN, DOWN, DOWN, DOWN, "\r"], link],
    [["c", DOWN, UP, UP, "\r"], { kind: "toggle-link", one: "dc1", other: "dc2" }],
    [["k", "2"], { kind: "toggle-node", node: "dc2-node1" }],
    [["m", "1", "1"], { kind: "move", visitor: "visitor1", datacenter: "dc2" }],
    [["m", DOWN, "\r", DOWN, DOWN, "\r"], { kind: "move", visitor: "visitor2", datacenter: "dc3" }],
    [["d", "1"], { kind: "open", address: "http://127.0.0.1:8088/" }],
    [["t"], { kind: "toggle-traffic" }],
  ];
  for (const [keys, deed] of rows) assert.deepEqual(press(...keys).deeds, [deed], keys.join(" "));
  assert.deepEqual(press("c", "3").page, FIRST_PAGE);
});

Deno.test("pressKey() goes back from every page, and ends at once with Control-C", () => {
  for (const key of ["c", "k", "m", "d", "l", "i"]) {
    for (const back of ["q", ESCAPE]) {
      assert.deepEqual(press(key, back), { deeds: [], page: FIRST_PAGE }, key);
    }
    assert.deepEqual(press(key, "\u0003").deeds, [{ kind: "quit" }], key);
  }
  assert.deepEqual(press("m", "1", "q"), { deeds: [], page: FIRST_PAGE });
});

Deno.test("pressKey() ignores keys without a meaning", () => {
  for (const key of ["x", "9", "\u001b[15~", "ü", UP]) {
    assert.deepEqual(press(key), { deeds: [], page: FIRST_PAGE }, key);
    const choice = press("c");
    assert.deepEqual(press("c", key), choice, key);
  }
});

Deno.test("answersOf() says what an answer would do, and offers no dashboard of a stopped node", () => {
  const labels = (what: "link" | "node" | "dashboard" | "visitor") =>
    answersOf({ what }, SAMPLE).map(({ label }) => label);
  assert.deepEqual(labels("link"), [
    "cut   dc1 ↔ dc2  (up)",
    "mend  dc1 ↔ dc3  (cut)",
    "cut   dc2 ↔ dc3  (down)",
  ]);
  assert.deepEqual(labels("node").at(-1), "start  dc3-node1  (stopped)");
  assert.equal(labels("dashboard").length, 2);
  assert.deepEqual(labels("visitor"), [
    "visitor1  at dc1-node1",
    "visitor2  at dc3-node1  (not connected)",
  ]);
});
