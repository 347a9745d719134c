import assert from "node:assert/strict";
import {
  claimsKey,
  datacenterKey,
  domainsKey,
  endpointsKey,
  fullJidKey,
  HOSTS_KEY,
  LAYOUT_KEY,
  leaseKey,
  nodesKey,
  orderingPart,
  publicDomainsKey,
} from "./keys.ts";

Deno.test("keys are those of the table", () => {
  assert.deepEqual([
    HOSTS_KEY,
    nodesKey("dc1.example.com"),
    domainsKey("dc1.example.com", "n@h"),
    publicDomainsKey("dc1.example.com", "n@h"),
    endpointsKey("dc1.example.com", "n@h"),
    fullJidKey("bob@example.com", "a/b"),
    claimsKey("bob@example.com"),
    leaseKey("dc1.example.com", "n@h"),
    datacenterKey("dc1.example.com"),
    LAYOUT_KEY,
  ], [
    "hosts",
    "dc1.example.com#{nodes}",
    "dc1.example.com#n@h#{domains}",
    "dc1.example.com#n@h#{public_domains}",
    "dc1.example.com#n@h#{endpoints}",
    "bob@example.com/a/b",
    "causeway:claims:bob@example.com",
    "causeway:node:dc1.example.com#n@h",
    "causeway:dc:dc1.example.com",
    "causeway:layout",
  ]);
});

Deno.test("orderingPart() is the same for all keys of an account", () => {
  const account = "bob@example.com";
  const keys = [account, fullJidKey(account, "a/b"), claimsKey(account)];
  assert.deepEqual(new Set(keys.map(orderingPart)), new Set([account]));
});
