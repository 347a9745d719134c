import assert from "node:assert/strict";
import fc from "fast-check";
import type { StanzaKind, StanzaType } from "../../xmpp/mod.ts";
import { stanza } from "./testing/router_fixture.ts";
import type { Spread } from "./spread_to_user.ts";
import { spreadToUser } from "./spread_to_user.ts";
import type { OwnSessions, Placement } from "./ports.ts";

const NOBODY: OwnSessions = { isHere: false, isResourceHere: false, priority: undefined };
const BARE = "bob@example.com";
const FULL = "bob@example.com/phone";

function at(node: string, resourcepart: string, priority?: number): Placement {
  return { node, resourcepart, priority };
}

function spread(
  to: string,
  shape: { kind?: StanzaKind; type?: StanzaType; isRerouted?: boolean },
  own: Partial<OwnSessions>,
  placements: readonly Placement[],
): Omit<Spread, "isTaken"> {
  const { kind = "message", type = "chat" } = shape;
  const { isHere, nodes } = spreadToUser(
    stanza("alice@example.com/a", to, { kind, type }),
    { ...NOBODY, ...own },
    placements,
    shape.isRerouted,
  );
  return { isHere, nodes };
}

const HERE = { isHere: true, nodes: [] };

Deno.test("spreadToUser() gives a full JID to the node that has it, this one first", () => {
  const others = [at("n2", "phone", 5), at("n3", "desk", 9)];
  assert.deepEqual(spread(FULL, {}, {}, others), { isHere: false, nodes: ["n2"] });
  for (const type of ["get", "result", "error"] as const) {
    assert.deepEqual(spread(FULL, { kind: "iq", type }, {}, others), {
      isHere: false,
      nodes: ["n2"],
    });
  }
  assert.deepEqual(spread(FULL, {}, { isHere: true, isResourceHere: true }, others), HERE);
});

Deno.test("spreadToUser() treats chat for a full JID that is nowhere as chat for the account", () => {
  const others = [at("n2", "desk", 5)];
  assert.deepEqual(spread(FULL, {}, {}, others), { isHere: false, nodes: ["n2"] });
  for (const type of ["normal", "headline", "groupchat", "error"] as const) {
    assert.deepEqual(spread(FULL, { type }, {}, others), HERE, type);
  }
  const rerouted = { type: "normal", isRerouted: true } as const;
  assert.deepEqual(spread(FULL, rerouted, {}, others), { isHere: false, nodes: ["n2"] });
  assert.deepEqual(spread(FULL, { kind: "iq", type: "set" }, {}, others), HERE);
  assert.deepEqual(spread(FULL, { kind: "presence", type: "available" }, {}, others), HERE);
});

Deno.test("spreadToUser() gives chat for the account to its highest priority on any node", () => {
  const own = { isHere: true, priority: 3 };
  assert.deepEqual(spread(BARE, {}, own, [at("n2", "a", 2)]), HERE);
  assert.deepEqual(spread(BARE, {}, own, [at("n2", "a", 4)]), { isHere: false, nodes: ["n2"] });
  assert.deepEqual(spread(BARE, {}, own, [at("n2", "a", 3), at("n2", "b", 3), at("n3", "c", 1)]), {
    isHere: true,
    nodes: ["n2"],
  });
});

Deno.test("spreadToUser() gives chat to no negative priority, and lets one node answer it", () => {
  assert.deepEqual(spread(BARE, {}, { isHere: true, priority: -1 }, [at("n2", "a", -1)]), HERE);
  assert.deepEqual(spread(BARE, {}, {}, [at("n2", "a"), at("n3", "b", -5)]), {
    isHere: false,
    nodes: ["n2"],
  });
});

Deno.test("spreadToUser() gives headlines and presence to every node that has a resource for them", () => {
  const others = [at("n2", "a", -1), at("n3", "b", 0), at("n4", "c")];
  const own = { isHere: true, priority: 7 };
  assert.deepEqual(spread(BARE, { type: "headline" }, own, others), {
    isHere: true,
    nodes: ["n3"],
  });
  for (const type of ["available", "unavailable", "subscribe"] as const) {
    assert.deepEqual(spread(BARE, { kind: "presence", type }, own, others), {
      isHere: true,
      nodes: ["n2", "n3"],
    });
  }
  const subscribe = { kind: "presence", type: "subscribe" } as const;
  assert.deepEqual(spread(FULL, subscribe, {}, others), { isHere: false, nodes: ["n2", "n3"] });
});

Deno.test("spreadToUser() gives a room's message to every node that has a resource for it", () => {
  const message = stanza("room@rooms.example.com/a@b", BARE, { type: "groupchat" });
  const others = [at("n2", "a", -1), at("n3", "b", 0)];
  const own = { ...NOBODY, isHere: true, priority: 7 };
  const { isHere, nodes } = spreadToUser(message, own, others, false, true);
  assert.deepEqual({ isHere, nodes }, { isHere: true, nodes: ["n3"] });
});

Deno.test("spreadToUser() has stanzas that no resource gets answered here, wherever the account is", () => {
  const others = [at("n2", "a", 1), at("n3", "b", 2)];
  assert.deepEqual(spread(BARE, { type: "groupchat" }, {}, others), HERE);
  for (const [kind, type] of [["iq", "get"], ["iq", "error"], ["message", "error"]] as const) {
    assert.deepEqual(spread(BARE, { kind, type }, { isHere: true }, others), HERE);
    assert.deepEqual(spread(BARE, { kind, type }, {}, others), HERE);
  }
});

/**
 * Returns the resources that get a message of `type` for `to` if all are on one node (RFC 6121
 * §8.5).
 */
function receivers(
  all: readonly Placement[],
  type: "chat" | "normal" | "headline",
  to: string,
): readonly Placement[] {
  const resource = to.split("/")[1];
  const exact = all.filter(({ resourcepart }) => resourcepart === resource);
  if (exact.length > 0) return exact;
  if (type !== "chat" && resource !== undefined) return [];
  if (type === "headline") return available(all, 0);
  return available(all, Math.max(0, ...all.map(({ priority }) => priority ?? 0)));
}

function available(all: readonly Placement[], least: number): readonly Placement[] {
  return all.filter(({ priority }) => priority !== undefined && priority >= least);
}

Deno.test("spreadToUser() reaches the same resources as one node that had them all", () => {
  const placement = fc.record({
    node: fc.constantFrom("here", "n2", "n3"),
    resourcepart: fc.constantFrom("a", "b", "c", "d", "e"),
    priority: fc.option(fc.integer({ min: -2, max: 2 }), { nil: undefined }),
  });
  const all = fc.uniqueArray(placement, { selector: (each) => each.resourcepart });
  const type = fc.constantFrom("chat" as const, "normal" as const, "headline" as const);
  const to = fc.constantFrom(BARE, `${BARE}/a`);
  fc.assert(fc.property(all, type, to, (all, type, to) => {
    const here = all.filter(({ node }) => node === "here");
    const priorities = here.flatMap(({ priority }) => priority ?? []);
    const { isHere, nodes } = spread(to, { type }, {
      isHere: here.length > 0,
      isResourceHere: here.some(({ resourcepart }) => to.endsWith(`/${resourcepart}`)),
      priority: priorities.length === 0 ? undefined : Math.max(...priorities),
    }, all.filter(({ node }) => node !== "here"));
    assert.equal(new Set(nodes).size, nodes.length);
    // Each node that got the stanza delivers it by the same rule to its own resources.
    const reached = [...isHere ? ["here"] : [], ...nodes].flatMap((name) =>
      receivers(all.filter(({ node }) => node === name), type, to)
    );
    const order = (list: readonly Placement[]) => list.map((each) => each.resourcepart).sort();
    assert.deepEqual(order(reached), order(receivers(all, type, to)));
  }));
});

Deno.test("spreadToUser() keeps every stanza here while other nodes have no session of the account", () => {
  assert.deepEqual(spread(BARE, {}, {}, []), HERE);
});

Deno.test("spreadToUser() says whether a session gets the stanza", () => {
  const isTaken = (to: string, own: Partial<OwnSessions>, placements: readonly Placement[]) =>
    spreadToUser(stanza("alice@example.com/a", to), { ...NOBODY, ...own }, placements).isTaken;
  assert.equal(isTaken(BARE, {}, [at("n2", "a", 0)]), true);
  assert.equal(isTaken(BARE, { isHere: true, priority: 0 }, [at("n2", "a", -1)]), true);
  assert.equal(isTaken(BARE, { isHere: true }, [at("n2", "a", -1)]), false);
  assert.equal(isTaken(FULL, {}, [at("n2", "phone")]), true);
  assert.equal(isTaken(FULL, { isHere: true, isResourceHere: true }, [at("n2", "a", 0)]), true);
});
