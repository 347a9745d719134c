import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { SystemClock } from "../../base/mod.ts";
import type { Listener } from "../../net/mod.ts";
import { dial, listenWebSocket } from "../../net/mod.ts";
import type { FixtureOptions } from "../c2s/testing/c2s_fixture.ts";
import { C2sFixture, plainOf } from "../c2s/testing/c2s_fixture.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { RawPeer } from "../stream/testing/raw_peer.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { discoveryPage, WEBSOCKET_PATH } from "./discovery.ts";
import { XMPP_SUBPROTOCOL } from "./framing.ts";
import { WebSocketTransport } from "./websocket_transport.ts";

const OPEN = "<open xmlns='urn:ietf:params:xml:ns:xmpp-framing' to='example.com' version='1.0'/>";
const BIND = "<iq xmlns='jabber:client' type='set' id='b'>" +
  "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>web</resource></bind></iq>";

/** A port as a node opens it, with accounts behind it. */
class RealPort implements AsyncDisposable {
  readonly fixture: C2sFixture;
  readonly listener: Listener;

  private constructor(fixture: C2sFixture, listener: Listener) {
    this.fixture = fixture;
    this.listener = listener;
  }

  static async open(options: FixtureOptions = {}): Promise<RealPort> {
    const fixture = new C2sFixture({
      clock: new SystemClock(),
      allowPlaintext: true,
      edge: "websocket",
      ...options,
    });
    const limits = resolveStreamLimits(options.limits);
    const listener = await listenWebSocket({
      host: "127.0.0.1",
      port: 0,
      path: WEBSOCKET_PATH,
      subprotocol: XMPP_SUBPROTOCOL,
      limits: { maxMessageBytes: limits.maxStanzaBytes, lingerMs: 50 },
    }, {
      accepted: (connection) =>
        fixture.listener.acceptTransport(new WebSocketTransport(connection, limits)),
      page: (path, host) => discoveryPage(path, host, { url: undefined, isEncrypted: false }),
    });
    return new RealPort(fixture, listener);
  }

  /** Logs in a client that uses the runtime's own WebSocket. */
  async login(user: string): Promise<RealClient> {
    const client = new RealClient(this.listener.port);
    for (const message of [OPEN, plainOf(user), OPEN, BIND]) await client.say(message);
    await client.until(/<jid>/);
    return client;
  }

  limitHits(limit: string): number {
    return this.fixture.metrics.value("xmpp_limit_hits_total", { edge: "websocket", limit });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close();
    await this.fixture[Symbol.asyncDispose]();
    while (this.listener.connectionCount > 0) await turn();
  }
}

class RealClient {
  readonly #socket: WebSocket;
  readonly #opened = Promise.withResolvers<void>();
  readonly closed = Promise.withResolvers<number>();
  readonly messages: string[] = [];
  #wake: () => void = () => {};

  constructor(port: number) {
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}/xmpp-websocket`, "xmpp");
    this.#socket.onopen = () => this.#opened.resolve();
    this.#socket.onmessage = ({ data }) => {
      this.messages.push(data);
      this.#wake();
    };
    this.#socket.onclose = ({ code }) => this.closed.resolve(code);
  }

  async say(message: string | Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#opened.promise;
    this.#socket.send(message);
  }

  async until(pattern: RegExp): Promise<void> {
    while (!this.messages.some((message) => pattern.test(message))) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      await promise;
    }
  }

  async leave(): Promise<void> {
    this.#socket.close();
    await this.closed.promise;
  }
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Returns a client's frame, masked by zeros. */
function frameOf(text: string): Uint8Array {
  const payload = Buffer.from(text);
  const head = payload.length < 126
    ? [0x81, 0x80 | payload.length]
    : [0x81, 0xfe, payload.length >> 8, payload.length & 0xff];
  return Buffer.concat([Buffer.from([...head, 0, 0, 0, 0]), payload]);
}

Deno.test("C2sListener serves clients over real WebSockets, and the discovery page", async () => {
  await using port = await RealPort.open();
  const alice = await port.login("alice");
  const bob = await port.login("bob");
  await alice.say(
    "<message xmlns='jabber:client' to='bob@example.com/web'><body>grüße</body></message>",
  );
  await bob.until(/^<message xmlns='jabber:client' from='alice@example\.com\/web' .*grüße/);
  const origin = `http://127.0.0.1:${port.listener.port}`;
  const page = await fetch(`${origin}/.well-known/host-meta.json`);
  assert.equal(
    (await page.json()).links[0].href,
    `${origin.replace("http", "ws")}${WEBSOCKET_PATH}`,
  );
  await alice.leave();
  await bob.leave();
});

Deno.test("C2sListener ends a WebSocket for a binary message, and for one that is too long", async () => {
  await using port = await RealPort.open({ limits: { maxStanzaBytes: 10_000 } });
  const alice = await port.login("alice");
  await alice.say(new Uint8Array([0x3c]));
  assert.equal(await alice.closed.promise, 1003);
  const bob = await port.login("bob");
  const within = "<message xmlns='jabber:client' to='bob@example.com/web'><body/></message>";
  await bob.say(
    within.replace("<body/>", `<body>${"x".repeat(10_000 - within.length - 6)}</body>`),
  );
  await bob.until(/x<\/body><\/message>$/);
  await bob.say("x".repeat(10_001));
  assert.equal(await bob.closed.promise, 1009);
  while (port.limitHits("stanza-bounds") === 0) await turn();
  assert.equal(port.fixture.registry.count, 0);
});

Deno.test("C2sListener bounds an endless message before authentication", async () => {
  await using port = await RealPort.open({ limits: { maxUnauthenticatedBytes: 1024 } });
  const peer = new RawPeer(await dial({ host: "127.0.0.1", port: port.listener.port }));
  peer.send(
    `GET ${WEBSOCKET_PATH} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
      "Sec-WebSocket-Protocol: xmpp\r\n\r\n",
  );
  await peer.expect("\r\n\r\n");
  // The first frame of a message, and its continuation frames.
  peer.connection.send(new Uint8Array([0x01, 0x81, 0, 0, 0, 0, 0x3c]));
  const more = new Uint8Array([0x00, 0x81, 0, 0, 0, 0, 0x61]);
  for (let i = 0; i < 200 && !peer.isClosed; i++) peer.connection.send(more);
  await peer.expect("policy-violation");
  await peer.expectClosed();
  assert.equal(port.limitHits("unauthenticated-bytes"), 1);
});

Deno.test("C2sListener cuts only the client that never reads, on a real WebSocket", async () => {
  await using port = await RealPort.open({ limits: { maxPendingBytes: 65_536, slowReaderMs: 10 } });
  const { registry, metrics } = port.fixture;
  const deaf = new RawPeer(await dial({ host: "127.0.0.1", port: port.listener.port }));
  deaf.send(
    `GET ${WEBSOCKET_PATH} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
      "Sec-WebSocket-Protocol: xmpp\r\n\r\n",
  );
  await deaf.expect("\r\n\r\n");
  for (const message of [OPEN, plainOf("alice"), OPEN, BIND]) {
    deaf.connection.send(frameOf(message));
  }
  await deaf.expect("<jid>");
  const bob = await port.login("bob");
  deaf.connection.pause();
  const stanza: Stanza = {
    kind: "message",
    type: "chat",
    from: parseJid("bob@example.com/web"),
    to: parseJid("alice@example.com/web"),
    bytes: new TextEncoder().encode(`<message><body>${"x".repeat(16_000)}</body></message>`),
  };
  let deliveredBytes = 0;
  while (registry.deliver(stanza) === "delivered") {
    deliveredBytes += stanza.bytes.length;
    assert(deliveredBytes < 64_000_000, "the bound was never reached");
    await turn();
  }
  assert.equal(registry.deliver(stanza), "resource-constraint");
  const closed = { edge: "websocket", condition: "stream/slow-reader" };
  while (metrics.value("xmpp_streams_closed_total", closed) === 0) await turn();
  assert.equal(registry.deliver(stanza), "no-session");
  deaf.connection.resume();
  await deaf.expectClosed();
  await bob.say("<message xmlns='jabber:client' id='m' to='bob@example.com/web'/>");
  await bob.until(/^<message .* id='m'/);
  await bob.leave();
});
