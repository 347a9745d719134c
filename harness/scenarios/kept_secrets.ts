import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import { openStream, RawClient, RawSocket } from "../clients/mod.ts";
import { causewayCommand, PROJECT_DIRECTORY, runProgram } from "../process/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Stage } from "./_stage.ts";

/** Secrets that must never appear in a node's output. Each is a unique text. */
const SECRETS = {
  alice: "pw-alice-5b1f0c7e",
  bob: "pw-bob-93d2aa41",
  guess: "pw-guess-07cc81f5",
  redis: "redis-61e0b7d9",
  component: "component-d83f2b60",
  handshake: "handshake-2f9e4471",
  token: "token-c4a87e15",
  wrongToken: "token-wrong-19b6d3f8",
  enumeration: "enumeration-a02c5de7",
  body: "body-7d41f9e3",
} as const;

const ADMIN_PATHS = [
  "/",
  "/openapi.json",
  "/health",
  "/ready",
  "/metrics",
  "/api/metrics",
  "/api/links",
  "/api/sessions",
  "/api/v1/status",
  "/api/v1/datacenters",
  "/api/v1/lanes",
  "/api/v1/sessions",
  "/api/v1/where/alice@example.com",
  "/api/v1/databases",
  "/api/v1/certificates",
  "/api/v1/config",
  "/api/v1/event-log",
  "/api/v1/audit",
];

/** Uses and misuses a node with known secrets, and searches all its output for them. */
export const KEPT_SECRETS: Scenario = {
  name: "kept-secrets",
  summary: "no password, token, key or message appears in a log, an error or an admin API answer",
  replications: ["builtin"], // Dynomite knows no password
  options: {
    datacenters: 2,
    redisPassword: SECRETS.redis,
    users: [
      { localpart: "alice", password: SECRETS.alice },
      { localpart: "bob", password: SECRETS.bob },
    ],
    components: [{ name: "echo.example.com", secret: SECRETS.component }],
    configure(configuration: CausewayConfiguration) {
      configuration["log"] = { level: "debug" };
      configuration["auth"] = {
        ...configuration["auth"] as object | undefined,
        enumeration_secret: SECRETS.enumeration,
      };
    },
  },
  async run(cluster, say) {
    const dc1 = cluster.datacenter("dc1");
    await talk(cluster);
    await misuse(cluster, dc1);
    const heard = [...await overheardAtAdmin(dc1), ...await overheardFromCommands(cluster, dc1)];
    await restartWithRedisAway(dc1);
    const texts = [
      ...heard,
      ...cluster.datacenters.flatMap(({ node }) => node.logs),
      ...await filesOf(cluster),
    ];
    if (!texts.some((text) => text.includes("c2s.auth.failed"))) {
      throw new Error("Expected the log to tell of a failed login: it does not");
    }
    const needles = await encodings(cluster);
    for (const text of texts) {
      const found = needles.find(([, needle]) => text.includes(needle));
      if (found !== undefined) throw new Error(`Found ${found[0]} in: ${text.slice(0, 2000)}`);
    }
    say(`${needles.length} spellings of secrets are in none of ${texts.length} lines and answers`);
  },
};

async function talk(cluster: Cluster): Promise<void> {
  await using stage = new Stage(cluster);
  const alice = await stage.enterAvailable("alice", "dc1");
  const bob = await stage.enterAvailable("bob", "dc2", { security: "direct" });
  await stage.connectComponent("echo", "dc1");
  await alice.sendMessage(bob.jid, SECRETS.body);
  await bob.expectMessage(SECRETS.body);
  const id = await alice.sendMessage(`nobody@${cluster.globalHost}`, SECRETS.body);
  await alice.expectError(id, "service-unavailable");
}

/** Wrong passwords, a wrong handshake, and secrets where none belongs. */
async function misuse(cluster: Cluster, dc1: Datacenter): Promise<void> {
  const address = dc1.clientAddress("none");
  for (const mechanism of ["PLAIN", "SCRAM-SHA-256"] as const) {
    for (const localpart of ["alice", "nobody"]) {
      const login = { ...address, domain: cluster.globalHost, localpart, mechanism };
      await refused(RawClient.login({ ...login, password: SECRETS.guess }));
    }
  }
  await using client = await RawSocket.connect(address);
  await openStream(client, cluster.globalHost);
  await client.send(
    `<auth mechanism='${SECRETS.guess}'>${SECRETS.guess}</auth><!-- ${SECRETS.body} -->`,
  );
  await client.readToEnd();
  await using component = await RawSocket.connect(dc1.componentAddress());
  await component.send(
    "<stream:stream xmlns='jabber:component:accept' to='echo.example.com' " +
      "xmlns:stream='http://etherx.jabber.org/streams'>" +
      `<handshake>${SECRETS.handshake}</handshake>`,
  );
  await component.readToEnd();
}

async function refused(login: Promise<RawClient>): Promise<void> {
  const client = await login.catch(() => undefined);
  if (client === undefined) return;
  await client.socket.close();
  throw new Error("Expected a login with a wrong password to fail: it has not");
}

/** Collects all answers of the admin API, with the token, a wrong token and none. */
async function overheardAtAdmin({ node }: Datacenter): Promise<string[]> {
  node.configuration.listen.admin["token"] = SECRETS.token;
  await node.restart();
  const { host, port } = node.ready.admin!; // every node of the harness has one
  const heard: string[] = [];
  for (
    const [token, status] of [[SECRETS.token, 200], [SECRETS.wrongToken, 401], ["", 401]] as const
  ) {
    for (const path of ADMIN_PATHS) {
      const response = await fetch(`http://${host}:${port}${path}?token=${SECRETS.token}`, {
        headers: token === "" ? {} : { authorization: `Bearer ${token}` },
      });
      heard.push(JSON.stringify([...response.headers]), await response.text());
      if (response.status === status || path === "/ready") continue;
      throw new Error(`Expected ${status} for ${path}: got ${response.status}`);
    }
  }
  return heard;
}

/**
 * Collects the output of the commands about the configuration, as it is and with mistakes next to
 * secrets.
 */
async function overheardFromCommands(cluster: Cluster, { node }: Datacenter): Promise<string[]> {
  const good = await Deno.readTextFile(node.configFile);
  const spoilt = [
    good,
    good.replace(`token = "${SECRETS.token}"`, `tokens = "${SECRETS.token}"`),
    good.replace(`token = "${SECRETS.token}"`, `token = ["${SECRETS.token}"]`),
    good.replace(`token = "${SECRETS.token}"`, `tokens = ["${SECRETS.token}"]`),
    good.replace(`token = "${SECRETS.token}"`, `tokens = [{ token = ["${SECRETS.token}"] }]`),
    good.replace(`"${SECRETS.redis}"`, `"${SECRETS.redis}`),
    good.replace(`secret = "${SECRETS.component}"`, `secret = { value = "${SECRETS.component}" }`),
  ];
  const heard: string[] = [];
  const configFile = cluster.run.path("spoilt-secrets.toml");
  for (const text of spoilt) {
    await Deno.writeTextFile(configFile, text);
    const { program, args } = causewayCommand(["check", "--config", configFile]);
    const outcome = await runProgram(program, args, { cwd: PROJECT_DIRECTORY });
    if (outcome === undefined) throw new Error(`Cannot run ${program}`);
    heard.push(outcome.output, outcome.errors);
  }
  await Deno.remove(configFile);
  return heard;
}

/** Restarts a node that cannot log in to its Redis, so that it logs that error repeatedly. */
async function restartWithRedisAway({ node }: Datacenter): Promise<void> {
  const { redis } = node.configuration.modules.mod_global_distrib;
  const { port } = redis;
  redis.port = 1;
  await node.restart();
  redis.port = port;
  await node.restart();
}

/** Reads the log files of the run: they also have the lines dropped from memory. */
async function filesOf(cluster: Cluster): Promise<string[]> {
  const texts: string[] = [];
  for (const { node } of cluster.datacenters) {
    texts.push(...(await Deno.readTextFile(cluster.run.path(`${node.name}.log`))).split("\n"));
  }
  return texts;
}

/** Returns each secret, plain and in its wire encodings, and the private keys. */
async function encodings(cluster: Cluster): Promise<readonly (readonly [string, string])[]> {
  const spelt = Object.entries(SECRETS).flatMap(([name, secret]) => [
    [name, secret] as const,
    [`${name} in base64`, btoa(secret).replace(/=+$/, "")] as const,
    [`${name} in PLAIN`, btoa(`\0alice\0${secret}`).replace(/=+$/, "")] as const,
  ]);
  const keys: (readonly [string, string])[] = [];
  for (const { node } of cluster.datacenters) {
    const { tls_opts: tls } = node.configuration.modules.mod_global_distrib.connections;
    if (tls === false) continue;
    const lines = (await Deno.readTextFile(tls.keyfile)).split("\n");
    keys.push([`the private key of ${node.name}`, lines[1]!]); // below the PEM header
  }
  return [...spelt, ...keys];
}
