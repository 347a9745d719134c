import assert from "node:assert/strict";
import { CausewayError } from "../base/mod.ts";
import { TestPeer } from "./testing/peer.ts";
import { memoryConnectionPair } from "./memory_connection.ts";
import type { MemoryPairOptions } from "./memory_connection.ts";

function peers(options: MemoryPairOptions = {}) {
  const [first, second] = memoryConnectionPair(options);
  return { first, second, one: new TestPeer(first), other: new TestPeer(second) };
}

Deno.test("memoryConnectionPair() delivers later, in order, and copies the bytes it is given", async () => {
  const { first, one, other } = peers();
  const scratch = new TextEncoder().encode("first ");
  first.send(scratch);
  scratch.fill(0);
  one.send("second");
  assert.equal(other.text, "");
  assert.equal(first.pendingBytes, 12);
  assert.equal(first.unwrittenSends, 2);
  await other.until((peer) => peer.text === "first second");
  assert.equal(first.unwrittenSends, 0);
  assert.equal(first.pendingBytes, 0);
  assert.equal(first.deliveries, 1);
  assert.equal(first.sentBytes, 12);
});

Deno.test("memoryConnectionPair() splits into chunks of chunkBytes", async () => {
  const { one, other } = peers({ chunkBytes: 1 });
  one.send("abc");
  await other.until((peer) => peer.text === "abc");
  assert.equal(other.chunks.length, 3);
});

Deno.test("MemoryConnection holds bytes that arrive before start, while paused or while stalled", async () => {
  const [first, second] = memoryConnectionPair();
  const one = new TestPeer(first);
  one.send("early ");
  await Promise.resolve();
  const other = new TestPeer(second);
  await other.until((peer) => peer.text === "early ");
  second.pause();
  one.send("paused ");
  for (let i = 0; i < 5; i++) await Promise.resolve();
  assert.equal(other.text, "early ");
  assert.equal(first.pendingBytes, 7);
  second.resume();
  await other.until((peer) => peer.text === "early paused ");
  second.stallReading();
  one.send("stalled");
  for (let i = 0; i < 5; i++) await Promise.resolve();
  assert.equal(first.pendingBytes, 7);
  second.continueReading();
  await other.until((peer) => peer.text.endsWith("stalled"));
});

Deno.test("MemoryConnection.pause() within data takes effect before the next chunk", async () => {
  const { second, one, other } = peers({ chunkBytes: 2 });
  const data = other.data.bind(other);
  other.data = (chunk) => {
    data(chunk);
    second.pause();
  };
  one.send("abcd");
  await other.until((peer) => peer.text === "ab");
  second.resume();
  await other.until((peer) => peer.text === "abcd");
});

Deno.test("MemoryConnection calls drained after the high-water mark and cuts past maxPendingBytes", async () => {
  const { first, second, one } = peers({ highWaterBytes: 3, maxPendingBytes: 10 });
  one.send("abc");
  for (let i = 0; i < 5; i++) await Promise.resolve();
  assert.equal(one.drainedCount, 0);
  one.send("abcd");
  await one.until((peer) => peer.drainedCount === 1);
  second.stallReading();
  first.send(new Uint8Array(10));
  assert.equal(first.pendingBytes, 10);
  first.send(new Uint8Array(1));
  assert.equal(one.isClosed, false);
  await one.until((peer) => peer.isClosed);
  assert.equal(one.error?.code, "net/peer-too-slow");
});

Deno.test("MemoryConnection.close() delivers the queue, then closes both ends in order", async () => {
  const { first, second, one, other } = peers();
  one.send("goodbye");
  first.close();
  one.send("too late");
  other.send("crossing");
  await other.until((peer) => peer.isClosed);
  await one.until((peer) => peer.isClosed);
  assert.equal(other.text, "goodbye");
  assert.equal(one.error, undefined);
  assert.equal(other.error, undefined);
  assert.equal(first.isClosed && second.isClosed, true);
});

Deno.test("MemoryConnection.cut() and destroy() close both ends at once, each with its reason", async () => {
  for (const how of ["cut", "destroy"] as const) {
    const { first, one, other } = peers();
    one.send("lost");
    if (how === "cut") first.cut();
    else first.destroy(new CausewayError("x/y", "enough"));
    assert.equal(one.isClosed || other.isClosed, false);
    await one.until((peer) => peer.isClosed);
    await other.until((peer) => peer.isClosed);
    assert.equal(other.text, "");
    assert.equal(one.error?.code, how === "cut" ? "net/reset" : "x/y");
    assert.equal(other.error?.code, "net/reset");
    assert.equal(one.closedCount, 1);
  }
});

Deno.test("MemoryConnection.startTls() encrypts both ends and calls secured on the caller's", async () => {
  const { first, second, one } = peers({ peerNames: [["a.example"], []] });
  one.send("<proceed/>");
  first.startTls();
  assert.equal(first.isEncrypted, false);
  await one.until((peer) => peer.securedCount === 1);
  assert.equal(first.isEncrypted && second.isEncrypted, true);
  assert.deepEqual(first.peerNames, ["a.example"]);
});
