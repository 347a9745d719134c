import assert from "node:assert/strict";
import { missingOf, planFor } from "./preflight.ts";
import type { Need } from "./preflight.ts";

function need(what: string, debianPackage: string, there: boolean): Need {
  return { what, debianPackage, isThere: () => there };
}

const REDIS = need("redis-server", "redis-server", false);
const SLIXMPP = need("slixmpp for /usr/bin/python3", "python3-slixmpp", false);

Deno.test("missingOf() returns the missing needs, in order", async () => {
  const needs = [SLIXMPP, need("openssl", "openssl", true), REDIS];
  assert.deepEqual(await missingOf(needs), [SLIXMPP, REDIS]);
});

Deno.test("planFor() installs as root with apt-get, and otherwise prints the command to type", () => {
  const missing = [REDIS, SLIXMPP];
  assert.deepEqual(planFor([], { isRoot: false, hasApt: false }), { kind: "nothing" });
  assert.deepEqual(planFor(missing, { isRoot: true, hasApt: true }), {
    kind: "install",
    packages: ["redis-server", "python3-slixmpp"],
  });
  assert.deepEqual(planFor(missing, { isRoot: false, hasApt: true }), {
    kind: "stop",
    message: "The tests need redis-server, slixmpp for /usr/bin/python3. " +
      "Type: sudo apt-get install redis-server python3-slixmpp",
  });
  const elsewhere = planFor(missing, { isRoot: true, hasApt: false });
  assert.equal(elsewhere.kind, "stop");
  assert.match(elsewhere.kind === "stop" ? elsewhere.message : "", /python3-slixmpp.*own means/);
});
