import assert from "node:assert/strict";
import { Shares } from "./shares.ts";

Deno.test("Shares.hasRoom() bounds each name by itself, and not the empty name", () => {
  const shares = new Shares<number>(2);
  for (const [taker, name] of [[1, "dc9"], [2, "dc9"], [3, ""], [4, ""], [5, ""]] as const) {
    assert.ok(shares.hasRoom(name));
    shares.take(taker, name);
  }
  assert.ok(!shares.hasRoom("dc9"));
  assert.ok(shares.hasRoom("dc2"));
  assert.ok(shares.hasRoom(""));
  assert.equal(shares.size, 5);
});

Deno.test("Shares.giveBack() frees a place once, and only one that was taken", () => {
  const shares = new Shares<number>(1);
  shares.take(1, "dc9");
  shares.take(1, "dc9");
  shares.giveBack(2);
  assert.ok(!shares.hasRoom("dc9"));
  shares.giveBack(1);
  shares.giveBack(1);
  assert.ok(shares.hasRoom("dc9"));
  assert.equal(shares.size, 0);
});
