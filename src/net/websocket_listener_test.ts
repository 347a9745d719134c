import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { TestCertificates } from "./testing/certificates.ts";
import { frameOf, HttpPeer, upgradeRequest } from "./testing/http_peer.ts";
import { TestWebSocketListener, UPGRADE } from "./testing/websocket_listener.ts";
import { TlsContextHolder } from "./tls_context_holder.ts";
import type { WebSocketListener } from "./websocket_listener.ts";

Deno.test("listenWebSocket() opens a WebSocket that asks for its subprotocol among others", async () => {
  await using server = await TestWebSocketListener.open();
  using peer = await HttpPeer.connect(server);
  peer.write(upgradeRequest("/xmpp-websocket?x=1", "chat, xmpp"));
  const head = await peer.read(/^.*\r\n\r\n/s);
  assert.match(head, /^HTTP\/1\.1 101 /);
  assert.match(head, /\r\nSec-WebSocket-Protocol: xmpp\r\n/);
  assert.doesNotMatch(head, /Extensions/i);
  const served = await server.until(() => server.served[0]);
  const { connection } = served;
  assert.equal(connection.remoteAddress, `127.0.0.1:${peer.socket.localPort}`);
  assert.deepEqual([connection.isLoopback, connection.isEncrypted], [true, false]);
  peer.write(frameOf("<ü/>"));
  await server.until(() => served.messages.length === 1);
  assert.deepEqual(served.messages, ["<ü/>"]);
});

Deno.test("listenWebSocket() reads messages that a client sends along with its request", async () => {
  await using server = await TestWebSocketListener.open();
  using peer = await HttpPeer.connect(server);
  peer.write(new Uint8Array([...new TextEncoder().encode(UPGRADE), ...frameOf("<a/>")]));
  const served = await server.until(() => server.served[0]);
  await server.until(() => served.messages.length === 1);
  assert.deepEqual(served.messages, ["<a/>"]);
});

for (
  const { what, request, status, code } of [
    {
      what: "a WebSocket without subprotocol",
      request: upgradeRequest("/xmpp-websocket", undefined),
      status: 400,
      code: "net/websocket-refused",
    },
    {
      what: "a WebSocket of another subprotocol",
      request: upgradeRequest("/xmpp-websocket", "xmpp2, chat"),
      status: 400,
      code: "net/websocket-refused",
    },
    {
      what: "a WebSocket at another path",
      request: upgradeRequest("/", "xmpp"),
      status: 404,
      code: "net/websocket-refused",
    },
    {
      what: "a WebSocket of an unknown version",
      request: UPGRADE.replace("Version: 13", "Version: 99"),
      status: 400,
      code: undefined,
    },
    {
      what: "garbage",
      request: "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
      status: 400,
      code: "net/http-invalid",
    },
    {
      what: "an XMPP stream",
      request: "<?xml version='1.0'?><stream:stream to='example.com'>\r\n\r\n",
      status: 400,
      code: "net/http-invalid",
    },
    {
      what: "a plain request at the WebSocket's path",
      request: "GET /xmpp-websocket HTTP/1.1\r\nHost: a\r\n\r\n",
      status: 426,
      code: undefined,
    },
    {
      what: "a page that does not exist",
      request: "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n",
      status: 404,
      code: undefined,
    },
    {
      what: "an unsupported method",
      request: "POST /page HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
      status: 405,
      code: undefined,
    },
    {
      what: "an invalid Host header",
      request: `GET /page HTTP/1.1\r\nHost: a"><x>\r\n\r\n`,
      status: 400,
      code: undefined,
    },
    {
      what: "a request without a Host header",
      request: "GET /page HTTP/1.0\r\n\r\n",
      status: 400,
      code: undefined,
    },
  ] as const
) {
  Deno.test(`listenWebSocket() answers ${what} with ${status} and closes`, async () => {
    await using server = await TestWebSocketListener.open();
    using peer = await HttpPeer.connect(server);
    peer.write(request);
    assert.match(await peer.closed(), new RegExp(`^HTTP/1\\.1 ${status} `));
    assert.deepEqual(server.refusals, code === undefined ? [] : [code]);
    assert.equal(server.served.length, 0);
  });
}

Deno.test("listenWebSocket() serves a page to everybody, and closes", async () => {
  await using server = await TestWebSocketListener.open();
  using peer = await HttpPeer.connect(server);
  peer.write("GET /page?x HTTP/1.1\r\nHost: [::1]:5280\r\n\r\n");
  const answer = await peer.closed();
  assert.match(answer, /^HTTP\/1\.1 200 OK\r\n/);
  assert.match(answer, /\r\nAccess-Control-Allow-Origin: \*\r\n/i);
  assert.match(answer, /\r\nContent-Type: text\/x-test\r\n/i);
  assert.match(answer, /\r\n\r\n\u00c3\u00bc \[::1\]:5280$/); // UTF-8, read byte by byte
  using offering = await HttpPeer.connect(server);
  offering.write(
    "GET /page HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
      "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
  );
  assert.match(await offering.closed(), /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n\u00c3\u00bc a$/s);
  using head = await HttpPeer.connect(server);
  head.write("HEAD /page HTTP/1.1\r\nHost: a.example:1\r\n\r\n");
  assert.match(await head.closed(), /^HTTP\/1\.1 200 OK\r\n.*Content-Length: 14\r\n.*\r\n\r\n$/si);
});

Deno.test("listenWebSocket() bounds the head of a request", async () => {
  await using server = await TestWebSocketListener.open({ limits: { maxHeadBytes: 1024 } });
  const request = (bytes: number) => {
    const bare = "GET /page HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n";
    return bare.replace("X: ", `X: ${"x".repeat(bytes - bare.length)}`);
  };
  using within = await HttpPeer.connect(server);
  within.write(request(1024));
  assert.match(await within.closed(), /^HTTP\/1\.1 200 /);
  using beyond = await HttpPeer.connect(server);
  beyond.write(request(1100));
  assert.match(await beyond.closed(), /^HTTP\/1\.1 431 /);
  assert.deepEqual(server.refusals, ["net/http-invalid"]);
});

Deno.test("listenWebSocket() accepts a Host of 261 characters, and none longer", async () => {
  await using server = await TestWebSocketListener.open();
  for (const [length, status] of [[261, 200], [262, 400]] as const) {
    using peer = await HttpPeer.connect(server);
    const host = `${"x".repeat(length - 6)}:65535`;
    peer.write(`GET /page HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    assert.match(await peer.closed(), new RegExp(`^HTTP/1\\.1 ${status} `), `${length}`);
  }
});

Deno.test("listenWebSocket() cuts a client that takes too long over its request", async () => {
  const clock = new ManualClock();
  await using server = await TestWebSocketListener.open({
    clock,
    limits: { handshakeTimeoutMs: 1000 },
  });
  using slow = await HttpPeer.connect(server);
  slow.write("GET /xmpp-websocket HTTP/1.1\r\nHost: a\r\nX: ");
  using quick = await HttpPeer.open(server);
  const served = await server.until(() => server.served[0]);
  clock.advance(999);
  assert.deepEqual(server.refusals, []);
  clock.advance(1);
  assert.equal(await slow.closed(), "");
  assert.deepEqual(server.refusals, ["net/handshake-timeout"]);
  quick.write(frameOf("still here"));
  await server.until(() => served.messages.length === 1);
});

Deno.test("listenWebSocket() bounds clients without a WebSocket, and connections in all", async () => {
  await using server = await TestWebSocketListener.open({
    limits: { maxHandshakes: 1, maxConnections: 2 },
  });
  using _open = await HttpPeer.open(server);
  using _waiting = await HttpPeer.connect(server);
  using third = await HttpPeer.connect(server);
  await third.closed();
  _waiting.write(UPGRADE);
  await _waiting.read(/^HTTP\/1\.1 101 .*\r\n\r\n/s);
  using fourth = await HttpPeer.connect(server);
  await fourth.closed();
  assert.deepEqual(server.refusals, ["net/too-many-connections", "net/too-many-connections"]);
});

Deno.test("listenWebSocket() lets the oldest client without a WebSocket make room for the next", async () => {
  await using server = await TestWebSocketListener.open({ limits: { maxHandshakes: 1 } });
  using first = await HttpPeer.connect(server);
  using second = await HttpPeer.connect(server);
  await first.closed();
  assert.deepEqual(server.refusals, ["net/too-many-handshakes"]);
  second.write(UPGRADE);
  await second.read(/^HTTP\/1\.1 101 .*\r\n\r\n/s);
  using third = await HttpPeer.open(server);
  assert(!third.isClosed);
});

Deno.test("listenWebSocket() drops clients without a WebSocket when it closes, and keeps the others", async () => {
  await using server = await TestWebSocketListener.open();
  using idle = await HttpPeer.connect(server);
  using open = await HttpPeer.open(server);
  const served = await server.until(() => server.served[0]);
  await server.listener.close();
  await idle.closed();
  open.write(frameOf("<a/>"));
  await server.until(() => served.messages.length === 1);
});

Deno.test("listenWebSocket() encrypts, and uses a reloaded certificate", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const files = await authority.issue({ names: ["localhost"] });
  const ca = await Deno.readTextFile(authority.cafile);
  const context = await TlsContextHolder.load(files);
  await using server = await TestWebSocketListener.open({ tls: { mode: "direct", context } });
  using before = await HttpPeer.open({ port: server.port, ca });
  const served = await server.until(() => server.served[0]);
  assert(served.connection.isEncrypted);
  const old = context.current.serverEndPoint;

  const renewed = await authority.issue({ names: ["new.example"] });
  await Deno.copyFile(renewed.certfile, files.certfile);
  await Deno.copyFile(renewed.keyfile, files.keyfile);
  await context.reload();
  using after = await HttpPeer.open({ port: server.port, ca, servername: "new.example" });
  after.write(frameOf("by the new one"));
  before.write(frameOf("by the old one"));
  await server.until(() =>
    server.served.length === 2 && server.served.every(({ messages }) => messages.length === 1)
  );
  assert.deepEqual(
    server.served.map(({ connection }) => connection.serverEndPoint),
    [old, context.current.serverEndPoint],
  );
  assert.notDeepEqual(old, context.current.serverEndPoint);
});

Deno.test("WebSocketListener.changeLimits() holds for WebSockets that open next, and those open go on", async () => {
  await using server = await TestWebSocketListener.open({ limits: { maxMessageBytes: 5 } });
  const open = async () => {
    const peer = await HttpPeer.connect(server);
    peer.write(UPGRADE);
    await peer.read(/^.*\r\n\r\n/s);
    return peer;
  };
  using early = await open();
  const [before] = await server.until(() => server.served.length === 1 && server.served);
  (server.listener as WebSocketListener).changeLimits({ maxMessageBytes: 9 });
  using late = await open();
  const [, after] = await server.until(() => server.served.length === 2 && server.served);
  late.write(frameOf("<longer/>"));
  await server.until(() => after!.messages.length === 1);
  early.write(frameOf("<ok/>"));
  await server.until(() => before!.messages.length === 1);
  early.write(frameOf("<longer/>"));
  await server.until(() => before!.closedCount === 1);
  assert.equal(before!.messages.length, 1);
});
