import assert from "node:assert/strict";
import { join } from "node:path";
import { PROJECT_DIRECTORY } from "../process/mod.ts";
import { CLASSIC_NAMES } from "../scenarios/_classic_metrics.ts";

/** Options of the module in MongooseIM, as far as a mesh needs them. */
const OPTIONS = [
  ["global_host", "local_host", "message_ttl", "hosts_refresh_interval"],
  ["connections.endpoints", "connections.advertised_endpoints"],
  ["connections.connections_per_endpoint", "connections.endpoint_refresh_interval"],
  ["connections.endpoint_refresh_interval_when_empty", "connections.disabled_gc_interval"],
  ["connections.tls.enabled", "connections.tls.certfile", "connections.tls.cacertfile"],
  ["connections.tls.keyfile"],
  ["connections.tls.ciphers", "connections.tls.dhfile"],
  ["redis.pool", "redis.expire_after", "redis.refresh_after"],
  ["cache.cache_missed", "cache.domain_lifetime_seconds", "cache.jid_lifetime_seconds"],
  ["cache.max_jids", "bounce.enabled", "bounce.resend_after_ms", "bounce.max_retries"],
].flat();

/** Returns the names in the first cell of each row under `heading`, written out. */
async function namesUnder(heading: string): Promise<ReadonlySet<string>> {
  const page = await Deno.readTextFile(join(PROJECT_DIRECTORY, "docs/mongooseim.md"));
  const part = page.split(/^## /m).find((each) => each.startsWith(`${heading}\n`));
  const names = new Set<string>();
  for (const [, cell] of part!.matchAll(/^\| ([^|]+)/gm)) {
    let before = "";
    for (const [, name] of cell!.matchAll(/`([^`]+)`/g)) {
      // `a.b`, `.c` stands for a.b and a.c.
      const whole = name!.startsWith(".") ? before.replace(/\.[^.]+$/, name!) : name!;
      names.add(whole);
      before = whole;
    }
  }
  return names;
}

Deno.test("docs/mongooseim.md has every option of mod_global_distrib", async () => {
  const names = await namesUnder("Options of mod_global_distrib");
  assert.deepEqual(OPTIONS.filter((option) => !names.has(option)), []);
});

Deno.test("docs/mongooseim.md has every metric of mod_global_distrib, under both names", async () => {
  const names = await namesUnder("Metrics");
  const page = await Deno.readTextFile(join(PROJECT_DIRECTORY, "docs/mongooseim.md"));
  for (const { classic, prometheus } of CLASSIC_NAMES) {
    assert.ok(names.has(classic.replace("[us]", "")), classic);
    assert.ok(page.includes(`\`${prometheus.replace("mod_global_distrib_", "")}\``), prometheus);
    // The name for Prometheus stands whole beside the one of newer versions.
    assert.match(page, new RegExp(`\\| \`mod_global_distrib_\\w+\` +\\| \`${prometheus}\` +\\|`));
  }
});
