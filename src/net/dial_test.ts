import assert from "node:assert/strict";
import { connect as connectPlain } from "node:net";
import { connect as connectTls } from "node:tls";
import type { CausewayError } from "../base/mod.ts";
import { ManualClock } from "../base/mod.ts";
import { TestCertificates } from "./testing/certificates.ts";
import { TestPeer } from "./testing/peer.ts";
import type { Connection } from "./connection.ts";
import { dial } from "./dial.ts";
import { listen } from "./listener.ts";
import type { TlsContext } from "./tls_context.ts";
import { TlsContextHolder } from "./tls_context_holder.ts";

Deno.test("dial() rejects with net/refused where nobody listens, with TLS and without", async () => {
  await using certificates = await TestCertificates.create();
  const tls = await (await certificates.authority()).holder("dc2.example.com");
  const listener = await listen({ host: "127.0.0.1", port: 0 }, { accepted() {} });
  await listener.close();
  const { port } = listener;
  for (const options of [{ host: "127.0.0.1", port }, { host: "127.0.0.1", port, tls }]) {
    await assert.rejects(dial(options), (error: CausewayError) => {
      assert.equal(error.code, "net/refused");
      assert.equal(error.retryable, true);
      assert.match(error.message, /^Cannot connect to 127\.0\.0\.1:\d+: /);
      return true;
    });
  }
});

Deno.test("dial() prepares TLS only where somebody listens, and reads the private key once", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const { current } = await authority.holder("dc1.example.com");
  let asked = 0;
  let read = 0;
  const counting: TlsContext = {
    ...current,
    get secure() {
      read++;
      return current.secure;
    },
  };
  const tls = {
    get current() {
      asked++;
      return counting;
    },
  } as unknown as TlsContextHolder;
  const silent = await listen({ host: "127.0.0.1", port: 0 }, { accepted() {} });
  await silent.close();
  await assert.rejects(dial({ host: "127.0.0.1", port: silent.port, tls }), {
    code: "net/refused",
  });
  assert.deepEqual([asked, read], [0, 0]);
  const server = await authority.holder("dc2.example.com");
  const listener = await listen(
    { host: "127.0.0.1", port: 0, tls: { mode: "direct", context: server } },
    { accepted() {} },
  );
  for (let i = 0; i < 3; i++) {
    const client = new TestPeer(await dial({ host: "127.0.0.1", port: listener.port, tls }));
    client.connection.close();
    await client.until((peer) => peer.isClosed);
  }
  assert.deepEqual([asked, read], [3, 1]);
  await listener.close();
});

Deno.test("a connection inside TLS closes when the socket beneath it is reset", async () => {
  await using certificates = await TestCertificates.create();
  const tls = await (await certificates.authority()).holder("dc1.example.com");
  const accepted = Promise.withResolvers<Connection>();
  const listener = await listen(
    { host: "127.0.0.1", port: 0, tls: { mode: "mutual", context: tls } },
    { accepted: accepted.resolve },
  );
  const carrier = connectPlain({ host: "127.0.0.1", port: listener.port });
  const { secure } = tls.current;
  const socket = connectTls({ socket: carrier, ...secure, checkServerIdentity: () => undefined });
  socket.on("error", () => {});
  const server = new TestPeer(await accepted.promise);
  carrier.resetAndDestroy();
  await server.until((peer) => peer.isClosed);
  assert.equal(server.closedCount, 1);
  socket.destroy();
  await listener.close();
});

Deno.test("dial() rejects after timeoutMs when a peer accepts and stays silent", async () => {
  await using certificates = await TestCertificates.create();
  const tls = await (await certificates.authority()).holder("dc2.example.com");
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const clock = new ManualClock();
  const dialled = dial({ host: "127.0.0.1", port: silent.addr.port, tls, timeoutMs: 500, clock });
  const refused = assert.rejects(dialled, { code: "net/timeout" });
  const socket = await silent.accept();
  clock.advance(499);
  assert.equal(clock.pendingTimers, 1);
  clock.advance(1);
  await refused;
  socket.close();
  silent.close();
});

Deno.test("dial() is aborted by its signal, before it starts and while it runs", async () => {
  await using certificates = await TestCertificates.create();
  const tls = await (await certificates.authority()).holder("dc2.example.com");
  const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = silent.addr;
  await assert.rejects(dial({ host: "127.0.0.1", port, signal: AbortSignal.abort() }), {
    code: "net/aborted",
  });
  const controller = new AbortController();
  const dialled = dial({ host: "127.0.0.1", port, tls, signal: controller.signal });
  const refused = assert.rejects(dialled, { code: "net/aborted" });
  const socket = await silent.accept();
  controller.abort();
  await refused;
  socket.close();
  silent.close();
});

Deno.test("dial() rejects a certificate of another authority, and one of another name", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const foreign = await (await certificates.authority("foreign")).holder("dc1.example.com");
  const tls = await authority.holder("dc2.example.com");
  const context = await authority.holder("dc1.example.com");
  for (
    const [server, servername, code] of [
      [foreign, "dc1.example.com", "net/tls-untrusted"],
      [foreign, undefined, "net/tls-untrusted"],
      [context, "dc3.example.com", "net/tls-name-mismatch"],
    ] as const
  ) {
    const listener = await listen(
      { host: "127.0.0.1", port: 0, tls: { mode: "direct", context: server } },
      { accepted() {} },
    );
    await assert.rejects(
      dial({ host: "127.0.0.1", port: listener.port, tls, ...(servername ? { servername } : {}) }),
      { code, retryable: false },
    );
    await listener.close();
  }
});

Deno.test("dial() rejects a server that does not speak TLS", async () => {
  await using certificates = await TestCertificates.create();
  const tls = await (await certificates.authority()).holder("dc2.example.com");
  const plain = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const refused = assert.rejects(dial({ host: "127.0.0.1", port: plain.addr.port, tls }), {
    code: "net/tls-failed",
  });
  const socket = await plain.accept();
  await socket.write(new TextEncoder().encode("220 not TLS at all, sorry about that\r\n"));
  await refused;
  socket.close();
  plain.close();
});

Deno.test("a dialled connection whose certificate is refused afterwards closes", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const foreign = await certificates.authority("foreign");
  const context = await authority.holder("dc1.example.com");
  const files = await foreign.issue({ names: ["dc2.example.com"] });
  const tls = await TlsContextHolder.load({ ...files, cafile: authority.cafile });
  const refusals: CausewayError[] = [];
  const listener = await listen(
    { host: "127.0.0.1", port: 0, tls: { mode: "mutual", context } },
    { accepted() {}, refused: (error) => refusals.push(error) },
  );
  const client = new TestPeer(await dial({ host: "127.0.0.1", port: listener.port, tls }));
  await client.until((peer) => peer.isClosed);
  assert.deepEqual(refusals.map((error) => error.code), ["net/tls-untrusted"]);
  await listener.close();
});

Deno.test("a dialled connection delivers bytes that the peer sent before start, and its end", async () => {
  const accepted = Promise.withResolvers<Connection>();
  const listener = await listen({ host: "127.0.0.1", port: 0 }, { accepted: accepted.resolve });
  const connection = await dial({ host: "127.0.0.1", port: listener.port });
  const server = new TestPeer(await accepted.promise);
  server.send("greeting");
  server.connection.close();
  for (let turn = 0; turn < 10; turn++) await new Promise((next) => setTimeout(next, 0));
  const client = new TestPeer(connection);
  await client.until((peer) => peer.isClosed);
  assert.equal(client.text, "greeting");
  assert.equal(client.error, undefined);
  await listener.close();
});
