import assert from "node:assert/strict";
import { FairShares, ShareTab } from "../../../../base/mod.ts";
import { decodeStanza, FRAME_TYPE, readNumber } from "../../../wire/mod.ts";
import type { LaneOptions } from "../lane.ts";
import { Lane } from "../lane.ts";
import type { SenderBinding } from "../lane_entry.ts";

/** Room of a lane, unless a test says otherwise. */
export const LIMITS: LaneOptions = {
  laneMaxBytes: 1 << 20,
  laneMaxItems: 1000,
  laneHighWater: 0.5,
  laneLowWater: 0.25,
  maxFrameBytes: 1 << 20,
};
/** Number of the peer's process. */
export const PEER = 9;

/** Takes no notice of a lane. */
export const NO_EVENTS = { laneHasWork() {}, laneLevelChanged() {}, laneSlows: () => () => {} };

/** Makes a lane that nobody takes notice of. */
export function newLane(limits: Partial<LaneOptions> = {}, id = 1): Lane {
  return new Lane(id, { ...LIMITS, ...limits }, { events: NO_EVENTS });
}

/** Binds a sender to a lane. */
export function bindingOf(lane: Lane, budget = new FairShares(), sender = "alice"): SenderBinding {
  const tab = new ShareTab(budget, { singles: [sender], crowds: [] });
  return { sender, lane, held: 0, tab, usedTick: 0, isPressured: false };
}

/** A stanza as a lane sends it: its number in the lane and that of its process. */
export interface Sent {
  readonly number: number;
  readonly sequence: number;
  readonly mayBeRepeat: boolean;
}

/** Writes the frames that the lane may send and reads them back as the peer would. */
export function flush(lane: Lane, creditBytes = Infinity): Sent[] {
  const sent: Sent[] = [];
  lane.flush(creditBytes, (bytes) => {
    for (let at = 0; at < bytes.length;) {
      const end = at + 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
      assert.equal(bytes[at + 4], FRAME_TYPE.stanza);
      const { sequence, mayBeRepeat } = decodeStanza(bytes, at, end);
      sent.push({ number: readNumber(bytes, at), sequence, mayBeRepeat });
      at = end;
    }
  });
  return sent;
}

/** Makes an ACK. Ranges are of settled numbers. */
export function ack(received: number, settled: number, ranges: [number, number][] = []) {
  return {
    received,
    settled,
    creditBytes: 0,
    ranges: ranges.map(([first, count]) => ({ first, count })),
  };
}
