import assert from "node:assert/strict";
import { CertificateAuthority, writeCertificate } from "../../../harness/certificates.ts";
import { createAdmin } from "../../admin/mod.ts";
import type { AdminOptions } from "../../admin/mod.ts";
import { sampleDeps } from "../../admin/testing/sample_app.ts";
import { TlsContextHolder } from "../../net/mod.ts";
import { adminTls } from "./admin_tls.ts";

/** An admin API over TLS, and callers with certificates. */
async function fixture(options: AdminOptions, { asksClient = true } = {}) {
  const directory = await Deno.makeTempDir();
  const authority = await CertificateAuthority.create();
  const stranger = await CertificateAuthority.create("another");
  const cafile = `${directory}/ca.pem`;
  await Deno.writeTextFile(cafile, authority.certificatePem);
  const own = await authority.issue({ names: ["admin.example.com"], addresses: ["127.0.0.1"] });
  const files = await writeCertificate(own, { directory, name: "admin" });
  const holder = await TlsContextHolder.load({ ...files, ...(asksClient && { cafile }) });
  const admin = createAdmin(sampleDeps(), { port: 0, ...options }, {
    tls: () => Promise.resolve(adminTls(holder)),
  });
  await admin.start();
  const ask = async (from?: CertificateAuthority, names: readonly string[] = []) => {
    const certificate = await from?.issue({ names });
    using client = Deno.createHttpClient({
      caCerts: [authority.certificatePem],
      ...(certificate !== undefined && {
        cert: certificate.certificatePem,
        key: certificate.privateKeyPem,
      }),
    });
    const response = await fetch(`https://${admin.address}/api/v1/caller`, { client });
    return { status: response.status, body: await response.json() };
  };
  return {
    admin,
    authority,
    stranger,
    ask,
    [Symbol.asyncDispose]: async () => {
      await admin.close();
      await Deno.remove(directory, { recursive: true });
    },
  };
}

Deno.test("the admin API over TLS takes a caller for the name in its certificate", async () => {
  await using world = await fixture({
    certificates: [{ name: "ops.example.com", role: "act" }],
  });
  const { ask, authority } = world;
  const known = await ask(authority, ["other.example.com", "ops.example.com"]);
  assert.deepEqual(known, { status: 200, body: { who: "ops.example.com", role: "act" } });
  assert.equal((await ask(authority, ["nobody.example.com"])).status, 401);
  assert.equal((await ask()).status, 401);
});

Deno.test("the admin API over TLS does not take a certificate of a foreign authority for anybody", async () => {
  await using world = await fixture({
    certificates: [{ name: "ops.example.com", role: "admin" }],
  });
  const { ask, stranger } = world;
  const outcome = await ask(stranger, ["ops.example.com"]).then(
    ({ status }) => status,
    () => "refused in the handshake",
  );
  assert.notEqual(outcome, 200);
});

Deno.test("the admin API over TLS serves callers without certificates where it asks for none", async () => {
  await using world = await fixture({}, { asksClient: false });
  assert.deepEqual((await world.ask()).body, { who: "local", role: "admin" });
});

Deno.test("the admin API over TLS ends a connection that is no TLS, and goes on", async () => {
  await using world = await fixture({ limits: { requestTimeoutMs: 10_000 } });
  const port = Number(world.admin.address.split(":")[1]);
  const socket = await Deno.connect({ hostname: "127.0.0.1", port });
  await socket.write(new TextEncoder().encode("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
  const answer = await new Response(socket.readable).text().catch(() => "");
  assert.ok(!answer.includes("HTTP/1.1 200"));
  assert.equal((await world.ask()).status, 200);
});
