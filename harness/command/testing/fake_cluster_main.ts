/** `deno task cluster` with fake nodes, for `main_test.ts`: the same program otherwise. */
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Scenario } from "../../scenario.ts";
import { clusterMain } from "../main.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));

const SCENARIOS: readonly Scenario[] = [
  {
    name: "self-check",
    summary: "says how many there are",
    run(cluster, say) {
      say(`${cluster.datacenters.length} datacenters`);
      return Promise.resolve();
    },
  },
  {
    name: "failing",
    summary: "fails",
    run() {
      throw new Error("nobody answered");
    },
  },
  {
    name: "pair",
    summary: "asks for two",
    options: { datacenters: 2 },
    run(cluster, say) {
      say(`${cluster.datacenters.length} datacenters`);
      return Promise.resolve();
    },
  },
  { name: "endless", summary: "never ends", run: () => new Promise(() => {}) },
];

Deno.exit(
  await clusterMain(Deno.args, {
    scenarios: SCENARIOS,
    isTerminal: false,
    isColoured: false,
    cluster: {
      database: "internal",
      command: (configFile) => ({
        program: Deno.execPath(),
        args: [
          "run",
          "-A",
          "--config",
          path("../../../deno.json"),
          path("../../cluster/testing/fake_node.ts"),
          configFile,
        ],
      }),
      addUsers: async ({ configFile, listFile }) => {
        await Deno.copyFile(listFile, join(dirname(configFile), "shared.sqlite"));
      },
    },
  }),
);
