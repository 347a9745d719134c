import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { CertificateAuthority } from "../certificates.ts";
import { RawSocket } from "./raw_socket.ts";

/** Accepts one connection and hands it to `serve`, then closes everything. */
async function withPeer(
  listener: Deno.Listener & { readonly addr: Deno.Addr },
  serve: (peer: Deno.Conn) => Promise<void>,
  test: (port: number) => Promise<void>,
): Promise<void> {
  const serving = (async () => {
    using peer = await listener.accept();
    await serve(peer);
  })();
  try {
    await test((listener.addr as Deno.NetAddr).port); // every listener here is TCP's
    await serving;
  } finally {
    listener.close();
  }
}

async function write(peer: Deno.Conn, text: string): Promise<void> {
  await peer.write(new TextEncoder().encode(text));
}

/** Waits until the other end closes. */
async function readAll(peer: Deno.Conn): Promise<string> {
  let text = "";
  const buffer = new Uint8Array(1024);
  for (let n = await peer.read(buffer); n !== null; n = await peer.read(buffer)) {
    text += new TextDecoder().decode(buffer.subarray(0, n));
  }
  return text;
}

Deno.test("RawSocket.readUntil() takes up to the marker and leaves the rest", async () => {
  await withPeer(Deno.listen({ hostname: "127.0.0.1", port: 0 }), async (peer) => {
    await write(peer, "<a/><b>grü");
    await write(peer, "ße</b><c/>");
  }, async (port) => {
    await using socket = await RawSocket.connect({ port });
    strictEqual(await socket.readUntil("</b>"), "<a/><b>grüße</b>");
    strictEqual(await socket.readToEnd(), "<c/>");
    strictEqual(socket.hasEnded, true);
  });
});

Deno.test("RawSocket.readUntil() loses nothing of a wait that it gave up", async () => {
  const go = Promise.withResolvers<void>();
  await withPeer(Deno.listen({ hostname: "127.0.0.1", port: 0 }), async (peer) => {
    await go.promise;
    await write(peer, "<late/>");
  }, async (port) => {
    await using socket = await RawSocket.connect({ port });
    await rejects(socket.readUntil("<late/>", 1), /Waited 1 ms for "<late\/>"/);
    go.resolve();
    strictEqual(await socket.readUntil("<late/>"), "<late/>");
  });
});

Deno.test("RawSocket.readUntil() tells what came before the peer closed", async () => {
  await withPeer(
    Deno.listen({ hostname: "127.0.0.1", port: 0 }),
    (peer) => write(peer, "<stream:error/>"),
    async (port) => {
      await using socket = await RawSocket.connect({ port });
      await rejects(socket.readUntil("<success"), /closed after <stream:error\/>/);
    },
  );
});

Deno.test("RawSocket.consume() gives chunks until it is closed", async () => {
  const heard = Promise.withResolvers<void>();
  await withPeer(Deno.listen({ hostname: "127.0.0.1", port: 0 }), async (peer) => {
    await write(peer, "12345");
    strictEqual(await readAll(peer), "bye");
  }, async (port) => {
    const socket = await RawSocket.connect({ port });
    let received = "";
    const consuming = socket.consume((chunk) => {
      received += new TextDecoder().decode(chunk);
      if (received.length === 5) heard.resolve();
    });
    await heard.promise;
    await socket.send("bye");
    await socket.close();
    await consuming;
    deepStrictEqual(received, "12345");
  });
});

Deno.test("RawSocket.connect() speaks TLS with a server whose authority it is given, only", async () => {
  const authority = await CertificateAuthority.create();
  const stranger = await CertificateAuthority.create();
  const certificate = await authority.issue({ names: ["example.com"] });
  const listen = () =>
    Deno.listenTls({
      hostname: "127.0.0.1",
      port: 0,
      cert: certificate.certificatePem,
      key: certificate.privateKeyPem,
    });
  const tls = { caCerts: [authority.certificatePem], serverName: "example.com" };
  await withPeer(listen(), (peer) => write(peer, "hello"), async (port) => {
    await using socket = await RawSocket.connect({ port, tls });
    strictEqual(await socket.readToEnd(), "hello");
  });
  const refused = [
    { ...tls, caCerts: [stranger.certificatePem] },
    { ...tls, serverName: "other.example" },
  ];
  for (const wrong of refused) {
    await withPeer(listen(), async (peer) => {
      await rejects(peer.read(new Uint8Array(1)));
    }, async (port) => {
      await rejects(RawSocket.connect({ port, tls: wrong }), /certificate/i);
    });
  }
});
