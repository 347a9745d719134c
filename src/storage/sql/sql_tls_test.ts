import assert from "node:assert/strict";
import { TestCertificates } from "../../net/testing/certificates.ts";
import { preparedDatabase } from "./testing/databases.ts";
import { SERVER_KINDS, TestServer } from "./testing/servers.ts";
import { sqlServerDatabase } from "./sql_server.ts";
import type { SqlTls } from "./sql_server.ts";
import { SqlStores } from "./sql_stores.ts";

for (const kind of SERVER_KINDS) {
  Deno.test(`${kind.name}: TLS accepts the server that its authority names, and no other`, async () => {
    await using certificates = await TestCertificates.create();
    const authority = await certificates.authority();
    const stranger = await certificates.authority("another authority");
    const { certfile, keyfile } = await authority.issue({ names: ["localhost"] });
    await using server = await TestServer.start(kind);
    const options = await preparedDatabase(server);
    const attempt = async (host: string, tls?: SqlTls) => {
      const address = { ...options.address, host, ...(tls === undefined ? {} : { tls }) };
      await using stores = new SqlStores(sqlServerDatabase({ ...options, address }));
      return await stores.users("example.com").exists("alice");
    };
    const { cafile } = authority;

    // MySQL makes a certificate for itself that nobody vouches for; the others have none.
    await assert.rejects(attempt("localhost", { cafile }), {
      code: /^storage\/(no-tls|untrusted)$/,
      message: /(it offers no TLS|its certificate is not trusted)/,
    });
    const own = await server.install({ certfile, keyfile });
    await server.kill();
    await server.launch(...kind.tls(own));
    assert.equal(await attempt("localhost", { cafile }), false);
    await assert.rejects(attempt("localhost", { cafile: stranger.cafile }), {
      code: "storage/untrusted",
    });
    await assert.rejects(attempt("127.0.0.1", { cafile }), { code: "storage/untrusted" });
    for (
      const [files, message] of [
        [{ cafile: `${cafile}.none` }, /^Cannot use TLS file .*\.none: there is no such file/],
        [{ cafile: keyfile }, /it holds no PEM certificate$/],
        [{ cafile, certfile: stranger.cafile, keyfile }, /it does not belong to the certificate/],
      ] as const
    ) await assert.rejects(attempt("localhost", files), { code: "storage/tls-file", message });
    await assert.rejects(attempt("localhost", {}), { code: "storage/untrusted" });
    assert.equal(await attempt("127.0.0.1"), false); // without TLS

    const expired = await authority.issue({ names: ["localhost"], days: -1 });
    await server.kill();
    await server.launch(...kind.tls(await server.install(expired)));
    await assert.rejects(attempt("localhost", { cafile }), {
      code: "storage/untrusted",
      message: /expired/,
    });
  });
}
