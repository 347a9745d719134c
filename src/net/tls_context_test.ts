import assert from "node:assert/strict";
import type { CausewayError } from "../base/mod.ts";
import { ManualClock } from "../base/mod.ts";
import { TestCertificates } from "./testing/certificates.ts";
import { loadTlsContext } from "./tls_context.ts";
import type { TlsFiles } from "./tls_context.ts";
import { TlsContextHolder } from "./tls_context_holder.ts";

async function failure(files: TlsFiles, nowMs = Date.now()): Promise<CausewayError> {
  return await loadTlsContext(files, nowMs).then(
    () => assert.fail("it was loaded"),
    (error) => error,
  );
}

Deno.test("loadTlsContext() returns names and end of a certificate, key apart or in the same file", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  for (const isCombined of [false, true]) {
    const files = await authority.issue({
      names: ["dc1.example.com", "B.example.com"],
      isCombined,
    });
    const context = await loadTlsContext(
      isCombined ? { certfile: files.certfile } : files,
      Date.now(),
    );
    assert.deepEqual(context.names, ["dc1.example.com", "b.example.com"]);
    const daysLeft = (context.expiresAtMs - Date.now()) / 86_400_000;
    assert.ok(daysLeft > 9.9 && daysLeft < 10.1, String(daysLeft));
  }
});

Deno.test("loadTlsContext() names the file and what is wrong with it", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const good = await authority.issue({ names: ["a.example.com"] });
  const other = await authority.issue({ names: ["b.example.com"] });
  const garbage = certificates.path("garbage.pem");
  await Deno.writeTextFile(garbage, "not PEM\n");
  const broken = certificates.path("broken.pem");
  await Deno.writeTextFile(
    broken,
    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
  );
  const missing = certificates.path("missing.pem");
  const cases: [TlsFiles, string, string][] = [
    [{ ...good, certfile: missing }, "net/tls-file-unreadable", missing],
    [{ ...good, keyfile: missing }, "net/tls-file-unreadable", missing],
    [{ ...good, cafile: missing }, "net/tls-file-unreadable", missing],
    [{ ...good, certfile: garbage }, "net/tls-file-invalid", garbage],
    [{ ...good, keyfile: garbage }, "net/tls-file-invalid", garbage],
    [{ ...good, cafile: garbage }, "net/tls-file-invalid", garbage],
    [{ ...good, certfile: broken }, "net/tls-file-invalid", broken],
    [{ certfile: good.certfile }, "net/tls-file-invalid", good.certfile],
    [{ ...good, keyfile: other.keyfile }, "net/tls-key-mismatch", other.keyfile],
  ];
  for (const [files, code, file] of cases) {
    const error = await failure(files);
    assert.equal(error.code, code, error.message);
    assert.ok(error.message.includes(file), error.message);
  }
});

Deno.test("loadTlsContext() refuses a certificate at its end and accepts it a millisecond before", async () => {
  await using certificates = await TestCertificates.create();
  const files = await (await certificates.authority()).issue({ names: ["a.example.com"] });
  const { expiresAtMs } = await loadTlsContext(files, Date.now());
  await loadTlsContext(files, expiresAtMs - 1);
  const error = await failure(files, expiresAtMs);
  assert.equal(error.code, "net/tls-certificate-expired");
  assert.ok(error.message.includes(files.certfile));
});

Deno.test("TlsContextHolder.reload() keeps the current context when the new files are bad", async () => {
  await using certificates = await TestCertificates.create();
  const authority = await certificates.authority();
  const files = await authority.issue({ names: ["old.example.com"] });
  const holder = await TlsContextHolder.load(files, new ManualClock(Date.now()));
  const old = holder.current;
  await Deno.writeTextFile(files.certfile, "half written");
  await assert.rejects(holder.reload(), { code: "net/tls-file-invalid" });
  assert.equal(holder.current, old);
  const replacement = await authority.issue({ names: ["new.example.com"] });
  await Deno.copyFile(replacement.certfile, files.certfile);
  await Deno.copyFile(replacement.keyfile, files.keyfile);
  await holder.reload();
  assert.deepEqual(holder.current.names, ["new.example.com"]);
});
