/**
 * Entry of the executable `dist/causeway`: the commands of a node, and the demonstration cluster, whose
 * nodes are this same executable. `src/` knows nothing of the harness, so they meet here.
 */
import { optionsOfCluster } from "../harness/command/cluster_command.ts";
import { clusterMain } from "../harness/command/main.ts";
import { RUNS_DIRECTORY, WATCHDOG_COMMAND, watchOver } from "../harness/process/mod.ts";
import { SELF_CHECK } from "../harness/scenarios/self_check.ts";
import { main } from "../src/cli/mod.ts";
import { giveUpPermissions } from "./give_up_permissions.ts";

async function cluster(args: readonly string[]): Promise<number> {
  if (Deno.build.standalone) Deno.env.set("CAUSEWAY_BIN", Deno.execPath());
  if ((Deno.env.get("CAUSEWAY_BIN") ?? "") === "") {
    console.error("causeway: Cannot start a cluster: CAUSEWAY_BIN does not name the executable");
    return 1;
  }
  const isTerminal = Deno.stdout.isTerminal();
  const isColoured = isTerminal && !Deno.noColor;
  try {
    return await clusterMain(args, { scenarios: [SELF_CHECK], isTerminal, isColoured });
  } finally {
    await Deno.remove(RUNS_DIRECTORY).catch(() => {}); // the files of a failed run stay in there
  }
}

const [command, ...rest] = Deno.args;
if (command === WATCHDOG_COMMAND) {
  await watchOver(rest[0]!); // `Run` names the directory
  Deno.exit(0);
}
if (command !== "cluster") giveUpPermissions(Deno.args, RUNS_DIRECTORY);
Deno.exit(
  await main(Deno.args, undefined, [{
    name: "cluster",
    description: "try datacenters on this machine, and say how to log in",
    options: optionsOfCluster(),
    docs: {
      examples: [
        ["causeway cluster", "three datacenters, and the accounts to log in with"],
        ["causeway cluster --datacenters 2 --check", "whether it works on this machine"],
      ],
      exits: {
        0: "ended by Control-C or SIGTERM; with --check, all that was checked works",
        1: "it could not start; with --check, something does not work",
        2: "used with a wrong option or argument",
        130: "interrupted before all nodes were ready, or during --check",
      },
    },
    run: cluster,
  }]),
);
