import assert from "node:assert/strict";
import { CertificateAuthority, writeCertificate } from "../../harness/certificates.ts";
import { ManualClock } from "../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../observe/mod.ts";
import { Certificates } from "./certificates.ts";

const DAY_MS = 86_400_000;

Deno.test("Certificates reads files again, keeps the old one if the new one is unusable, and warns before the end", async () => {
  const directory = await Deno.makeTempDir();
  const authority = await CertificateAuthority.create();
  const nowMs = Date.now();
  const issue = async (validUntilMs: number) => {
    const certificate = await authority.issue({ names: ["dc1.example.com"], validUntilMs });
    return await writeCertificate(certificate, { directory, name: "dc1" });
  };
  const clock = new ManualClock(nowMs);
  const metrics = new MetricsRegistry(clock);
  const log = new MemoryLogger();
  const certificates = new Certificates({ metrics, log, clock });
  try {
    const files = await issue(30 * DAY_MS);
    const holder = await certificates.load("listen.c2s[0].tls", files);
    assert.equal(log.named("tls.expires-soon").length, 0);
    assert.match(await metrics.prometheus(), /causeway_certificate_expiry_timestamp_seconds\{/);

    clock.advance(17 * DAY_MS);
    assert.equal(log.named("tls.expires-soon")[0]?.fields["daysLeft"], 13);

    const before = holder.current;
    await issue(60 * DAY_MS);
    assert.deepEqual((await certificates.prepare()).use(), ["listen.c2s[0].tls"]);
    assert.notEqual(holder.current, before);
    assert.deepEqual((await certificates.prepare()).use(), [], "the same again");
    assert.equal(log.named("tls.reloaded").length, 1);

    const good = holder.current;
    await Deno.writeTextFile(files.certfile, "no certificate");
    await assert.rejects(certificates.prepare(), { code: "net/tls-file-invalid" });
    assert.equal(holder.current, good);
    assert.match(String(log.named("tls.reload-failed")[0]?.fields["error"]), /dc1\.pem/);

    const moved = `${directory}/moved.pem`;
    await issue(90 * DAY_MS);
    await Deno.copyFile(files.certfile, moved);
    const keyfile = files.keyfile;
    const prepared = await certificates.prepare(
      new Map([["listen.c2s[0].tls", { certfile: moved, keyfile }]]),
    );
    assert.equal(holder.current, good, "nothing is used before it is said");
    assert.equal(prepared.use().length, 1);
    assert.equal(holder.files.certfile, moved);
    const shown = await metrics.prometheus();
    assert.match(shown, /expiry_timestamp_seconds\{certfile="[^"]*moved\.pem"\}/);
    assert.doesNotMatch(shown, /dc1\.pem/);
  } finally {
    certificates.close();
    metrics.close();
    await Deno.remove(directory, { recursive: true });
  }
});
