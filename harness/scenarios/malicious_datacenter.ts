import { setTimeout as delay } from "node:timers/promises";
import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import { balanceLine, findings, Ledger } from "../ledger/mod.ts";
import { Load } from "../load/mod.ts";
import { ACTS, MALICIOUS_HOST, MaliciousPeer } from "../peers/mod.ts";
import type { Scenario } from "../scenario.ts";
import { LOAD_USERS, loadClients } from "../trials/mod.ts";
import { Figures } from "./_figures.ts";
import { readRedis } from "./_redis_entries.ts";
import { Stage } from "./_stage.ts";

const EXPIRE_AFTER_SECONDS = 20;
const SEED = 20_260_101;
/** Times that every act is done at every node. */
const ROUNDS = 2;
const PER_SECOND = 100;
const SETTLE_MS = 20_000;
/** Milliseconds in which late duplicates and errors show up. */
const QUIET_MS = 1_500;
const MEBIBYTE = 1024 * 1024;
/** Bytes by which a node may grow because of the actor. */
const MAX_GROWTH_BYTES = 192 * MEBIBYTE;
/** Characters by which `/metrics` may grow: some series of one more datacenter. */
const MAX_METRICS_GROWTH_CHARACTERS = 256 * 1024;
/** Keys that a datacenter's Redis may hold for the actor at once, beside its bounded claims. */
const MAX_KEYS = 20_000;
/** After the last lease has run out, housekeeping may take as long again, and a busy machine too. */
const GONE_WITHIN_MS = 3 * EXPIRE_AFTER_SECONDS * 1000;

/** Counters of links that do not move while a link goes on. */
const LINK_COUNTERS = ["incoming_first_packet", "incoming_errored", "outgoing_errored"];
/** Texts that only the actor's entries contain. */
const TRACES = [MALICIOUS_HOST, "mallory", "nobody-", "made-up-"];

/** A datacenter with a good certificate that lies about everything it can. */
export const MALICIOUS_DATACENTER: Scenario = {
  name: "malicious-datacenter",
  summary: "a malicious datacenter costs the others no stanza, link or entry",
  replications: ["builtin"],
  options: {
    datacenters: 2,
    components: [],
    users: [...LOAD_USERS, { localpart: "carol", password: "secret" }],
    configure({ modules }: CausewayConfiguration) {
      Object.assign(modules.mod_global_distrib.redis, {
        expire_after: EXPIRE_AFTER_SECONDS,
        refresh_after: EXPIRE_AFTER_SECONDS / 4,
      });
    },
  },
  run: sufferAll,
};

async function sufferAll(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const ledger = new Ledger();
  await using load = new Load(loadClients(cluster, ledger), ledger, {
    perSecond: PER_SECOND,
  });
  await load.enter();
  await untilEveryoneIsFound(cluster, load);
  const beginning = await lookAtAll(cluster);
  load.start();
  // collect every kind of failure, so that one does not hide the next
  const found: string[] = [];
  const differs = new Map<string, string>();
  {
    await using actor = await MaliciousPeer.beside(cluster, { seed: SEED });
    for (let round = 1; round <= ROUNDS; round++) {
      for (const act of ACTS) {
        for (const { node } of cluster.datacenters) {
          await actor.act(act, node.ready.links[0]!).catch((thrown) => found.push(String(thrown)));
        }
        for (const difference of differences(beginning, await lookAtAll(cluster))) {
          if (!differs.has(difference)) differs.set(difference, act.name);
        }
      }
    }
    const { count, letIn, asked, called } = actor;
    say(
      `${count} acts of ${ACTS.length} kinds, over ${letIn} links of its own and ${called} to it`,
    );
    if (called === 0) found.push("no node has called the actor");
    if (asked < count) found.push(`the actor was asked for its entries only ${asked} times`);
  }
  for (const [difference, act] of differs) found.push(`${difference}, first after ${act}`);
  const end = await lookAtAll(cluster);
  for (const [index, { name, rssBytes, keys, metricsCharacters }] of end.entries()) {
    const grown = Math.round((rssBytes - beginning[index]!.rssBytes) / MEBIBYTE);
    say(`${name}: ${grown} MiB more, ${keys} keys, ${metricsCharacters} characters of metrics`);
  }
  found.push(...await strangersTalk(cluster));
  load.pause();
  await load.settle(SETTLE_MS);
  await delay(QUIET_MS);
  const balance = ledger.balance({ windows: [] });
  say(balanceLine(balance));
  found.push(...findings(balance, { answers: "none" }));
  found.push(...await untilAllIsGone(cluster));
  if (found.length > 0) throw new Error([...new Set(found)].join("\n"));
  say("its entries and metric series are gone; those of the others are unchanged");
}

async function untilEveryoneIsFound(cluster: Cluster, load: Load): Promise<void> {
  for (const address of ["full", "bare"] as const) {
    load.greet(address);
    await cluster.until(() => load.ledger.unsettled() === 0, {
      what: `everyone has heard from everyone at the ${address} address`,
    });
  }
}

/** State of a datacenter as seen from outside. */
interface Look {
  readonly name: string;
  readonly figures: Figures;
  readonly rssBytes: number;
  readonly metricsCharacters: number;
  /** Places of honest users, and the list of datacenters, in the table. */
  readonly places: string;
  readonly keys: number;
  /** Links to and from honest datacenters, and how often they broke. */
  readonly links: string;
}

async function lookAtAll(cluster: Cluster): Promise<readonly Look[]> {
  return await Promise.all(cluster.datacenters.map((datacenter) => lookAt(cluster, datacenter)));
}

async function lookAt(cluster: Cluster, datacenter: Datacenter): Promise<Look> {
  const figures = await Figures.read(datacenter);
  const { redisClient } = datacenter;
  const honest = cluster.datacenters.map(({ localHost }) => localHost);
  const accounts = LOAD_USERS.map(({ localpart }) => `${localpart}@${cluster.globalHost}`);
  const places = await Promise.all(accounts.map((each) => redisClient.call("GET", each)));
  const hosts = (await redisClient.call("SMEMBERS", "hosts").catch(String) as string[])
    .filter((host) => host !== MALICIOUS_HOST);
  const links = honest.map((host) =>
    LINK_COUNTERS.map((name) => figures.sum(`mod_global_distrib_${name}_total`, { host }))
  );
  return {
    name: datacenter.name,
    figures,
    rssBytes: figures.sum("process_resident_memory_bytes"),
    metricsCharacters: (await metrics(datacenter)).length,
    places: JSON.stringify([places, hosts.toSorted()]),
    keys: Number(await redisClient.call("DBSIZE")),
    links: JSON.stringify(links),
  };
}

/** Returns the forbidden differences between two observations. */
function differences(before: readonly Look[], after: readonly Look[]): readonly string[] {
  return after.flatMap((now, index) => {
    const then = before[index]!; // of the same datacenter
    const { name } = now;
    const longer = now.metricsCharacters - then.metricsCharacters;
    return Object.entries({
      [`${name} grew by more than ${MAX_GROWTH_BYTES} bytes`]:
        now.rssBytes - then.rssBytes > MAX_GROWTH_BYTES,
      [`/metrics of ${name} grew by more than ${MAX_METRICS_GROWTH_CHARACTERS} characters`]:
        longer > MAX_METRICS_GROWTH_CHARACTERS,
      [`the Redis of ${name} got more than ${MAX_KEYS} keys`]: now.keys > then.keys + MAX_KEYS,
      [`the table of ${name} said something else of the honest (${now.places})`]:
        now.places !== then.places,
      [`honest links of ${name} broke`]: now.links !== then.links,
    }).filter(([, isSo]) => isSo).map(([difference]) => difference);
  });
}

/** Checks that a new login is found from everywhere: the epochs still advance normally. */
async function strangersTalk(cluster: Cluster): Promise<readonly string[]> {
  const found: string[] = [];
  await using stage = new Stage(cluster);
  try {
    const carol = await stage.enterAvailable("carol", "dc1", { resource: "one" });
    await stage.untilTableSaysOfSession(carol, "dc1");
    const moved = await stage.enterAvailable("carol", "dc2", { resource: "two" });
    await moved.sendMessage(carol.jid, "to my other self");
    await carol.expectMessage("to my other self");
    const { redisClient } = cluster.datacenter("dc1");
    const key = `causeway:claims:carol@${cluster.globalHost}`;
    const claims = await redisClient.call("HVALS", key) as readonly string[];
    for (const claim of claims) {
      const [epoch] = JSON.parse(claim) as readonly number[];
      const aheadMs = epoch! / 1000 - Date.now();
      if (!(Math.abs(aheadMs) < 60_000)) found.push(`a new login's epoch is ${aheadMs} ms ahead`);
    }
  } catch (thrown) {
    found.push(`who logs in after the attack is not reached: ${(thrown as Error).message}`);
  }
  return found;
}

async function untilAllIsGone(cluster: Cluster): Promise<readonly string[]> {
  const found: string[] = [];
  for (const datacenter of cluster.datacenters) {
    let left = "";
    await cluster.until(async () => {
      left = await traces(cluster, datacenter);
      return left === "";
    }, { what: "the actor's traces go", withinMs: GONE_WITHIN_MS, everyMs: 500 }).catch(() => {
      found.push(`${datacenter.name} keeps of the actor: ${left}`);
    });
  }
  return found;
}

/** Returns what is left of the actor after its removal through the admin API. */
async function traces(cluster: Cluster, datacenter: Datacenter): Promise<string> {
  const url = datacenter.adminUrl(`/api/hosts/${MALICIOUS_HOST}`);
  const response = await fetch(url, { method: "DELETE" });
  const left = response.status === 409 ? [`DELETE ${url.pathname}: ${await response.text()}`] : [];
  if (response.status !== 409) await response.body?.cancel();
  const isTrace = (text: string) => TRACES.some((trace) => text.includes(trace));
  for (const [key, { value }] of await readRedis(datacenter.redisClient)) {
    if (isTrace(key) || isTrace(JSON.stringify(value))) left.push(key);
  }
  const series = (await metrics(datacenter)).split("\n").filter((line) =>
    /(made-up-|nobody-|mallory)/.test(line)
  );
  if (series.length > 0) left.push(`${series.length} series, such as ${series[0]}`);
  const { node } = cluster.datacenter(datacenter.name);
  if (node.state !== "running") left.push(`the node is ${node.state}`);
  return left.length > 6
    ? `${left.slice(0, 6).join(", ")} and ${left.length - 6} more`
    : left.join();
}

async function metrics(datacenter: Datacenter): Promise<string> {
  const response = await fetch(datacenter.adminUrl("/metrics"));
  return await response.text();
}
