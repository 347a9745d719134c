import assert from "node:assert/strict";
import { FairShares } from "../../../base/mod.ts";
import { carbonEnvelope, Envelope } from "../../mod.ts";
import { decodeStanza, readNumber } from "../../wire/mod.ts";
import { testEnvelope, TestSettler } from "../testing/kit.ts";
import { Lane } from "./lane.ts";
import { ack, bindingOf, LIMITS, NO_EVENTS, PEER } from "./testing/lanes.ts";

/** Makes a carbon with the number of its message, for an account at the far end. */
const carbonOf = (message: Envelope) =>
  carbonEnvelope(message, { ...message.stanza, to: message.stanza.from.bare });

function laneWithCarbons(id = 1): Lane {
  return new Lane(id, LIMITS, { events: NO_EVENTS, carbonOf });
}

/** Frames that a lane writes: number in the lane, and marks of carbons. */
function written(lane: Lane): string[] {
  const seen: string[] = [];
  lane.flush(Infinity, (bytes) => {
    for (let at = 0; at < bytes.length;) {
      const end = at + 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(at);
      const { sequence, bringsCarbon, isCarbon, mayBeRepeat } = decodeStanza(bytes, at, end);
      const marks = `${bringsCarbon ? "+" : ""}${isCarbon ? "c" : ""}${mayBeRepeat ? "?" : ""}`;
      seen.push(`${readNumber(bytes, at)}: ${sequence}${marks}`);
      at = end;
    }
  });
  return seen;
}

Deno.test("Lane.bringCarbon() marks the last stanza while it has not been sent, and no other", () => {
  const lane = laneWithCarbons();
  const binding = bindingOf(lane);
  const { process } = testEnvelope(1);
  lane.resume(PEER, 0, true);
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false, "nothing is there");
  lane.append(testEnvelope(1), binding);
  lane.append(testEnvelope(2), binding);
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false);
  assert.equal(lane.bringCarbon({ process, sequence: 2 }), true);
  assert.deepEqual(written(lane), ["1: 1", "2: 2+"]);
  lane.append(testEnvelope(3), binding);
  assert.deepEqual(written(lane), ["3: 3"]);
  assert.equal(lane.bringCarbon({ process, sequence: 3 }), false, "it was sent");
  lane.resume(PEER, 1, true);
  assert.equal(lane.bringCarbon({ process, sequence: 3 }), false, "the peer may have it");
  assert.deepEqual(written(lane), ["2: 2+", "3: 3"]);
});

Deno.test("Lane.bringCarbon() marks nothing for a peer that makes no carbons, or is not known yet", () => {
  const lane = laneWithCarbons();
  const { process } = testEnvelope(1);
  lane.append(testEnvelope(1), bindingOf(lane));
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false);
  lane.resume(PEER, 0, false);
  assert.equal(lane.bringCarbon({ process, sequence: 1 }), false);
  assert.deepEqual(written(lane), ["1: 1"]);
});

Deno.test("Lane.adopt() lets a carbon follow its message to a peer that may not make it", () => {
  const lane = laneWithCarbons();
  const budget = new FairShares();
  const binding = bindingOf(lane, budget);
  const settler = new TestSettler();
  lane.resume(PEER, 0, true);
  for (const sequence of [1, 2]) {
    const envelope = testEnvelope(sequence, { settler });
    lane.append(envelope, binding);
    assert.ok(lane.bringCarbon(envelope));
    if (sequence === 1) written(lane);
  }
  const [newer, older] = [laneWithCarbons(2), laneWithCarbons(3)];
  newer.resume(PEER + 1, 0, true);
  for (const { entry, wasSent } of lane.takeAll()) newer.adopt(entry, wasSent);
  assert.deepEqual(written(newer), ["1: 1+?", "2: 2+"]);
  older.resume(PEER + 2, 0, false);
  for (const { entry, wasSent } of newer.takeAll()) older.adopt(entry, wasSent);
  assert.deepEqual(written(older), ["1: 1?", "2: 1c?", "3: 2?", "4: 2c?"]);
  assert.equal(binding.held, 4);
  older.acknowledge(ack(4, 4));
  assert.deepEqual([binding.held, binding.tab.bytes], [0, 0]);
});
