import assert from "node:assert/strict";
import { connect as connectPlain } from "node:net";
import { CausewayError } from "../base/mod.ts";
import { ManualClock } from "../base/mod.ts";
import { TestCertificates } from "./testing/certificates.ts";
import { TestPeer } from "./testing/peer.ts";
import { dial } from "./dial.ts";
import { listen } from "./listener.ts";
import { closeBoth, TestListener } from "./testing/test_listener.ts";

Deno.test("listen() on port 0 reports the bound address and carries bytes both ways", async () => {
  await using server = await TestListener.open();
  assert.match(server.listener.address, /^127\.0\.0\.1:\d+$/);
  const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
  const accepted = await server.accepted();
  client.send("hello ");
  client.send("there");
  accepted.send("welcome");
  await accepted.until((peer) => peer.text === "hello there");
  await client.until((peer) => peer.text === "welcome");
  assert.equal(accepted.connection.isLoopback, true);
  assert.equal(accepted.connection.isEncrypted, false);
  assert.equal(accepted.connection.startTls, undefined);
  assert.deepEqual(accepted.connection.peerNames, []);
  assert.equal(server.listener.connectionCount, 1);
  await closeBoth(client, accepted);
  assert.equal(client.error, undefined);
  assert.equal(accepted.error, undefined);
  assert.equal(server.listener.connectionCount, 0);
});

Deno.test("listen() on IPv6 shows bracketed addresses", async () => {
  await using server = await TestListener.open({ host: "::1" });
  assert.match(server.listener.address, /^\[::1\]:\d+$/);
  const client = new TestPeer(await dial({ host: "::1", port: server.port }));
  const accepted = await server.accepted();
  assert.match(accepted.connection.remoteAddress, /^\[::1\]:\d+$/);
  assert.equal(accepted.connection.isLoopback, true);
  await closeBoth(client, accepted);
});

Deno.test("listen() rejects with one clear error for a taken port and for an address not ours", async () => {
  await using server = await TestListener.open();
  await assert.rejects(
    listen({ host: "127.0.0.1", port: server.port }, { accepted() {} }),
    (error: CausewayError) => {
      assert.equal(error.code, "net/address-in-use");
      assert.match(error.message, new RegExp(`^Cannot listen on 127\\.0\\.0\\.1:${server.port}: `));
      return true;
    },
  );
  const { state } = await Deno.permissions.query({ name: "net", host: "192.0.2.7:0" });
  await assert.rejects(listen({ host: "192.0.2.7", port: 0 }, { accepted() {} }), {
    code: state === "granted" ? "net/address-unavailable" : "net/address-forbidden",
  });
});

Deno.test("Listener refuses one connection more than maxConnections and accepts again later", async () => {
  await using server = await TestListener.open({ limits: { maxConnections: 2 } });
  const peers: [TestPeer, TestPeer][] = [];
  for (let i = 0; i < 2; i++) {
    const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
    peers.push([client, await server.accepted()]);
  }
  const third = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
  assert.equal((await server.refused()).error.code, "net/too-many-connections");
  await third.until((peer) => peer.isClosed);
  await closeBoth(...peers[0]!);
  const fourth = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
  await closeBoth(fourth, await server.accepted());
  await closeBoth(...peers[1]!);
});

Deno.test("mutual TLS gives both ends the names in the other's certificate", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const context = await authority.holder("dc1.example.com");
  const tls = await authority.holder("dc2.example.com", "ALT.example.com");
  await using server = await TestListener.open({ tls: { mode: "mutual", context } });
  for (const servername of [undefined, "dc1.example.com"]) {
    const client = new TestPeer(
      await dial({
        host: "127.0.0.1",
        port: server.port,
        tls,
        ...(servername === undefined ? {} : { servername }),
      }),
    );
    const accepted = await server.accepted();
    assert.deepEqual(accepted.connection.peerNames, ["dc2.example.com", "alt.example.com"]);
    assert.deepEqual(client.connection.peerNames, ["dc1.example.com"]);
    assert.equal(accepted.connection.isEncrypted && client.connection.isEncrypted, true);
    client.send("over TLS");
    await accepted.until((peer) => peer.text === "over TLS");
    await closeBoth(accepted, client);
    assert.equal(accepted.error, undefined);
    assert.equal(client.error, undefined);
  }
});

Deno.test("mutual TLS turns away another authority's certificate, an expired one and none", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const foreign = await certificates.authority("another authority");
  const context = await authority.holder("dc1.example.com");
  const good = await authority.holder("dc2.example.com");
  const wrong = await foreign.issue({ names: ["dc2.example.com"] });
  const expired = await authority.issue({
    names: ["dc2.example.com"],
    days: -1,
  });
  await using server = await TestListener.open({ tls: { mode: "mutual", context } });
  const attempts: [string, Deno.ConnectTlsOptions & Partial<Deno.TlsCertifiedKeyPem>][] = [
    ["another authority's", { port: 0, ...await keyPair(wrong) }],
    ["expired", { port: 0, ...await keyPair(expired) }],
    ["none", { port: 0 }],
  ];
  for (const [what, options] of attempts) {
    const socket = await Deno.connectTls({
      ...options,
      hostname: "127.0.0.1",
      port: server.port,
      caCerts: [await Deno.readTextFile(authority.cafile)],
      unsafelyDisableHostnameVerification: true,
    });
    const refusal = await server.refused();
    assert.equal(refusal.error.code, "net/tls-untrusted", what);
    assert.match(refusal.remoteAddress, /^127\.0\.0\.1:\d+$/);
    assert.equal(await socket.read(new Uint8Array(1)).catch(() => null), null, what);
    socket.close();
  }
  assert.equal(server.acceptedWaiting, 0);
  const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls: good }));
  await closeBoth(client, await server.accepted());
});

async function keyPair(files: { readonly certfile: string; readonly keyfile: string }) {
  return {
    cert: await Deno.readTextFile(files.certfile),
    key: await Deno.readTextFile(files.keyfile),
  };
}

Deno.test("a TLS listener survives garbage, an old TLS version and a peer that hangs up", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const context = await authority.holder("dc1.example.com");
  await using server = await TestListener.open({ tls: { mode: "mutual", context } });
  const garbage = await Deno.connect({ port: server.port });
  await garbage.write(new TextEncoder().encode("GET / HTTP/1.1\r\n\r\n"));
  assert.equal((await server.refused()).error.code, "net/tls-failed");
  garbage.close();

  const { status } = await startOpenssl(server.port, authority.cafile);
  assert.equal((await server.refused()).error.code, "net/tls-failed");
  await status;

  const gone = await Deno.connect({ port: server.port });
  await gone.write(new Uint8Array([0x16, 0x03, 0x01]));
  gone.close();
  assert.equal((await server.refused()).error.code, "net/reset");

  const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls: context }));
  await closeBoth(client, await server.accepted());
});

function startOpenssl(port: number, cafile: string) {
  const child = new Deno.Command("openssl", {
    args: ["s_client", "-connect", `127.0.0.1:${port}`, "-CAfile", cafile, "-tls1_2"],
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  return { status: child.status };
}

Deno.test("a TLS listener ends a half-open handshake and bounds their number", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const context = await authority.holder("dc1.example.com");
  const clock = new ManualClock();
  await using server = await TestListener.open({
    tls: { mode: "direct", context },
    limits: { handshakeTimeoutMs: 1000, maxHandshakes: 2 },
    clock,
  });
  const silent = [await Deno.connect({ port: server.port })];
  silent.push(await Deno.connect({ port: server.port }));
  silent.push(await Deno.connect({ port: server.port }));
  // The oldest of them makes room, so that silent peers keep nobody else out.
  assert.equal((await server.refused()).error.code, "net/too-many-handshakes");
  assert.equal(await silent[0]!.read(new Uint8Array(1)).catch(() => null), null);
  const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls: context }));
  const accepted = await server.accepted();
  client.connection.destroy(new CausewayError("test/done", "done"));
  await accepted.until((peer) => peer.closedCount === 1);
  assert.equal((await server.refused()).error.code, "net/too-many-handshakes");
  while (server.listener.connectionCount > 1) await new Promise((next) => setTimeout(next, 0));
  silent.push(await Deno.connect({ port: server.port }));
  while (server.listener.connectionCount < 2) await new Promise((next) => setTimeout(next, 0));
  clock.advance(999);
  assert.equal(server.listener.connectionCount, 2);
  clock.advance(1);
  assert.equal((await server.refused()).error.code, "net/handshake-timeout");
  assert.equal((await server.refused()).error.code, "net/handshake-timeout");
  for (const socket of silent) {
    assert.equal(await socket.read(new Uint8Array(1)).catch(() => null), null);
    socket.close();
  }
});

Deno.test("a TLS listener asks mayHandshake, and turns away a peer that it denies", async () => {
  await using certificates = await TestCertificates.create();
  const context = await (await certificates.authority()).holder("dc1.example.com");
  const asked: string[] = [];
  await using server = await TestListener.open({
    tls: { mode: "direct", context },
    mayHandshake: ({ remoteAddress, isLoopback }) => {
      asked.push(`${remoteAddress.replace(/:\d+$/, "")} ${isLoopback}`);
      return asked.length !== 1;
    },
  });
  using first = await Deno.connect({ port: server.port });
  assert.equal((await server.refused()).error.code, "net/too-often");
  assert.equal(await first.read(new Uint8Array(1)).catch(() => null), null);
  const second = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls: context }));
  await closeBoth(second, await server.accepted());
  assert.deepEqual(asked, ["127.0.0.1 true", "127.0.0.1 true"]);
});

Deno.test("a TLS listener begins handshakes in turn, also long after the peer has begun its own", async () => {
  await using certificates = await TestCertificates.create();
  const context = await (await certificates.authority()).holder("dc1.example.com");
  const turns: (() => Promise<void>)[] = [];
  const came: (() => void)[] = [];
  await using server = await TestListener.open({
    tls: { mode: "direct", context },
    inTurn: (handshake) => {
      turns.push(handshake);
      came.shift()?.();
    },
  });
  const arrival = () => new Promise<void>((resolve) => came.push(resolve));

  let arrives = arrival();
  const dialled = dial({ host: "127.0.0.1", port: server.port, tls: context });
  await arrives;
  // The peer's first bytes have come by the time that another connection is there.
  arrives = arrival();
  const gone = await Deno.connect({ port: server.port });
  await arrives;
  assert.equal(server.listener.connectionCount, 2);
  const done = turns[0]!();
  const peer = new TestPeer(await dialled);
  await done;
  const accepted = await server.accepted();

  gone.close();
  assert.equal((await server.refused()).error.code, "net/reset");
  await turns[1]!(); // its turn comes when it has left
  await closeBoth(peer, accepted);
});

Deno.test("Listener.close() drops a handshake that is under way and keeps accepted connections", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const context = await authority.holder("dc1.example.com");
  const server = await TestListener.open({ tls: { mode: "direct", context } });
  const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls: context }));
  const accepted = await server.accepted();
  const halfOpen = await Deno.connect({ port: server.port });
  while (server.listener.connectionCount < 2) await new Promise((next) => setTimeout(next, 0));
  await server.listener.close();
  assert.equal(await halfOpen.read(new Uint8Array(1)).catch(() => null), null);
  halfOpen.close();
  client.send("still here");
  await accepted.until((peer) => peer.text === "still here");
  await closeBoth(client, accepted);
});

Deno.test("new connections use a reloaded context, and old ones go on unchanged", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const context = await authority.holder("old.example.com");
  const tls = await authority.holder("client.example.com");
  await using server = await TestListener.open({ tls: { mode: "mutual", context } });
  const before = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls }));
  const acceptedBefore = await server.accepted();

  const replacement = await authority.issue({ names: ["new.example.com"] });
  await Deno.copyFile(replacement.certfile, context.files.certfile);
  await Deno.copyFile(replacement.keyfile, context.files.keyfile!);
  await context.reload();

  const after = new TestPeer(await dial({ host: "127.0.0.1", port: server.port, tls }));
  const acceptedAfter = await server.accepted();
  assert.deepEqual(before.connection.peerNames, ["old.example.com"]);
  assert.deepEqual(after.connection.peerNames, ["new.example.com"]);
  before.send("old");
  await acceptedBefore.until((peer) => peer.text === "old");
  await closeBoth(before, acceptedBefore);
  await closeBoth(after, acceptedAfter);
});

Deno.test("a listener accepts again after connections were reset at once", async () => {
  await using server = await TestListener.open();
  for (let i = 0; i < 20; i++) {
    const socket = connectPlain({ host: "127.0.0.1", port: server.port });
    await new Promise<void>((resolve) => socket.once("connect", () => resolve()));
    socket.resetAndDestroy();
  }
  const client = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
  client.send("!");
  for (;;) {
    const accepted = await server.accepted();
    await accepted.until((peer) => peer.isClosed || peer.text === "!");
    if (accepted.isClosed) {
      assert.equal(accepted.error?.code, "net/reset");
      continue;
    }
    await closeBoth(client, accepted);
    break;
  }
});

Deno.test("pause() inside TLS makes the sender wait, and resume() delivers the rest", async () => {
  await using certificates = await TestCertificates.create();
  const context = await (await certificates.authority()).holder("dc1.example.com");
  await using server = await TestListener.open({ tls: { mode: "direct", context } });
  const total = 48 * 1024 * 1024;
  const client = new TestPeer(
    await dial({
      host: "127.0.0.1",
      port: server.port,
      tls: context,
      limits: { maxPendingBytes: total, highWaterBytes: total - 1 },
    }),
  );
  const accepted = await server.accepted();
  client.send("begin");
  await accepted.until((peer) => peer.receivedBytes === 5);
  accepted.connection.pause();
  client.connection.send(new Uint8Array(total));
  for (let turn = 0; turn < 200; turn++) await new Promise((next) => setTimeout(next, 0));
  assert.equal(accepted.receivedBytes, 5);
  assert.ok(client.connection.pendingBytes > total / 2, String(client.connection.pendingBytes));
  accepted.connection.resume();
  await accepted.until((peer) => peer.receivedBytes === total + 5);
  await client.until((peer) => peer.drainedCount === 1);
  await closeBoth(client, accepted);
});

Deno.test("Listener.changeLimits() holds for connections that come next", async () => {
  await using server = await TestListener.open({ limits: { maxConnections: 2 } });
  const first = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
  const accepted = await server.accepted();
  server.listener.changeLimits({ maxConnections: 1 });
  const second = new TestPeer(await dial({ host: "127.0.0.1", port: server.port }));
  assert.equal((await server.refused()).error.code, "net/too-many-connections");
  await second.until((peer) => peer.isClosed);
  await closeBoth(first, accepted);
  assert.throws(() => server.listener.changeLimits({ maxConnections: 0 }), RangeError);
});
