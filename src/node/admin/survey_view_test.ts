import assert from "node:assert/strict";
import type { Datacenter } from "../../admin/mod.ts";
import type { NodeReport, ReportedLinks } from "../../distribution/surveys/mod.ts";
import { datacenterLinksOf } from "./survey_view.ts";

function known(name: string): Datacenter {
  return {
    datacenter: `${name}.example.com`,
    isOwn: name === "dc1",
    state: "linked",
    nodes: [],
    ...{ endpoints: 1, links: 1, openLinks: 1, incomingLinks: 1, senders: 0 },
    ...{ heldItems: 0, heldBytes: 0, parkedItems: 0 },
  };
}

function to(name: string, openLinks: number, changed: Partial<ReportedLinks> = {}): ReportedLinks {
  return {
    host: `${name}.example.com`,
    links: 2,
    openLinks,
    isPaused: false,
    roundTripMs: undefined,
    sentPerSec: undefined,
    receivedPerSec: undefined,
    ...changed,
  };
}

function report(name: string, ageMs: number | undefined, ...links: ReportedLinks[]): NodeReport {
  const state = { isRedisAway: name === "dc2" && ageMs === 40, isStopping: name === "dc3" };
  return { host: `${name}.example.com`, node: "node1", ageMs, links, ...state };
}

Deno.test("datacenterLinksOf() adds up the nodes of a datacenter, and leaves out names that are not known", () => {
  const rows = datacenterLinksOf([
    report("dc1", 5, to("dc2", 2)),
    report("dc2", 10, to("dc3", 2, { roundTripMs: 9, sentPerSec: 3, receivedPerSec: 1 })),
    report("dc2", 40, to("dc3", 0, { roundTripMs: 7 }), to("dc2", 2), to("elsewhere", 2)),
    report("dc2", undefined),
    report("dc3", 20, to("dc1", 0, { isPaused: true }), to("dc2", 0)),
  ], ["dc1", "dc2", "dc3", "dc4"].map(known));
  assert.deepEqual(rows, [
    {
      ...{ datacenter: "dc1.example.com", isOwn: true, nodes: 1, answers: 1, ageMs: 5 },
      links: [{ datacenter: "dc2.example.com", state: "linked", links: 2, openLinks: 2 }],
      troubles: [],
    },
    {
      ...{ datacenter: "dc2.example.com", isOwn: false, nodes: 3, answers: 2, ageMs: 40 },
      links: [{
        ...{ datacenter: "dc3.example.com", state: "degraded", links: 4, openLinks: 2 },
        ...{ roundTripMs: 7, sentPerSec: 3, receivedPerSec: 1 },
      }],
      troubles: [{ node: "node1", trouble: "redis-away" }],
    },
    {
      ...{ datacenter: "dc3.example.com", isOwn: false, nodes: 1, answers: 1, ageMs: 20 },
      links: [
        { datacenter: "dc1.example.com", state: "paused", links: 2, openLinks: 0 },
        { datacenter: "dc2.example.com", state: "unreachable", links: 2, openLinks: 0 },
      ],
      troubles: [{ node: "node1", trouble: "stopping" }],
    },
    { datacenter: "dc4.example.com", isOwn: false, nodes: 0, answers: 0, links: [], troubles: [] },
  ]);
});
