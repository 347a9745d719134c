import assert from "node:assert/strict";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import tls from "node:tls";
import { type Certificate, CertificateAuthority, writeCertificate } from "./certificates.ts";

interface Meeting {
  readonly server: Certificate;
  readonly client?: Certificate;
  /** Authority that both sides trust. */
  readonly trusted: CertificateAuthority;
  readonly name: string;
}

/** One TLS 1.3 handshake with both sides verifying; resolves with what the server said of it. */
async function meet({ server, client, trusted, name }: Meeting): Promise<string> {
  const listener = tls.createServer({
    cert: server.certificatePem,
    key: server.privateKeyPem,
    ca: trusted.certificatePem,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: "TLSv1.3",
  }, (socket) => {
    socket.on("error", () => {}); // the other side may leave first
    socket.end("welcome");
  });
  listener.on("tlsClientError", (_error, socket) => socket.destroy());
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const socket = tls.connect({
    host: "127.0.0.1",
    port: (listener.address() as AddressInfo).port,
    servername: name,
    ca: trusted.certificatePem,
    ...(client && { cert: client.certificatePem, key: client.privateKeyPem }),
  });
  let heard = "";
  const { promise, resolve } = Promise.withResolvers<string>();
  socket.on("data", (chunk) => heard += chunk);
  socket.on("error", (error) => resolve(`refused: ${(error as NodeJS.ErrnoException).code}`));
  socket.on("close", () => resolve(heard === "" ? "refused" : heard));
  const outcome = await promise;
  socket.destroy();
  listener.close();
  await once(listener, "close");
  return outcome;
}

const DC1 = { names: ["dc1.example.com", "example.com", "localhost"], addresses: ["127.0.0.1"] };

Deno.test("CertificateAuthority.issue() makes certificates that two nodes accept of each other", async () => {
  const authority = await CertificateAuthority.create();
  const [server, client] = await Promise.all([authority.issue(DC1), authority.issue(DC1)]);
  for (const name of DC1.names) {
    assert.equal(await meet({ server, client, trusted: authority, name }), "welcome", name);
  }
});

Deno.test("CertificateAuthority.issue() names only the requested hosts", async () => {
  const authority = await CertificateAuthority.create();
  const server = await authority.issue(DC1);
  const outcome = await meet({
    server,
    client: server,
    trusted: authority,
    name: "dc2.example.com",
  });
  assert.match(outcome, /^refused/);
});

Deno.test("CertificateAuthority.create() twice makes authorities that do not trust each other", async () => {
  const [ours, theirs] = await Promise.all([
    CertificateAuthority.create(),
    CertificateAuthority.create(),
  ]);
  const server = await ours.issue(DC1);
  const stranger = await theirs.issue(DC1);
  const name = "dc1.example.com";
  assert.match(await meet({ server, client: stranger, trusted: ours, name }), /^refused/);
  assert.match(await meet({ server: stranger, client: server, trusted: ours, name }), /^refused/);
  assert.match(await meet({ server, trusted: ours, name }), /^refused/, "no certificate at all");
});

Deno.test("CertificateAuthority.issue() uses the requested validity", async () => {
  const authority = await CertificateAuthority.create();
  const server = await authority.issue(DC1);
  const name = "dc1.example.com";
  const expired = await authority.issue({ ...DC1, validUntilMs: -1000 });
  const future = await authority.issue({ ...DC1, validFromMs: 60_000 });
  assert.match(await meet({ server, client: expired, trusted: authority, name }), /^refused/);
  assert.match(await meet({ server, client: future, trusted: authority, name }), /^refused/);
  const short = await authority.issue({ ...DC1, validUntilMs: 60_000 });
  assert.equal(await meet({ server, client: short, trusted: authority, name }), "welcome");
});

Deno.test("CertificateAuthority.issue() refuses a certificate without names", async () => {
  const authority = await CertificateAuthority.create();
  await assert.rejects(authority.issue({ names: [] }), RangeError);
});

Deno.test("writeCertificate() keeps the private key to its owner", async () => {
  const authority = await CertificateAuthority.create();
  const directory = await Deno.makeTempDir();
  try {
    const files = await writeCertificate(await authority.issue(DC1), { directory, name: "dc1" });
    assert.match(await Deno.readTextFile(files.certfile), /^-----BEGIN CERTIFICATE-----/);
    assert.match(await Deno.readTextFile(files.keyfile), /^-----BEGIN PRIVATE KEY-----/);
    if (Deno.build.os !== "windows") {
      assert.equal((await Deno.stat(files.keyfile)).mode! & 0o777, 0o600);
    }
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
