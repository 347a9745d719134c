import type { ActionOutcome, AdminActions } from "../api/admin_actions.ts";
import type { AdminTraces } from "../api/trace_routes.ts";
import type { AdminSource } from "../api/admin_source.ts";
import type { Where } from "../api/people_schemas.ts";

const AT = "2026-11-24T10:00:00.000Z";

/** A source that always answers the same, for tests of the routes alone. */
export function sampleSource(parts: Partial<AdminSource> = {}): AdminSource {
  const datacenters = ["dc1", "dc2", "dc3"].map((name, i) => ({
    datacenter: `${name}.example.com`,
    isOwn: i === 0,
    state: i === 0 ? "own" as const : "linked" as const,
    nodes: [`node1@${name}.example.com`],
    endpoints: 1,
    links: 1,
    openLinks: 1,
    incomingLinks: 1,
    senders: 0,
    heldItems: 0,
    heldBytes: 0,
    parkedItems: 0,
  }));
  return {
    status: () => ({
      node: "node1@dc1.example.com",
      datacenter: "dc1.example.com",
      datacenterId: "5f0c",
      globalHost: "example.com",
      hosts: ["example.com", "dc1.example.com"],
      build: { version: "1.2.3", runtime: "deno 2", os: "linux x64" },
      startedAt: AT,
      now: AT,
      uptimeMs: 0,
      ready: true,
      parts: [{ name: "redis", state: "up" }],
      counts: {
        sessions: 0,
        components: 0,
        datacenters: 2,
        linkedDatacenters: 2,
        bouncing: 0,
        waitingForLookup: 0,
        heldBack: 0,
        cached: 0,
      },
      memory: { residentBytes: 1, heapBytes: 1, waitingBytes: 0, waitingMaxBytes: 1 },
      drain: { isDraining: false, sessions: 0, stanzas: 0 },
    }),
    overview: () => ({
      at: AT,
      node: "node1@dc1.example.com",
      datacenter: "dc1.example.com",
      ready: true,
      isDraining: false,
      sessions: 0,
      components: 0,
      bouncing: 0,
      waitingForLookup: 0,
      heldBack: 0,
      sentPerSec: 0,
      receivedPerSec: 0,
      datacenters: [],
    }),
    datacenters: () => Promise.resolve(datacenters),
    datacenterLinks: () =>
      Promise.resolve(datacenters.map(({ datacenter, isOwn }) => ({
        datacenter,
        isOwn,
        nodes: 1,
        answers: 0,
        links: [],
        troubles: [],
      }))),
    nodes: () => Promise.resolve([]),
    endpoints: () => [],
    lanes: () => [],
    sessions: ({ offset, limit }) => ({
      items: Array.from({ length: Math.max(0, Math.min(limit, 250 - offset)) }, (_, i) => ({
        jid: `user${offset + i}@example.com/phone`,
        state: "open" as const,
        isAvailable: false,
        isManaged: false,
        hasCarbons: false,
        isConfidential: true,
      })),
      total: 250,
    }),
    components: () => Promise.resolve([]),
    bounces: () => ({ items: [], total: 0, stanzas: 0 }),
    where: (jid): Promise<Where | undefined> =>
      Promise.resolve(
        jid.includes(" ") ? undefined : {
          jid,
          verdict: { place: "nowhere", nodes: [], source: "redis", text: "It is nowhere" },
          local: { sessions: [], isComponentHere: false, bouncingStanzas: 0 },
          cache: [],
          redis: { isReachable: true, keys: [], claims: [] },
        },
      ),
    databases: () => Promise.resolve([]),
    certificates: () => [],
    configuration: () => ({ file: "causeway.toml", values: {}, notes: [] }),
    ...parts,
  };
}

/** Traces of which none begins. */
export const NO_TRACES: AdminTraces = {
  addressOf: (text) => text,
  isFull: true,
  open: () => undefined,
};

/** Actions that all succeed, and note their calls. */
export function sampleActions(calls: string[] = []): AdminActions {
  const done = (call: string): ActionOutcome => {
    calls.push(call);
    return { outcome: "done", affected: 1, text: "It is done" };
  };
  return {
    drain: () => ({ ...done("drain"), outcome: "started", affected: 1, text: "The node stops" }),
    pause: (target) => done(`pause ${JSON.stringify(target)}`),
    resume: (target) => done(`resume ${JSON.stringify(target)}`),
    retry: (datacenter) => done(`retry ${datacenter}`),
    rebalance: (datacenter) => done(`rebalance ${datacenter}`),
    refresh: () => Promise.resolve(done("refresh")),
    dropCache: (address) => done(`drop-cache ${address}`),
    kick: (address) => done(`kick ${address}`),
    checkAccount: (address) => Promise.resolve(done(`check-account ${address}`)),
    reload: () => Promise.resolve(done("reload")),
  };
}
