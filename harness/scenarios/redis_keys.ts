import assert from "node:assert/strict";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { RedisClient } from "../redis/mod.ts";
import { readRedis, type RedisEntry } from "./_redis_entries.ts";
import { Stage } from "./_stage.ts";
import { PATIENCE_MS } from "../until.ts";

const EXPIRE_S = 10;
const REFRESH_S = 2;
const LONG_S = 7 * 86_400;

/** Every key of every Redis, read with KEYS at each step of a few logins. */
export const REDIS_KEYS: Scenario = {
  name: "redis-keys",
  summary: "each Redis has exactly the right keys after login, refresh, logout, stop and kill",
  options: {
    configure({ modules }) {
      const { redis } = modules.mod_global_distrib;
      redis["expire_after"] = EXPIRE_S;
      redis["refresh_after"] = REFRESH_S;
    },
  },
  async run(cluster, say) {
    for (const { name, redis } of cluster.datacenters) {
      assert.notEqual(redis.kind, "embedded", `${name} needs a real redis-server`);
    }
    await using stage = new Stage(cluster);
    const [dc1, dc2, dc3] = cluster.datacenters as readonly Datacenter[];
    if (dc1 === undefined || dc2 === undefined || dc3 === undefined) {
      throw new RangeError("This scenario needs three datacenters");
    }
    const alice = `alice@${cluster.globalHost}`;
    const bob = `bob@${cluster.globalHost}`;

    const mesh = new Expected(cluster);
    await mesh.untilFound("at rest");
    say("at rest: hosts, nodes and endpoints, leases, ids and the layout");

    // Resources are compared by their composed form (RFC 7622 §3.4, NFC).
    const kitchen = await stage.enter("alice", "dc1", { resource: "Ku\u0308che" });
    assert.equal(kitchen.jid, `${alice}/K\u00fcche`);
    const phone = await stage.enter("bob", "dc2", { resource: "phone" });
    await stage.untilTableSaysOfSession(phone, "dc2");
    const tablet = await stage.enter("bob", "dc3", { resource: "tablet" });
    const echo = await stage.connectComponent("echo", "dc1");
    const hidden = await stage.connectComponent("hidden", "dc1");
    const full = mesh.with({
      logins: [
        { account: alice, resource: "K\u00fcche", at: dc1 },
        { account: bob, resource: "phone", at: dc2 },
        { account: bob, resource: "tablet", at: dc3 },
      ],
      components: [
        { domain: echo.jid, isHidden: false, at: dc1 },
        { domain: hidden.jid, isHidden: true, at: dc1 },
      ],
    });
    const first = await full.untilFound("after login");
    say("after login: full and bare JIDs, domains, and a claim for each");

    let missed: unknown;
    await outliveEntries(cluster, async () => {
      await full.assertFound("during refresh").catch((thrown) => missed ??= thrown);
    });
    if (missed !== undefined) throw missed;
    const refreshed = await full.untilFound("after refresh");
    for (const [index, entries] of refreshed.entries()) {
      assertRenewed(first[index]!, entries); // as many as datacenters
    }
    assert.equal(kitchen.received.length + phone.received.length + tablet.received.length, 0);
    say(`after refresh, ${EXPIRE_S} s and more later: the same keys; no login was withdrawn`);

    await tablet.disconnect();
    const { logins, components } = full.facts;
    await full.with({ logins: logins.slice(0, 2), components }).untilFound("after one logout");
    say("bob's newer login ends: his bare JID goes back to his older one");

    await kitchen.kill();
    await echo.disconnect();
    const left = full.with({ logins: [logins[1]!], components: [components[1]!] });
    await left.untilFound("after logouts");
    await hidden.kill();
    const onlyBob = full.with({ logins: [logins[1]!], components: [] });
    await onlyBob.untilFound("after all components have gone");
    say("sessions and components that end, or whose connections are cut, leave nothing behind");

    await dc3.stop();
    await onlyBob.with({ ...onlyBob.facts, withoutNodes: [dc3] }).untilFound("after a stop");
    say("dc3 stops gracefully: everything it published is gone at once");

    await dc2.kill();
    const onlyDc1 = mesh.with({ logins: [], components: [], withoutNodes: [dc2, dc3] });
    await onlyDc1.untilFound("after a kill");
    say("dc2 is killed: everything it published expires, and bob's entries too");
  },
};

interface Login {
  readonly account: string;
  readonly resource: string;
  readonly at: Datacenter;
}

interface Attachment {
  readonly domain: string;
  readonly isHidden: boolean;
  readonly at: Datacenter;
}

/** Events so far. Later logins come later in the list. */
interface Facts {
  readonly logins: readonly Login[];
  readonly components: readonly Attachment[];
  /** Datacenters whose node has gone; their id, and the layout's number, stay. @default [] */
  readonly withoutNodes?: readonly Datacenter[];
}

type Entries = ReadonlyMap<string, RedisEntry>;
type Shape = Readonly<Record<string, readonly [type: string, value: unknown]>>;

/** Expected content of the tables, derived from facts. */
class Expected {
  readonly facts: Facts;
  readonly #cluster: Cluster;

  constructor(cluster: Cluster, facts: Facts = { logins: [], components: [] }) {
    this.#cluster = cluster;
    this.facts = facts;
  }

  with(facts: Facts): Expected {
    return new Expected(this.#cluster, facts);
  }

  /** Waits until every Redis holds exactly this, and returns the entries. */
  async untilFound(when: string): Promise<readonly Entries[]> {
    return await this.#cluster.until(() => this.assertFound(when), {
      what: `each Redis holds what it should ${when}`,
      withinMs: 2 * PATIENCE_MS,
    });
  }

  async assertFound(when: string): Promise<readonly Entries[]> {
    const wanted = this.#shape();
    const datacenters = this.#cluster.datacenters;
    const found = await Promise.all(datacenters.map((each) => readRedis(each.redisClient)));
    for (const [index, entries] of found.entries()) {
      assert.deepEqual(shapeOf(entries), wanted, `${datacenters[index]!.name} ${when}`);
      for (const [key, { ttlMs }] of entries) assertLifetime(key, ttlMs);
    }
    return found;
  }

  #shape(): Shape {
    const { logins, components, withoutNodes = [] } = this.facts;
    const shape: Record<string, readonly [type: string, value: unknown]> = {};
    const live = this.#cluster.datacenters.filter((each) => !withoutNodes.includes(each));
    shape["causeway:layout"] = ["string", "1"];
    shape["hosts"] = ["set", live.map((each) => each.localHost).toSorted()];
    for (const { localHost } of this.#cluster.datacenters) {
      shape[`causeway:dc:${localHost}`] = ["string", "an id"];
    }
    for (const datacenter of live) {
      const { localHost, node } = datacenter;
      const { node: nodeName, links } = node.ready;
      const own = components.filter(({ at }) => at === datacenter);
      const open = own.filter(({ isHidden }) => !isHidden);
      shape[`${localHost}#{nodes}`] = ["set", [nodeName]];
      shape[`${localHost}#${nodeName}#{endpoints}`] = [
        "set",
        links.map(({ host, port }) => `${host}#${port}`).toSorted(),
      ];
      shape[`causeway:node:${localHost}#${nodeName}`] = ["string", "a lease"];
      shape[`causeway:cluster:${localHost}`] = ["hash", [nodeName]];
      for (const [name, list] of [["domains", own], ["public_domains", open]] as const) {
        if (list.length === 0) continue; // a set without members does not exist
        shape[`${localHost}#${nodeName}#{${name}}`] = [
          "set",
          list.map(({ domain }) => domain).toSorted(),
        ];
      }
    }
    for (const { domain, at } of components) {
      shape[domain] = ["string", at.localHost];
      shape[`causeway:claims:${domain}`] = ["hash", [claimOf(at, "")]];
    }
    for (const { account, resource, at } of logins) {
      shape[`${account}/${resource}`] = ["string", at.localHost];
      shape[account] = ["string", at.localHost]; // the last login wins
      const claims = logins.filter((other) => other.account === account);
      shape[`causeway:claims:${account}`] = [
        "hash",
        claims.map((other) => claimOf(other.at, other.resource)).toSorted(),
      ];
    }
    return shape;
  }
}

/** Returns a claim without the parts that differ from run to run. */
function claimOf(at: Datacenter, resource: string): string {
  return JSON.stringify([at.localHost, at.node.ready.node, resource]);
}

/** Returns keys, types and values. Each random value is replaced by a description. */
function shapeOf(entries: Entries): Shape {
  const shape: Record<string, readonly [type: string, value: unknown]> = {};
  for (const [key, { type, value }] of entries) shape[key] = [type, describeValue(key, value)];
  return shape;
}

function describeValue(key: string, value: RedisEntry["value"]): unknown {
  if (key.startsWith("causeway:dc:")) {
    return /^[0-9a-f]{16,}$/.test(String(value)) ? "an id" : value;
  }
  if (key.startsWith("causeway:node:")) return readLease(value) === undefined ? value : "a lease";
  if (key.startsWith("causeway:cluster:")) {
    return Object.entries(value as Readonly<Record<string, string>>) // a hash, or it fails below
      .map(([node, address]) => /^127\.0\.0\.1#\d+$/.test(address) ? node : [node, address])
      .toSorted();
  }
  if (!key.startsWith("causeway:claims:")) return value;
  return Object.entries(value as Readonly<Record<string, string>>) // a hash, or it fails below
    .map(([id, claim]) => JSON.stringify(readClaim(id, claim)?.slice(1, 4) ?? [id, claim]))
    .toSorted();
}

/** Reads the incarnation and start of a lease. Returns undefined for other values. */
function readLease(value: unknown): readonly number[] | undefined {
  const fields = JSON.parse(String(value));
  const isLease = Array.isArray(fields) && fields.length === 2 &&
    fields.every(Number.isSafeInteger);
  return isLease ? fields : undefined;
}

type ClaimFields = readonly [
  epochUs: number,
  host: string,
  node: string,
  resource: string,
  renewals: number,
  priority?: number,
];

function readClaim(id: string, value: string): ClaimFields | undefined {
  const fields = JSON.parse(value);
  const isClaim = /^[0-9a-f]{1,13}-\d+$/.test(id) && Array.isArray(fields) &&
    (fields.length === 5 || fields.length === 6) &&
    Number.isSafeInteger(fields[0]) && Number.isSafeInteger(fields[4]);
  // Epochs are microseconds of wall-clock time.
  const isRecent = isClaim && Math.abs(fields[0] / 1000 - Date.now()) < 600_000;
  return isRecent ? fields as unknown as ClaimFields : undefined;
}

/** Checks that a key expires, and not later than configured. */
function assertLifetime(key: string, ttlMs: number): void {
  const lifeS = /^causeway:(dc:|layout$)/.test(key) ? LONG_S : EXPIRE_S;
  assert.ok(ttlMs >= 0, `${key} never expires`);
  assert.ok(ttlMs <= lifeS * 1000, `${key} lives for ${ttlMs} ms, more than ${lifeS} s`);
}

/** Repeats `look` until a key that nobody renews has lived longer than the entries of the table. */
async function outliveEntries(cluster: Cluster, look: () => Promise<unknown>): Promise<void> {
  const [{ redis }] = cluster.datacenters as readonly [Datacenter]; // three, as `run` has seen
  await using aside = new RedisClient(redis.address);
  // Use another database, so that this key is not among the checked keys.
  await aside.call("SELECT", 1);
  await aside.call("SET", "nobody-renews-me", "1", "EX", EXPIRE_S + REFRESH_S);
  await cluster.until(async () => {
    await look();
    return await aside.call("EXISTS", "nobody-renews-me") === 0;
  }, { what: "the lifetime of an entry has passed", everyMs: 100 });
}

/** Checks that every entry of `before` still exists, and has been written again since. */
function assertRenewed(before: Entries, after: Entries): void {
  assert.deepEqual([...after.keys()], [...before.keys()]);
  for (const [key, entry] of after) {
    if (!key.startsWith("causeway:claims:")) continue;
    const older = before.get(key)!.value as Readonly<Record<string, string>>;
    for (const [id, value] of Object.entries(entry.value as Readonly<Record<string, string>>)) {
      const [then, now] = [readClaim(id, older[id]!)!, readClaim(id, value)!];
      assert.equal(now[0], then[0], `the epoch of ${key} stands`);
      assert.ok(now[4] > then[4], `${key} has been renewed`);
    }
  }
}
