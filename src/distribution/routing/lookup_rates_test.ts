import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { LookupRates } from "./lookup_rates.ts";

const DOMAINS = {
  globalHost: "example.com",
  localHost: "dc1.example.com",
  hosts: new Set(["example.com", "dc1.example.com"]),
  isOtherLocalHost: () => false,
};

function rates(clock = new ManualClock()): LookupRates {
  return new LookupRates({
    perAccount: { perSec: 10, burst: 2 },
    perComponent: { perSec: 100, burst: 1 },
  }, { domains: DOMAINS, clock, maxRetries: 2 });
}

const PHONE = parseJid("alice@example.com/phone");
const DESK = parseJid("alice@example.com/desk");

Deno.test("LookupRates.bookFirst() charges all resources of an account to one rate", () => {
  const subject = rates();
  assert.deepEqual([PHONE, DESK, PHONE, DESK].map((from) => subject.bookFirst(from)), [
    0,
    0,
    100,
    200,
  ]);
  assert.equal(subject.bookFirst(parseJid("bob@example.com/x")), 0, "others are not affected");
});

Deno.test("LookupRates charges each user of the local host to a rate of their own", () => {
  const subject = rates();
  const [carol, dave] = ["carol@dc1.example.com/x", "dave@dc1.example.com/x"].map((text) =>
    parseJid(text)
  ) as [Jid, Jid];
  assert.deepEqual([1, 2, 3].map(() => subject.bookFirst(carol)), [0, 0, 100]);
  assert.equal(subject.bookFirst(dave), 0);
  for (let i = 0; i < 4; i++) assert.ok(subject.takeRetry(carol));
  assert.ok(!subject.takeRetry(carol) && subject.takeRetry(dave));
});

Deno.test("LookupRates.bookFirst() charges all stanzas from another domain to one rate", () => {
  const subject = rates();
  const from = ["a@rooms.example.com/x", "rooms.example.com", "c@example.org"].map((text) =>
    parseJid(text)
  );
  assert.deepEqual(from.map((each) => subject.bookFirst(each)), [0, 10, 0]);
});

Deno.test("LookupRates lets the server's own hosts look up as much as they want", () => {
  const subject = rates();
  for (const host of ["example.com", "dc1.example.com"]) {
    for (let i = 0; i < 5; i++) assert.equal(subject.bookFirst(parseJid(host)), 0);
    for (let i = 0; i < 5; i++) assert.ok(subject.takeRetry(parseJid(host)));
    assert.equal(subject.bookRetry(parseJid(host)), 0);
  }
});

Deno.test("LookupRates allows maxRetries times as many retries, which delay no first lookup", () => {
  const clock = new ManualClock();
  const subject = rates(clock);
  for (let i = 0; i < 4; i++) assert.ok(subject.takeRetry(PHONE), `retry ${i}`);
  assert.equal(subject.takeRetry(DESK), false);
  assert.equal(subject.bookRetry(DESK), 50);
  assert.equal(subject.bookFirst(PHONE), 0);
  clock.advance(100);
  assert.equal(subject.takeRetry(DESK), true);
});

Deno.test("LookupRates without rates limits nothing", () => {
  const subject = new LookupRates({}, {
    domains: DOMAINS,
    clock: new ManualClock(),
    maxRetries: 4,
  });
  for (let i = 0; i < 10_000; i++) {
    assert.ok(subject.bookFirst(PHONE) === 0 && subject.takeRetry(PHONE));
  }
  assert.equal(subject.bookRetry(PHONE), 0);
});

Deno.test("LookupRates.change() takes other rates, and goes on counting where they are the same", () => {
  const subject = rates();
  const perComponent = { perSec: 100, burst: 1 };
  assert.deepEqual([1, 2].map(() => subject.bookFirst(PHONE)), [0, 0]);
  subject.change({ perAccount: { perSec: 10, burst: 2 }, perComponent }, 2);
  assert.equal(subject.bookFirst(PHONE), 100);
  subject.change({ perAccount: { perSec: 1, burst: 1 }, perComponent }, 2);
  assert.deepEqual([1, 2].map(() => subject.bookFirst(PHONE)), [0, 1000]);
  subject.change({}, 2);
  assert.equal(subject.bookFirst(PHONE), 0);
});
