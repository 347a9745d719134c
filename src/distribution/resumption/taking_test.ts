import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { FairShares, ManualClock } from "../../base/mod.ts";
import { MemoryLogger } from "../../observe/mod.ts";
import { OwnDelivery } from "../../xmpp/mod.ts";
import type { Arrival, ArrivedSession, Delivery, ResumeRequest } from "../../xmpp/mod.ts";
import { MemoryMetrics } from "../../xmpp/stream/testing/memory_metrics.ts";
import { Envelope } from "../mod.ts";
import type { EnvelopeFields, OpenLink } from "../mod.ts";
import { decodeHave, decodeResume, FRAME_TYPE } from "../wire/mod.ts";
import type { EndFields, SessionDetail, SessionFields } from "../wire/mod.ts";
import { envelopeOf, HOME, idOf, message } from "./testing/nodes.ts";
import { recordsOf } from "./records.ts";
import { ResumptionMetrics } from "./resumption_metrics.ts";
import type { ResumptionOptions } from "./resumption_options.ts";
import { FOLLOW_MS, SETTLED_MS } from "./resumption_options.ts";
import { Taking } from "./taking.ts";

const TRANSFER = 7;
const OLD = 1;
const OTHER = 3;
const DC1 = "dc1.example.com";
const TIMEOUT_MS = 5_000;
const REQUEST: ResumeRequest = { previd: "1-1", account: "alice@example.com", h: 3 };
/** Bytes that a stanza costs besides its own. */
const OVERHEAD_BYTES = 1_024;

const SESSION: SessionFields = {
  transfer: TRANSFER,
  jid: HOME,
  received: 5,
  covered: 4,
  acknowledged: 3,
  resumeTimeoutMs: 600_000,
  resendingMs: 7,
  lang: "",
  priority: undefined,
  presence: new Uint8Array(0),
  hasCarbons: true,
  isNewlyAvailable: true,
  isExact: true,
};

const END: EndFields = {
  transfer: TRANSFER,
  reason: "done",
  h: undefined,
  sentCount: 0,
  process: 0,
};

/** Records of the session that comes. */
const RECORDS = Object.values(recordsOf(TRANSFER));

/** One transfer to a node of dc2, with everything around it faked. */
class World implements Disposable {
  readonly clock = new ManualClock();
  readonly metrics = new MemoryMetrics();
  /** Frames to other nodes and actions here, in order. */
  readonly done: string[] = [];
  readonly hadCome: boolean[] = [];
  readonly followed: Delivery[] = [];
  readonly taking: Taking;
  /** Links by process, for `find`. */
  readonly links = new Map<number, OpenLink>();
  /** A second link to the session's node. */
  spare: OpenLink | undefined;
  arrival: Arrival | undefined;
  /** Numbers and records of stanzas that sessions have got by way of their old node. */
  readonly known = new Set<string>();
  readonly guessed = new Set<string>();
  readonly forgotten: string[] = [];

  constructor(
    options: Partial<ResumptionOptions> = {},
    readonly budget = new FairShares(),
  ) {
    this.links.set(OLD, this.link(""));
    this.taking = new Taking(TRANSFER, { request: REQUEST, process: OLD }, {
      options: {
        timeoutMs: TIMEOUT_MS,
        maxItems: 100,
        maxBytes: 1e6,
        maxOwedBytes: 1e6,
        maxFrameBytes: 524_288,
        expireAfterMs: 120_000,
        ...options,
      },
      localHost: "dc2.example.com",
      budget: this.budget,
      memory: {
        deliveredTo: () => [],
        learnDelivered: (address, { sender }) => void this.done.push(`learn ${address} ${sender}`),
        noteDelivered: ({ sequence }) => void this.done.push(`note ${sequence}`),
        noteInRecord: ({ sequence }, record) => void this.known.add(`${sequence} ${record}`),
        isInRecord: ({ sequence }, record) => this.known.has(`${sequence} ${record}`),
        mayBeInRecord: ({ sequence }, record) =>
          this.known.has(`${sequence} ${record}`) || this.guessed.has(`${sequence} ${record}`),
        forgetRecord: (record) => void this.forgotten.push(record),
      },
      peers: {
        hasEnded: () => false,
        seemsEnded: () => false,
        call: () => assert.fail("the taker dials no node"),
        mayBring: ({ stanza }) => stanza.from.domainpart !== "forged.example",
        mayHave: () => true,
      },
      metrics: new ResumptionMetrics(this.metrics, { givings: () => 0, takings: () => 0 }),
      clock: this.clock,
      log: new MemoryLogger(),
      find: (process) => this.links.get(process),
      linkTo: ({ process, host }) => {
        const { spare } = this;
        return spare?.process === process && spare.host === host ? spare : undefined;
      },
      over: () => void this.done.push("over"),
    });
    this.taking.arrival.then((arrival) => this.arrival = arrival);
  }

  /** Makes a link to another node; frames sent over it are noted after its name. */
  link(name: string, host = DC1, process = OLD): OpenLink {
    return {
      host,
      nodeName: `node1@${host}`,
      process,
      send: (frame) => void this.done.push(`${name}${show(frame)}`),
      refuse: () => void this.done.push(`${name}refuse`),
    };
  }

  queue(
    stanzas: Readonly<Record<number, EnvelopeFields>>,
    isEnd = true,
    isCaughtUp = false,
    areArchived = false,
  ): void {
    this.taking.queue({
      transfer: TRANSFER,
      isEnd,
      isCaughtUp,
      areArchived,
      stanzas: Object.entries(stanzas).map(([at, fields]) => ({ number: Number(at), fields })),
    });
  }

  /** Takes the actions since the last call, in this turn or the next. */
  async news(): Promise<readonly string[]> {
    await immediately();
    return this.done.splice(0);
  }

  /** Gives the session, with these stanzas; it has no place yet. */
  async arrived(stanzas: Readonly<Record<number, EnvelopeFields>> = {}): Promise<ArrivedSession> {
    this.taking.begin();
    this.taking.session(SESSION);
    this.queue(stanzas);
    this.taking.given();
    await this.news();
    assert.ok(this.arrival?.kind === "arrived");
    return this.arrival.session;
  }

  /** Gives the session its place. */
  place({ placed }: ArrivedSession): void {
    placed({
      follow: (delivery, hasCome = false) => {
        this.followed.push(delivery);
        this.hadCome.push(hasCome);
        this.done.push(`follow ${idOf(delivery.stanza)}`);
      },
      caughtUp: () => void this.done.push("caught up"),
    });
  }

  async taken(stanzas: Readonly<Record<number, EnvelopeFields>> = {}): Promise<ArrivedSession> {
    const session = await this.arrived(stanzas);
    this.place(session);
    await this.news();
    return session;
  }

  failures(reason: string): number {
    return this.metrics.value("causeway_resume_elsewhere_failures_total", { reason });
  }

  [Symbol.dispose](): void {
    this.taking.forget();
    assert.equal(this.clock.pendingTimers, 0, "no timer outlives a transfer");
  }
}

/** Shows a frame to the session's node in a word or two. */
function show(frame: Uint8Array): string {
  if (frame[4] === FRAME_TYPE.resume) {
    const { account, previd, h } = decodeResume(frame, 0, frame.length);
    return `RESUME ${account} ${previd} ${h}`;
  }
  assert.equal(frame[4], FRAME_TYPE.have);
  const { step, received, settled } = decodeHave(frame, 0, frame.length);
  return `HAVE ${step} ${received}/${settled}`;
}

/** Makes a stanza of bob's; `m1` has sequence number 1. */
function stanza(number: number, changes: Partial<EnvelopeFields> = {}): EnvelopeFields {
  return new Envelope({ ...envelopeOf(`m${number}`, number), ...changes });
}

/** Makes a stanza of the session itself for its client. */
function own(id: string): EnvelopeFields {
  return stanza(0, { stanza: message(id) });
}

Deno.test("Taking asks the node that END names, and ignores other nodes from then on", async () => {
  using world = new World();
  const { taking } = world;
  const other = world.link("other: ", "dc3.example.com", OTHER);
  world.links.set(OTHER, other);
  taking.begin();
  assert.deepEqual(await world.news(), ["RESUME alice@example.com 1-1 3"]);
  assert.ok(taking.isFrom(world.links.get(OLD)!));
  taking.ended({ ...END, reason: "moved", process: OTHER });
  assert.deepEqual(await world.news(), ["other: RESUME alice@example.com 1-1 3"]);
  assert.ok(taking.isFrom(other));
  assert.ok(!taking.isFrom(world.links.get(OLD)!));
  assert.ok(!taking.isFrom(world.link("", "dc4.example.com", OTHER)), "another datacenter's claim");
  assert.ok(!taking.isFrom(world.link("", other.host, OLD)));
  taking.given(); // before the session
  assert.deepEqual(await world.news(), ["other: HAVE decline 0/0", "over"]);
});

Deno.test("Taking fails at once, and is over once, without a link to the process", async () => {
  for (const isFirst of [true, false]) {
    using world = new World();
    if (isFirst) world.links.clear();
    world.taking.begin();
    if (!isFirst) {
      await world.news();
      world.taking.ended({ ...END, reason: "moved", process: OTHER });
    }
    assert.deepEqual(await world.news(), ["over"]);
    assert.deepEqual(world.arrival, { kind: "failed", h: undefined });
    assert.equal(world.failures("unreachable"), 1);
    assert.equal(world.clock.pendingTimers, 0);
  }
});

Deno.test("Taking fails after timeoutMs, with the covered count if it is known", async () => {
  for (const h of [undefined, SESSION.covered]) {
    using world = new World();
    world.taking.begin();
    if (h !== undefined) world.taking.session(SESSION);
    await world.news();
    world.clock.advance(TIMEOUT_MS - 1);
    assert.deepEqual(await world.news(), []);
    world.clock.advance(1);
    assert.deepEqual(await world.news(), ["HAVE decline 0/0", "over"]);
    assert.deepEqual(world.arrival, { kind: "failed", h });
    world.queue({ 1: stanza(1) });
    world.taking.session(SESSION);
    assert.deepEqual(await world.news(), [], "later frames are ignored");
    world.taking.given();
    assert.deepEqual(
      await world.news(),
      ["HAVE decline 0/0"],
      "the old node routes the stanzas again",
    );
  }
});

Deno.test("Taking has no timeout once the session is given", async () => {
  using world = new World();
  const session = await world.arrived();
  world.clock.advance(TIMEOUT_MS);
  assert.deepEqual(await world.news(), []);
  world.place(session);
  assert.deepEqual(await world.news(), ["HAVE taken 0/0"]);
});

Deno.test("Taking resolves with END's counts of a session that it cannot get", async () => {
  const cases: readonly (readonly [Partial<EndFields>, Arrival])[] = [
    [{ reason: "stale", h: 12 }, { kind: "failed", h: 12 }],
    [{ reason: "unknown" }, { kind: "failed", h: undefined }],
    [{ reason: "handled-too-high", sentCount: 9 }, { kind: "handled-too-high", sentCount: 9 }],
  ];
  for (const [end, arrival] of cases) {
    using world = new World();
    world.taking.begin();
    await world.news();
    world.taking.ended({ ...END, ...end });
    assert.deepEqual(await world.news(), ["over"]);
    assert.deepEqual(world.arrival, arrival);
    assert.equal(world.failures(end.reason!), 1);
  }
});

const COST = stanza(1).stanza.bytes.length + OVERHEAD_BYTES;

for (
  const [bound, isOwed] of [
    [{ maxItems: 2 }, false],
    [{ maxBytes: 2 * COST }, false],
    [{ maxOwedBytes: 2 * COST }, true],
  ] as const
) {
  Deno.test(`Taking takes a session at ${Object.keys(bound)}, and declines one past it`, async () => {
    const entry = isOwed ? "owed" : "ordinary";
    const owed = (number: number) => stanza(number, { entry });
    const unbound = isOwed ? { maxItems: 0, maxBytes: 0, ...bound } : { maxOwedBytes: 0, ...bound };
    using world = new World(unbound);
    world.taking.begin();
    world.taking.session(SESSION);
    world.queue({ 1: owed(1), 2: owed(2) }, false);
    assert.deepEqual((await world.news()).slice(1), ["HAVE more 2/0"]);
    world.queue({ 3: owed(3) });
    assert.deepEqual(await world.news(), ["HAVE decline 3/0", "over"]);
    assert.equal(world.failures("too-large"), 1);
  });
}

/** Makes a stanza of 28 000 bytes. */
function long(number: number): EnvelopeFields {
  const fields = stanza(number);
  return stanza(number, { stanza: { ...fields.stanza, bytes: new Uint8Array(28_000) } });
}

Deno.test("Taking declines a session past its account's share of the budget, and keeps none of its stanzas", async () => {
  const budget = new FairShares({ maxBytes: 400_000 });
  using world = new World({}, budget);
  world.taking.begin();
  world.taking.session(SESSION);
  world.queue({ 1: long(1), 2: long(2) }, false);
  assert.ok(budget.bytes > 56_000);
  await world.news();
  world.queue({ 3: long(3), 4: long(4), 5: long(5) });
  assert.equal((await world.news()).at(-1), "over");
  assert.equal(world.failures("too-large"), 1);
  assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
});

/** Details of `count` senders, with as many numbers as a frame can have of each. */
function details(count: number): SessionDetail[] {
  const recent = Array.from({ length: 255 }, (_, i) => i + 1);
  return Array.from({ length: count }, (_, i) => ({
    kind: "delivered",
    sender: `user${i}@example.com/x`,
    process: 1,
    highest: 255,
    recent,
  }));
}

Deno.test("Taking declines a session whose details are past its account's share of the budget, and keeps none", async () => {
  const budget = new FairShares({ maxBytes: 1_000_000 });
  using world = new World({}, budget);
  world.taking.begin();
  world.taking.session(SESSION);
  world.taking.details(details(50));
  assert.ok(budget.bytes > 50 * 255 * 8);
  await world.news();
  world.taking.details(details(100));
  assert.deepEqual(await world.news(), ["HAVE decline 0/0", "over"]);
  assert.equal(world.failures("too-large"), 1);
  assert.deepEqual([budget.bytes, budget.holders], [0, 0]);
});

Deno.test("Taking takes details with the session's state alone", async () => {
  const budget = new FairShares({ maxBytes: 1_000_000 });
  for (const steps of [0, 1, 2]) {
    using world = new World({}, budget);
    world.taking.begin();
    if (steps > 0) {
      world.taking.session(SESSION);
      world.queue({});
    }
    if (steps > 1) {
      world.taking.given();
      await world.news();
      assert.ok(world.arrival?.kind === "arrived");
      world.place(world.arrival.session);
    }
    await world.news();
    world.taking.details(details(1));
    assert.equal(budget.bytes, 0);
    assert.deepEqual(await world.news(), steps === 2 ? [] : ["HAVE decline 0/0", "over"]);
  }
});

Deno.test("Taking knows of messages whether an archive has them", async () => {
  using world = new World();
  const session = await world.arrived({ 1: stanza(1) });
  world.queue({ 2: stanza(2) }, true, false, true);
  world.place(session);
  const [followed] = world.followed as Envelope[];
  assert.deepEqual([followed!.sequence, followed!.isArchived], [2, true]);
  assert.equal((session.queue[0] as Envelope).isArchived, false);
});

Deno.test("Taking takes stanzas that follow an arrived session, whatever the budget", async () => {
  const budget = new FairShares({ maxBytes: 80_000 });
  using world = new World({}, budget);
  const session = await world.arrived({ 1: long(1), 2: long(2) });
  assert.equal(budget.bytes, 0, "the session keeps them now");
  world.queue({ 3: long(3), 4: long(4), 5: long(5) });
  assert.ok(budget.bytes > 80_000);
  world.place(session);
  assert.deepEqual([world.followed.length, budget.bytes], [3, 0]);
});

Deno.test("Taking applies its bounds anew to stanzas that come before the session has its place", async () => {
  for (const entry of ["ordinary", "owed"] as const) {
    using world = new World({ maxItems: 2, maxBytes: 2 * COST, maxOwedBytes: 2 * COST });
    const both = (first: number) => ({
      [first]: stanza(first, { entry }),
      [first + 1]: stanza(first + 1, { entry }),
    });
    await world.arrived(both(1));
    world.queue(both(3));
    assert.deepEqual(await world.news(), ["HAVE more 4/0"]);
  }
});

Deno.test("Taking ends a link with a gap in the queue, and declines", async () => {
  using world = new World();
  world.taking.begin();
  world.taking.session(SESSION);
  world.queue({ 1: stanza(1) }, false);
  await world.news();
  world.queue({ 3: stanza(3) });
  assert.deepEqual(await world.news(), ["refuse", "HAVE decline 1/0", "over"]);
});

Deno.test("Taking refuses a session whose full JID is not normalised", async () => {
  for (const jid of ["Alice@example.com/home", "alice@EXAMPLE.com/home", "alice@example.com/"]) {
    using world = new World();
    world.taking.begin();
    await world.news();
    world.taking.session({ ...SESSION, jid });
    assert.deepEqual(await world.news(), ["HAVE decline 0/0", "over"], jid);
    assert.equal(world.failures("refused"), 1);
  }
});

Deno.test("Taking passes on SESSION and DETAILS, on bytes of its own", async () => {
  using world = new World();
  const buffer = new TextEncoder().encode("<presence/>...");
  const details: readonly SessionDetail[] = [
    { kind: "directed", jid: "carol@example.com/x" },
    { kind: "directed", jid: "@" },
  ];
  world.taking.begin();
  world.taking.session({
    ...SESSION,
    lang: "de",
    priority: -3,
    presence: buffer.subarray(0, "<presence/>".length),
  });
  world.taking.details(details);
  const sent = message("m1");
  world.queue({ 1: stanza(1, { stanza: { ...sent, bytes: buffer.subarray(11) } }) });
  buffer.fill(0); // the next frame is read
  world.taking.given();
  await world.news();
  assert.ok(world.arrival?.kind === "arrived");
  const { state, queue } = world.arrival.session;
  const { presence, directed, jid, ...rest } = state;
  assert.equal(jid.text, HOME);
  assert.equal(new TextDecoder().decode(presence!.bytes), "<presence/>");
  assert.deepEqual([presence!.from.text, presence!.to.text], [HOME, "alice@example.com"]);
  assert.deepEqual(directed.map(({ text }) => text), ["carol@example.com/x"]);
  assert.deepEqual(rest, {
    received: 5,
    covered: 4,
    acknowledged: 3,
    resumeTimeoutMs: 600_000,
    resendingMs: 7,
    lang: "de",
    priority: -3,
    hasCarbons: true,
    isNewlyAvailable: true,
  });
  assert.equal(new TextDecoder().decode(queue[0]!.stanza.bytes), "...");
});

Deno.test("Taking keeps a session for a day at most, whatever SESSION says", async () => {
  using world = new World();
  world.taking.begin();
  world.taking.session({ ...SESSION, resumeTimeoutMs: 0xffffffff, resendingMs: 0xffffffff });
  world.queue({});
  world.taking.given();
  await world.news();
  assert.ok(world.arrival?.kind === "arrived");
  const { resumeTimeoutMs, resendingMs } = world.arrival.session.state;
  assert.deepEqual([resumeTimeoutMs, resendingMs], [86_400_000, 86_400_000]);
});

Deno.test("Taking counts the session's stanzas as delivered here once it has its place", async () => {
  using world = new World();
  const numbers = { process: 9, highest: 1, recent: [1] };
  world.taking.begin();
  world.taking.session(SESSION);
  world.taking.details([
    { kind: "directed", jid: "carol@example.com/x" },
    { kind: "delivered", sender: "bob@example.com/x", ...numbers },
    { kind: "delivered-to-account", sender: "dan@example.com/x", ...numbers },
  ]);
  world.queue({ 1: stanza(1) });
  world.taking.given();
  await world.news();
  world.queue({ 2: stanza(2) }); // before it has its place
  assert.deepEqual(await world.news(), ["HAVE more 2/0"]);
  assert.ok(world.arrival?.kind === "arrived");
  assert.deepEqual(world.arrival.session.queue.map(({ stanza }) => idOf(stanza)), ["m1"]);
  world.place(world.arrival.session);
  assert.deepEqual(world.done.splice(0), [
    `learn ${HOME} bob@example.com/x`,
    `learn transfer ${TRANSFER} had dan@example.com/x`,
    "note 1",
    "note 2",
    "follow m2",
  ], "TAKEN comes after frames that our lanes have queued before");
  assert.deepEqual(await world.news(), ["HAVE taken 2/0"]);
  world.queue({ 3: stanza(3) });
  assert.deepEqual(await world.news(), ["note 3", "follow m3", "HAVE taken 3/0"]);
});

Deno.test("Taking gives the session nothing a second time that comes from its old node twice", async () => {
  using world = new World();
  await world.taken({ 1: stanza(1), 2: stanza(2) });
  world.queue({ 3: { ...stanza(1), isRerouted: true }, 4: stanza(4) });
  assert.deepEqual(world.followed.map(({ stanza }) => idOf(stanza)), ["m1", "m4"]);
  assert.deepEqual(world.hadCome, [true, false]);
});

Deno.test("Taking knows a rerouted message to the account by its number alone, if that is exact", async () => {
  using world = new World();
  const { hasFollowed } = await world.taken();
  const envelopes = [1, 2, 3, 4].map((sequence) =>
    envelopeOf(`m${sequence}`, sequence, undefined, REQUEST.account)
  );
  world.known.add(`1 transfer ${TRANSFER} had`);
  world.known.add(`2 transfer ${TRANSFER} may have had`); // an older node has told so
  world.guessed.add(`3 transfer ${TRANSFER} had`);
  assert.deepEqual(envelopes.map(hasFollowed), [true, true, true, false]);
  for (const each of envelopes) each.isRerouted = true;
  assert.deepEqual(envelopes.map(hasFollowed), [true, false, false, false]);
});

Deno.test("Taking takes what an older node tells of the account for less than exact", async () => {
  using world = new World();
  world.taking.begin();
  world.taking.session({ ...SESSION, isExact: false });
  const numbers = { sender: "dan@example.com/x", process: 9, highest: 1, recent: [1] };
  world.taking.details([{ kind: "delivered-to-account", ...numbers }]);
  world.queue({});
  world.taking.given();
  await world.news();
  assert.ok(world.arrival?.kind === "arrived");
  world.place(world.arrival.session);
  assert.deepEqual(world.done.splice(0), [
    `learn transfer ${TRANSFER} may have had dan@example.com/x`,
  ]);
});

Deno.test("Taking declines a session without a place, and none of its stanzas count as delivered", async () => {
  using world = new World();
  const session = await world.arrived({ 1: stanza(1) });
  session.declined();
  assert.deepEqual(await world.news(), ["HAVE decline 1/0", "over"]);
  assert.equal(world.failures("no-place"), 1);
  assert.deepEqual(world.forgotten, RECORDS);
});

Deno.test("Taking forgets what a session has had when that is over here, and notes nothing more", async () => {
  using world = new World();
  const { over } = await world.taken({ 1: stanza(1) });
  world.taking.ended({
    transfer: TRANSFER,
    reason: "done",
    h: undefined,
    sentCount: 0,
    process: 0,
  });
  assert.deepEqual(world.forgotten, [], "the session is here");
  over();
  assert.deepEqual(world.forgotten, RECORDS);
});

Deno.test("Taking notes nothing for a session that is over here, though more follows", async () => {
  using world = new World();
  const { over } = await world.taken();
  over();
  world.queue({ 1: stanza(1) });
  assert.deepEqual(world.followed.map(({ stanza }) => idOf(stanza)), ["m1"]);
  assert.equal(world.known.size, 0);
});

Deno.test("Taking ignores stanzas that come again over another link", async () => {
  using world = new World();
  await world.taken({ 1: stanza(1), 2: stanza(2) });
  world.queue({ 1: stanza(1), 2: stanza(2), 3: stanza(3) });
  assert.deepEqual(await world.news(), ["note 3", "follow m3", "HAVE taken 3/0"]);
});

Deno.test("Taking reports settled numbers without a gap, SETTLED_MS after the first", async () => {
  using world = new World();
  const { queue } = await world.taken({ 1: stanza(1), 2: stanza(2), 3: stanza(3), 4: stanza(4) });
  const settle = (index: number) => (queue[index] as Envelope).settle();
  settle(1);
  world.clock.advance(SETTLED_MS - 1);
  settle(3);
  settle(0);
  assert.deepEqual(await world.news(), []);
  world.clock.advance(1);
  assert.deepEqual(await world.news(), ["HAVE taken 4/2"]);
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), [], "there is no news");
  settle(2);
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), ["HAVE taken 4/4"]);
});

Deno.test("Taking.tellSettled() sends pending news at once, and nothing else", async () => {
  using world = new World();
  const { queue } = await world.taken({ 1: stanza(1) });
  world.taking.tellSettled();
  assert.deepEqual(await world.news(), []);
  (queue[0] as Envelope).settle();
  world.taking.tellSettled();
  assert.deepEqual(await world.news(), ["HAVE taken 1/1"]);
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), []);
});

Deno.test("Taking settles the session's own stanzas at once, and reports them with the next step", async () => {
  using world = new World();
  const forged = stanza(2, { stanza: message("forged", "eve@forged.example/x") });
  const { queue } = await world.arrived({ 1: own("o"), 2: forged, 3: stanza(3) });
  assert.deepEqual(queue.map(({ stanza }) => idOf(stanza)), ["o", "m3"]);
  assert.ok(queue[0] instanceof OwnDelivery);
  assert.equal(world.metrics.value("causeway_resumed_elsewhere_refused_total"), 1);
  assert.equal(world.metrics.value("causeway_resumed_elsewhere_stanzas_total"), 2);
  assert.equal(world.clock.pendingTimers, 0, "no news is sent before the session is taken");
  world.place((world.arrival as Arrival & { kind: "arrived" }).session);
  assert.deepEqual(await world.news(), ["note 3", "HAVE taken 3/2"]);
});

Deno.test("Taking accepts any sender from a node of its own datacenter", async () => {
  using world = new World();
  world.links.set(OLD, world.link("", "dc2.example.com"));
  const forged = stanza(1, { stanza: message("forged", "eve@forged.example/x") });
  const { queue } = await world.arrived({ 1: forged });
  assert.deepEqual(queue.map(({ stanza }) => idOf(stanza)), ["forged"]);
});

Deno.test("stanzas straight to a session wait for those that follow, for FOLLOW_MS at most", async () => {
  const ends: readonly (readonly [(world: World) => void, readonly string[]])[] = [
    [(world) => world.queue({}, true, true), ["HAVE taken 0/0", "caught up"]],
    [(world) => world.taking.stop(), ["caught up"]],
    [(world) => world.taking.ended(END), ["caught up", "over"]],
    [(world) => world.clock.advance(1), ["caught up"]],
  ];
  for (const [end, done] of ends) {
    using world = new World();
    await world.taken();
    world.clock.advance(FOLLOW_MS - 1);
    world.queue({});
    assert.deepEqual(await world.news(), ["HAVE taken 0/0"]);
    end(world);
    assert.deepEqual(await world.news(), done);
    assert.equal(world.clock.pendingTimers, 0);
  }
});

Deno.test("Taking reports its progress again over another link", async () => {
  using world = new World();
  const { queue } = await world.taken({ 1: stanza(1), 2: stanza(2) });
  world.taking.lost();
  assert.equal(world.taking.link, undefined);
  (queue[0] as Envelope).settle();
  world.clock.advance(SETTLED_MS);
  assert.deepEqual(await world.news(), [], "there is no link");
  const again = world.link("again: ");
  world.taking.linked(again);
  assert.equal(world.taking.link, again);
  assert.deepEqual(await world.news(), ["again: HAVE taken 2/1"]);
});

Deno.test("Taking declines over any link to the session's node when its own has ended", async () => {
  for (
    const [host, done] of [[DC1, ["spare: HAVE decline 0/0"]], ["dc4.example.com", []]] as const
  ) {
    using world = new World();
    world.taking.begin();
    await world.news();
    world.spare = world.link("spare: ", host);
    world.taking.lost();
    assert.deepEqual(await world.news(), [...done, "over"], host);
    assert.equal(world.failures("lost"), 1);
  }
});

Deno.test("Taking.gone() declines until the session is given, and has no effect later", async () => {
  using early = new World();
  early.taking.begin();
  await early.news();
  early.taking.gone();
  assert.deepEqual(await early.news(), ["HAVE decline 0/0", "over"]);
  assert.equal(early.failures("client-gone"), 1);
  using late = new World();
  await late.taken();
  late.taking.gone();
  assert.deepEqual(await late.news(), []);
  assert.ok(late.taking.isTaken);
});

Deno.test("Taking sends no news once it is forgotten, or END has come", async () => {
  const ends: readonly (readonly [(taking: Taking) => void, readonly string[]])[] = [
    [(taking) => taking.forget(), ["caught up"]],
    [(taking) => taking.ended(END), ["caught up", "over"]],
  ];
  for (const [end, done] of ends) {
    using world = new World();
    const { queue } = await world.taken({ 1: stanza(1) });
    (queue[0] as Envelope).settle();
    end(world.taking);
    assert.deepEqual(await world.news(), done);
    assert.equal(world.clock.pendingTimers, 0);
  }
});
