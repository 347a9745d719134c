import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { connect, createServer } from "node:tls";
import { TestCertificates } from "./testing/certificates.ts";

// `connections.tls_opts` refuses `ciphers` for this reason. When this test fails the runtime honours
// `ciphers`, and we should accept the option.
Deno.test("node:tls takes no choice among the cipher suites of TLS 1.3", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const { certfile, keyfile } = await authority.issue({ names: ["localhost"] });
  const [cert, key] = await Promise.all([readFile(certfile), readFile(keyfile!)]);
  const server = createServer({ cert, key, ciphers: "TLS_CHACHA20_POLY1305_SHA256" });
  server.on("secureConnection", (socket) => socket.end());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    rejectUnauthorized: false,
    ciphers: "TLS_CHACHA20_POLY1305_SHA256",
  });
  await once(socket, "secureConnect");
  assert.equal(socket.getProtocol(), "TLSv1.3");
  assert.equal(socket.getCipher().name, "TLS_AES_256_GCM_SHA384");
  socket.resume().end();
  await once(socket, "close");
  server.close();
  await once(server, "close");
});
