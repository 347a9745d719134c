import assert from "node:assert/strict";
import { connect as connectTls } from "node:tls";
import { connect as connectPlain } from "node:net";
import { Socket } from "node:net";
import { CausewayError, ManualClock } from "../base/mod.ts";
import { TestCertificates } from "./testing/certificates.ts";
import { TestPeer } from "./testing/peer.ts";
import type { Connection } from "./connection.ts";
import { listen } from "./listener.ts";
import { resolveConnectionLimits } from "./connection_limits.ts";
import type { Listener } from "./listener_options.ts";
import { SocketConnection } from "./socket_connection.ts";
import { TlsAcceptor } from "./tls_acceptor.ts";
import { TlsContextHolder } from "./tls_context_holder.ts";

const clock = new ManualClock();

interface Fixture extends AsyncDisposable {
  readonly listener: Listener;
  readonly ca: string;
  /** Connects; the server side answers `<starttls/>` with `<proceed/>` and asks for TLS. */
  connect(): Promise<{ client: Socket; server: TestPeer }>;
}

async function serveStartTls(): Promise<Fixture> {
  const certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const files = await authority.issue({ names: ["example.com"], isCombined: true });
  const context = await TlsContextHolder.load({ certfile: files.certfile });
  let next = Promise.withResolvers<Connection>();
  const listener = await listen(
    {
      host: "127.0.0.1",
      port: 0,
      tls: { mode: "starttls", context },
      limits: { handshakeTimeoutMs: 1000 },
      clock,
    },
    { accepted: (connection) => next.resolve(connection) },
  );
  return {
    listener,
    ca: await Deno.readTextFile(authority.cafile),
    async connect() {
      next = Promise.withResolvers<Connection>();
      const client = connectPlain({ host: "127.0.0.1", port: listener.port });
      client.on("error", () => {}); // The tests look at the server's side.
      const connection = await next.promise;
      const server = new StartTlsPeer(connection);
      return { client, server };
    },
    async [Symbol.asyncDispose]() {
      await listener.close();
      await certificates[Symbol.asyncDispose]();
    },
  };
}

class StartTlsPeer extends TestPeer {
  override data(chunk: Uint8Array): void {
    super.data(chunk);
    if (this.text !== "<starttls/>") return;
    this.send("<proceed/>");
    this.connection.startTls!();
  }
}

async function firstData(socket: Socket): Promise<string> {
  return await new Promise((resolve) => {
    socket.once("data", (chunk: Uint8Array) => resolve(new TextDecoder().decode(chunk)));
  });
}

function upgrade(client: Socket, ca: string) {
  const secure = connectTls({ socket: client, ca, servername: "example.com" });
  secure.on("error", () => {});
  return secure;
}

Deno.test("startTls() sends the queue in the clear, then encrypts the same connection", async () => {
  await using fixture = await serveStartTls();
  const { client, server } = await fixture.connect();
  client.write("<starttls/>");
  assert.equal(await firstData(client), "<proceed/>");
  assert.equal(server.connection.isEncrypted, false);
  const secure = upgrade(client, fixture.ca);
  await server.until((peer) => peer.securedCount === 1);
  assert.equal(server.connection.isEncrypted, true);
  secure.write("<stream/>");
  await server.until((peer) => peer.text.endsWith("<stream/>"));
  server.send("<features/>");
  assert.equal(await firstData(secure), "<features/>");
  assert.throws(() => server.connection.startTls!(), TypeError);
  secure.end();
  await server.until((peer) => peer.isClosed);
  assert.equal(server.error, undefined);
  assert.equal(server.closedCount, 1);
});

Deno.test("startTls() serves handshakes one after another", async () => {
  await using fixture = await serveStartTls();
  for (let i = 0; i < 5; i++) {
    const { client, server } = await fixture.connect();
    client.write("<starttls/>");
    await firstData(client);
    const secure = upgrade(client, fixture.ca);
    await server.until((peer) => peer.securedCount === 1);
    server.connection.close();
    await server.until((peer) => peer.isClosed);
    assert.equal(server.error, undefined);
    secure.destroy();
  }
});

Deno.test("startTls() closes on plaintext where the handshake should be", async () => {
  await using fixture = await serveStartTls();
  const { client, server } = await fixture.connect();
  client.write("<starttls/>");
  await firstData(client);
  client.write("<message>not encrypted, and long enough for a record</message>");
  await server.until((peer) => peer.isClosed);
  assert.equal(server.error?.code, "net/tls-failed");
  assert.equal(server.text, "<starttls/>");
  assert.equal(server.securedCount, 0);
  client.destroy();
});

/** A socket whose writes complete when the test says so. */
class SlowSocket extends Socket {
  writeTaken: () => void = () => {};

  override _read(): void {}

  override _write(_chunk: unknown, _encoding: string, done: () => void): void {
    this.writeTaken = done;
  }
}

/** Records the unread bytes at the start of each handshake, and runs no handshake. */
class CountingAcceptor extends TlsAcceptor {
  readonly begun: string[] = [];
  readonly first = Promise.withResolvers<void>();

  override secure(plain: Socket): void {
    const unread = plain.read() as Uint8Array | null;
    this.begun.push(new TextDecoder("latin1").decode(unread ?? new Uint8Array()));
    this.first.resolve();
  }
}

/** The first bytes of a handshake. */
const HELLO = "\x16\x03\x01";

Deno.test("startTls() closes on bytes that arrive before the queue has left, except white space", async () => {
  await using certificates = await TestCertificates.create();
  const { certfile } = await (await certificates.authority()).issue({
    names: ["example.com"],
    isCombined: true,
  });
  const holder = await TlsContextHolder.load({ certfile });
  const cases: readonly (readonly [early: string, late: string, isRefused: boolean])[] = [
    ["", HELLO, false],
    ["\r\n", HELLO, false],
    ["", `\n${HELLO}`, false],
    ["\n", `\n${HELLO}`, false],
    [" ".repeat(16), HELLO, false],
    [" ".repeat(8), " ".repeat(8) + HELLO, false],
    [" ".repeat(17), "", true],
    [" ".repeat(8), " ".repeat(9) + HELLO, true],
    ["<message/>", "", true],
    ["\n<message/>", "", true],
    [HELLO, "", true],
  ];
  for (const [early, late, isRefused] of cases) {
    const what = JSON.stringify([early, late]);
    const socket = new SlowSocket();
    const acceptor = new CountingAcceptor(holder, { isMutual: false });
    const limits = resolveConnectionLimits({});
    const server = new StartTlsPeer(new SocketConnection(socket, { limits, clock, acceptor }));
    socket.push("<starttls/>");
    await server.until((peer) => peer.text === "<starttls/>");
    assert.equal(acceptor.begun.length, 0);
    socket.push(early);
    socket.writeTaken();
    if (late !== "") socket.push(late);
    if (isRefused) {
      await server.until((peer) => peer.isClosed);
      assert.equal(server.error?.code, "net/starttls-pipelined", what);
      assert.deepEqual(acceptor.begun, [], what);
    } else {
      await acceptor.first.promise;
      assert.deepEqual(acceptor.begun, [HELLO], what);
      server.connection.destroy(new CausewayError("x/y", "end"));
      await server.until((peer) => peer.isClosed);
      assert.equal(server.error?.code, "x/y", what);
    }
    assert.equal(server.text, "<starttls/>");
    assert.equal(server.securedCount, 0);
  }
});

Deno.test("startTls() skips white space before a handshake, whenever it arrives", async () => {
  await using fixture = await serveStartTls();
  const { client, server } = await fixture.connect();
  client.write("<starttls/>");
  await firstData(client);
  client.write("\r\n");
  const secure = upgrade(client, fixture.ca);
  await server.until((peer) => peer.securedCount === 1);
  secure.write("<stream/>");
  await server.until((peer) => peer.text === "<starttls/><stream/>");
  secure.end();
  await server.until((peer) => peer.isClosed);
  assert.equal(server.error, undefined);
});

Deno.test("startTls() closes on plaintext after white space", async () => {
  await using fixture = await serveStartTls();
  for (
    const [text, code] of [
      ["\n<message>not encrypted, and long enough for a record</message>", "net/tls-failed"],
      [" ".repeat(17), "net/starttls-pipelined"],
    ] as const
  ) {
    const { client, server } = await fixture.connect();
    client.write("<starttls/>");
    await firstData(client);
    client.write(text);
    await server.until((peer) => peer.isClosed);
    assert.equal(server.error?.code, code);
    assert.equal(server.text, "<starttls/>");
    assert.equal(server.securedCount, 0);
    client.destroy();
  }
});

Deno.test("startTls() survives a peer that hangs up before the handshake", async () => {
  await using fixture = await serveStartTls();
  for (const how of ["end", "resetAndDestroy"] as const) {
    const { client, server } = await fixture.connect();
    client.write("<starttls/>");
    await firstData(client);
    client.write("\n");
    client[how]();
    await server.until((peer) => peer.isClosed);
    assert.equal(server.error?.code, "net/reset");
    assert.equal(server.closedCount, 1);
    client.destroy();
  }
});

Deno.test("startTls() ends a connection whose peer never begins its handshake", async () => {
  await using fixture = await serveStartTls();
  const { client, server } = await fixture.connect();
  client.write("<starttls/>");
  await firstData(client);
  clock.advance(999);
  assert.equal(server.isClosed, false);
  clock.advance(1);
  await server.until((peer) => peer.isClosed);
  assert.equal(server.error?.code, "net/handshake-timeout");
  client.destroy();
});

Deno.test("startTls() survives a peer that hangs up during the handshake", async () => {
  await using fixture = await serveStartTls();
  const { client, server } = await fixture.connect();
  client.write("<starttls/>");
  await firstData(client);
  client.write(new Uint8Array([0x16, 0x03, 0x01, 0x02]));
  client.end();
  await server.until((peer) => peer.isClosed);
  assert.equal(server.error?.code, "net/reset");
  client.destroy();
});

Deno.test("close() and destroy() during the handshake end the connection once", async () => {
  await using fixture = await serveStartTls();
  for (const how of ["close", "destroy"] as const) {
    const { client, server } = await fixture.connect();
    client.write("<starttls/>");
    await firstData(client);
    server.send("lost: nothing may leave in the clear");
    assert.equal(server.connection.pendingBytes, 0);
    if (how === "close") server.connection.close();
    else {server.connection.destroy(
        new CausewayError("x/y", "end"),
      );}
    await server.until((peer) => peer.isClosed);
    assert.equal(server.error?.code, how === "close" ? undefined : "x/y");
    assert.equal(server.closedCount, 1);
    client.destroy();
  }
  assert.equal(clock.pendingTimers, 0);
});
