import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { SlowReaders } from "./slow_readers.ts";

function fixture(maxPlaces = 256) {
  const clock = new ManualClock();
  return { clock, readers: new SlowReaders<string>(maxPlaces, clock) };
}

/** Adds `count` connections of an address, none of which reads its answer. */
function addCrowd(readers: SlowReaders<string>, address: string, count: number): void {
  for (let i = 0; i < count; i++) {
    readers.enter(`${address} ${i}`, address);
    readers.waitFor(`${address} ${i}`);
  }
}

Deno.test("SlowReaders spares a reader for five seconds of waiting, not for longer", () => {
  const { clock, readers } = fixture();
  readers.enter("honest", "a");
  assert.equal(readers.yielding("b"), undefined, "nothing is unread");
  readers.waitFor("honest");
  clock.advance(4_999);
  assert.equal(readers.yielding("b"), undefined);
  clock.advance(1);
  assert.equal(readers.yielding("b"), "honest");
  readers.leave("honest");
  assert.equal(readers.yielding("b"), undefined);
});

Deno.test("SlowReaders spares who reads a piece a second, and not who reads one now and then", () => {
  const { clock, readers } = fixture();
  for (const key of ["honest", "hostile"]) readers.enter(key, "a");
  const read = (key: string) => {
    readers.hasRead(key);
    readers.waitFor(key);
  };
  for (const key of ["honest", "hostile"]) readers.waitFor(key);
  let gone: string | undefined;
  for (let second = 1; second < 600; second++) {
    clock.advance(1_000);
    gone ??= readers.yielding("a");
    if (gone !== undefined) readers.leave(gone);
    read("honest");
    if (second % 4 === 0) read("hostile");
    assert.equal(gone, second < 6 ? undefined : "hostile", `${second} s`);
  }
});

Deno.test("SlowReaders gives a slow reader its patience back, and no more, when it reads", () => {
  const { clock, readers } = fixture();
  readers.enter("stream", "a"); // as an event stream that is busy now and then
  for (let burst = 0; burst < 10; burst++) {
    for (let piece = 0; piece < 20; piece++) {
      readers.waitFor("stream");
      readers.hasRead("stream");
    }
    readers.waitFor("stream");
    clock.advance(4_000);
    assert.equal(readers.yielding("b"), undefined);
    readers.hasRead("stream");
    clock.advance(60_000); // nothing to read
  }
});

Deno.test("SlowReaders takes the place of a crowd for another address, never that of a single one", () => {
  const { readers } = fixture();
  readers.enter("honest", "a");
  readers.waitFor("honest"); // it waits longest
  addCrowd(readers, "crowd", 200);
  addCrowd(readers, "smaller", 55);
  let newcomers = 0;
  for (;;) {
    const gone = readers.yielding(`newcomer ${newcomers}`);
    if (gone === undefined) break;
    assert.notEqual(gone, "honest");
    readers.leave(gone);
    readers.enter(`newcomer ${newcomers}`, `newcomer ${newcomers}`);
    readers.waitFor(`newcomer ${newcomers++}`);
  }
  // Both crowds shrink to less than an eighth of the places: 31.
  assert.equal(newcomers, 200 - 31 + 55 - 31);
  assert.equal(readers.yielding("crowd"), undefined, "a crowd finds no room");
});

Deno.test("SlowReaders ends no reader of a crowd for the crowd itself before its time", () => {
  const { clock, readers } = fixture(8);
  addCrowd(readers, "crowd", 8);
  assert.equal(readers.yielding("crowd"), undefined);
  assert.equal(readers.yielding("other"), "crowd 0");
  clock.advance(5_000);
  assert.equal(readers.yielding("crowd"), "crowd 0");
});
