import assert from "node:assert/strict";
import { TestCertificates } from "./testing/certificates.ts";
import { frameOf, HttpPeer } from "./testing/http_peer.ts";
import type { ServedWebSocket } from "./testing/websocket_listener.ts";
import { TestWebSocketListener } from "./testing/websocket_listener.ts";
import type { TlsContextHolder } from "./tls_context_holder.ts";
import type { WebSocketLimits } from "./websocket_listener.ts";

const TEXT = 1;
const PING = 9;
const PONG = 10;

/** Returns both ends of a WebSocket. */
async function pair(limits: WebSocketLimits = {}, tls?: { holder: TlsContextHolder; ca: string }) {
  const server = await TestWebSocketListener.open({
    limits: { lingerMs: 50, ...limits },
    ...(tls === undefined ? {} : { tls: { mode: "direct", context: tls.holder } }),
  });
  const peer = await HttpPeer.open({
    port: server.port,
    ...(tls === undefined ? {} : { ca: tls.ca }),
  });
  const served = await server.until(() => server.served[0]);
  return {
    server,
    peer,
    served,
    until: (condition: () => boolean) => server.until(condition),
    async [Symbol.asyncDispose](): Promise<void> {
      peer.socket.destroy();
      await server[Symbol.asyncDispose]();
    },
  };
}

function text({ payload }: { readonly payload: Uint8Array }): string {
  return new TextDecoder().decode(payload);
}

async function turn(): Promise<void> {
  await new Promise((done) => setImmediate(done));
}

/** Sends to a client that does not read until more than `bytes` stay queued. */
async function fill(served: ServedWebSocket, bytes: number): Promise<void> {
  const stuffing = "x".repeat(16_000);
  let turns = 0;
  for (let sent = 0; turns < 20 && served.closedCount === 0;) {
    if (served.connection.pendingBytes > bytes) turns++;
    else {
      turns = 0;
      assert((sent += stuffing.length) < 64_000_000, "it never piles up");
      served.send(stuffing);
    }
    await turn();
  }
}

Deno.test("WebSocketConnection.send() makes each message a text frame, and writes a turn's frames at once", async () => {
  await using ends = await pair();
  const { served, peer } = ends;
  await turn();
  const before = peer.chunks;
  for (let i = 0; i < 20; i++) served.send(`<m${i}/>`);
  assert(served.connection.pendingBytes > 20 * 5);
  for (let i = 0; i < 20; i++) {
    const frame = await peer.frame();
    assert.deepEqual([frame.opcode, text(frame)], [TEXT, `<m${i}/>`]);
  }
  assert.equal(peer.chunks - before, 1);
  assert.equal(served.connection.pendingBytes, 0);
  served.send("y".repeat(70_000));
  assert.equal((await peer.frame()).payload.length, 70_000);
});

Deno.test("WebSocketConnection joins a message from its frames, and reports their bytes first", async () => {
  await using ends = await pair();
  const { served, peer, until } = ends;
  peer.write(frameOf("<a", { isFinal: false }));
  await until(() => served.receivedBytes === 8);
  peer.write(frameOf("", { opcode: PING }));
  peer.write(frameOf("/>", { opcode: 0 }));
  await until(() => served.messages.length === 1);
  assert.deepEqual(served.messages, ["<a/>"]);
  assert.equal(served.receivedBytes, 8 + 6 + 8);
});

Deno.test("WebSocketConnection answers pings, and sends its own", async () => {
  await using ends = await pair();
  const { served, peer } = ends;
  peer.write(frameOf("there?", { opcode: PING }));
  const pong = await peer.frame();
  assert.deepEqual([pong.opcode, text(pong)], [PONG, "there?"]);
  served.connection.ping();
  assert.equal((await peer.frame()).opcode, PING);
  assert.deepEqual(served.messages, []);
});

Deno.test("WebSocketConnection refuses a binary message with 1003", async () => {
  await using ends = await pair();
  const { served, peer, until } = ends;
  peer.write(frameOf("<a/>", { opcode: 2 }));
  peer.write(frameOf("<b/>"));
  assert.equal(await peer.closeCode(), 1003);
  await until(() => served.closedCount === 1);
  assert.equal(served.error?.code, "net/websocket-protocol");
  assert.deepEqual(served.messages, []);
});

for (
  const { what, frames, closeCode, code } of [
    {
      what: "a message whose first frame announces a length past the limit",
      frames: [frameOf("", { length: 1001 })],
      closeCode: 1009,
      code: "net/message-too-large",
    },
    {
      what: "a message past the limit in pieces",
      frames: [
        frameOf("x".repeat(600), { isFinal: false }),
        frameOf("", { opcode: 0, length: 401 }),
      ],
      closeCode: 1009,
      code: "net/message-too-large",
    },
    {
      what: "an impossible frame length",
      frames: [frameOf("", { length: 2 ** 52 })],
      closeCode: 1009,
      code: "net/message-too-large",
    },
    {
      what: "one frame more than the limit",
      frames: [
        frameOf("<", { isFinal: false }),
        ...Array.from({ length: 8 }, () => frameOf("", { opcode: 0, isFinal: false })),
      ],
      closeCode: 1008,
      code: "net/websocket-protocol",
    },
    {
      what: "a frame that is not masked",
      frames: [new Uint8Array([0x81, 1, 0x3c])],
      closeCode: 1002,
      code: "net/websocket-protocol",
    },
    {
      what: "a frame of no known kind",
      frames: [frameOf("", { opcode: 3 })],
      closeCode: 1002,
      code: "net/websocket-protocol",
    },
  ]
) {
  Deno.test(`WebSocketConnection ends for ${what}, with ${closeCode}`, async () => {
    await using ends = await pair({ maxMessageBytes: 1000, maxFragments: 8 });
    const { served, peer, until } = ends;
    peer.write(frameOf("x".repeat(1000)));
    peer.write(frameOf("a", { isFinal: false }));
    for (let i = 0; i < 6; i++) peer.write(frameOf("", { opcode: 0, isFinal: false }));
    peer.write(frameOf("b", { opcode: 0 }));
    await until(() => served.messages.length === 2);
    assert.equal(served.messages[1], "ab");
    for (const frame of frames) peer.write(frame);
    assert.equal(await peer.closeCode(), closeCode);
    await until(() => served.closedCount === 1);
    assert.equal(served.error?.code, code);
    assert.equal(served.messages.length, 2);
  });
}

Deno.test("WebSocketConnection.close() sends the queue and the code, and waits for the answer", async () => {
  await using ends = await pair({ lingerMs: 60_000 });
  const { served, peer, until } = ends;
  served.send("<last/>");
  served.connection.close(1000);
  served.send("<never/>");
  assert.equal(text(await peer.frame()), "<last/>");
  assert.equal(await peer.closeCode(), 1000);
  peer.write(frameOf("<late/>"));
  peer.write(frameOf(new Uint8Array([0x03, 0xe8]), { opcode: 8 }));
  await peer.closed();
  await until(() => served.closedCount === 1);
  assert.equal(served.error, undefined);
  assert.deepEqual(served.messages, []);
});

Deno.test("WebSocketConnection.close() cuts a client that never answers, after lingerMs", async () => {
  await using ends = await pair({ lingerMs: 20 });
  const { served, peer, until } = ends;
  served.connection.close(1000);
  await until(() => served.closedCount === 1);
  await peer.closed();
});

Deno.test("WebSocketConnection distinguishes an orderly end from a cut", async () => {
  await using orderly = await pair();
  orderly.peer.write(frameOf(new Uint8Array([0x03, 0xe9]), { opcode: 8 }));
  await orderly.until(() => orderly.served.closedCount === 1);
  assert.equal(orderly.served.error, undefined);
  await using cut = await pair();
  cut.peer.socket.destroy();
  await cut.until(() => cut.served.closedCount === 1);
  assert.equal(cut.served.error?.code, "net/reset");
  await using halfOpen = await pair();
  halfOpen.peer.socket.end();
  await halfOpen.until(() => halfOpen.served.closedCount === 1);
  assert.equal(halfOpen.served.error?.code, "net/reset");
});

Deno.test("WebSocketConnection cuts a client that never reads, at maxPendingBytes", async () => {
  await using ends = await pair({ maxPendingBytes: 100_000, highWaterBytes: 50_000 });
  const { served, peer, until } = ends;
  peer.socket.pause();
  await fill(served, 90_000);
  served.send("x".repeat(16_000));
  await until(() => served.closedCount === 1);
  assert.equal(served.error?.code, "net/peer-too-slow");
});

Deno.test("WebSocketConnection knows the messages that are lost as the client goes, and those after", async () => {
  await using ends = await pair();
  const { served, peer, until } = ends;
  served.send("in time");
  assert.equal(served.connection.unwrittenSends, 1);
  while (served.connection.unwrittenSends > 0) await turn();
  peer.socket.pause();
  await fill(served, 50_000);
  const unwritten = served.connection.unwrittenSends;
  assert(unwritten > 0 && unwritten <= served.connection.pendingBytes / 16_000 + 1);
  served.send("never read");
  await turn();
  peer.socket.destroy();
  await until(() => served.closedCount === 1);
  assert.equal(served.connection.unwrittenSends, unwritten + 1);
  served.send("too late");
  assert.equal(served.connection.unwrittenSends, unwritten + 2);
});

Deno.test("WebSocketConnection queues no pongs for a client that never reads", async () => {
  await using ends = await pair({ highWaterBytes: 50_000 });
  const { served, peer, until } = ends;
  peer.socket.pause();
  await fill(served, 50_000);
  const pendingBytes = served.connection.pendingBytes;
  const receivedBytes = served.receivedBytes;
  const pings = 1000;
  for (let i = 0; i < pings; i++) peer.write(frameOf("x".repeat(125), { opcode: PING }));
  await until(() => served.receivedBytes === receivedBytes + pings * 131);
  assert(served.connection.pendingBytes <= pendingBytes);
});

Deno.test("WebSocketConnection calls drained when its queue has emptied", async () => {
  await using ends = await pair({ highWaterBytes: 50_000 });
  const { served, peer, until } = ends;
  peer.socket.pause();
  await fill(served, 50_000);
  assert.equal(served.drainedCount, 0);
  peer.isDeaf = true;
  peer.socket.resume();
  await until(() => served.drainedCount === 1);
  assert.equal(served.connection.pendingBytes, 0);
});

/** Checks that TCP holds the peer of a paused connection back, and that nothing piles up here. */
async function holdsBack(ends: Awaited<ReturnType<typeof pair>>): Promise<void> {
  const { served, peer, until } = ends;
  served.connection.pause();
  const frame = frameOf("x".repeat(60_000));
  const count = 400; // 24 MB, more than any system keeps between two sockets
  for (let i = 0; i < count; i++) peer.write(frame);
  let seen = -1;
  for (let quiet = 0; quiet < 50;) {
    await turn();
    quiet = peer.socket.bytesWritten === seen ? quiet + 1 : 0;
    seen = peer.socket.bytesWritten;
  }
  assert(peer.socket.writableLength > 1_000_000, "the peer could send everything");
  assert(served.receivedBytes < 1_000_000, `${served.receivedBytes} bytes were read`);
  served.connection.resume();
  await until(() => served.messages.length === count);
}

Deno.test("WebSocketConnection.pause() holds the peer back", async () => {
  await using ends = await pair();
  await holdsBack(ends);
});

Deno.test("WebSocketConnection.pause() holds the peer back inside TLS", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const holder = await authority.holder("localhost");
  const ca = await Deno.readTextFile(authority.cafile);
  await using ends = await pair({}, { holder, ca });
  await holdsBack(ends);
});
