import assert from "node:assert/strict";
import { type Placed, WaitingEntries } from "./waiting_entries.ts";

interface Entry extends Placed {
  readonly name: number;
}

function entries(count: number): Entry[] {
  return Array.from({ length: count }, (_, name) => ({ name }));
}

function names(waiting: Iterable<Entry>): number[] {
  return Array.from(waiting, ({ name }) => name);
}

Deno.test("WaitingEntries keeps entries in their order, whatever is deleted", () => {
  const waiting = new WaitingEntries<Entry>();
  const all = entries(6);
  for (const entry of all) waiting.add(entry, 5);
  assert.ok(waiting.delete(all[2]!));
  assert.ok(waiting.delete(all[0]!));
  assert.equal(waiting.delete(all[0]!), false);
  assert.equal(waiting.has(all[0]!), false);
  assert.ok(waiting.has(all[1]!));
  assert.deepEqual(names(waiting), [1, 3, 4, 5]);
  assert.equal(waiting.size, 4);
  waiting.add(all[0]!, 6);
  assert.deepEqual(names(waiting), [1, 3, 4, 5, 0]);
});

Deno.test("WaitingEntries says until when others wait for the first entry, and lets all go", () => {
  const waiting = new WaitingEntries<Entry>();
  const [a, b, c, d, e] = entries(5) as [Entry, Entry, Entry, Entry, Entry];
  assert.equal(waiting.firstDueMs, undefined);
  waiting.add(a, 10);
  waiting.add(b, 20);
  waiting.delete(a);
  assert.equal(waiting.firstDueMs, 20);
  waiting.add(c, 30);
  assert.deepEqual(names(waiting.letGo()), [1, 2]);
  assert.equal(waiting.firstDueMs, undefined);
  assert.deepEqual(names(waiting.letGo()), []);
  assert.deepEqual(names(waiting), [1, 2], "they still wait themselves");
  waiting.add(d, undefined);
  assert.equal(waiting.firstDueMs, undefined, "nobody waits for it");
  waiting.add(e, 40);
  waiting.delete(b);
  assert.equal(waiting.firstDueMs, 40);
  assert.deepEqual(names(waiting.letGo()), [4]);
});

Deno.test("WaitingEntries does as a Set and a Map do, over thousands of changes", () => {
  const waiting = new WaitingEntries<Entry>();
  const set = new Set<Entry>();
  const due = new Map<Entry, number>();
  let seed = 1;
  const next = (below: number) => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    return (seed >>> 8) % below;
  };
  for (let step = 0; step < 20_000; step++) {
    const kind = next(100);
    if (kind < 52) {
      const entry = { name: step };
      // Once nobody waits for one, nobody waits for those before it either.
      const isPunctual = next(50) > 0;
      if (!isPunctual) {
        waiting.letGo();
        due.clear();
      }
      waiting.add(entry, isPunctual ? step : undefined);
      set.add(entry);
      if (isPunctual) due.set(entry, step);
    } else if (kind < 98) {
      // Mostly from the head, as transactions end; some from anywhere, as messages are taken back.
      const index = kind < 90 ? 0 : next(Math.min(set.size, 40) || 1);
      const entry = [...set][index];
      if (entry === undefined) continue;
      assert.equal(waiting.delete(entry), set.delete(entry));
      due.delete(entry);
    } else {
      assert.deepEqual(names(waiting.letGo()), names(due.keys()));
      due.clear();
    }
    assert.equal(waiting.size, set.size);
    assert.equal(waiting.firstDueMs, due.values().next().value);
    if (step % 50 !== 0) continue;
    assert.deepEqual(names(waiting), names(set));
    const [first] = set;
    if (first === undefined) assert.ok(waiting.firstPlace > waiting.lastPlace);
    else assert.equal(waiting.firstPlace, (first as Placed).place);
  }
});
