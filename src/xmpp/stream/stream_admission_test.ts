import assert from "node:assert/strict";
import type { AdmissionTicket } from "./stream_admission.ts";
import { StreamAdmission } from "./stream_admission.ts";

function from(remoteAddress: string, isLoopback = false) {
  return { remoteAddress, isLoopback };
}

function ticketOf(result: AdmissionTicket | string): AdmissionTicket {
  assert(typeof result !== "string", `refused: ${result}`);
  return result;
}

Deno.test("StreamAdmission.admit() takes maxUnauthenticated strangers and not one more", () => {
  const admission = new StreamAdmission({ maxUnauthenticated: 2 });
  const first = ticketOf(admission.admit(from("127.0.0.1:1", true)));
  const second = ticketOf(admission.admit(from("127.0.0.1:2", true)));
  assert.equal(admission.admit(from("127.0.0.1:3", true)), "unauthenticated-streams");
  first.authenticated();
  const third = ticketOf(admission.admit(from("127.0.0.1:3", true)));
  assert.equal(admission.admit(from("127.0.0.1:4", true)), "unauthenticated-streams");
  second.left();
  second.left();
  first.left();
  assert.equal(admission.unauthenticatedCount, 1);
  third.left();
  assert.equal(admission.unauthenticatedCount, 0);
});

Deno.test("StreamAdmission.admit() takes maxPerAddress connections of one address", () => {
  const admission = new StreamAdmission({ maxPerAddress: 2 });
  const first = ticketOf(admission.admit(from("[2001:db8::1]:1")));
  ticketOf(admission.admit(from("[2001:db8::1]:2"))).authenticated();
  assert.equal(admission.admit(from("[2001:db8::1]:3")), "streams-per-address");
  ticketOf(admission.admit(from("192.0.2.1:3")));
  first.left();
  ticketOf(admission.admit(from("[2001:db8::1]:3")));
  assert.equal(admission.admit(from("[2001:db8::1]:4")), "streams-per-address");
});

Deno.test("StreamAdmission.admit() does not count loopback by address", () => {
  const admission = new StreamAdmission({ maxPerAddress: 1 });
  for (let i = 0; i < 3; i++) ticketOf(admission.admit(from(`127.0.0.1:${i + 1}`, true)));
});

Deno.test("StreamAdmission refuses bounds that are out of range", () => {
  assert.throws(() => new StreamAdmission({ maxUnauthenticated: 0 }), RangeError);
  assert.throws(() => new StreamAdmission({ maxPerAddress: 1_000_001 }), RangeError);
});
