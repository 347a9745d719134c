import assert from "node:assert/strict";
import type { AdmissionTicket } from "./stream_admission.ts";
import { StreamAdmission } from "./stream_admission.ts";

/** An admission whose candidates have names, and who had to go. */
function admissionWith(limits: ConstructorParameters<typeof StreamAdmission>[0]) {
  const admission = new StreamAdmission(limits);
  const evicted: string[] = [];
  const cut: string[] = [];
  const admit = (name: string, remoteAddress = "127.0.0.1:1", isLoopback = true) =>
    admission.admit({ remoteAddress, isLoopback }, {
      evict: () => void evicted.push(name),
      cut: () => void cut.push(name),
    });
  return { admission, evicted, cut, admit };
}

function ticketOf(ticket: AdmissionTicket | undefined): AdmissionTicket {
  assert(ticket !== undefined);
  return ticket;
}

Deno.test("StreamAdmission.admit() takes maxUnauthenticated strangers; one more ends the oldest", () => {
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

Deno.test("StreamAdmission.admit() ends those who have said nothing first", () => {
  const { evicted, admit } = admissionWith({ maxUnauthenticated: 3 });
  const tickets = ["1", "2", "3"].map((name) => ticketOf(admit(name)));
  tickets[0]!.greeted();
  tickets[0]!.greeted();
  admit("4");
  admit("5");
  assert.deepEqual(evicted, ["2", "3"]);
  ticketOf(admit("6")).greeted();
  tickets[1]!.greeted();
  assert.deepEqual(evicted, ["2", "3", "4"]);
  admit("7");
  ticketOf(admit("8")).greeted();
  assert.deepEqual(evicted, ["2", "3", "4", "5", "7"]);
  admit("9");
  assert.deepEqual(evicted, ["2", "3", "4", "5", "7", "1"], "then the oldest of the others");
});

Deno.test("StreamAdmission.admit() cuts whom it told to go, past as many as may be strangers", () => {
  const { evicted, cut, admit } = admissionWith({ maxUnauthenticated: 2 });
  const tickets = ["1", "2", "3", "4"].map((name) => ticketOf(admit(name)));
  assert.deepEqual([evicted, cut], [["1", "2"], []]);
  tickets[0]!.left();
  admit("5");
  assert.deepEqual([evicted, cut], [["1", "2", "3"], []], "who has gone makes room");
  admit("6");
  assert.deepEqual([evicted, cut], [["1", "2", "3", "4"], ["2"]]);
});

Deno.test("StreamAdmission.admit() takes maxPerAddress connections of one address", () => {
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
