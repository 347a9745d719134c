import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { RawClient } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures, untilNothingIsHeld } from "./_figures.ts";
import { expectSameMemory } from "./_memory.ts";
import { MiserlyPeer } from "./_miserly_peer.ts";
import { SmallTalk } from "./_small_talk.ts";

/** A datacenter whose links stand and let nothing through. */
const MISER = "dc9.example.com";
const LANE_MAX_BYTES = 2 * 1024 * 1024;
const SILENCE_SECONDS = 2;
/** Several times what the lane and the buffers of the sender's connection hold together. */
const LOAD_MESSAGES = 60_000;
const PADDING = "x".repeat(1000);
const CHUNK_MESSAGES = 50;
/** The sender is held back when this long nothing more is taken from it. */
const STALLED_MS = 1500;

/** Above the mark there is room for what is read at once, some 700 stanzas of this size. */
const LANE_MAX_ITEMS = 2000;
const QUESTIONS = 10_000;

const MISERLY_DATACENTER: Scenario = {
  name: "miserly-datacenter",
  summary: "a peer that answers pings and grants nothing costs its bound; who feeds it is slowed",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      configuration["limits"] = {
        lane_max_bytes: LANE_MAX_BYTES,
        link_silence_timeout: SILENCE_SECONDS,
      };
    },
  },
  run: feedTheMiser,
};

const FULL_LANES: Scenario = {
  name: "full-lanes",
  summary: "two datacenters answer each other with full lanes: all goes on, and nothing is lost",
  options: {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      configuration["limits"] = { lane_max_items: LANE_MAX_ITEMS, link_credit_bytes: 16_384 };
    },
  },
  run: answerEachOther,
};

/** What more load than can go does to those who bring it, and to nobody else. */
export const FULL_LANES_SCENARIOS: readonly Scenario[] = [MISERLY_DATACENTER, FULL_LANES];

async function feedTheMiser(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const dc1 = cluster.datacenter("dc1");
  const certificate = await cluster.authority.issue({ names: [MISER] });
  await using miser = await MiserlyPeer.listen(MISER, certificate);
  dc1.node.configuration.global_distrib_addr[MISER] = [miser.address];
  await dc1.node.restart();
  await using talk = await SmallTalk.start(cluster);
  await talk.goesOn();
  await cluster.until(() => miser.links === 1, { what: "dc1 has linked to the miser" });
  const beginning = await Figures.read(dc1);

  await using carol = await enter(cluster, dc1, "carol");
  let taken = 0;
  const sending = (async () => {
    const message = `<message to='somebody@${MISER}'><body>${PADDING}</body></message>`;
    const chunk = message.repeat(CHUNK_MESSAGES);
    for (; taken < LOAD_MESSAGES; taken += CHUNK_MESSAGES) await carol.send(chunk);
  })();
  sending.catch(() => {}); // awaited below
  await untilStalled(cluster, () => taken);
  const atStall = taken;
  assert.ok(atStall < LOAD_MESSAGES, "all was taken from a sender whom nobody reads");
  const before = await held(dc1);
  assert.ok(before.items > 0 && before.bytes <= LANE_MAX_BYTES, JSON.stringify(before));
  say(`carol is held back after ${atStall} messages, of which the lane holds ${before.items}`);

  // Longer than the silence after which a link is dead: only the answers to PING keep it.
  const pings = miser.pings;
  await delay(3 * SILENCE_SECONDS * 1000);
  assert.ok(miser.pings > pings, "nobody asked whether the miser lives");
  assert.deepEqual([miser.links, miser.received, taken], [1, 0, atStall]);
  const after = await held(dc1);
  assert.deepEqual(after, before, "what a peer that grants nothing costs stays as it is");
  await expectSameMemory(dc1, beginning);
  await talk.goesOn();
  say(`after ${3 * SILENCE_SECONDS} s it costs ${after.bytes} bytes still, of ${LANE_MAX_BYTES}`);

  miser.grant();
  await sending;
  await cluster.until(() => miser.received >= LOAD_MESSAGES, {
    what: "the miser, generous now, has it all",
    evidence: () => `it has ${miser.received}`,
    withinMs: 60_000,
  });
  assert.equal(miser.received, LOAD_MESSAGES);
  say(
    `once it grants, all ${LOAD_MESSAGES} come; next to it ${await talk.stop()} rounds were talked`,
  );
}

async function answerEachOther(cluster: Cluster, say: (line: string) => void): Promise<void> {
  const [dc1, dc2] = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
  await using alice = await enter(cluster, dc1, "alice");
  await using bob = await enter(cluster, dc2, "bob");
  for (const datacenter of [dc1, dc2]) {
    await cluster.until(
      async () => (await Figures.read(datacenter)).sum("mod_global_distrib_links_open") > 0,
      { what: `${datacenter.name} has linked to the other` },
    );
  }
  const watch = new AbortController();
  const fullest = watchLanes([dc1, dc2], watch.signal);
  fullest.catch(() => {}); // awaited below
  const talkers = [new Talker(alice), new Talker(bob)] as const;
  const [one, other] = talkers;
  const reading = talkers.map((talker) => talker.answerAll());
  for (const each of reading) each.catch(() => {}); // they end with their connections
  one.ask(bob.jid);
  other.ask(alice.jid);
  // Each question, and each answer, arrives or comes back.
  const fates = () => talkers.map(({ heard, answers, errors }) => heard + answers + errors);
  const open = () => {
    const sent = one.sent + other.sent;
    return sent - fates().reduce((sum, count) => sum + count, 0);
  };
  await cluster.until(() => one.sent + other.sent >= 2 * QUESTIONS && open() === 0, {
    what: "everything that was said has its fate",
    evidence: () => `${open()} have none: ${JSON.stringify(talkers.map((each) => each.figures))}`,
    withinMs: 25_000,
  });
  watch.abort();
  for (const [index, items] of (await fullest).entries()) {
    assert.ok(items >= LANE_MAX_ITEMS / 2, `dc${index + 1}'s lane held ${items} at most`);
  }
  for (const { errors } of talkers) {
    assert.equal(errors, 0, "who writes here is slowed, not refused");
  }
  await untilNothingIsHeld(cluster);
  say(
    `${2 * QUESTIONS} questions and as many answers, over lanes of ${LANE_MAX_ITEMS}, all arrived`,
  );
}

/** A client that answers each question as soon as it has read it. */
class Talker {
  readonly #client: RawClient;
  #writing = Promise.resolve();
  sent = 0;
  /** Questions of the other. */
  heard = 0;
  answers = 0;
  errors = 0;

  constructor(client: RawClient) {
    this.#client = client;
  }

  get figures(): Readonly<Record<string, number>> {
    const { sent, heard, answers, errors } = this;
    return { sent, heard, answers, errors };
  }

  /** Asks the other as fast as it is let. */
  ask(jid: string): void {
    for (let number = 0; number < QUESTIONS; number++) this.#say(jid, "question");
  }

  async answerAll(): Promise<void> {
    for (;;) {
      const message = await this.#client.socket.readUntil("</message>", 60_000);
      if (message.includes("type='error'") || message.includes('type="error"')) this.errors++;
      else if (message.includes("<body>answer")) this.answers++;
      else {
        this.heard++;
        this.#say(/ from=["']([^"']+)["']/.exec(message)![1]!, "answer"); // every stanza has one
      }
    }
  }

  #say(jid: string, what: string): void {
    this.sent++;
    const text = `<message to='${jid}'><body>${what} ${this.sent}</body></message>`;
    this.#writing = this.#writing.then(() => this.#client.send(text)).catch(() => {}); // it is over
  }
}

async function enter(
  cluster: Cluster,
  datacenter: Datacenter,
  localpart: string,
): Promise<RawClient> {
  const user = cluster.users.find((each) => each.localpart === localpart)!; // every cluster has them
  const address = datacenter.clientAddress("none");
  return await RawClient.login({ ...address, domain: cluster.globalHost, ...user });
}

async function held(datacenter: Datacenter): Promise<{ items: number; bytes: number }> {
  const figures = await Figures.read(datacenter);
  return {
    items: figures.sum("mod_global_distrib_lane_items", { host: MISER }),
    bytes: figures.sum("mod_global_distrib_lane_bytes", { host: MISER }),
  };
}

/** Resolves when `count` has stood still. */
async function untilStalled(cluster: Cluster, count: () => number): Promise<void> {
  let last = -1;
  let sinceMs = performance.now();
  await cluster.until(() => {
    if (count() !== last) sinceMs = performance.now();
    last = count();
    return last > 0 && performance.now() - sinceMs >= STALLED_MS;
  }, { what: "the sender is held back", withinMs: 30_000 });
}

/** The most that the lanes of each have held until `signal`. */
async function watchLanes(
  datacenters: readonly Datacenter[],
  signal: AbortSignal,
): Promise<readonly number[]> {
  const most = datacenters.map(() => 0);
  while (!signal.aborted) {
    for (const [index, datacenter] of datacenters.entries()) {
      const items = (await Figures.read(datacenter)).sum("mod_global_distrib_lane_items");
      most[index] = Math.max(most[index]!, items);
    }
    await delay(5);
  }
  return most;
}
