import assert from "node:assert/strict";
import { dirname } from "node:path";
import { withCluster } from "./cluster/mod.ts";
import type { Command } from "./process/mod.ts";
import { SmallTalk } from "./scenarios/_small_talk.ts";

const UNIT = await Deno.readTextFile(new URL("../deploy/causeway.service", import.meta.url));

/** The unit's own command, its directories moved to that of `configFile`, its bundle to the source. */
function unitCommand(configFile: string): Command {
  const [, line] = /^ExecStart=(.*)$/m.exec(UNIT)!; // without a match the test fails, as it should
  const [program, ...args] = line!.split(" ");
  assert.equal(program, "/usr/bin/deno");
  const directory = dirname(configFile);
  const moved = args
    // The source, unlike the bundle, needs the project's import map.
    .filter((arg) => arg !== "--no-config")
    .map((arg) =>
      arg.replace("/usr/lib/causeway/causeway.js", "mod.ts")
        .replace("/etc/causeway/causeway.toml", configFile)
        .replaceAll(/\/(etc|var\/lib)\/causeway/g, directory)
    );
  return { program: Deno.execPath(), args: moved };
}

Deno.test("deploy/causeway.service grants a node all that it needs, and not the whole machine", async () => {
  const { args } = unitCommand("/run/causeway/node.toml");
  assert.deepEqual(args.filter((arg) => arg.startsWith("--allow")), [
    "--allow-net",
    "--allow-read=/run/causeway,/run/causeway",
    "--allow-write=/run/causeway",
    "--allow-env",
    "--allow-sys=hostname",
  ]);
  await withCluster({ datacenters: 2, redis: "local", command: unitCommand }, async (cluster) => {
    await using talk = await SmallTalk.start(cluster, {
      one: { localpart: "alice", at: "dc1" },
      other: { localpart: "bob", at: "dc2" },
    });
    await talk.goesOn();
    const { node } = cluster.datacenter("dc1");
    node.signal("SIGHUP");
    await cluster.until(() => node.logs.some((line) => line.includes("tls.reloaded")), {
      what: "certificates are read again",
    });
    await talk.goesOn();
    await talk.stop();
    assert.ok(!cluster.datacenters.some((each) => each.node.logs.join().includes("NotCapable")));
  });
});
