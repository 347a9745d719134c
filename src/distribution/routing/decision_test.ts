import assert from "node:assert/strict";
import { isSubdomain, parseJid } from "../../xmpp/mod.ts";
import { decide } from "./decision.ts";
import type { Decision, Domains } from "./decision.ts";

const DOMAINS: Domains = {
  globalHost: "example.com",
  localHost: "dc1.example.com",
  hosts: new Set(["example.com", "dc1.example.com", "extra.example.com"]),
  roomDomains: new Set(["rooms.example.com"]),
  isOtherLocalHost: (domain) => domain === "dc2.example.com",
};

const ROWS: readonly (readonly [from: string, to: string, Decision, why: string])[] = [
  ["a@example.com/x", "a@example.com", "local", "own bare JID"],
  ["a@example.com/x", "a@example.com/x", "own-resource", "own full JID"],
  ["a@example.com/x", "a@example.com/y", "own-resource", "another resource of one's own"],
  ["echo.example.com", "echo.example.com", "local", "a component to itself"],
  ["a@example.com/x", "example.com", "local", "the global host"],
  ["a@example.com/x", "example.com/r", "local", "the global host with a resource"],
  ["a@example.com/x", "dc1.example.com", "local", "this DC's local host"],
  ["a@example.com/x", "b@dc1.example.com", "local-user", "a user at this DC's local host"],
  ["a@example.com/x", "b@extra.example.com", "local-user", "a user at another configured host"],
  ["a@example.com/x", "extra.example.com", "local", "another configured host"],
  ["a@example.com/x", "dc2.example.com", "other-datacenter", "another DC's local host"],
  [
    "a@example.com/x",
    "b@dc2.example.com/r",
    "other-datacenter",
    "a user at another DC's local host",
  ],
  ["a@example.com/x", "b@example.com", "user", "a bare JID at the global host"],
  ["a@example.com/x", "b@example.com/y", "user", "a full JID at the global host"],
  ["a@example.com/x", "dc9.example.com", "component", "an unknown local host"],
  ["a@example.com/x", "room@muc.example.com/n", "component", "behind a component"],
  ["a@example.com/x", "room@rooms.example.com", "local", "a room, which every datacenter serves"],
  ["room@rooms.example.com/a", "a@example.com", "user", "an occupant of a room"],
  ["a@example.com/x", "b@example.org", "outside", "another domain"],
  [
    "a@example.com/x",
    "notexample.com",
    "outside",
    "a domain with the same ending that is no subdomain",
  ],
];

for (const [from, to, expected, why] of ROWS) {
  Deno.test(`decide() says ${expected} for ${why}: ${from} to ${to}`, () => {
    assert.equal(decide(parseJid(from), parseJid(to), DOMAINS), expected);
  });
}

Deno.test("isSubdomain() is false for the domain itself", () => {
  assert.equal(isSubdomain("example.com", "example.com"), false);
  assert.equal(isSubdomain(".example.com", "example.com"), false);
});
