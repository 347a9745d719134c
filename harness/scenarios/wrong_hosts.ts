import { stringify } from "smol-toml";
import type { CausewayConfiguration, Cluster } from "../cluster/mod.ts";
import { causewayCommand, PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";
import type { Scenario } from "../scenario.ts";
import { readRedis } from "./_redis_entries.ts";

/** A configuration with wrong hosts, and the expected messages. */
interface WrongHosts {
  readonly what: string;
  spoil(configuration: CausewayConfiguration): void;
  /** One for each mistake, in any order. */
  readonly says: readonly RegExp[];
}

/** A node must not start, not even for a moment, with impossible hosts. */
export const WRONG_HOSTS: Scenario = {
  name: "wrong-hosts",
  summary: "a node with impossible hosts does not start, and names every mistake at once",
  options: { datacenters: 1, replication: "external" },
  async run(cluster, say) {
    const { node, redisClient } = cluster.datacenter("dc1");
    await node.stop();
    const before = (await readRedis(redisClient)).keys().toArray().join();
    for (const wrong of WRONG) {
      const configuration = structuredClone(node.configuration);
      wrong.spoil(configuration);
      const errors = await startInVain(cluster, configuration);
      for (const pattern of wrong.says) {
        if (!pattern.test(errors)) {
          throw new Error(`Expected ${pattern} to be said of ${wrong.what}: got\n${errors}`);
        }
      }
      const lines = errors.split("\n").filter((line) => /^\s*\S+: |\.toml:\d+/.test(line));
      if (lines.length < wrong.says.length) throw new Error(`Expected a line each: got\n${errors}`);
      const now = (await readRedis(redisClient)).keys().toArray().join();
      if (now !== before) throw new Error(`${wrong.what}: Redis was written to: ${now}`);
      say(`${wrong.what}: refused, exit code 2`);
    }
    await node.start();
    say("with the original configuration, it starts");
  },
};

const WRONG: readonly WrongHosts[] = [
  {
    what: "a global host that is not served",
    spoil: ({ modules }) => modules.mod_global_distrib.global_host = "exampel.com",
    says: [/global_host.*exampel\.com.*example\.com/],
  },
  {
    what: "a local host that is not served",
    spoil: ({ modules }) => modules.mod_global_distrib.local_host = "dc7.example.com",
    says: [/local_host.*dc7\.example\.com/],
  },
  {
    what: "neither of them served",
    spoil: (configuration) => configuration.hosts = ["elsewhere.example"],
    says: [/global_host.*example\.com/, /local_host.*dc1\.example\.com/],
  },
  {
    what: "one host for both",
    spoil: ({ modules }) => modules.mod_global_distrib.local_host = "example.com",
    says: [/local_host.*global host "example\.com"/],
  },
  {
    what: "offline storage on the global host, and the module for one host only",
    spoil: (configuration) => {
      configuration["host_config"] = {
        "example.com": { modules: { mod_offline: {} } },
        "dc1.example.com": { modules: { mod_global_distrib: {} } },
      };
    },
    says: [/mod_offline.*global host/, /mod_global_distrib/],
  },
  {
    what: "offline storage on every host",
    spoil: ({ modules }) => modules["mod_offline"] = {},
    says: [/mod_offline.*global host or the local host/],
  },
];

/**
 * Starts a node that must refuse with exit code 2 and without a ready line. Returns its messages.
 */
async function startInVain(
  cluster: Cluster,
  configuration: CausewayConfiguration,
): Promise<string> {
  const configFile = cluster.run.path("wrong.toml");
  await Deno.writeTextFile(configFile, stringify(configuration));
  const { program, args } = causewayCommand(["serve", "--config", configFile]);
  const outcome = await runProgram(program, args, {
    cwd: PROJECT_DIRECTORY,
    env: { NO_COLOR: "1" },
  });
  if (outcome?.code !== 2 || outcome.output !== "") {
    throw new Error(`Expected exit code 2 and no output: got ${Deno.inspect(outcome)}`);
  }
  return outcome.errors;
}
