import assert from "node:assert/strict";
import type { LinksFlow } from "../../distribution/links/mod.ts";
import { FlowRates, overviewOf } from "./overview_view.ts";

const FLOW: LinksFlow = {
  host: "dc2.example.com",
  links: 2,
  openLinks: 2,
  isPaused: false,
  roundTripMs: 3,
  items: 0,
  bytes: 0,
  sent: 0,
  received: 0,
};

Deno.test("FlowRates.take() gives rates since the call before, and the same ones when asked at once", () => {
  const rates = new FlowRates(0);
  rates.take([{ ...FLOW, sent: 100 }], 1000);
  const flows = [{ ...FLOW, sent: 500, received: 20 }];
  assert.deepEqual(rates.take(flows, 3000).get("dc2.example.com"), {
    sentPerSec: 200,
    receivedPerSec: 10,
  });
  const again = rates.take([{ ...FLOW, sent: 9000 }], 3100);
  assert.equal(again.get("dc2.example.com")!.sentPerSec, 200);
});

Deno.test("FlowRates.take() is never negative: a datacenter that comes back counts anew", () => {
  const rates = new FlowRates(0);
  rates.take([{ ...FLOW, sent: 100 }], 1000);
  assert.equal(rates.take([{ ...FLOW, sent: 5 }], 2000).get("dc2.example.com")!.sentPerSec, 0);
});

Deno.test("overviewOf() puts this datacenter first, and tells which of the others are linked", () => {
  const flows = [
    { ...FLOW, host: "dc4.example.com", openLinks: 0, isPaused: true },
    { ...FLOW, host: "dc3.example.com", openLinks: 1 },
    { ...FLOW, host: "dc5.example.com", openLinks: 0, links: 0 },
    FLOW,
  ];
  const { datacenters } = overviewOf("dc1.example.com", flows, new Map());
  assert.deepEqual(datacenters.map(({ datacenter, state }) => [datacenter, state]), [
    ["dc1.example.com", "own"],
    ["dc2.example.com", "linked"],
    ["dc3.example.com", "degraded"],
    ["dc4.example.com", "paused"],
    ["dc5.example.com", "unreachable"],
  ]);
});
