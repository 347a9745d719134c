import { deepStrictEqual, match } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { MucStore } from "../../storage/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import { makeMucParts } from "./muc_parts.ts";
import { COVEN, OPTIONS, SEAT, SERVICE } from "./testing/muc_world.ts";

/** The parts of a node with the session of a seat, and what they sent and delivered to it. */
function partsWithSeat() {
  const clock = new ManualClock();
  const metrics = new MetricsRegistry(clock);
  const state = { isHere: true, isDeliverable: true };
  const [sent, delivered]: [string[], string[]] = [[], []];
  const parts = makeMucParts<RoomStanza>({
    service: { domain: SERVICE, options: OPTIONS, store: {} as MucStore }, // nobody reads it
    localHost: "dc1.example.com",
    process: 1,
    isLocalHost: () => false,
    isHere: () => state.isHere,
    isAway: () => false,
    deliver: ({ text }) => {
      if (state.isDeliverable) delivered.push(text);
      return state.isDeliverable;
    },
    send: ({ to }) => void sent.push(to.text),
    sendToSessions: () => {},
    answer() {},
    tell() {},
    hosts: () => Promise.resolve([]),
    knownHosts: () => [],
    liveProcesses: () => Promise.resolve(undefined),
    hasNeighbours: () => false,
    metrics,
    logger: SILENT_LOGGER,
    clock,
  });
  parts.rooms.put(SEAT);
  delivered.length = 0;
  return { parts, clock, metrics, state, sent, delivered };
}

Deno.test("makeMucParts() sends on what it cannot write to a session that has moved", () => {
  const { parts, state, sent, delivered } = partsWithSeat();
  const stanza = buildStanza(element("message"), {
    from: parseJid(COVEN),
    to: parseJid(SEAT.jid),
  });
  parts.rooms.write(SEAT, stanza);
  state.isDeliverable = false;
  parts.rooms.write(SEAT, stanza); // the session is closing
  state.isHere = false;
  parts.rooms.write(SEAT, stanza);
  deepStrictEqual([delivered, sent], [[SEAT.jid], [SEAT.jid]]);
});

Deno.test("makeMucParts() ends seats without a session as time goes by", async () => {
  const { parts, clock, state } = partsWithSeat();
  state.isHere = false;
  parts.peers.start();
  for (let second = 0; second <= 62; second++) {
    clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve));
  }
  deepStrictEqual(parts.rooms.size, 0);
  parts.peers.close();
});

Deno.test("makeMucParts() declares gauges of what its parts hold", async () => {
  const { metrics } = partsWithSeat();
  const text = await metrics.prometheus();
  for (
    const [name, count] of [["pending", 0], ["waiting_messages", 0], ["occupants", 1], ["rooms", 1]]
  ) {
    match(text, new RegExp(`^causeway_muc_${name} ${count}$`, "m"));
  }
});
