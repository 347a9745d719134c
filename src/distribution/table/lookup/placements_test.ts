import assert from "node:assert/strict";
import { ManualClock } from "../../../base/mod.ts";
import { bareJid, domainJid, fullJid } from "../testing/table.ts";
import type { Claim } from "../claims/claims.ts";
import { Placements } from "./placements.ts";

const OPTIONS = { cacheMissed: true, domainLifetimeMs: 600_000, jidLifetimeMs: 5_000, maxJids: 2 };

function claim(node: string, resourcepart: string, priority?: number): Claim {
  return { id: "a-1", epoch: 1, host: "dc1.example.com", node, resourcepart, renewal: 1, priority };
}

Deno.test("Placements keeps no entry while this is the datacenter's only node", () => {
  const placements = new Placements(new ManualClock(), OPTIONS);
  placements.put(bareJid("bob"), [claim("n2", "a")]);
  assert.deepEqual(placements.of(bareJid("bob")), []);
  assert.equal(placements.isStale(bareJid("bob")), false);
});

Deno.test("Placements keeps entries of accounts, for all their JIDs, and of domains for their lifetimes", () => {
  const clock = new ManualClock();
  const placements = new Placements(clock, OPTIONS);
  placements.isShared = true;
  const [bob, echo] = [fullJid("bob", "phone"), domainJid("echo.example.com")];
  assert.ok(placements.isStale(bob) && placements.isStale(echo));
  placements.put(bob, [claim("n2", "a", 3), claim("n3", "b")]);
  placements.put(echo, [claim("n2", "")]);
  assert.deepEqual(placements.of(bareJid("bob")), [
    { node: "n2", resourcepart: "a", priority: 3 },
    { node: "n3", resourcepart: "b", priority: undefined },
  ]);
  assert.equal(placements.isStale(fullJid("bob", "desk")), false);
  clock.advance(5_000);
  assert.equal(placements.isStale(bob), true);
  assert.equal(placements.of(bob).length, 2, "old entries are still there when Redis is not");
  assert.equal(placements.isStale(echo), false);
  clock.advance(595_000);
  assert.equal(placements.isStale(echo), true);
});

Deno.test("Placements.put() with isOld serves pending lookups, and none after them", () => {
  const placements = new Placements(new ManualClock(), OPTIONS);
  placements.isShared = true;
  for (const isOld of [true, false]) {
    placements.put(bareJid("bob"), [claim("n2", "a")], { isOld });
    assert.deepEqual(placements.of(bareJid("bob")).map(({ node }) => node), ["n2"]);
    assert.equal(placements.isStale(bareJid("bob")), isOld);
  }
});

Deno.test("Placements.expireKey() has an account looked up again, and keeps what was read until then", () => {
  const placements = new Placements(new ManualClock(), OPTIONS);
  placements.isShared = true;
  for (const key of ["bob@example.com", "bob@example.com/a/b@c"]) {
    placements.put(bareJid("bob"), [claim("n2", "a")]);
    placements.expireKey(key);
    assert.equal(placements.isStale(bareJid("bob")), true, key);
    assert.deepEqual(placements.of(bareJid("bob")).map(({ node }) => node), ["n2"]);
  }
  placements.put(domainJid("echo.example.com"), []);
  placements.expireKey("echo.example.com");
  assert.equal(placements.isStale(domainJid("echo.example.com")), true);
  placements.expireKey("nobody@example.com");
});

Deno.test("Placements keeps as many as configured, and drops the least recently used", () => {
  const clock = new ManualClock();
  const placements = new Placements(clock, OPTIONS);
  placements.isShared = true;
  const [a, b, c] = [bareJid("a"), bareJid("b"), bareJid("c")];
  placements.put(a, []);
  placements.put(b, []);
  clock.advance(1_000);
  assert.equal(placements.isStale(a), false, "which is a use");
  placements.put(c, []);
  assert.deepEqual([a, b, c].map((jid) => placements.isStale(jid)), [false, true, false]);
});
