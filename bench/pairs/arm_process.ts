/**
 * Runs a cluster of another tree with the harness of that tree: this file is of this tree, and runs with
 * the `deno.json` of the other one. It ends at the first line of its input, or with it.
 */
import { pathToFileURL } from "node:url";
import { jsonLine, readJsonLines } from "../e2e/json_lines.ts";
import type { ArmCommand, ArmEvent, ArmPlan } from "./arm_protocol.ts";

type ClusterModule = typeof import("../../harness/cluster/mod.ts");

const DATACENTERS = 2;

async function run({ tree, users, observe }: ArmPlan): Promise<void> {
  const path = `${tree}/harness/cluster/mod.ts`;
  // Every build since 0.1.0 has these options.
  const { withCluster } = await import(pathToFileURL(path).href) as ClusterModule;
  await withCluster({
    datacenters: DATACENTERS,
    users,
    links: "direct", // the harness's own proxies would be measured too
    components: [],
    configure: (configuration) => {
      if (observe !== undefined) configuration.observe = observe;
    },
  }, async (cluster) => {
    const nodes = cluster.datacenters.map((datacenter) => ({
      name: datacenter.name,
      pid: datacenter.node.pid,
      c2s: datacenter.clientAddress("none"),
      admin: datacenter.adminUrl("/").href,
    }));
    tell({ event: "ready", domain: cluster.globalHost, nodes });
    await readJsonLines<ArmCommand>(Deno.stdin.readable).next();
  });
  tell({ event: "stopped" });
}

function tell(event: ArmEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

if (import.meta.main) {
  await run(JSON.parse(Deno.args[0] ?? "{}") as ArmPlan); // from our own main process
  Deno.exit(0);
}
