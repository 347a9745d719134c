import assert from "node:assert/strict";
import type { EndpointSnapshot, HostSnapshot, LaneSnapshot } from "../../distribution/links/mod.ts";
import type { MeshFacts } from "./mesh_view.ts";
import { datacentersOf, endpointsOf, lanesOf, nodesOf } from "./mesh_view.ts";

const NOW_MS = Date.parse("2026-11-24T10:00:00.000Z");

const OPEN: LaneSnapshot = {
  lane: 1,
  state: "open",
  node: "node1@dc2.example.com",
  senders: 2,
  items: 3,
  waiting: 1,
  bytes: 300,
  unreceivedItems: 2,
  unreceivedBytes: 200,
  unreceivedForMs: 1500,
  openForMs: 60_000,
  roundTripMs: 4,
  timesOpened: 1,
  nextAttemptInMs: undefined,
  isPaused: false,
  lastFailure: undefined,
};

const DOWN: LaneSnapshot = {
  ...OPEN,
  state: "waiting",
  node: undefined,
  openForMs: undefined,
  roundTripMs: undefined,
  nextAttemptInMs: 800,
  lastFailure: { reason: "unreachable", detail: "connection refused", agoMs: 2000 },
};

function endpoint(lane: LaneSnapshot, state: EndpointSnapshot["state"] = "enabled", port = 5555) {
  return { endpoint: `10.0.0.2#${port}`, state, lanes: [lane] };
}

function facts(endpoints: readonly EndpointSnapshot[], host: Partial<HostSnapshot> = {}) {
  const lanes = endpoints.flatMap((each) => each.lanes);
  const links: MeshFacts["links"] = {
    hosts: [{
      host: "dc2.example.com",
      openLinks: lanes.filter(({ state }) => state === "open").length,
      senders: 2,
      parkedItems: 0,
      isPaused: false,
      endpoints,
      ...host,
    }],
    incoming: [
      {
        host: "dc2.example.com",
        node: "node1@dc2.example.com",
        remoteAddress: "10.0.0.2:40000",
        unsettled: 0,
      },
      { host: undefined, node: undefined, remoteAddress: "10.0.0.9:40000", unsettled: 0 },
    ],
    rememberedLanes: 0,
  };
  return {
    localHost: "dc1.example.com",
    nodeName: "node1@dc1.example.com",
    links,
    cluster: undefined,
    nowMs: NOW_MS,
  };
}

Deno.test("datacentersOf() says how this node is linked with a datacenter, and why not", () => {
  const PAUSED: LaneSnapshot = { ...DOWN, state: "idle", isPaused: true };
  const cases: readonly (readonly [MeshFacts, state: string, reason: string | undefined])[] = [
    [facts([endpoint(OPEN)]), "linked", undefined],
    [
      facts([endpoint(OPEN), endpoint(DOWN, "enabled", 5556)]),
      "degraded",
      "1 of 2 links are down: connection refused",
    ],
    [facts([endpoint(DOWN)]), "unreachable", "connection refused"],
    [
      facts([endpoint({ ...DOWN, lastFailure: undefined })]),
      "unreachable",
      "its endpoints have not answered yet",
    ],
    [
      facts([endpoint(DOWN, "disabled")]),
      "unreachable",
      "none of its endpoints is listed any more",
    ],
    [facts([]), "unreachable", "no endpoint of it is known"],
    [facts([], { isPaused: true }), "paused", "an operator paused it"],
    [facts([endpoint(PAUSED, "disabled")]), "paused", "an operator paused it"],
  ];
  for (const [each, state, reason] of cases) {
    const [own, other] = datacentersOf(each, new Map());
    assert.equal(own!.state, "own");
    assert.deepEqual([other!.state, other!.reason], [state, reason]);
  }
});

Deno.test("datacentersOf() lists a datacenter that only the session table knows, once each", () => {
  const live = new Map([
    ["dc3.example.com", ["node1@dc3.example.com"]],
    ["dc2.example.com", ["node1@dc2.example.com"]],
    ["dc1.example.com", ["node1@dc1.example.com"]],
  ]);
  const all = datacentersOf(facts([endpoint(OPEN)]), live);
  assert.deepEqual(
    all.map(({ datacenter, nodes, state }) => [datacenter, nodes.length, state]),
    [
      ["dc1.example.com", 1, "own"],
      ["dc2.example.com", 1, "linked"],
      ["dc3.example.com", 1, "unreachable"],
    ],
  );
  assert.equal(all[1]!.incomingLinks, 1);
});

Deno.test("endpointsOf() tells enabled, connecting, disabled and paused endpoints apart", () => {
  const endpoints = endpointsOf(facts([
    endpoint(OPEN, "enabled", 1),
    endpoint(DOWN, "enabled", 2),
    endpoint(OPEN, "disabled", 3),
    endpoint({ ...DOWN, isPaused: true }, "disabled", 4),
  ]));
  assert.deepEqual(endpoints.map(({ endpoint, state, reason }) => [endpoint, state, reason]), [
    ["10.0.0.2:1", "enabled", undefined],
    ["10.0.0.2:2", "connecting", "connection refused"],
    ["10.0.0.2:3", "disabled", "the session table no longer lists it"],
    ["10.0.0.2:4", "paused", "an operator paused it"],
  ]);
  assert.equal(endpointsOf(facts([endpoint(OPEN)]), "dc9.example.com").length, 0);
});

Deno.test("lanesOf() gives times as points, and IPv6 endpoints in brackets", () => {
  const [open, down] = lanesOf(facts([
    { endpoint: "2001:db8::2#5555", state: "enabled", lanes: [OPEN, DOWN] },
  ]));
  assert.equal(open!.endpoint, "[2001:db8::2]:5555");
  assert.equal(open!.upSince, "2026-11-24T09:59:00.000Z");
  assert.deepEqual(
    [open!.unacknowledgedItems, open!.unacknowledgedBytes, open!.unacknowledgedForMs],
    [2, 200, 1500],
  );
  assert.deepEqual([down!.state, down!.nextAttemptInMs], ["waiting", 800]);
  assert.deepEqual(down!.lastError, {
    reason: "unreachable",
    detail: "connection refused",
    at: "2026-11-24T09:59:58.000Z",
  });
});

Deno.test("nodesOf() joins leases, links to nodes and links from them", () => {
  const live = new Map([["dc2.example.com", ["node2@dc2.example.com"]]]);
  const nodes = nodesOf(facts([endpoint(OPEN)]), live);
  assert.deepEqual(
    nodes.map((each) => [
      each.node,
      each.isSelf,
      each.hasLease,
      each.openLinks,
      each.incomingLinks,
    ]),
    [
      ["node1@dc1.example.com", true, false, 0, 0],
      ["node1@dc2.example.com", false, false, 1, 1],
      ["node2@dc2.example.com", false, true, 0, 0],
    ],
  );
});
