import assert from "node:assert/strict";
import fc from "fast-check";
import type { Holders } from "./fair_shares.ts";
import { FairShares, ShareTab } from "./fair_shares.ts";

function single(...singles: string[]): Holders {
  return { singles, crowds: [] };
}

function crowd(...crowds: string[]): Holders {
  return { singles: [], crowds };
}

Deno.test("FairShares.mayHold() gives one holder alone a fifth, and a crowd alone half", () => {
  for (const bounds of [{ maxItems: 1000 }, { maxBytes: 10_000 }]) {
    for (const [holders, most] of [[single("eve"), 200], [crowd("rooms"), 500]] as const) {
      const shares = new FairShares(bounds);
      let taken = 0;
      for (; shares.mayHold(holders, 10); taken++) shares.hold(holders, 10);
      assert.equal(taken, most);
    }
  }
});

Deno.test("FairShares.mayHold() lets a holder with nothing hold one item while there is room", () => {
  const shares = new FairShares({ maxItems: 2, maxBytes: 100 });
  assert.equal(shares.mayHold(single("alice"), 101), false);
  assert.equal(shares.mayHold(single("alice"), 100), true);
  shares.hold(single("alice"), 50);
  assert.equal(shares.mayHold(single("alice"), 1), false);
  assert.equal(shares.mayHold(single("bob"), 51), false);
  shares.hold(single("bob"), 50);
  assert.equal(shares.mayHold(single("carol"), 0), false);
});

Deno.test("FairShares.mayHold() checks the share of each holder, and the wider bound", () => {
  const within = new FairShares({ maxBytes: 100 });
  const shares = new FairShares({ maxBytes: 1000, within });
  shares.hold(single("alice", "to bob"), 20);
  assert.equal(shares.mayHold(single("carol", "to bob"), 1), false); // by the wider bound: 21 · 4 > 80
  assert.equal(shares.mayHold(single("alice", "to carol"), 1), false);
  assert.equal(shares.mayHold(single("carol", "to dave"), 80), true);
  assert.equal(shares.mayHold(single("carol", "to dave"), 81), false);
  assert.deepEqual([within.items, within.bytes, within.bytesOf("alice")], [1, 20, 20]);
  shares.release(single("alice", "to bob"), 20);
  assert.deepEqual([within.items, within.bytes, within.holders, shares.holders], [0, 0, 0, 0]);
});

/** Steps of a few holders, in any order. */
const STEPS = fc.array(
  fc.record({
    who: fc.integer({ min: 0, max: 9 }),
    bytes: fc.integer({ min: 1, max: 500 }),
    isRelease: fc.boolean(),
  }),
  { maxLength: 400 },
);

Deno.test("FairShares never passes its bound, and a new holder finds room beside any others", () => {
  fc.assert(fc.property(STEPS, (steps) => {
    const maxBytes = 10_000;
    const shares = new FairShares({ maxBytes });
    const held: { readonly holders: Holders; readonly bytes: number }[] = [];
    for (const { who, bytes, isRelease } of steps) {
      const holders = single(`account ${who}`);
      if (isRelease) {
        const last = held.pop();
        if (last !== undefined) shares.release(last.holders, last.bytes);
      } else if (shares.mayHold(holders, bytes)) {
        const freeBefore = maxBytes - shares.bytes;
        const isFirst = shares.bytesOf(`account ${who}`) === 0;
        shares.hold(holders, bytes);
        held.push({ holders, bytes });
        if (!isFirst) assert.ok(shares.bytesOf(`account ${who}`) * 4 <= freeBefore);
      }
      assert.ok(shares.bytes <= maxBytes);
      assert.equal(shares.bytes, held.reduce((sum, each) => sum + each.bytes, 0));
      assert.equal(shares.items, held.length);
      // Ten holders that take all they may leave (4/5)^10 free, minus the first item of each.
      assert.ok(shares.mayHold(single("new"), Math.max(0, Math.floor(maxBytes * 0.8 ** 10) - 500)));
    }
    for (const { holders, bytes } of held) shares.release(holders, bytes);
    assert.deepEqual([shares.items, shares.bytes, shares.holders], [0, 0, 0]);
  }));
});

Deno.test("FairShares leaves room after ten holders have each taken all they may", () => {
  const shares = new FairShares({ maxBytes: 100_000_000 });
  for (let holder = 0; holder < 10; holder++) {
    while (shares.mayHold(single(`eve${holder}`), 1000)) shares.hold(single(`eve${holder}`), 1000);
  }
  assert.ok(shares.bytes < 90_000_000, `${shares.bytes}`); // 1 − 0.8^10 is 0.893
  for (let n = 0; n < 10; n++) {
    assert.equal(shares.mayHold(single(`alice${n}`), 300_000), true);
    shares.hold(single(`alice${n}`), 300_000);
  }
});

Deno.test("ShareTab reports its bytes in steps, and takes all of them back", () => {
  fc.assert(fc.property(fc.array(fc.integer({ min: 1, max: 40_000 })), (sizes) => {
    const shares = new FairShares({ maxBytes: 1e9 });
    const tab = new ShareTab(shares, single("alice"));
    let bytes = 0;
    for (const size of sizes) {
      tab.add(size);
      bytes += size;
      assert.equal(tab.bytes, bytes);
      assert.ok(Math.abs(shares.bytesOf("alice") - bytes) < 65_536);
    }
    for (const size of sizes) {
      tab.remove(size);
      bytes -= size;
      assert.ok(Math.abs(shares.bytesOf("alice") - bytes) < 65_536);
    }
    assert.equal(shares.holders, 0);
  }));
});

Deno.test("ShareTab.mayAdd() keeps all tabs of a holder within its share", () => {
  const shares = new FairShares({ maxBytes: 1_000_000 });
  const tabs = Array.from({ length: 4 }, () => new ShareTab(shares, single("alice")));
  let bytes = 0;
  for (let isTaken = true; isTaken;) {
    isTaken = false;
    for (const tab of tabs) {
      if (!tab.mayAdd(1000)) continue;
      tab.add(1000);
      shares.grow(1000);
      bytes += 1000;
      isTaken = true;
    }
  }
  // A fifth of the bound, plus less than one step for each tab.
  assert.ok(bytes >= 184_000 && bytes <= 200_000 + 4 * 65_536, `${bytes}`);
  assert.equal(new ShareTab(shares, single("bob")).mayAdd(100_000), true);
});

Deno.test("FairShares.resize() changes the bound, keeps what is held, and counts inner shares", () => {
  const total = new FairShares({ maxBytes: 100 });
  const place = new FairShares({ within: total });
  const alice = { singles: ["alice"], crowds: [] };
  place.hold(alice, 20);
  assert.equal(place.mayHold(alice, 10), false);
  total.resize(1000);
  assert.equal(place.mayHold(alice, 10), true);
  total.resize(10);
  assert.deepEqual([total.bytes, place.mayGrow(1)], [20, false]);
  assert.throws(() => place.resize(5), TypeError);
});
