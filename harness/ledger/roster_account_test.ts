import assert from "node:assert/strict";
import fc from "fast-check";
import { RosterAccount, rosterFindings } from "./mod.ts";

const BEN = "ben@a";
const ITEM = "friend@b";

function setUp() {
  const clock = { nowMs: 0 };
  const rosters = new RosterAccount(() => clock.nowMs);
  /** Asks for a change, and gets its result a millisecond later. */
  const change = (name: string | undefined, item = ITEM) => {
    const asked = rosters.asked(BEN, item, name);
    clock.nowMs++;
    rosters.acknowledged(asked);
    clock.nowMs++;
    return asked;
  };
  /** Compares with a roster that has the item with this name, or does not have it. */
  const lostWith = (name: string | undefined) => {
    const before = rosters.balance({ windows: [] }).lost;
    rosters.found(BEN, new Map(name === undefined ? [] : [[ITEM, name]]));
    return rosters.balance({ windows: [] }).lost - before;
  };
  const found = (windows = [] as { fromMs: number; toMs: number }[]) =>
    rosterFindings(rosters.balance({ windows }));
  return { clock, rosters, change, lostWith, found };
}

Deno.test("RosterAccount finds an acknowledged change that is lost, whatever it was", () => {
  const { change, lostWith, found } = setUp();
  for (const name of ["one", "two", undefined, "three"]) {
    change(name);
    for (const inRoster of ["one", "two", undefined, "three"]) {
      assert.equal(lostWith(inRoster), inRoster === name ? 0 : 1, `${inRoster} for ${name}`);
    }
  }
  assert.deepEqual(found(), ["12 acknowledged roster changes lost"]);
});

Deno.test("RosterAccount accepts either of two changes that were made at once, and nothing else", () => {
  const { clock, rosters, change, lostWith } = setUp();
  change("old");
  const asked = ["one", "two"].map((name) => rosters.asked(BEN, ITEM, name));
  clock.nowMs++;
  for (const each of asked.toReversed()) rosters.acknowledged(each);
  const lost = ["one", "two", "old", undefined].map(lostWith);
  assert.deepEqual(lost, [0, 0, 1, 1]);
});

Deno.test("RosterAccount accepts a change without a result as made or not made, at any time", () => {
  const { rosters, change, lostWith } = setUp();
  change("old");
  const [cut, refused] = ["cut", "refused"].map((name) => rosters.asked(BEN, ITEM, name));
  rosters.abandoned(cut!);
  rosters.refused(refused!, "internal-server-error");
  assert.deepEqual(["old", "cut", "refused", "other"].map(lostWith), [0, 0, 0, 1]);
  change("new");
  assert.deepEqual(["new", "cut", "refused", "old"].map(lostWith), [0, 0, 0, 1]);
});

Deno.test("RosterAccount finds nothing whatever two clients do to a roster that loses nothing", () => {
  const step = fc.record({
    client: fc.nat(1),
    isEnd: fc.boolean(),
    name: fc.option(fc.string({ maxLength: 2 }), { nil: undefined }),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
    const { clock, rosters, lostWith } = setUp();
    let stored: string | undefined;
    const open: (ReturnType<RosterAccount["asked"]> | undefined)[] = [undefined, undefined];
    for (const { client, isEnd, name } of steps) {
      clock.nowMs++;
      const change = open[client];
      if (change === undefined) {
        open[client] = rosters.asked(BEN, ITEM, name);
        if (!isEnd) stored = name; // made at once, and told later
        else {
          rosters.abandoned(open[client]); // never made
          open[client] = undefined;
        }
      } else {
        rosters.acknowledged(change);
        open[client] = undefined;
      }
    }
    assert.equal(lostWith(stored), 0);
  }));
});

Deno.test("RosterAccount takes the removal of an item that is not there as done", () => {
  const { rosters, lostWith, found } = setUp();
  rosters.refused(rosters.asked(BEN, ITEM, undefined), "item-not-found");
  assert.equal(lostWith(undefined), 0);
  assert.deepEqual(found(), []);
  assert.equal(lostWith("one"), 1);
});

Deno.test("RosterAccount finds prepared items that are gone, and rosters that were not compared", () => {
  const { rosters, found } = setUp();
  rosters.prepared(BEN, "ann@a", "both");
  assert.deepEqual(found(), ["1 rosters could not be compared"]);
  rosters.found(BEN, new Map([["ann@a", "both"]]));
  assert.deepEqual(found(), []);
  rosters.found(BEN, new Map([["ann@a", "to"]]));
  assert.deepEqual(found(), ["1 acknowledged roster changes lost"]);
});

Deno.test("RosterAccount finds changes that are not answered although their session goes on", () => {
  const { rosters, lostWith, found } = setUp();
  const change = rosters.asked(BEN, ITEM, "one");
  lostWith("one");
  assert.deepEqual(found(), ["1 roster changes without an answer"]);
  rosters.abandoned(change);
  assert.deepEqual(found(), []);
});

for (const [missing, isEnough] of [[5, true], [6, false]] as const) {
  Deno.test(`RosterAccount ${isEnough ? "lets" : "does not let"} ${missing} of 100 pushes be missing`, () => {
    const { clock, rosters, change, lostWith, found } = setUp();
    const session = rosters.opened(BEN);
    clock.nowMs = 10_000;
    for (let number = 0; number < 100; number++) {
      if (number >= missing) rosters.pushed(session, ITEM, `name${number}`); // may precede the result
      change(`name${number}`);
    }
    lostWith("name99");
    const finding = `only ${
      100 - missing
    } of 100 roster pushes came that were due outside the fault's window`;
    assert.deepEqual(found(), isEnough ? [] : [finding]);
    assert.deepEqual(found([{ fromMs: 0, toMs: clock.nowMs }]), []);
  });
}

Deno.test("RosterAccount owes a push to other sessions that are known and stay", () => {
  const { clock, rosters, change } = setUp();
  const [own, other, gone] = [0, 1, 2].map(() => rosters.opened(BEN));
  rosters.opened("ann@a");
  clock.nowMs = 10_000;
  rosters.opened(BEN); // has just logged in
  const asked = rosters.asked(BEN, ITEM, "one");
  rosters.acknowledged(asked, own);
  rosters.closed(gone!);
  assert.deepEqual(rosters.balance({ windows: [] }).pushes, { due: 1, came: 0 });
  rosters.pushed(other!, ITEM, "one");
  assert.deepEqual(rosters.balance({ windows: [] }).pushes, { due: 1, came: 1 });
  change("two");
  assert.equal(rosters.balance({ windows: [] }).pushes.due, 3);
});
