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
    const holder = await certificates.load(files);
    assert.equal(log.named("tls.expires-soon").length, 0);
    assert.match(await metrics.prometheus(), /causeway_certificate_expiry_timestamp_seconds\{/);

    clock.advance(17 * DAY_MS);
    assert.equal(log.named("tls.expires-soon")[0]?.fields["daysLeft"], 13);

    const before = holder.current;
    await issue(60 * DAY_MS);
    await certificates.reload();
    assert.notEqual(holder.current, before);
    assert.equal(log.named("tls.reloaded").length, 1);

    const good = holder.current;
    await Deno.writeTextFile(files.certfile, "no certificate");
    await certificates.reload();
    assert.equal(holder.current, good);
    assert.match(String(log.named("tls.reload-failed")[0]?.fields["error"]), /dc1\.pem/);
  } finally {
    certificates.close();
    metrics.close();
    await Deno.remove(directory, { recursive: true });
  }
});
