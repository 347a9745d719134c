import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { AdmissionTicket } from "./stream_admission.ts";
import { GRACE_MS, StreamAdmission } from "./stream_admission.ts";

/** Returns an admission whose candidates have names, and the lists of those that had to go. */
function admissionWith(limits: ConstructorParameters<typeof StreamAdmission>[0]) {
  const clock = new ManualClock();
  const admission = new StreamAdmission(limits, clock);
  const evicted: string[] = [];
  const cut: string[] = [];
  const admit = (name: string, remoteAddress = "127.0.0.1:1", isLoopback = true) =>
    admission.admit({ remoteAddress, isLoopback }, {
      evict: () => void evicted.push(name),
      cut: () => void cut.push(name),
    });
  return { admission, clock, evicted, cut, admit };
}

function ticketOf(ticket: AdmissionTicket | undefined): AdmissionTicket {
  assert(ticket !== undefined);
  return ticket;
}

Deno.test("StreamAdmission.admit() admits maxUnauthenticated strangers; one more ends the oldest", () => {
  const { admission, evicted, admit } = admissionWith({ maxUnauthenticated: 2 });
  const first = ticketOf(admit("first"));
  ticketOf(admit("second"));
  assert.deepEqual(evicted, []);
  first.authenticated();
  ticketOf(admit("third"));
  assert.deepEqual(evicted, []);
  const fourth = ticketOf(admit("fourth"));
  assert.deepEqual(evicted, ["second"]);
  fourth.left();
  fourth.left();
  first.left();
  assert.equal(admission.unauthenticatedCount, 1);
  ticketOf(admit("fifth"));
  assert.deepEqual(evicted, ["second"]);
});

Deno.test("StreamAdmission.admit() gives silent and greeted strangers half of the places each", () => {
  const { evicted, admit } = admissionWith({ maxUnauthenticated: 4 });
  const tickets = ["1", "2", "3", "4"].map((name) => ticketOf(admit(name)));
  tickets[0]!.greeted();
  tickets[0]!.greeted();
  admit("5");
  assert.deepEqual(evicted, ["2"], "more are silent: the oldest of them");
  tickets[2]!.greeted();
  admit("6");
  assert.deepEqual(evicted, ["2", "4"], "as many of each: the oldest silent one");
  ticketOf(admit("7")).greeted();
  assert.deepEqual(evicted, ["2", "4", "5"]);
  admit("8");
  assert.deepEqual(evicted, ["2", "4", "5", "1"], "more have greeted: the oldest of them");
  admit("9");
  assert.deepEqual(evicted, ["2", "4", "5", "1", "6"]);
});

Deno.test("StreamAdmission.admit() ends first a stranger silent for GRACE_MS, then one that greeted that long ago", () => {
  const { clock, evicted, admit } = admissionWith({ maxUnauthenticated: 4 });
  const greeters = ["a", "b"].map((name) => ticketOf(admit(name)));
  for (const greeter of greeters) greeter.greeted();
  clock.advance(1);
  ticketOf(admit("silent"));
  clock.advance(GRACE_MS - 2);
  admit("1");
  admit("2");
  assert.deepEqual(evicted, ["silent"], "all still have time: as many of each, so the silent one");
  clock.advance(1);
  admit("3");
  assert.deepEqual(evicted, ["silent", "a"], "its time is over");
  clock.advance(GRACE_MS - 1);
  admit("4");
  assert.deepEqual(
    evicted,
    ["silent", "a", "1"],
    "silent for its time, which comes before greeted",
  );
  admit("5");
  admit("6");
  assert.deepEqual(evicted, ["silent", "a", "1", "2", "b"]);
});

Deno.test("StreamAdmission.admit() counts the time of a greeter from its header", () => {
  const { clock, evicted, admit } = admissionWith({ maxUnauthenticated: 2 });
  const late = ticketOf(admit("late"));
  clock.advance(GRACE_MS - 1);
  late.greeted();
  clock.advance(GRACE_MS - 1);
  admit("1");
  admit("2");
  assert.deepEqual(evicted, ["1"]);
  clock.advance(1);
  admit("3");
  assert.deepEqual(evicted, ["1", "late"]);
});

Deno.test("StreamAdmission.admit() keeps a slow greeter among greeters that stay", () => {
  const { clock, evicted, admit } = admissionWith({ maxUnauthenticated: 100 });
  for (let i = 0; i < 100; i++) ticketOf(admit(`greeter ${i}`)).greeted();
  const slow: { ticket: AdmissionTicket; name: string }[] = [];
  for (let i = 0; i < 50; i++) {
    slow.push({ ticket: ticketOf(admit(`slow ${i}`)), name: `slow ${i}` });
    clock.advance(10);
  }
  for (const { ticket } of slow) ticket.greeted();
  assert.equal(evicted.length, 50);
  assert.ok(evicted.every((name) => name.startsWith("greeter")));
});

Deno.test("StreamAdmission.admit() keeps a stranger that greets at once, however fast silent ones come", () => {
  const { clock, evicted, admit } = admissionWith({ maxUnauthenticated: 100 });
  const honest = ticketOf(admit("honest"));
  honest.greeted();
  for (let i = 0; i < 10_000; i++) admit(`silent ${i}`);
  clock.advance(GRACE_MS - 1);
  for (let i = 0; i < 10_000; i++) admit(`silent ${i}`);
  assert.equal(evicted.includes("honest"), false);
});

Deno.test("StreamAdmission.admit() ends first the oldest of an address with more than a quarter", () => {
  const { clock, evicted, admit } = admissionWith({ maxUnauthenticated: 8 });
  const elsewhere = ticketOf(admit("elsewhere", "192.0.2.1:1", false));
  clock.advance(GRACE_MS);
  const of = ["1", "2", "3"].map((name) =>
    ticketOf(admit(name, `[2001:db8::1]:${Number(name)}`, false))
  );
  for (let i = 0; i < 4; i++) admit(`proxied ${i}`);
  of[0]!.greeted();
  admit("5", "192.0.2.2:1", false);
  assert.deepEqual(evicted, ["1"], "three of eight are too many, loopback is no address");
  admit("6", "192.0.2.3:1", false);
  assert.deepEqual(evicted, ["1", "elsewhere"], "two of eight are not");
  elsewhere.left();
  of[2]!.authenticated();
  admit("7", "[2001:db8::1]:7", false);
  admit("8", "192.0.2.4:1", false);
  assert.deepEqual(
    evicted.slice(2),
    ["2"],
    "a client that logged in no longer counts: the oldest of all",
  );
  admit("9", "[2001:db8::1]:9", false);
  admit("10", "[2001:db8::1]:10", false);
  assert.deepEqual(evicted.slice(3), ["proxied 0", "proxied 1"]);
  admit("11", "192.0.2.5:1", false);
  assert.deepEqual(evicted.slice(5), ["7"], "three again");
});

Deno.test("StreamAdmission.admit() cuts evicted strangers past maxUnauthenticated", () => {
  const { evicted, cut, admit } = admissionWith({ maxUnauthenticated: 2 });
  const tickets = ["1", "2", "3", "4"].map((name) => ticketOf(admit(name)));
  assert.deepEqual([evicted, cut], [["1", "2"], []]);
  tickets[0]!.left();
  admit("5");
  assert.deepEqual([evicted, cut], [["1", "2", "3"], []], "a stranger that has gone makes room");
  admit("6");
  assert.deepEqual([evicted, cut], [["1", "2", "3", "4"], ["2"]]);
});

Deno.test("StreamAdmission.admit() admits maxPerAddress connections from one address", () => {
  const { admit } = admissionWith({ maxPerAddress: 2 });
  const first = ticketOf(admit("1", "[2001:db8::1]:1", false));
  ticketOf(admit("2", "[2001:db8::1]:2", false)).authenticated();
  assert.equal(admit("3", "[2001:db8::1]:3", false), undefined);
  ticketOf(admit("4", "192.0.2.1:3", false));
  first.left();
  first.left();
  ticketOf(admit("5", "[2001:db8::1]:3", false));
  assert.equal(admit("6", "[2001:db8::1]:4", false), undefined);
});

Deno.test("StreamAdmission.admit() does not count loopback by address", () => {
  const { admit } = admissionWith({ maxPerAddress: 1 });
  for (let i = 1; i <= 3; i++) ticketOf(admit(String(i), `127.0.0.1:${i}`));
});

Deno.test("StreamAdmission refuses bounds that are out of range", () => {
  for (const value of [0, 1_000_001, 1.5]) {
    assert.throws(() => new StreamAdmission({ maxUnauthenticated: value }), RangeError);
    assert.throws(() => new StreamAdmission({ maxPerAddress: value }), RangeError);
  }
});

Deno.test("StreamAdmission.change() holds for those who come next, and lets everybody stay", () => {
  const { admission, evicted, admit } = admissionWith({ maxUnauthenticated: 4, maxPerAddress: 9 });
  for (const name of ["1", "2", "3"]) ticketOf(admit(name));
  admission.change({ maxUnauthenticated: 2, maxPerAddress: 1 });
  assert.deepEqual(evicted, []);
  ticketOf(admit("4"));
  assert.deepEqual(evicted, ["1"]);
  ticketOf(admit("5", "192.0.2.1:1", false));
  assert.equal(admit("6", "192.0.2.1:2", false), undefined);
  assert.throws(() => admission.change({ maxPerAddress: 0 }), RangeError);
});
