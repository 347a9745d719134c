import assert from "node:assert/strict";
import fc from "fast-check";
import type { Hello } from "../../wire/mod.ts";
import type { LinkEvent, LinkExpectations, LinkState } from "./link_state.ts";
import { stepLink } from "./link_state.ts";

const HELLO: Hello = {
  lowestVersion: 1,
  highestVersion: 1,
  minorVersion: 0,
  process: 5,
  lane: 3,
  lastNumber: 0,
  datacenterId: "d2",
  localHost: "dc2.example.com",
  nodeName: "node1@dc2.example.com",
};

const EXPECT: LinkExpectations = {
  role: "acceptor",
  scope: "mesh",
  host: undefined,
  node: undefined,
  lane: undefined,
  peerNames: ["dc2.example.com"],
  ourHost: "dc1.example.com",
  ourHosts: new Set(["example.com", "dc1.example.com"]),
  ourNode: "node1@dc1.example.com",
  silenceTimeoutMs: 15_000,
  pingIntervalMs: 5000,
};

const GREETING: LinkState = { kind: "greeting", deadlineMs: 10_000 };

function greet(hello: Partial<Hello>, expect: Partial<LinkExpectations> = {}, known?: string) {
  const event: LinkEvent = {
    kind: "hello",
    hello: { ...HELLO, ...hello },
    nowMs: 1,
    knownDatacenterId: known,
  };
  const { state } = stepLink(GREETING, event, { ...EXPECT, ...expect });
  return state.kind === "closing" ? state.reason : state.kind;
}

Deno.test("stepLink() opens on a HELLO that passes every check, and refuses others with the reason", () => {
  assert.equal(greet({}), "open");
  assert.equal(greet({ lowestVersion: 1, highestVersion: 9 }), "open");
  assert.equal(greet({ minorVersion: 200 }), "open");
  assert.equal(greet({ lowestVersion: 2, highestVersion: 9 }), "version");
  assert.equal(greet({ localHost: "dc3.example.com" }), "identity");
  assert.equal(greet({}, { peerNames: [] }), "identity");
  assert.equal(greet({}, { peerNames: ["dc3.example.com", "dc2.example.com"] }), "open");
  assert.equal(greet({}, { peerNames: undefined }), "open");
  assert.equal(greet({}, { host: "dc2.example.com", role: "dialler" }), "open");
  assert.equal(greet({}, { host: "dc3.example.com", peerNames: undefined }), "identity");
  assert.equal(greet({}, { ourHost: "dc2.example.com" }), "host-conflict");
  assert.equal(greet({}, { ourHosts: new Set(["dc2.example.com"]) }), "identity");
  assert.equal(greet({}, {}, "d2"), "open");
  assert.equal(greet({}, {}, "another"), "host-conflict");
  assert.equal(greet({ datacenterId: "" }, {}, "another"), "open");
  assert.equal(greet({}, { lane: 3 }), "open");
  assert.equal(greet({}, { lane: 4 }), "malformed");
});

Deno.test("stepLink() within a datacenter takes its own nodes alone, each under its own name", () => {
  const own = { localHost: "dc1.example.com", nodeName: "node2@dc1.example.com" };
  const expect = { scope: "datacenter", peerNames: ["dc1.example.com"] } as const;
  assert.equal(greet(own, expect), "open");
  assert.equal(greet(own, { ...expect, node: "node2@dc1.example.com" }), "open");
  assert.equal(greet(own, { ...expect, node: "node3@dc1.example.com" }), "identity");
  assert.equal(greet({ ...own, nodeName: "node1@dc1.example.com" }, expect), "host-conflict");
  assert.equal(greet({}, { ...expect, peerNames: ["dc2.example.com"] }), "identity");
  assert.equal(greet({}, { ...expect, peerNames: undefined }), "identity");
  assert.equal(greet(own, { ...expect, peerNames: ["dc2.example.com"] }), "identity");
  assert.equal(greet(own, expect, "another"), "host-conflict");
});

Deno.test("stepLink() ends a peer without HELLO at the deadline, not before", () => {
  const early = stepLink(GREETING, { kind: "tick", nowMs: 9999, heardMs: 0, spokeMs: 0 }, EXPECT);
  assert.equal(early.state, GREETING);
  const late = stepLink(GREETING, { kind: "tick", nowMs: 10_000, heardMs: 0, spokeMs: 0 }, EXPECT);
  assert.deepEqual(late.state, { kind: "closing", reason: "timeout" });
  assert.deepEqual(late.actions.map((action) => action.kind), ["goodbye", "hang-up"]);
});

Deno.test("stepLink() sends PING to a quiet peer, only as dialler, and drops it after 15 s of silence", () => {
  const open: LinkState = { kind: "open", peer: { ...HELLO, version: 1 }, askedMs: 0 };
  const dialler: LinkExpectations = { ...EXPECT, role: "dialler" };
  const tick = (state: LinkState, nowMs: number, heardMs: number, expect = dialler) =>
    stepLink(state, { kind: "tick", nowMs, heardMs, spokeMs: nowMs }, expect);
  assert.deepEqual(tick(open, 4999, 0).actions, []);
  const asked = tick(open, 5000, 0);
  assert.deepEqual(asked.actions, [{ kind: "ping" }]);
  assert.deepEqual(tick(asked.state, 6000, 0).actions, [], "no second PING at once");
  assert.deepEqual(tick(asked.state, 10_000, 0).actions, [{ kind: "ping" }]);
  assert.deepEqual(tick(open, 5000, 4000).actions, [], "the peer was heard");
  assert.deepEqual(tick(open, 10_000, 0, EXPECT).actions, [], "the acceptor sends no PING");
  assert.deepEqual(tick(open, 14_999, 0, EXPECT).actions, []);
  for (const expect of [dialler, EXPECT]) {
    const dead = tick(open, 15_000, 0, expect);
    assert.deepEqual(dead.state, { kind: "closing", reason: "silent" });
    assert.deepEqual(dead.actions, [{ kind: "drop" }]);
  }
});

Deno.test("stepLink() sends PING to a peer that writes while the dialler is silent", () => {
  const open: LinkState = { kind: "open", peer: { ...HELLO, version: 1 }, askedMs: 0 };
  const dialler: LinkExpectations = { ...EXPECT, role: "dialler" };
  const tick = (state: LinkState, nowMs: number, spokeMs: number, expect = dialler) =>
    stepLink(state, { kind: "tick", nowMs, heardMs: nowMs, spokeMs }, expect);
  assert.deepEqual(tick(open, 4999, 0).actions, []);
  const told = tick(open, 5000, 0);
  assert.deepEqual(told.actions, [{ kind: "ping" }]);
  assert.deepEqual(tick(told.state, 9999, 0).actions, []);
  assert.deepEqual(tick(told.state, 10_000, 0).actions, [{ kind: "ping" }]);
  assert.deepEqual(tick(open, 5000, 1).actions, [], "the peer has heard us");
  assert.deepEqual(tick(open, 60_000, 0, EXPECT).actions, [], "the acceptor sends no PING");
});

Deno.test("stepLink() sends PING on a busy link too, to measure the round trip", () => {
  const open: LinkState = { kind: "open", peer: { ...HELLO, version: 1 }, askedMs: 0 };
  const dialler: LinkExpectations = { ...EXPECT, role: "dialler" };
  const tick = (state: LinkState, nowMs: number, expect = dialler) =>
    stepLink(state, { kind: "tick", nowMs, heardMs: nowMs, spokeMs: nowMs }, expect);
  assert.deepEqual(tick(open, 19_999).actions, []);
  const asked = tick(open, 20_000);
  assert.deepEqual(asked.actions, [{ kind: "ping" }]);
  assert.deepEqual(tick(asked.state, 39_999).actions, []);
  const hello = { kind: "hello", hello: HELLO, nowMs: 0, knownDatacenterId: undefined } as const;
  const opened = stepLink(GREETING, hello, dialler).state;
  assert.deepEqual(tick(opened, 4_999).actions, []);
  const first = tick(opened, 5_000);
  assert.deepEqual(first.actions, [{ kind: "ping" }], "soon after it opened");
  assert.deepEqual(tick(first.state, 24_999).actions, []);
  assert.deepEqual(tick(first.state, 25_000).actions, [{ kind: "ping" }]);
  assert.deepEqual(tick(open, 60_000, EXPECT).actions, [], "the acceptor sends no PING");
});

Deno.test("stepLink() keeps the first reason, and stays closed", () => {
  const event: fc.Arbitrary<LinkEvent> = fc.oneof(
    fc.constant({
      kind: "hello" as const,
      hello: HELLO,
      nowMs: 1,
      knownDatacenterId: undefined,
    }),
    fc.constant({ kind: "goodbye" as const, reason: "leaving" as const }),
    fc.constant({ kind: "broken" as const, reason: "malformed" as const, detail: "" }),
    fc.constant({ kind: "leave" as const, reason: "leaving" as const, detail: "" }),
    fc.constant({ kind: "lost" as const }),
    fc.record({
      kind: fc.constant("tick" as const),
      nowMs: fc.nat(40_000),
      heardMs: fc.nat(9),
      spokeMs: fc.nat(9),
    }),
  );
  fc.assert(fc.property(fc.array(event), (events) => {
    let state = GREETING as LinkState;
    let opened = 0;
    for (const one of events) {
      const before = state;
      const step = stepLink(state, one, EXPECT);
      state = step.state;
      for (const action of step.actions) if (action.kind === "open") opened++;
      if (before.kind === "closing" || before.kind === "closed") {
        assert.deepEqual(step.actions, []);
        assert.ok(state.kind === "closing" || state.kind === "closed");
        assert.equal(state.reason, before.reason);
        assert.ok(before.kind !== "closed" || state.kind === "closed");
      }
    }
    assert.ok(opened <= 1);
  }));
});
