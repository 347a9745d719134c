import { dirname, join } from "node:path";
import { stringify } from "smol-toml";
import type { CausewayConfiguration, Cluster } from "../cluster/mod.ts";
import { causewayCommand, PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";
import type { Scenario } from "../scenario.ts";
import { SmallTalk } from "./_small_talk.ts";

const PASSWORD = "open sesame";

/** A start that must fail, and the expected message. */
interface FailingStart {
  readonly what: string;
  /** Makes the mistake in a configuration that is otherwise good. */
  spoil(configuration: CausewayConfiguration): void;
  /** The one line on standard error. */
  readonly says: RegExp;
  readonly exitCode: number;
}

export const FAILING_STARTS: Scenario = {
  name: "failing-starts",
  summary: "a node that cannot start says why in one line, and does not disturb a running node",
  replications: ["builtin"], // Dynomite knows no password
  options: { datacenters: 1, redisPassword: PASSWORD },
  async run(cluster, say) {
    const { node } = cluster.datacenter("dc1");
    await using talk = await SmallTalk.start(cluster, {
      one: { localpart: "alice", at: "dc1" },
      other: { localpart: "bob", at: "dc1" },
    });
    const published = await publishedBy(cluster);
    for (const start of failingStarts(cluster)) {
      const configuration = structuredClone(node.configuration);
      // A copy of the running node, started by mistake: it has the node's name but none of its
      // ports.
      configuration.storage.internal.path = cluster.run.path("copy.sqlite");
      start.spoil(configuration);
      const configFile = cluster.run.path("copy.toml");
      await Deno.writeTextFile(configFile, stringify(configuration));
      const command = causewayCommand(["serve", "--config", configFile]);
      const outcome = await runProgram(command.program, command.args, {
        cwd: PROJECT_DIRECTORY,
        env: { NO_COLOR: "1" },
      });
      if (outcome === undefined) throw new Error(`Cannot run ${command.program}`);
      const { code, output, errors } = outcome;
      const lines = errors.trim().split("\n").filter((line) => !isLogLine(line));
      if (lines.length !== 1 || !start.says.test(lines[0]!)) {
        throw new Error(`Expected one line ${start.says} for ${start.what}: got\n${errors}`);
      }
      if (output !== "" || code !== start.exitCode) {
        throw new Error(`Expected ${start.what} to end with ${start.exitCode}: ${code}\n${output}`);
      }
      const now = await publishedBy(cluster);
      if (now !== published) {
        throw new Error(`${start.what} has changed what the running node published: ${now}`);
      }
      await talk.goesOn();
      say(`${start.what}: exit code ${code}, "${lines[0]}"`);
    }
    if (node.state !== "running") throw new Error(`The node itself has ended\n${node.tail()}`);
    say(`the first node went on: alice and bob talked ${await talk.stop()} rounds`);
  },
};

/** Reads what the node published in Redis: its lease, name, endpoints and datacenter. */
async function publishedBy(cluster: Cluster): Promise<string> {
  const { localHost, node, redisClient } = cluster.datacenter("dc1");
  const name = node.ready.node;
  return JSON.stringify([
    await redisClient.call("GET", `causeway:node:${localHost}#${name}`),
    await redisClient.call("SMEMBERS", `${localHost}#{nodes}`),
    await redisClient.call("SMEMBERS", `${localHost}#${name}#{endpoints}`),
    await redisClient.call("SMEMBERS", "hosts"),
  ]);
}

function failingStarts(cluster: Cluster): readonly FailingStart[] {
  const { ready } = cluster.datacenter("dc1").node;
  const cannotListen = (port: number) =>
    new RegExp(`^causeway: .*127\\.0\\.0\\.1:${port}: .*in use`, "i");
  const { port: c2s } = ready.c2s[0]!; // the harness configures each kind of listener
  const { port: websocket } = ready.websocket[0]!;
  const { port: component } = ready.component[0]!;
  const { port: links } = ready.links[0]!;
  const { port: admin } = ready.admin!;
  const missing = join(dirname(cluster.caFile), "nobody-wrote-this.pem");
  return [
    {
      what: "a taken port for clients",
      spoil: ({ listen }) => listen.c2s[0]!["port"] = c2s,
      says: cannotListen(c2s),
      exitCode: 1,
    },
    {
      what: "a taken port for WebSockets",
      spoil: ({ listen }) => listen.websocket[0]!["port"] = websocket,
      says: cannotListen(websocket),
      exitCode: 1,
    },
    {
      what: "a taken port for components",
      spoil: ({ listen }) => listen.component[0]!["port"] = component,
      says: cannotListen(component),
      exitCode: 1,
    },
    {
      what: "a taken port for links",
      spoil: ({ modules }) => modules.mod_global_distrib.connections.endpoints[0] = ready.links[0]!,
      says: cannotListen(links),
      exitCode: 1,
    },
    {
      what: "a taken port for the admin API",
      spoil: ({ listen }) => listen.admin["port"] = admin,
      says: cannotListen(admin),
      exitCode: 1,
    },
    {
      what: "a missing certificate file",
      spoil: ({ listen }) => listen.c2s[0]!["tls"] = { mode: "starttls", certfile: missing },
      says: /nobody-wrote-this\.pem/,
      exitCode: 2,
    },
    {
      what: "a certificate file without a certificate",
      spoil: ({ listen }) => {
        listen.c2s[0]!["tls"] = { mode: "starttls", certfile: cluster.run.path("users.json") };
      },
      says: /: listen\.c2s\[0\]\.tls: .*users\.json/,
      exitCode: 2,
    },
    {
      what: "a link certificate file without a certificate",
      spoil: ({ modules }) => {
        const { connections } = modules.mod_global_distrib;
        const file = cluster.run.path("users.json");
        connections.tls_opts = { certfile: file, keyfile: file, cafile: cluster.caFile };
      },
      says: /connections\.tls_opts: .*users\.json/,
      exitCode: 2,
    },
    {
      what: "a wrong password for Redis",
      spoil: ({ modules }) => modules.mod_global_distrib.redis.password = "sesame open",
      says: /^causeway: Cannot log in to Redis at 127\.0\.0\.1:\d+: WRONGPASS/,
      exitCode: 1,
    },
    {
      what: "no password for Redis",
      spoil: ({ modules }) => modules.mod_global_distrib.redis.password = "",
      says: /^causeway: Cannot log in to Redis at 127\.0\.0\.1:\d+: NOAUTH/,
      exitCode: 1,
    },
  ];
}

/** A line of the log, which goes to standard error too: `2026-01-31T12:00:00.000Z INFO …`. */
function isLogLine(line: string): boolean {
  return /^\d{4}-\d\d-\d\dT[\d:.]+Z (DEBUG|INFO|WARN|ERROR) /.test(line);
}
