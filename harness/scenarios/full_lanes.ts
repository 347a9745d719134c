import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { RawClient } from "../clients/mod.ts";
import type { CausewayConfiguration, Cluster, ClusterOptions, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { Figures, untilNothingIsHeld } from "./_figures.ts";
import { expectSameMemory } from "./_memory.ts";
import { MiserlyPeer } from "../peers/mod.ts";
import { SmallTalk } from "./_small_talk.ts";

/** A datacenter whose links are open but grant no credit. */
const MISER = "dc9.example.com";
const LANE_MAX_BYTES = 2 * 1024 * 1024;
const SILENCE_SECONDS = 6;
/** Pings that a link is sent in more than the time after which a silent one is dead. */
const PINGS = 4;
/**
 * Messages of the load: several times as many as the lane and the buffers of the sender's
 * connection hold.
 */
const LOAD_MESSAGES = 60_000;
const PADDING = "x".repeat(1000);
const CHUNK_MESSAGES = 50;
/** Answers of the node, without any progress between them, after which a sender counts as held back. */
const STALLED_LOOKS = 50;

/**
 * A node holds some 700 stanzas of this size for one client at a time. It holds the client back
 * when a lane is half full, and an eighth of the lane is reserved for errors. Between these marks a
 * wide lane has room for the stanzas of two clients. A narrow lane has no room for those of six.
 */
const WIDE_ITEMS = 4000;
const NARROW_ITEMS = 2000;
const ONE = 1;
const MANY = 6;
/** Questions of all clients together, at each end. */
const QUESTIONS = 12_000;

const MISERLY_DATACENTER: Scenario = {
  name: "miserly-datacenter",
  summary:
    "a peer that answers pings but grants no credit costs only its bound, and its senders are " +
    "slowed",
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

function lanesOf(items: number) {
  return {
    datacenters: 2,
    configure(configuration: CausewayConfiguration) {
      configuration["limits"] = { lane_max_items: items, link_credit_bytes: 16_384 };
    },
  } satisfies ClusterOptions;
}

const HELD_BACK: Scenario = {
  name: "held-back-lanes",
  summary: "full lanes hold back two clients who answer each other, and refuse them nothing",
  options: lanesOf(WIDE_ITEMS),
  async run(cluster, say) {
    const { fullest, refused, said } = await answerEachOther(cluster, ONE);
    for (const [index, items] of fullest.entries()) {
      assert.ok(items >= WIDE_ITEMS / 2, `dc${index + 1}'s lane held ${items} at most`);
    }
    assert.equal(refused, 0, "who writes here is slowed, not refused");
    say(`${said} questions and answers, over lanes of ${WIDE_ITEMS}, all arrived`);
  },
};

const FULL_LANES: Scenario = {
  name: "full-lanes",
  summary: "two datacenters answer each other over full lanes without a standstill or a loss",
  options: lanesOf(NARROW_ITEMS),
  async run(cluster, say) {
    const { refusedAt, refused, said } = await answerEachOther(cluster, MANY);
    for (const [index, count] of refusedAt.entries()) {
      assert.ok(count > 0, `dc${index + 1}'s lane was never full`);
    }
    // the lanes are full again and again, and messages still flow
    assert.ok(said - refused > 4 * NARROW_ITEMS, `only ${said - refused} got through`);
    say(`of ${said} questions and answers full lanes refused ${refused}; all others arrived`);
  },
};

/** Scenarios in which overload slows only the clients that cause it. */
export const FULL_LANES_SCENARIOS: readonly Scenario[] = [
  MISERLY_DATACENTER,
  HELD_BACK,
  FULL_LANES,
];

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

  await using carol = await enter(cluster, dc1, { localpart: "carol" });
  let taken = 0;
  const sending = (async () => {
    const message = `<message to='somebody@${MISER}'><body>${PADDING}</body></message>`;
    const chunk = message.repeat(CHUNK_MESSAGES);
    for (; taken < LOAD_MESSAGES; taken += CHUNK_MESSAGES) await carol.send(chunk);
  })();
  sending.catch(() => {}); // awaited below
  await untilStalled(cluster, dc1, () => taken);
  const atStall = taken;
  assert.ok(atStall < LOAD_MESSAGES, "all was taken from a sender whom nobody reads");
  const before = await held(dc1);
  assert.ok(before.items > 0 && before.bytes <= LANE_MAX_BYTES, JSON.stringify(before));
  say(`carol is held back after ${atStall} messages, of which the lane holds ${before.items}`);

  // Longer than the silence after which a link is dead: only the answers to PING keep the link
  // open.
  const pings = miser.pings;
  await cluster.until(() => miser.pings >= pings + PINGS, {
    what: `the miser is asked ${PINGS} times whether it lives`,
  });
  assert.deepEqual([miser.links, miser.received, taken], [1, 0, atStall]);
  const after = await held(dc1);
  assert.deepEqual(after, before, "what a peer that grants nothing costs stays as it is");
  await expectSameMemory(dc1, beginning);
  await talk.goesOn();
  say(
    `${PINGS} pings later it still costs ${after.bytes} bytes, of at most ${LANE_MAX_BYTES}`,
  );

  miser.grant();
  await sending;
  await cluster.until(() => miser.received >= LOAD_MESSAGES, {
    what: "the miser, generous now, has it all",
    evidence: () => `it has ${miser.received}`,
    withinMs: 60_000,
  });
  assert.equal(miser.received, LOAD_MESSAGES);
  say(
    `once it grants credit, all ${LOAD_MESSAGES} arrive; alice and bob talked ${await talk
      .stop()} rounds`,
  );
}

/** Result of clients that answered each other. */
interface Conversation {
  /** The most that the lanes of each datacenter have held. */
  readonly fullest: readonly number[];
  readonly said: number;
  readonly refused: number;
  /** Stanzas among these that each datacenter refused its own clients. */
  readonly refusedAt: readonly number[];
}

/**
 * Lets `pairs` clients of each datacenter write questions to clients of the other as fast as
 * possible, and answer theirs.
 */
async function answerEachOther(cluster: Cluster, pairs: number): Promise<Conversation> {
  const datacenters = [cluster.datacenter("dc1"), cluster.datacenter("dc2")];
  await using clients = new AsyncDisposableStack();
  const enterAll = async (datacenter: Datacenter, localpart: string) => {
    const talkers: Talker[] = [];
    for (let number = 1; number <= pairs; number++) {
      const client = await enter(cluster, datacenter, { localpart, resource: `talker${number}` });
      talkers.push(new Talker(clients.use(client)));
    }
    return talkers;
  };
  const [some, others] = [
    await enterAll(datacenters[0]!, "alice"),
    await enterAll(datacenters[1]!, "bob"),
  ];
  for (const datacenter of datacenters) {
    await cluster.until(
      async () => (await Figures.read(datacenter)).sum("mod_global_distrib_links_open") > 0,
      { what: `${datacenter.name} has linked to the other` },
    );
  }
  const watch = new AbortController();
  const fullest = watchLanes(datacenters, watch.signal);
  fullest.catch(() => {}); // awaited below
  const talkers = [...some, ...others];
  // they end with their connections
  for (const talker of talkers) talker.answerAll().catch(() => {});
  const questions = QUESTIONS / pairs;
  for (const [index, one] of some.entries()) {
    const other = others[index]!;
    one.ask(other.jid, questions);
    other.ask(one.jid, questions);
  }
  const sum = (of: (talker: Talker) => number, from = talkers) =>
    from.reduce((total, talker) => total + of(talker), 0);
  // Each question, and each answer, arrives or comes back.
  const open = () =>
    sum(({ sent }) => sent) - sum(({ heard, answers, errors }) => heard + answers + errors);
  await cluster.until(() => sum(({ sent }) => sent) >= 2 * QUESTIONS && open() === 0, {
    what: "everything that was said has its fate",
    evidence: () => `${open()} have none: ${JSON.stringify(talkers.map((each) => each.figures))}`,
    withinMs: 60_000,
  });
  watch.abort();
  for (const { otherErrors } of talkers) assert.deepEqual(otherErrors, []);
  const conversation = {
    fullest: await fullest,
    said: sum(({ sent }) => sent),
    refused: sum(({ errors }) => errors),
    refusedAt: [some, others].map((side) => sum(({ errors }) => errors, side)),
  };
  await untilNothingIsHeld(cluster);
  return conversation;
}

/** A client that answers each question as soon as it has read it. */
class Talker {
  readonly #client: RawClient;
  #writing = Promise.resolve();
  sent = 0;
  /** Questions received from the other client. */
  heard = 0;
  answers = 0;
  /** Errors for stanzas that found no room. */
  errors = 0;
  /** All other errors. */
  readonly otherErrors: string[] = [];

  constructor(client: RawClient) {
    this.#client = client;
  }

  get figures(): Readonly<Record<string, number>> {
    const { sent, heard, answers, errors } = this;
    return { sent, heard, answers, errors };
  }

  get jid(): string {
    return this.#client.jid;
  }

  /** Writes questions to the other client as fast as possible. */
  ask(jid: string, questions: number): void {
    for (let number = 0; number < questions; number++) this.#say(jid, "question");
  }

  async answerAll(): Promise<void> {
    for (;;) {
      const message = await this.#client.socket.readUntil("</message>", 60_000);
      if (message.includes("type='error'") || message.includes('type="error"')) {
        this.errors++;
        if (!message.includes("<resource-constraint")) this.otherErrors.push(message);
      } else if (message.includes("<body>answer")) this.answers++;
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
  { localpart, resource }: { readonly localpart: string; readonly resource?: string },
): Promise<RawClient> {
  const user = cluster.users.find((each) => each.localpart === localpart)!; // every cluster has them
  const address = datacenter.clientAddress("none");
  return await RawClient.login({
    ...address,
    ...user,
    domain: cluster.globalHost,
    ...(resource !== undefined && { resource }),
  });
}

async function held(datacenter: Datacenter): Promise<{ items: number; bytes: number }> {
  const figures = await Figures.read(datacenter);
  return {
    items: figures.sum("mod_global_distrib_lane_items", { host: MISER }),
    bytes: figures.sum("mod_global_distrib_lane_bytes", { host: MISER }),
  };
}

/** Resolves when `count` and the miser's lane stand still while `datacenter` answers. */
async function untilStalled(
  cluster: Cluster,
  datacenter: Datacenter,
  count: () => number,
): Promise<void> {
  let last = "";
  let looks = 0;
  await cluster.until(async () => {
    const { items, bytes } = await held(datacenter);
    const now = [count(), items, bytes].join();
    looks = now === last && items > 0 ? looks + 1 : 0;
    last = now;
    return looks >= STALLED_LOOKS;
  }, { what: "the sender is held back" });
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
