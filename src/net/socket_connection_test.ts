import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { setImmediate } from "node:timers";
import { CausewayError, ManualClock } from "../base/mod.ts";
import { TestPeer } from "./testing/peer.ts";
import { resolveConnectionLimits } from "./connection_limits.ts";
import type { ConnectionLimits } from "./connection_limits.ts";
import { SocketConnection } from "./socket_connection.ts";

interface Pair extends AsyncDisposable {
  readonly ours: TestPeer;
  readonly socket: Socket;
  readonly other: Socket;
  readonly clock: ManualClock;
}

/** Returns one of our connections over a real socket, and the raw socket of the other end. */
async function pair(limits: ConnectionLimits = {}): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
  const other = connect({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    allowHalfOpen: true,
  });
  other.on("error", () => {}); // The tests look at our side.
  const socket = await accepted;
  const clock = new ManualClock();
  const ours = new TestPeer(
    new SocketConnection(socket, { limits: resolveConnectionLimits(limits), clock }),
  );
  return {
    ours,
    socket,
    other,
    clock,
    async [Symbol.asyncDispose]() {
      socket.destroy();
      other.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function readBytes(socket: Socket, byteLength: number): Promise<Uint8Array> {
  const chunks: number[] = [];
  return await new Promise((resolve) => {
    socket.on("data", (chunk: Uint8Array) => {
      for (const byte of chunk) chunks.push(byte);
      if (chunks.length >= byteLength) resolve(Uint8Array.from(chunks));
    });
  });
}

function countWrites(socket: Socket): { readonly count: number } {
  const counter = { count: 0 };
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (...args: unknown[]) => {
    counter.count++;
    return write(...args);
  };
  return counter;
}

/** Counts writes like `countWrites`, and holds the first write under way until `release`. */
function holdWrites(socket: Socket): { readonly count: number; release(): void } {
  const held = { count: 0, release: () => {} };
  const write = socket.write.bind(socket) as (...args: unknown[]) => boolean;
  socket.write = (bytes: unknown, written: unknown) => {
    if (++held.count > 1) return write(bytes, written);
    held.release = written as () => void;
    return write(bytes);
  };
  return held;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

Deno.test("SocketConnection.send() puts all of one turn into one write and keeps the order", async () => {
  await using it = await pair();
  const writes = countWrites(it.socket);
  const scratch = new Uint8Array(1);
  for (let i = 0; i < 250; i++) {
    scratch[0] = i; // Reused at once: the queue must hold a copy.
    it.ours.connection.send(scratch);
  }
  assert.equal(it.ours.connection.pendingBytes, 250);
  const received = await readBytes(it.other, 250);
  assert.deepEqual(received, Uint8Array.from({ length: 250 }, (_, i) => i));
  assert.equal(writes.count, 1);
  assert.equal(it.ours.connection.pendingBytes, 0);
});

Deno.test("SocketConnection writes bytes that may wait together, in their place before those that may not", async () => {
  await using it = await pair();
  const writes = countWrites(it.socket);
  it.ours.connection.send(Uint8Array.of(1), true);
  const received = readBytes(it.other, 5);
  while (it.ours.connection.pendingBytes > 0) await nextTurn();
  it.ours.connection.send(Uint8Array.of(2), true);
  await nextTurn();
  it.ours.connection.send(Uint8Array.of(3), true);
  await nextTurn();
  assert.equal(it.ours.connection.pendingBytes, 2);
  it.ours.connection.send(Uint8Array.of(4));
  it.ours.connection.send(Uint8Array.of(5), true);
  assert.deepEqual(await received, Uint8Array.of(1, 2, 3, 4, 5));
  assert.equal(writes.count, 2);
});

Deno.test("SocketConnection writes what came while it wrote, and only waits where it may", async () => {
  await using it = await pair();
  it.ours.connection.send(Uint8Array.of(1), true);
  const writes = holdWrites(it.socket);
  const received = readBytes(it.other, 3);
  await nextTurn();
  assert.equal(writes.count, 1);
  it.ours.connection.send(Uint8Array.of(2));
  await nextTurn();
  it.ours.connection.send(Uint8Array.of(3), true);
  writes.release();
  assert.equal(writes.count, 2);
  assert.deepEqual(await received, Uint8Array.of(1, 2, 3));
});

Deno.test("SocketConnection.close() sends the bytes that wait", async () => {
  await using it = await pair();
  it.ours.connection.send(Uint8Array.of(1), true);
  const received = readBytes(it.other, 2);
  while (it.ours.connection.pendingBytes > 0) await nextTurn();
  it.ours.connection.send(Uint8Array.of(2), true);
  it.ours.connection.close();
  assert.deepEqual(await received, Uint8Array.of(1, 2));
  it.other.end();
  await it.ours.until((peer) => peer.isClosed);
});

Deno.test("SocketConnection carries megabytes unchanged through a slow reader", async () => {
  await using it = await pair();
  const total = 6 * 1024 * 1024;
  const piece = new Uint8Array(7001);
  let sent = 0;
  for (; sent + piece.length <= total; sent += piece.length) {
    for (let i = 0; i < piece.length; i++) piece[i] = (sent + i) * 31 >> 3;
    it.ours.connection.send(piece);
  }
  assert.equal(it.ours.connection.pendingBytes, sent);
  let position = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  it.other.on("data", (chunk: Uint8Array) => {
    for (let i = 0; i < chunk.length; i++) {
      if (chunk[i] !== (((position + i) * 31 >> 3) & 255)) assert.fail(`byte ${position + i}`);
    }
    position += chunk.length;
    if (position === sent) resolve();
  });
  await promise;
  await it.ours.until((peer) => peer.drainedCount === 1);
  assert.equal(it.ours.connection.pendingBytes, 0);
});

Deno.test("SocketConnection calls drained once after the high-water mark, not below it", async () => {
  await using it = await pair({ highWaterBytes: 1000 });
  it.ours.connection.send(new Uint8Array(1000));
  await readBytes(it.other, 1000);
  it.other.removeAllListeners("data");
  it.ours.connection.send(new Uint8Array(1001));
  await it.ours.until((peer) => peer.drainedCount === 1);
  await readBytes(it.other, 1001);
  assert.equal(it.ours.drainedCount, 1);
});

Deno.test("SocketConnection keeps maxPendingBytes and cuts a peer that never reads at one byte more", async () => {
  const maxPendingBytes = 32 * 1024 * 1024;
  await using it = await pair({ maxPendingBytes });
  it.other.pause();
  const piece = new Uint8Array(1024 * 1024);
  // Fill the operating system's buffers first, so that `pendingBytes` stays.
  let pendingBytes = -1;
  while (it.ours.connection.pendingBytes !== pendingBytes || pendingBytes === 0) {
    pendingBytes = it.ours.connection.pendingBytes;
    if (pendingBytes === 0) it.ours.connection.send(piece);
    for (let turn = 0; turn < 20; turn++) await new Promise((next) => setTimeout(next, 0));
  }
  assert.ok(pendingBytes > 0 && pendingBytes <= maxPendingBytes);
  it.ours.connection.send(new Uint8Array(maxPendingBytes - pendingBytes));
  assert.equal(it.ours.connection.pendingBytes, maxPendingBytes);
  assert.equal(it.ours.isClosed, false);
  it.ours.connection.send(new Uint8Array(1));
  assert.equal(it.ours.isClosed, false, "closed is never called from within send");
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error?.code, "net/peer-too-slow");
  assert.equal(it.ours.connection.pendingBytes, 0);
});

Deno.test("SocketConnection.close() sends the queue, drops incoming bytes, ends in order", async () => {
  await using it = await pair();
  it.ours.send("goodbye");
  it.ours.connection.close();
  it.ours.send("too late");
  it.other.write("late words");
  const received = await readBytes(it.other, 7);
  assert.equal(new TextDecoder().decode(received), "goodbye");
  it.other.end();
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error, undefined);
  assert.equal(it.ours.text, "");
  assert.equal(it.clock.pendingTimers, 0);
});

Deno.test("SocketConnection.close() cuts a peer that does not end within the linger time", async () => {
  await using it = await pair({ lingerMs: 100 });
  it.ours.connection.close();
  it.clock.advance(99);
  assert.equal(it.socket.destroyed, false);
  it.clock.advance(1);
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error, undefined, "everything had been sent");
});

Deno.test("SocketConnection.close() reports bytes that a lingering peer did not take", async () => {
  await using it = await pair({ lingerMs: 100, maxPendingBytes: 64 * 1024 * 1024 });
  it.other.pause();
  it.ours.connection.send(new Uint8Array(48 * 1024 * 1024));
  it.ours.connection.close();
  it.clock.advance(100);
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error?.code, "net/linger-timeout");
});

Deno.test("SocketConnection answers the peer's end with its queue and its own end", async () => {
  await using it = await pair();
  const ended = new Promise<void>((resolve) => it.other.once("end", () => resolve()));
  it.other.end("last words");
  await it.ours.until((peer) => peer.text === "last words");
  it.ours.send("heard");
  const received = await readBytes(it.other, 5);
  assert.equal(new TextDecoder().decode(received), "heard");
  await ended;
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error, undefined);
});

Deno.test("SocketConnection reports a reset as net/reset, and does nothing afterwards", async () => {
  await using it = await pair();
  it.other.resetAndDestroy();
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error?.code, "net/reset");
  it.ours.send("into the void");
  it.ours.connection.pause();
  it.ours.connection.resume();
  it.ours.connection.close();
  it.ours.connection.destroy(new CausewayError("x/y", "nothing"));
  assert.equal(it.ours.connection.pendingBytes, 0);
  assert.equal(it.ours.closedCount, 1);
});

Deno.test("SocketConnection knows the sends that are lost as the peer goes, and those after", async () => {
  await using it = await pair({ maxPendingBytes: 64 * 1024 * 1024 });
  const { connection } = it.ours;
  it.ours.send("in time");
  assert.equal(connection.unwrittenSends, 1);
  await readBytes(it.other, 7);
  while (connection.unwrittenSends > 0) await nextTurn();
  it.other.pause();
  connection.send(new Uint8Array(48 * 1024 * 1024));
  await nextTurn();
  it.ours.send("never");
  it.ours.send("read");
  assert.equal(connection.unwrittenSends, 3);
  it.other.resetAndDestroy();
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(connection.unwrittenSends, 3);
  it.ours.send("too late");
  assert.equal(connection.unwrittenSends, 4);
});

Deno.test("SocketConnection.destroy() reports its reason, later and once", async () => {
  await using it = await pair();
  it.ours.send("never sent");
  it.ours.connection.destroy(new CausewayError("x/first", "first"));
  it.ours.connection.destroy(new CausewayError("x/second", "second"));
  assert.equal(it.ours.isClosed, false);
  await it.ours.until((peer) => peer.isClosed);
  assert.equal(it.ours.error?.code, "x/first");
  assert.equal(it.ours.closedCount, 1);
});

Deno.test("SocketConnection.pause() stops data until resume, and slows the sender", async () => {
  await using it = await pair();
  it.other.write("one");
  await it.ours.until((peer) => peer.text === "one");
  it.ours.connection.pause();
  const total = 32 * 1024 * 1024;
  it.other.write(new Uint8Array(total));
  for (let turn = 0; turn < 50; turn++) await new Promise((next) => setTimeout(next, 0));
  assert.equal(it.ours.receivedBytes, 3);
  assert.ok(it.other.writableLength > 0, "bytes that are not read here wait at the sender");
  it.ours.connection.resume();
  await it.ours.until((peer) => peer.receivedBytes === total + 3);
});

Deno.test("SocketConnection.start() after the connection was lost still calls closed", async () => {
  await using it = await pair();
  const other = await pair();
  const connection = new SocketConnection(other.socket, {
    limits: resolveConnectionLimits(),
    clock: it.clock,
  });
  connection.destroy(new CausewayError("x/y", "gone"));
  await new Promise<void>((resolve) => other.socket.once("close", () => resolve()));
  const late = new TestPeer(connection);
  assert.equal(late.isClosed, false);
  await late.until((peer) => peer.isClosed);
  assert.equal(late.error?.code, "x/y");
  await other[Symbol.asyncDispose]();
});

Deno.test("SocketConnection.send() goes on while an earlier write is under way, one write at a time", async () => {
  await using it = await pair();
  const writes = holdWrites(it.socket);
  const received = readBytes(it.other, 30);
  const sent = async (first: number) => {
    for (let i = 0; i < 10; i++) it.ours.connection.send(Uint8Array.of(first + i));
    await new Promise((next) => setTimeout(next, 0));
  };
  await sent(0);
  assert.equal(writes.count, 1);
  await sent(10);
  await sent(20);
  assert.equal(writes.count, 1, "the first write is under way");
  writes.release();
  assert.equal(writes.count, 2, "all queued bytes leave in one write");
  assert.deepEqual(await received, Uint8Array.from({ length: 30 }, (_, i) => i));
});

Deno.test("resolveConnectionLimits() refuses a value that is not an integer from 1", () => {
  assert.throws(() => resolveConnectionLimits({ lingerMs: 0 }), RangeError);
  assert.throws(() => resolveConnectionLimits({ maxPendingBytes: 1.5 }), RangeError);
  assert.equal(resolveConnectionLimits({ lingerMs: 1 }).lingerMs, 1);
});
