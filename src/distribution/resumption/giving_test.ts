import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock } from "../../base/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import { FullJid, parseJid } from "../../xmpp/mod.ts";
import type { Freezing, FrozenSession, Relay, SessionState, Unfreezing } from "../../xmpp/mod.ts";
import { MemoryMetrics } from "../../xmpp/stream/testing/memory_metrics.ts";
import { Envelope } from "../mod.ts";
import type { OpenLink } from "../mod.ts";
import {
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeQueue,
  decodeSession,
  FRAME_TYPE,
} from "../wire/mod.ts";
import type { TakerStep } from "../wire/mod.ts";
import { envelopeOf, HOME } from "./testing/nodes.ts";
import type { TransferRequest } from "./giving.ts";
import { Giving } from "./giving.ts";
import type { DeliveredNumbers } from "./ports.ts";
import { ResumptionMetrics } from "./resumption_metrics.ts";
import {
  COVER_MS,
  GRACE_MS,
  KNOWN_CHECK_MS,
  KNOWN_MS,
  WINDOW_BYTES,
} from "./resumption_options.ts";

const TRANSFER = 7;
const OLD = 1;
const NEW = 2;
const TIMEOUT_MS = 5_000;
const REQUEST: TransferRequest = {
  transfer: TRANSFER,
  previd: "1-1",
  account: "alice@example.com",
  h: 3,
};

/** A frozen session that records its calls. */
class TestSession implements FrozenSession {
  cameBy: number | undefined;
  /** Stanzas that other sessions of the account keep. */
  others: readonly Envelope[] = [];
  readonly jid = parseJid(HOME) as FullJid;
  isCovered = true;
  isFull = false;
  directed = 1;
  waiting: readonly Envelope[] = [];
  unrelayed = 0;
  /** True when the table names another place; an error if the table fails. */
  isGone: boolean | Error = false;
  readonly done: string[];
  readonly queue: Envelope[];
  #relay: Relay | undefined;
  #relayed = 0;

  constructor(done: string[], kept: readonly Envelope[]) {
    this.done = done;
    this.queue = [...kept];
  }

  get kept(): number {
    return this.queue.length;
  }

  keptByOthers(): readonly Envelope[] {
    return this.others;
  }

  state(): SessionState {
    const { jid } = this;
    return {
      jid,
      received: 5,
      covered: 4,
      acknowledged: 3,
      resumeTimeoutMs: 600_000,
      resendingMs: 0.5,
      lang: undefined,
      priority: undefined,
      presence: undefined,
      hasCarbons: true,
      isNewlyAvailable: false,
      directed: Array.from({ length: this.directed }, (_, i) => parseJid(`carol@example.com/${i}`)),
    };
  }

  relay(relay: Relay, from: number): void {
    this.#relay = relay;
    this.#relayed = from;
    this.relayMore();
  }

  relayMore(): void {
    for (; this.#relayed < this.queue.length; this.#relayed++) {
      if (!this.#relay!.write(this.queue[this.#relayed]!, this.#relayed + 1)) break;
    }
    this.unrelayed = this.queue.length - this.#relayed;
  }

  settle(count: number): void {
    this.done.push(`settle ${count}`);
    this.queue.splice(0, count);
  }

  isElsewhere(): Promise<boolean> {
    this.done.push("look");
    return this.isGone instanceof Error
      ? Promise.reject(this.isGone)
      : Promise.resolve(this.isGone);
  }

  thaw(): void {
    this.done.push("thaw");
  }

  give(process: number): void {
    this.done.push(`give ${process}`);
  }

  leave(): Promise<void> {
    this.done.push("leave");
    return Promise.resolve();
  }

  giveBack(relayed: number, mayBeRepeat: boolean): void {
    this.done.push(`give back, as repeats up to ${mayBeRepeat ? relayed : 0}`);
  }
}

interface Situation {
  /** @default frozen */
  readonly freezing?: Freezing;
  /** @default another datacenter's */
  readonly takerHost?: string;
  /** Stanzas that the session keeps. @default 2 */
  readonly keeps?: number;
  readonly isCovered?: boolean;
  /** Senders whose delivered numbers this node has, for the session and its account. @default 0 */
  readonly senders?: number;
  /** Numbers by address or record. @default those of `senders` */
  readonly delivered?: Readonly<Record<string, readonly DeliveredNumbers[]>>;
  /** @default one */
  readonly directed?: number;
}

/** One transfer from a node of dc1, with everything around it faked. */
class World {
  readonly clock = new ManualClock();
  readonly log = new MemoryLogger();
  readonly metrics = new MemoryMetrics();
  /** Calls to the session and frames to the taker, in order. */
  readonly done: string[] = [];
  readonly forgotten: number[] = [];
  readonly memory = {
    forgetDelivered: ({ sequence }: Envelope) => void this.forgotten.push(sequence),
  };
  /** Numbers of details sent to the taker, by kind. */
  readonly told = new Map<string, number>();
  /** Times that nothing of the session was kept any more. */
  emptied = 0;
  /** Kinds and numbers of those with delivered stanzas. */
  readonly delivered: string[] = [];
  readonly session: TestSession;
  readonly giving: Giving;
  readonly #host: string;

  constructor(situation: Situation = {}) {
    const { freezing, takerHost = "dc2.example.com", keeps = 2, isCovered } = situation;
    this.#host = takerHost;
    const kept = Array.from(
      { length: keeps },
      (_, index) => envelopeOf(`m${index + 1}`, index + 1),
    );
    for (const each of kept) each.rememberedBy = this.memory;
    this.session = new TestSession(this.done, kept);
    this.session.isCovered = isCovered ?? true;
    this.session.directed = situation.directed ?? 1;
    this.giving = new Giving(REQUEST, this.link(), {
      options: {
        timeoutMs: TIMEOUT_MS,
        maxItems: 100,
        maxBytes: 1e6,
        maxOwedBytes: 1e6,
        maxFrameBytes: 524_288,
        expireAfterMs: 120_000,
      },
      process: OLD,
      localHost: "dc1.example.com",
      sessions: { freeze: () => freezing ?? { kind: "frozen", session: this.session } },
      memory: {
        deliveredTo: (name, max) =>
          situation.delivered?.[name]?.slice() ??
            Array.from({ length: Math.min(max, situation.senders ?? 0) }, (_, i) => ({
              sender: `s${i}@example.com`,
              process: 9,
              highest: 1,
              recent: [1],
            })),
        learnDelivered() {},
        noteDelivered: () => assert.fail("the session goes from here"),
        noteInRecord: () => assert.fail("the session goes from here"),
        isInRecord: () => false,
        mayBeInRecord: () => false,
        forgetRecord: () => assert.fail("the session goes from here"),
      },
      metrics: new ResumptionMetrics(this.metrics, { givings: () => 0, takings: () => 0 }),
      clock: this.clock,
      log: this.log,
      follows: (_jid, { host }) => void this.done.push(`follows ${host}`),
      followsNoMore: () => void this.done.push("follows nobody"),
      goneOf: () => [],
      emptied: () => void this.emptied++,
      over: () => void this.done.push("over"),
    });
  }

  /** Makes a link to the taker. */
  link(name = ""): OpenLink {
    return {
      host: this.#host,
      nodeName: `node1@${this.#host}`,
      process: NEW,
      send: (frame) => {
        this.done.push(`${name}${show(frame)}`);
        if (frame[4] !== FRAME_TYPE.details) return;
        for (const detail of decodeDetails(frame, 0, frame.length).details) {
          const { kind } = detail;
          this.told.set(kind, (this.told.get(kind) ?? 0) + 1);
          if (kind !== "directed") this.delivered.push(`${kind} ${detail.recent}`);
        }
      },
      refuse: (detail) => assert.fail(detail),
    };
  }

  begin(): this {
    this.giving.begin();
    return this;
  }

  have(step: TakerStep, received = 0, settled = 0): void {
    this.giving.have({ transfer: TRANSFER, step, received, settled });
  }

  /** Takes the actions since the last call. */
  async news(): Promise<readonly string[]> {
    await immediately();
    return this.done.splice(0);
  }

  asked(outcome: string): number {
    return this.metrics.value("causeway_sessions_asked_for_total", { outcome });
  }

  /** Gives the session to the taker, which confirms it. */
  async taken(): Promise<void> {
    this.begin();
    await this.news();
    this.have("commit", this.session.kept);
    await this.news();
    this.have("taken", this.session.kept);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.giving.peerGone(true);
    await immediately();
    assert.equal(this.clock.pendingTimers, 0, "no timer outlives a transfer");
  }
}

/** Shows a frame to the taker in a word or two. */
function show(frame: Uint8Array): string {
  const type = frame[4]!;
  const end = frame.length;
  switch (type) {
    case FRAME_TYPE.session: {
      const { jid, received, covered, acknowledged } = decodeSession(frame, 0, end);
      return `SESSION ${jid} ${received}/${covered}/${acknowledged}`;
    }
    case FRAME_TYPE.details:
      return `DETAILS ${decodeDetails(frame, 0, end).details.map(({ kind }) => kind)}`;
    case FRAME_TYPE.queue: {
      const { stanzas, isEnd, isCaughtUp } = decodeQueue(frame, 0, end);
      const marks = `${isEnd ? " end" : ""}${isCaughtUp ? " caught-up" : ""}`;
      return `QUEUE [${stanzas.map(({ number }) => number)}]${marks}`;
    }
    case FRAME_TYPE.given:
      return `GIVEN ${decodeGiven(frame, 0, end)}`;
    case FRAME_TYPE.end: {
      const { reason, h, sentCount, process } = decodeEnd(frame, 0, end);
      return `END ${reason} h=${h} sent=${sentCount} process=${process}`;
    }
    default:
      return `type ${type}`;
  }
}

const SENT = [
  `SESSION ${HOME} 5/4/3`,
  "DETAILS directed",
  "QUEUE [1,2] end",
];

Deno.test("Giving.begin() tells the taker why it gets no session, and ends", async () => {
  const cases: readonly (readonly [Freezing, string])[] = [
    [{ kind: "unknown" }, "END unknown h=undefined sent=0 process=0"],
    [{ kind: "other-account" }, "END other-account h=undefined sent=0 process=0"],
    [{ kind: "stale", h: 12 }, "END stale h=12 sent=0 process=0"],
    [
      { kind: "handled-too-high", sentCount: 9 },
      "END handled-too-high h=undefined sent=9 process=0",
    ],
    [{ kind: "moved", process: 33 }, "END moved h=undefined sent=0 process=33"],
  ];
  for (const [freezing, end] of cases) {
    await using world = new World({ freezing });
    world.begin();
    assert.deepEqual(await world.news(), [end, "over"]);
    assert.equal(world.asked("refused"), 1);
    world.have("commit");
    assert.deepEqual(await world.news(), [], "later frames are ignored");
  }
});

Deno.test("Giving.begin() sends a session at once when its client's stanzas are settled", async () => {
  await using world = new World();
  world.begin();
  assert.deepEqual(await world.news(), SENT);
});

Deno.test("Giving waits for the client's stanzas to be settled, for COVER_MS at most", async () => {
  for (const isInTime of [true, false]) {
    await using world = new World({ isCovered: false });
    world.begin();
    world.clock.advance(COVER_MS - 1);
    assert.deepEqual(await world.news(), []);
    if (isInTime) world.giving.covered();
    else world.clock.advance(1);
    assert.deepEqual(await world.news(), SENT);
    world.clock.advance(1);
    assert.deepEqual(await world.news(), [], "it is sent once");
  }
});

Deno.test("Giving gives a session only on commit", async () => {
  await using world = new World();
  world.begin();
  await world.news();
  world.have("commit", 2);
  assert.deepEqual(await world.news(), [
    "look",
    "follows dc2.example.com",
    `give ${NEW}`,
    `GIVEN ${TRANSFER}`,
  ]);
  assert.equal(world.giving.isGiven, true);
  assert.deepEqual(world.forgotten, [1, 2], "the stanzas were not delivered here");
  world.clock.advance(TIMEOUT_MS);
  assert.deepEqual(await world.news(), [], "a given session is not taken back");
});

Deno.test("Giving gives a session even if the table fails", async () => {
  await using world = new World();
  world.session.isGone = new Error("Redis is away");
  world.begin();
  await world.news();
  world.have("commit", 2);
  assert.ok((await world.news()).includes(`give ${NEW}`));
});

Deno.test("Giving ends the transfer when a client has logged in elsewhere with the resource", async () => {
  await using world = new World();
  world.session.isGone = true;
  world.begin();
  await world.news();
  world.have("commit", 2);
  assert.deepEqual(await world.news(), [
    "look",
    "thaw",
    "END ended h=undefined sent=0 process=0",
    "over",
  ]);
  assert.equal(world.giving.isGiven, false);
});

Deno.test("Giving tells the taker when a newer claim has the session, and when it has ended", async () => {
  for (const reason of ["superseded", "ended"] satisfies Unfreezing[]) {
    await using world = new World();
    world.begin();
    await world.news();
    world.giving.ended(reason);
    const end = `END ${reason} h=undefined sent=0 process=0`;
    assert.deepEqual(await world.news(), [end, "over"], "and does not thaw another's session");
    assert.equal(world.asked("ended"), reason === "ended" ? 1 : 0);
    world.have("commit", 2);
    assert.deepEqual(await world.news(), []);
  }
});

Deno.test("Giving takes a session back after timeoutMs without a commit, and not a millisecond before", async () => {
  await using world = new World();
  world.begin();
  await world.news();
  world.clock.advance(TIMEOUT_MS - 1);
  assert.deepEqual(await world.news(), []);
  world.clock.advance(1);
  assert.deepEqual(await world.news(), ["thaw", "END late h=undefined sent=0 process=0", "over"]);
  assert.equal(world.asked("taken-back"), 1);
});

Deno.test("Giving takes a session back when its taker declines, or cannot be reached before it is given", async () => {
  for (const what of ["decline", "lost", "stop"] as const) {
    await using world = new World();
    world.begin();
    await world.news();
    if (what === "decline") world.have("decline");
    else world.giving[what]();
    assert.deepEqual(await world.news(), ["thaw", "over"], what);
    assert.equal(world.asked("taken-back"), 1);
  }
});

Deno.test("Giving ignores a check that ends after the session was taken back", async () => {
  await using world = new World();
  world.begin();
  await world.news();
  world.have("commit", 2);
  world.giving.lost(); // before the check ends
  assert.deepEqual(await world.news(), ["look", "thaw", "over"]);
});

Deno.test("Giving stays reachable until the table knows the new place, and GRACE_MS longer", async () => {
  await using world = new World();
  await world.taken();
  assert.deepEqual(await world.news(), ["look"]);
  assert.equal(world.asked("taken"), 1);
  world.clock.advance(KNOWN_CHECK_MS);
  assert.deepEqual(await world.news(), ["look"]);
  world.session.isGone = true;
  world.clock.advance(KNOWN_CHECK_MS);
  assert.deepEqual(await world.news(), ["look"]);
  world.clock.advance(GRACE_MS - 1);
  assert.deepEqual(await world.news(), []);
  world.clock.advance(1);
  assert.deepEqual(await world.news(), ["follows nobody", "leave", "QUEUE [] end caught-up"]);
});

Deno.test("Giving waits KNOWN_MS at most for the table to know the new place", async () => {
  await using world = new World();
  await world.taken();
  await world.news();
  for (let waited = KNOWN_CHECK_MS; waited < KNOWN_MS; waited += KNOWN_CHECK_MS) {
    world.clock.advance(KNOWN_CHECK_MS);
    assert.deepEqual(await world.news(), ["look"]);
  }
  world.clock.advance(KNOWN_CHECK_MS);
  assert.deepEqual(await world.news(), ["follows nobody", "leave", "QUEUE [] end caught-up"]);
});

Deno.test("Giving does not wait for the table when the taker is of its own datacenter", async () => {
  await using world = new World({ takerHost: "dc1.example.com" });
  await world.taken();
  assert.deepEqual(await world.news(), []);
  world.clock.advance(GRACE_MS);
  assert.deepEqual(await world.news(), ["follows nobody", "leave", "QUEUE [] end caught-up"]);
});

Deno.test("Giving leaves at once when it is displaced and can keep nothing more, else after GRACE_MS", async () => {
  for (const isFull of [true, false]) {
    await using world = new World();
    world.begin();
    await world.news();
    world.have("commit", 2);
    await world.news();
    world.session.isFull = isFull;
    world.giving.ended("superseded");
    const left = ["follows nobody", "leave"];
    assert.deepEqual(await world.news(), isFull ? left : []);
    world.clock.advance(GRACE_MS);
    assert.deepEqual(await world.news(), isFull ? [] : left);
  }
});

Deno.test("Giving is over when it has left and the taker has settled everything", async () => {
  await using world = new World({ takerHost: "dc1.example.com" });
  await world.taken();
  world.have("more", 2, 1);
  assert.deepEqual(await world.news(), ["settle 1"]);
  world.clock.advance(GRACE_MS);
  await world.news();
  world.have("more", 2, 1);
  assert.deepEqual(await world.news(), [
    "settle 1",
    "follows nobody",
    "END done h=undefined sent=0 process=0",
    "over",
    "give back, as repeats up to 0",
  ]);
  assert.equal(world.asked("given-back"), 0, "no stanza is left to route");
});

Deno.test("Giving ignores settled stanzas of a session that is not given yet", async () => {
  await using world = new World();
  world.begin();
  await world.news();
  world.have("more", 2, 2);
  assert.ok(!(await world.news()).some((each) => each.startsWith("settle")));
});

Deno.test("Giving routes its stanzas again when the taker is gone, as repeats when that is not certain", async () => {
  for (const isCertain of [true, false]) {
    await using world = new World();
    await world.taken();
    await world.news();
    world.giving.lost();
    world.clock.advance(1_000);
    assert.equal(world.giving.lostAtMs, world.clock.monotonicMs() - 1_000);
    world.giving.peerGone(isCertain);
    const news = (await world.news()).filter((each) => each !== "look");
    const back = `give back, as repeats up to ${isCertain ? 0 : 2}`;
    assert.deepEqual(news, ["follows nobody", "leave", "over", back]);
    assert.equal(world.asked("given-back"), 1);
  }
});

Deno.test("Giving.linked() sends unconfirmed stanzas again over the new link, and GIVEN", async () => {
  await using world = new World();
  world.begin();
  await world.news();
  world.have("commit", 1);
  await world.news();
  world.giving.lost();
  world.giving.linked(world.link("again "));
  assert.equal(world.giving.lostAtMs, undefined);
  assert.deepEqual(await world.news(), [`again GIVEN ${TRANSFER}`, "again QUEUE [2] end"]);
});

Deno.test("Giving.linked() begins with a whole window, whatever was on its way over the former link", async () => {
  await using world = new World();
  const { stanza, ...fields } = world.session.queue[1]!;
  const bytes = new Uint8Array(WINDOW_BYTES).fill(0x20);
  world.session.queue[1] = new Envelope({ ...fields, stanza: { ...stanza, bytes } });
  world.begin();
  assert.deepEqual((await world.news()).slice(2), ["QUEUE [1]"], "the other stanza is too large");
  world.have("more", 1);
  assert.deepEqual(await world.news(), ["QUEUE [2] end"]);
  world.have("commit", 1);
  await world.news();
  world.giving.lost();
  world.giving.linked(world.link("again "));
  assert.deepEqual(await world.news(), [`again GIVEN ${TRANSFER}`, "again QUEUE [2] end"]);
});

Deno.test("Giving.stop() routes all again as possible repeats before the taker has placed the session", async () => {
  await using world = new World({ keeps: 3 });
  world.begin();
  await world.news();
  world.have("commit", 2);
  await world.news();
  world.giving.stop();
  assert.deepEqual(await world.news(), [
    "follows nobody",
    "leave",
    "over",
    "give back, as repeats up to 3",
  ]);
});

Deno.test("Giving.stop() leaves received stanzas to the taker, and routes the rest again", async () => {
  await using world = new World({ keeps: 3 });
  world.begin();
  await world.news();
  world.have("commit", 2);
  await world.news();
  world.have("taken", 2);
  await world.news();
  world.giving.stop();
  assert.deepEqual(await world.news(), [
    "settle 2",
    "follows nobody",
    "leave",
    "over",
    "give back, as repeats up to 3",
  ]);
  assert.equal(world.asked("given-back"), 1);
});

Deno.test("Giving tells what the session has got, here and before, and nothing that only others may have", async () => {
  const from = { sender: "bob@example.com/x", process: 99, highest: 9 };
  await using world = new World({
    delivered: {
      [HOME]: [{ ...from, recent: [1, 4] }],
      [REQUEST.account]: [{ ...from, recent: [2, 3, 5, 6, 7] }],
      "transfer 3": [{ ...from, recent: [6, 8, 9] }],
      "transfer 3 had": [{ ...from, recent: [2] }],
    },
  });
  world.session.cameBy = 3;
  const [theirs, taken] = [envelopeOf("m6", 6), envelopeOf("m7", 7)];
  for (const each of [theirs, taken]) each.rememberedBy = world.memory;
  taken.written();
  world.session.others = [theirs, taken, envelopeOf("m3", 3)]; // m3 is remembered by a copy
  world.session.waiting = [envelopeOf("m4", 4), envelopeOf("m5", 5), envelopeOf("m9", 9)];
  world.begin();
  assert.deepEqual(world.delivered, [
    "delivered 1",
    "delivered-to-account 2,3,7",
    "delivered-to-account 6,8",
    "delivered-to-account 2",
  ]);
  world.have("commit", 2);
  await world.news();
  world.giving.stop();
  const news = await world.news();
  assert.deepEqual(news.slice(news.indexOf("leave")), [
    "leave",
    "over",
    "give back, as repeats up to 2",
  ]);
  assert.equal(world.emptied, 1, "when it was given back");
});

Deno.test("Giving sends 2048 senders for each address, and 16384 details in all", async () => {
  const all = 16_384 - 2 * 2_048;
  for (
    const [senders, directed, told] of [
      [2_048, all, [all, 2_048, 2_048]],
      [2_049, all, [all, 2_048, 2_048]],
      [2_048, all + 1, [all + 1, 2_048, 2_047]],
    ] as const
  ) {
    await using world = new World({ senders, directed });
    world.begin();
    const kinds = ["directed", "delivered", "delivered-to-account"];
    assert.deepEqual(kinds.map((kind) => world.told.get(kind)), told);
  }
});
