import assert from "node:assert/strict";
import { carbonEnvelope } from "../mod.ts";
import type { CarbonOf } from "../mod.ts";
import { ackFrame, FRAME_TYPE } from "../wire/mod.ts";
import { DC1, DC2 } from "./testing/datacenters.ts";
import { testEnvelope, TestNode } from "./testing/kit.ts";
import { rawListener, testHello } from "./testing/peers.ts";
import type { RawPeer } from "./testing/peers.ts";

/** Makes a carbon from and to the account of the message's sender. */
const carbonOf: CarbonOf = (message) => {
  const account = message.stanza.from.bare;
  const bytes = new TextEncoder().encode(
    `<message type='chat' from='${account.text}' to='${account.text}'/>`,
  );
  return carbonEnvelope(message, { ...message.stanza, from: account, to: account, bytes });
};

Deno.test("LinkLayer has a message bring its carbon, which the other end makes behind it", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined, carbonOf });
  await using dc2 = new TestNode(DC2, { tls: undefined, carbonOf });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is up");
  const brought: boolean[] = [];
  for (const sequence of [1, 2, 3]) {
    const envelope = testEnvelope(sequence);
    dc1.links.send(DC2, envelope);
    if (sequence === 2) continue;
    brought.push(dc1.links.bringCarbon(DC2, envelope.stanza.from, envelope));
  }
  assert.deepEqual(brought, [true, true]);
  await dc2.until(() => dc2.received.length === 5, "all messages and both carbons are there");
  assert.deepEqual(
    dc2.received.map(({ sequence, isCarbon, isCopy }) => [sequence, isCarbon, isCopy]),
    [[1, false, false], [1, true, true], [2, false, false], [3, false, false], [3, true, true]],
  );
  await dc1.until(() => dc1.links.items === 0, "they are settled");
  assert.equal(dc2.metrics.value(`incoming_messages_total ${DC1}`), 3);
});

Deno.test("LinkLayer has no message bring its carbon to a node of an older version", async () => {
  const peers: RawPeer[] = [];
  const older = await rawListener(undefined, (peer) => {
    peers.push(peer);
    const credit = ackFrame({ received: 0, settled: 0, creditBytes: 100_000, ranges: [] });
    peer.greeted = ({ lane }) => peer.send(testHello({ lane, minorVersion: 3 }), credit);
  });
  await using dc1 = new TestNode(DC1, { tls: undefined, carbonOf });
  dc1.endpoints.set(DC2, [{ host: "127.0.0.1", port: older.port }]);
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "the link is up");
  const envelope = testEnvelope(1);
  dc1.links.send(DC2, envelope);
  assert.equal(dc1.links.bringCarbon(DC2, envelope.stanza.from, envelope), false);
  assert.equal(dc1.links.bringCarbon("dc9.example.com", envelope.stanza.from, envelope), false);
  await dc1.until(() => peers[0]!.types.includes(FRAME_TYPE.stanza), "the message is there");
  await older.close();
  await dc1.links.close();
  await peers[0]!.ended;
  assert.equal(peers[0]!.types.filter((type) => type === FRAME_TYPE.stanza).length, 1);
});
