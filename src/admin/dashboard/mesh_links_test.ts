import assert from "node:assert/strict";
import type { DatacenterLinks, LinksTo } from "./api_types.ts";
import { countPairs, linksByHealth, nameSome, pairsOf, sayLinks } from "./mesh_links.ts";

function told(name: string, states: Readonly<Record<string, LinksTo["state"]>>): DatacenterLinks {
  return {
    datacenter: name,
    isOwn: false,
    nodes: 1,
    answers: 1,
    troubles: [],
    links: Object.entries(states).map(([datacenter, state]) => ({
      ...{ datacenter, state, links: 2, openLinks: state === "linked" ? 2 : 0 },
    })),
  };
}

Deno.test("pairsOf() shows the worse direction, and nothing where neither side has told", () => {
  const pairs = pairsOf([
    told("dc2", { dc3: "linked", dc4: "linked", dc1: "unreachable" }),
    told("dc3", { dc2: "degraded" }),
    told("dc4", {}),
  ], ["dc2", "dc3", "dc4"]);
  assert.deepEqual(
    pairs.map((
      { one, other, state, there, back },
    ) => [one, other, state, there?.state, back?.state]),
    [
      ["dc2", "dc3", "degraded", "linked", "degraded"],
      ["dc2", "dc4", "linked", "linked", undefined],
      ["dc3", "dc4", "unknown", undefined, undefined],
    ],
  );
  assert.deepEqual(pairsOf(undefined, ["dc2", "dc3"]).map(({ state }) => state), ["unknown"]);
  assert.equal(countPairs(pairs), "1 linked, 1 not known, 1 degraded");
});

Deno.test("sayLinks() counts what a datacenter tells, and names what it cannot reach", () => {
  const links = { a: "linked", b: "unreachable", c: "paused" } as const;
  assert.equal(
    sayLinks(told("dc2", links)),
    "its own links: 1 linked, 1 paused, 1 unreachable (b unreachable)",
  );
  assert.equal(
    sayLinks({ ...told("dc2", {}), answers: 0 }),
    "it has told nothing of its own links",
  );
  assert.equal(sayLinks(undefined), "it has told nothing of its own links");
  assert.deepEqual(linksByHealth(told("dc2", links).links).map(({ datacenter }) => datacenter), [
    "b",
    "c",
    "a",
  ]);
});

Deno.test("nameSome() names three datacenters, and counts the others", () => {
  assert.equal(nameSome(["dc2.example.com"]), "dc2.example.com");
  assert.equal(nameSome(["dc2.example.com", "dc3.example.com"]), "dc2, dc3");
  const five = [1, 2, 3, 4, 5].map((number) => `dc${number}.example.com`);
  assert.equal(nameSome(five), "dc1, dc2, dc3 and 2 more");
});
