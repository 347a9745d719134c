import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { withCluster } from "../cluster/mod.ts";
import { StatusReader } from "./datacenter_status.ts";
import { showLive } from "./live_view.ts";
import { palette } from "./palette.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const FAKE_NODE = path("../cluster/testing/fake_node.ts");
const FAKE = {
  datacenters: 2,
  redis: "embedded",
  users: [],
  command: (configFile: string) => ({
    program: Deno.execPath(),
    args: ["run", "-A", "--config", path("../../deno.json"), FAKE_NODE, configFile],
  }),
} as const;

Deno.test("StatusReader tells running, paused and ended datacenters apart", async () => {
  await withCluster(FAKE, async (cluster) => {
    const dc1 = cluster.datacenter("dc1");
    const reader = new StatusReader(dc1, 10_000);
    const ready = await reader.read();
    assert.deepEqual([ready.state, ready.sessions, ready.links, ready.redis], [
      "ready",
      3,
      2,
      "up",
    ]);
    assert.equal(ready.outPerSec, 0, "there is nothing to compare the first look with");
    const { outPerSec, inPerSec } = await reader.read();
    assert.ok(inPerSec > 0);
    assert.ok(Math.abs(outPerSec / inPerSec - 4) < 1e-9, "all hosts together");
    dc1.pause();
    assert.equal((await reader.read()).state, "paused");
    dc1.resume();
    await dc1.kill();
    const stopped = await reader.read();
    assert.deepEqual([stopped.state, stopped.sessions, stopped.redis], ["stopped", 0, "unknown"]);
    await dc1.redis.stop();
    assert.equal((await reader.read()).redis, "down");
  });
});

Deno.test("showLive() redraws in place, until its signal", async () => {
  await withCluster(FAKE, async (cluster) => {
    const ending = new AbortController();
    const written: string[] = [];
    await showLive(cluster, {
      format: "redraw",
      paint: palette(false),
      signal: ending.signal,
      everyMs: 1,
      write: (text) => {
        written.push(text);
        if (written.length === 2) ending.abort();
      },
    });
    assert.equal(written.length, 2);
    const [first, second] = written;
    assert.match(first!, /State +Sessions/);
    assert.ok(second!.startsWith("\x1b[3A"), "two datacenters and the headings are three lines");
  });
});
