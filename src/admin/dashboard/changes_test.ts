import assert from "node:assert/strict";
import type { Certificate, Datacenter, DatacenterLinks } from "./api_types.ts";
import { findingsOf } from "./changes.ts";

function datacenter(name: string, state: Datacenter["state"]): Datacenter {
  return {
    ...{ datacenter: name, isOwn: state === "own", state, nodes: [], endpoints: 1, links: 1 },
    ...{ openLinks: 0, incomingLinks: 0, senders: 0, heldItems: 0, heldBytes: 0, parkedItems: 0 },
  };
}

function told(name: string, ...lost: string[]): DatacenterLinks {
  const links = lost.map((to) => ({
    ...{ datacenter: to, state: "unreachable" as const, links: 1, openLinks: 0 },
  }));
  return { datacenter: name, isOwn: name === "dc1", nodes: 1, answers: 1, links, troubles: [] };
}

const WELL = { status: { parts: [] }, nodes: [], databases: [], certificates: [] };

Deno.test("findingsOf() begins with this node's own trouble, and puts warnings last", () => {
  const certificate: Certificate = {
    ...{ certfile: "dc1.pem", names: ["dc1"], expiresAt: "", daysLeft: 9, isExpiringSoon: true },
  };
  const findings = findingsOf({
    ...WELL,
    status: {
      parts: [{ name: "redis", state: "down" }, { name: "links", state: "down", reason: "none" }],
    },
    datacenters: [datacenter("dc1", "own"), datacenter("dc2", "unreachable")],
    databases: [{ pool: "redis", kind: "redis", place: "here", state: "down", reason: "refused" }],
    certificates: [certificate, { ...certificate, names: ["c2s"], daysLeft: 0 }],
  });
  assert.deepEqual(findings.map(({ subject, text }) => `${subject}: ${text}`), [
    "redis: down: refused",
    "links: down: none",
    "dc2: unreachable",
    "c2s: the certificate in dc1.pem expires within a day",
    "dc1: the certificate in dc1.pem expires in 9 days",
  ]);
});

Deno.test("findingsOf() names what other datacenters cannot reach, unless this node cannot either", () => {
  const datacenters = [
    datacenter("dc1", "own"),
    datacenter("dc2", "linked"),
    datacenter("dc3", "linked"),
    datacenter("dc4", "unreachable"),
  ];
  const findings = findingsOf({ ...WELL, datacenters }, [
    told("dc1", "dc3"),
    told("dc2", "dc3", "dc4"),
    told("dc3", "dc4"),
  ]);
  assert.deepEqual(findings.map(({ subject, text }) => `${subject}: ${text}`), [
    "dc4: unreachable",
    "dc2: says that it cannot reach dc3",
  ]);
});

Deno.test("findingsOf() says how far a stop of this node is, in one line", () => {
  const drain = { isDraining: true, step: "lanes", sessions: 1, stanzas: 40 };
  const parts = [{ name: "node", state: "draining", reason: "stopping" }] as const;
  const texts = (more = {}) =>
    findingsOf({ ...WELL, datacenters: [], status: { parts, drain: { ...drain, ...more } } })
      .map(({ severity, subject, text }) => `${severity} ${subject}: ${text}`);
  assert.deepEqual(texts(), [
    "warning this node: stops (step: lanes): 1 session and 40 stanzas left",
  ]);
  const [withEnd] = texts({ deadlineAt: "2026-11-26T10:00:00.000Z", step: undefined });
  assert.match(withEnd!, /: stops: 1 session and 40 stanzas left; it ends by .*\d at the latest$/);
});

Deno.test("findingsOf() names the nodes that say to be in trouble, and this node only as itself", () => {
  const troubles = (...nodes: string[]) =>
    nodes.map((text) => {
      const [node = "", trouble] = text.split(" ") as [string, "redis-away" | "stopping"];
      return { node, trouble };
    });
  const findings = findingsOf({ ...WELL, datacenters: [], status: { node: "n1", parts: [] } }, [
    { ...told("dc1"), troubles: troubles("n1 redis-away", "n1 stopping", "n2 stopping") },
    { ...told("dc2"), troubles: troubles("n3 stopping", "n3 redis-away", "n4 redis-away") },
  ]);
  assert.deepEqual(
    findings.map(({ severity, subject, text }) => `${severity} ${subject}: ${text}`),
    [
      "bad dc2: Redis is away, says n3, n4",
      "warning n2: says that it stops",
      "warning n3: says that it stops",
    ],
  );
});
