import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { CausewayError } from "../base/mod.ts";
import { TestCertificates } from "./testing/certificates.ts";
import { TlsAcceptor } from "./tls_acceptor.ts";
import { TlsContextHolder } from "./tls_context_holder.ts";

/** Ways for a handshake to fail: the bytes that the client sends, and the side that ends it then. */
const FAILURES = [
  { what: "one that the peer aborts", sent: Uint8Array.of(0x16, 3, 1), endedBy: "client" },
  { what: "one that we end", sent: Uint8Array.of(0x16, 3, 1), endedBy: "server" },
  { what: "one of garbage", sent: new TextEncoder().encode("GET / HTTP/1.0\r\n\r\n") },
] as const;

setFlagsFromString("--expose-gc");
const collectGarbage: () => void = runInNewContext("gc");

/** Resolves once nothing of `refs` is alive; the sockets' own callbacks may take a few turns. */
async function collected(refs: readonly WeakRef<Socket>[]): Promise<number> {
  const alive = () => refs.filter((ref) => ref.deref() !== undefined).length;
  for (let turn = 0; turn < 20; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
    if (alive() === 0) break;
  }
  return alive();
}

Deno.test("TlsAcceptor.secure() takes garbage that came in several chunks before the handshake's turn", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const files = await authority.issue({ names: ["example.com"], isCombined: true });
  const holder = await TlsContextHolder.load({ certfile: files.certfile });
  const turn = Promise.withResolvers<() => void>();
  const acceptor = new TlsAcceptor(holder, { isMutual: false, inTurn: turn.resolve });
  const failed = Promise.withResolvers<unknown>();
  const text = "GET / HTTP/1.0";
  const server = createServer({ allowHalfOpen: true }, async (socket) => {
    socket.on("error", () => {});
    acceptor.secure(socket, failed.resolve);
    for (let length = 1; length <= text.length; length++) {
      client.write(text[length - 1]!);
      while (socket.readableLength < length) await new Promise((resolve) => setImmediate(resolve));
    }
    (await turn.promise)();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on TCP
  const client = connect(port, "127.0.0.1");
  client.on("error", () => {});
  assert(await failed.promise instanceof CausewayError);
  await new Promise((resolve) => setImmediate(resolve));
  client.destroy();
  await new Promise((resolve) => server.close(resolve));
});

Deno.test("TlsAcceptor.secure() keeps nothing of a failed handshake", async (t) => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const files = await authority.issue({ names: ["example.com"], isCombined: true });
  const holder = await TlsContextHolder.load({ certfile: files.certfile });
  const acceptor = new TlsAcceptor(holder, { isMutual: false });
  for (const failure of FAILURES) {
    await t.step(failure.what, async () => {
      const refs: WeakRef<Socket>[] = [];
      const ended = Promise.withResolvers<void>();
      const count = 20;
      let failed = 0;
      const server = createServer({ allowHalfOpen: true }, (socket) => {
        refs.push(new WeakRef(socket));
        socket.on("error", () => {});
        acceptor.secure(socket, (result) => {
          assert(result instanceof CausewayError);
          socket.destroy();
          if (++failed === count) ended.resolve();
        });
        if ("endedBy" in failure && failure.endedBy === "server") {
          setImmediate(() => socket.destroy());
        }
      });
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
      const { port } = server.address() as AddressInfo; // it listens on TCP
      for (let i = 0; i < count; i++) await knock(port, failure);
      await ended.promise;
      await new Promise((resolve) => server.close(resolve));
      assert.equal(refs.length, count);
      assert.equal(await collected(refs), 0);
    });
  }
});

/** Connects, sends, and waits until the connection is over. */
async function knock(port: number, failure: typeof FAILURES[number]): Promise<void> {
  const client = connect({ host: "127.0.0.1", port });
  client.on("error", () => {}); // The test looks at the server's side.
  await new Promise<void>((resolve) => {
    client.once("close", () => resolve());
    client.resume();
    client.once("connect", () => {
      client.write(failure.sent, () => {
        if ("endedBy" in failure && failure.endedBy === "client") client.destroy();
      });
    });
  });
}
