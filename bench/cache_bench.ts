/**
 * The session table's cache: the cost for each stanza of finding its recipient's place. `deno bench
 * --allow-read --allow-env bench/cache_bench.ts`
 */
import { LRUCache } from "lru-cache";
import { SystemClock } from "../src/base/mod.ts";
import type { Counter, Metrics } from "../src/observe/mod.ts";
import { SessionTable } from "../src/distribution/table/mod.ts";
import { BareJid, FullJid } from "../src/xmpp/mod.ts";

const JIDS = 10_000;

function plainCounter(): Counter {
  return {
    value: 0,
    inc(this: { value: number }, by = 1) {
      this.value += by;
    },
  };
}

const METRICS: Metrics = {
  counter: plainCounter,
  gauge: () => ({ set() {}, add() {}, value: 0 }),
  histogram: () => ({ observe() {} }),
  histogramUs: () => ({ observe() {} }),
  remove() {},
};

/** A table that is never started: the measurement needs no Redis. */
const table = new SessionTable({
  globalHost: "example.com",
  localHost: "dc1.example.com",
  nodeName: "node1@dc1.example.com",
  incarnation: 1,
  cache: { maxJids: 2 * JIDS, jidLifetimeMs: 3_600_000 },
}, { metrics: METRICS });

function jid(i: number): FullJid {
  return new FullJid(new BareJid(`user${i}`, "example.com"), "phone");
}

const known = Array.from({ length: JIDS }, (_, i) => jid(i));
const unknown = Array.from({ length: JIDS }, (_, i) => jid(i + JIDS));
const baseline = new LRUCache<string, { host: string }>({ max: 2 * JIDS });
for (const each of known) {
  // without Redis, a learned place goes to the cache at once
  table.learn(each, "dc2.example.com");
  baseline.set(each.text, { host: "dc2.example.com" });
}
await new Promise((resolve) => setTimeout(resolve, 100));
if (known.some((each) => table.cached(each) !== "dc2.example.com")) {
  throw new Error("The cache was not filled");
}

let at = 0;
let sink = 0;

Deno.bench("lru-cache alone: get", { group: "lookup", baseline: true }, () => {
  at = (at + 1) % JIDS;
  if (baseline.get(known[at]!.text) !== undefined) sink++;
});

Deno.bench("SessionTable.cached(): known full JID", { group: "lookup" }, () => {
  at = (at + 1) % JIDS;
  if (table.cached(known[at]!) !== undefined) sink++;
});

Deno.bench("SessionTable.cached(): unknown full JID", { group: "lookup" }, () => {
  at = (at + 1) % JIDS;
  if (table.cached(unknown[at]!) !== undefined) sink++;
});

Deno.bench("SessionTable.cached(): full JID just parsed", { group: "lookup" }, () => {
  at = (at + 1) % JIDS;
  if (table.cached(jid(at)) !== undefined) sink++;
});

Deno.bench("SessionTable.learn(): JID that is known", { group: "lookup" }, () => {
  at = (at + 1) % JIDS;
  table.learn(known[at]!, "dc2.example.com");
});

const clock = new SystemClock();
Deno.bench("SystemClock.monotonicMs()", { group: "lookup" }, () => {
  if (clock.monotonicMs() < 0) sink++;
});
