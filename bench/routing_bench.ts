/**
 * Routing of stanzas whose recipient's place is known; and of ten senders' stanzas that bounce for
 * one absent recipient, until that recipient has come.
 */
import { ManualClock } from "../src/base/mod.ts";
import { Router } from "../src/distribution/routing/router.ts";
import { MetricsRegistry } from "../src/observe/mod.ts";
import { parseJid } from "../src/xmpp/mod.ts";
import type { Stanza } from "../src/xmpp/mod.ts";

const BATCH = 1000;
const SENDERS = 10;
const BODY = "x".repeat(200);

const BOB = "bob@example.com/desk";
const EVE = "eve@example.com/desk";
/** Local hosts as the node's cache has them; null for somebody who is nowhere. */
const hosts = new Map<string, string | null>([[BOB, "dc2.example.com"], [EVE, null]]);
const clock = new ManualClock();
const router = new Router({
  domains: {
    globalHost: "example.com",
    localHost: "dc1.example.com",
    hosts: new Set(["example.com", "dc1.example.com"]),
    isOtherLocalHost: (domain) => domain === "dc2.example.com",
  },
}, {
  process: 1,
  clock,
  metrics: new MetricsRegistry(new ManualClock()),
  outbound: { send: (_host, envelope) => envelope.settle() },
  locations: {
    cached: ({ text }) => hosts.get(text),
    locate: ({ text }) => Promise.resolve(hosts.get(text) ?? undefined),
    locateAgain: (jids) => Promise.resolve(jids.map(({ text }) => hosts.get(text) ?? undefined)),
    learn: () => false,
    spread: () => [],
    isUnplaced: () => false,
    forget: () => {},
    expire: () => {},
  },
  local: {
    servesDomain: () => false,
    sessionsOf: () => ({ isHere: false, isResourceHere: false, priority: undefined }),
    deliver: () => "no-session",
  },
});

function chat(sender: number, to: string): Stanza {
  const from = `alice${sender}@example.com/phone`;
  const text = `<message from='${from}' to='${to}' type='chat'><body>${BODY}</body></message>`;
  const bytes = new TextEncoder().encode(text);
  return { kind: "message", type: "chat", from: parseJid(from), to: parseJid(to), bytes };
}

function assertBouncing(wanted: number): void {
  if (router.bouncing !== wanted) throw new Error(`${router.bouncing} stanzas bounce`);
}

const TO_BOB = chat(0, BOB);
const TO_EVE = Array.from({ length: SENDERS }, (_, sender) => chat(sender, EVE));

Deno.bench(`routing: ${BATCH} stanzas to a known datacenter`, {
  group: "routing",
  baseline: true,
}, () => {
  for (let i = 0; i < BATCH; i++) router.accept(TO_BOB);
});

Deno.bench(`routing: ${BATCH} stanzas that bounce until their recipient comes`, {
  group: "routing",
}, () => {
  for (let i = 0; i < BATCH; i++) router.accept(TO_EVE[i % SENDERS]!);
  assertBouncing(BATCH);
  hosts.set(EVE, "dc2.example.com");
  clock.advance(200); // logins of one account are acted on five times a second
  router.revealed(TO_EVE[0]!.to);
  hosts.set(EVE, null);
  assertBouncing(0);
});
