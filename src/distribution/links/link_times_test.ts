import assert from "node:assert/strict";
import { encodeWritten, stanzaFrame, WRITTEN_BYTES } from "../wire/mod.ts";
import { DC1, DC2 } from "./testing/datacenters.ts";
import { testEnvelope, TestNode } from "./testing/kit.ts";
import { RawPeer, testHello } from "./testing/peers.ts";

function writtenFrame(wallUs: number): Uint8Array {
  const frame = new Uint8Array(WRITTEN_BYTES);
  encodeWritten(frame, wallUs);
  return frame;
}

Deno.test("LinkLayer measures transfer_time from the writing of the frame, not from its acceptance", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined });
  await dc1.links.listen();
  const peer = await RawPeer.dial(dc1.address);
  const nowUs = Date.now() * 1000;
  // Both were accepted years ago, and waited until now to be written.
  const stanzas = [1, 2].map((i) => stanzaFrame(testEnvelope(i, { origin: DC2, process: 2 }), i));
  peer.send(testHello(), writtenFrame(nowUs), ...stanzas);
  await dc1.until(
    () => dc1.metrics.value(`incoming_transfer_time_seconds ${DC2}`) === 2,
    "both are counted, as they are acknowledged",
  );
  assert.equal(dc1.received.length, 2);
  assert.ok(dc1.received.every(({ sentAtUs }) => nowUs - sentAtUs > 3_600_000_000));
  assert.ok(dc1.metrics.sum(`incoming_transfer_time_seconds ${DC2}`) < 3_600_000_000);
  peer.close();
  await peer.ended;
});

Deno.test("LinkLayer measures no transfer_time for a peer that sends no writing time", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined });
  await dc1.links.listen();
  const peer = await RawPeer.dial(dc1.address);
  peer.send(testHello(), stanzaFrame(testEnvelope(1, { origin: DC2, process: 2 }), 1));
  await dc1.until(() => dc1.received.length === 1, "it is there");
  assert.equal(dc1.metrics.value(`incoming_messages_total ${DC2}`), 1);
  assert.equal(dc1.metrics.value(`incoming_transfer_time_seconds ${DC2}`), 0);
  peer.close();
  await peer.ended;
});

Deno.test("LinkLayer counts outgoing.errored only for links that had come up", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined });
  await using dc2 = new TestNode(DC2, { tls: undefined });
  await dc2.links.listen();
  const { address } = dc2;
  await dc2.links.close(); // the endpoint refuses from now on
  dc1.endpoints.set(DC2, [address]);
  dc1.links.start();
  const value = (name: string) => dc1.metrics.value(`outgoing_${name}_total ${DC2}`);
  await dc1.until(() => value("dials_failed") > 2, "several attempts have failed");
  assert.deepEqual([value("established"), value("errored"), value("closed")], [0, 0, 0]);
});
