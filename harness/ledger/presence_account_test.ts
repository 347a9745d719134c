import assert from "node:assert/strict";
import { PresenceAccount, presenceFindings } from "./mod.ts";

/** ann, ben and his phone are online, and everybody sees everybody. */
function setUp() {
  const clock = { nowMs: 0 };
  const presence = new PresenceAccount(() => clock.nowMs);
  const clients = { ann: "ann@a/main", ben: "ben@a/main", phone: "ben@a/phone1" };
  for (const [name, jid] of Object.entries(clients)) presence.opened(name, jid);
  for (const name of Object.keys(clients)) {
    presence.online(name);
    for (const jid of Object.values(clients)) presence.saw(name, jid, true);
  }
  const found = () => presenceFindings(presence.balance());
  return { clock, presence, found };
}

Deno.test("PresenceAccount finds nothing where everybody sees exactly who is online", () => {
  const { presence, found } = setUp();
  assert.deepEqual(found(), []);
  assert.equal(presence.balance().due, 6);
  presence.saw("ann", "mallory@a/x", true); // is none of the load's clients
  assert.deepEqual(found(), []);
});

Deno.test("PresenceAccount finds a resource that is not seen", () => {
  const { presence, found } = setUp();
  presence.saw("ann", "ben@a/phone1", false);
  assert.deepEqual(found(), ["1 resources not seen in the end"]);
  presence.saw("ann", "ben@a/phone1", true);
  assert.deepEqual(found(), []);
});

Deno.test("PresenceAccount finds the ghost of a session that a new one has replaced", () => {
  const { presence, found } = setUp();
  presence.opened("phone", "ben@a/phone2");
  presence.online("phone");
  for (const name of ["ann", "ben"]) presence.saw(name, "ben@a/phone2", true);
  for (const jid of ["ann@a/main", "ben@a/main"]) presence.saw("phone", jid, true);
  assert.deepEqual(found(), ["2 ghosts seen in the end"]);
  assert.equal(presence.balance().gone, 1);
  for (const name of ["ann", "ben"]) presence.saw(name, "ben@a/phone1", false);
  assert.deepEqual(found(), []);
});

Deno.test("PresenceAccount finds the ghost of a client that has logged out", () => {
  const { presence, found } = setUp();
  presence.left("phone");
  presence.saw("ann", "ben@a/phone1", false);
  assert.deepEqual(found(), ["1 ghosts seen in the end"]);
  presence.saw("ben", "ben@a/phone1", false);
  assert.deepEqual(found(), []);
});

Deno.test("PresenceAccount expects a new session to learn of everybody anew", () => {
  const { presence, found } = setUp();
  presence.opened("ann", "ann@a/main");
  presence.online("ann");
  assert.deepEqual(found(), ["2 resources not seen in the end"]);
  for (const jid of ["ben@a/main", "ben@a/phone1"]) presence.saw("ann", jid, true);
  assert.deepEqual(found(), []);
  assert.equal(presence.balance().gone, 0);
});

Deno.test("PresenceAccount refuses a run in which nobody was online", () => {
  const presence = new PresenceAccount(() => 0);
  assert.deepEqual(presenceFindings(presence.balance()), ["nobody was online in the end"]);
});

Deno.test("PresenceAccount measures how long a view is wrong, unless a session may go on", () => {
  const { clock, presence } = setUp();
  const look = (nowMs: number) => {
    clock.nowMs = nowMs;
    presence.look();
    return presence.balance().longestWrongMs;
  };
  presence.away("phone");
  assert.deepEqual([look(0), look(1_000)], [0, 0]);
  presence.online("phone");
  presence.saw("ann", "ben@a/main", false);
  assert.deepEqual([look(2_000), look(2_700)], [0, 700]);
  presence.saw("ann", "ben@a/main", true);
  assert.equal(look(9_000), 700);
  presence.saw("ann", "ben@a/main", false);
  assert.equal(look(9_500), 700, "counted anew");
});
