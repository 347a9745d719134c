import assert from "node:assert/strict";
import { FairShares, ShareTab } from "../../../base/mod.ts";
import { carbonEnvelope } from "../../mod.ts";
import type { Envelope } from "../../mod.ts";
import { decodeStanza } from "../../wire/mod.ts";
import { Lane } from "../lanes/lane.ts";
import { testEnvelope } from "../testing/kit.ts";
import { takeMoved } from "./moved_recipients.ts";

const LIMITS = {
  laneMaxBytes: 1 << 20,
  laneMaxItems: 1_000,
  laneHighWater: 0.5,
  laneLowWater: 0.25,
  maxFrameBytes: 1 << 20,
};
const NO_EVENTS = { laneHasWork() {}, laneLevelChanged() {}, laneSlows: () => () => {} };

const carbonOf = (message: Envelope) =>
  carbonEnvelope(message, { ...message.stanza, to: message.stanza.from.bare });

Deno.test("takeMoved() leaves the carbon of a message whose recipient is elsewhere by now", () => {
  const lane = new Lane(1, LIMITS, { events: NO_EVENTS, carbonOf });
  const tab = new ShareTab(new FairShares(), { singles: ["alice"], crowds: [] });
  const binding = { sender: "alice", lane, held: 0, tab, usedTick: 0, isPressured: false };
  lane.resume(9, 0, true);
  for (const [sequence, to] of [[1, "bob@example.com/x"], [2, "carol@example.com/x"]] as const) {
    const envelope = testEnvelope(sequence, { to });
    lane.append(envelope, binding);
    assert.ok(lane.bringCarbon(envelope));
  }
  const taken = takeMoved([lane], new Set(["bob@example.com/x"]));
  assert.deepEqual(taken.map(({ sequence, isCarbon }) => [sequence, isCarbon]), [[1, false]]);
  const left: string[] = [];
  lane.flush(Infinity, (bytes) => {
    for (let at = 0; at < bytes.length;) {
      const end = at + 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
      const { sequence, bringsCarbon, isCarbon, stanza } = decodeStanza(bytes, at, end);
      left.push(`${sequence} to ${stanza.to.text} ${isCarbon} ${bringsCarbon}`);
      at = end;
    }
  });
  assert.deepEqual(left, [
    `1 to ${taken[0]!.stanza.from.bare.text} true false`,
    "2 to carol@example.com/x false true",
  ]);
});
