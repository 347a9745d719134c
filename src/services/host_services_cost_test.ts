import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { MetricsRegistry } from "../observe/mod.ts";
import type { Stanza } from "../xmpp/mod.ts";
import { parseJid, scanFrame } from "../xmpp/mod.ts";
import { timeRatio } from "../base/testing/cost_ratio.ts";
import { HostServices } from "./host_services.ts";

const BYTES = 262_000;
/** A tree costs 20 to 45 times as much as the scan of the bytes. */
const MOST = 8;

function request(open: string, close: string): Stanza {
  const start = `<iq type='get' id='a' from='alice@example.com/desk' to='example.com'>${open}`;
  const end = `${close}</iq>`;
  const elements = "<a/>".repeat((BYTES - start.length - end.length) / 4);
  return {
    kind: "iq",
    type: "get",
    from: parseJid("alice@example.com/desk"),
    to: parseJid("example.com"),
    bytes: new TextEncoder().encode(start + elements + end),
  };
}

for (
  const [what, stanza, outcome] of [
    ["of no service", request("<q xmlns='urn:none'>", "</q>"), "service-unavailable"],
    ["past its bounds", request("<ping xmlns='urn:xmpp:ping'>", "</ping>"), "policy-violation"],
    ["without a payload of its own", request("", ""), "bad-request"],
  ] as const
) {
  Deno.test(`HostServices.handle() refuses a large request ${what} without a tree`, () => {
    const services = new HostServices({
      software: { name: "test", version: "1" },
      publicDomains: () => Promise.resolve([]),
      reply: () => {},
      metrics: new MetricsRegistry(new ManualClock()),
    });
    const handle = () => assert.equal(services.handle(stanza), outcome);
    const ratio = timeRatio(handle, () => scanFrame(stanza.bytes), MOST);
    assert.ok(ratio < MOST, `${ratio.toFixed(1)} times as expensive as the check of its bytes`);
  });
}
