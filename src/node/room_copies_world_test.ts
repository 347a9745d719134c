import { deepStrictEqual, match, ok } from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../base/testing/random_runs.ts";
import { Envelope } from "../distribution/mod.ts";
import { OWN_PROCESS } from "../distribution/routing/testing/router_fixture.ts";
import type { RoomMessage } from "../storage/mod.ts";
import { FullJid, parseJid } from "../xmpp/mod.ts";
import type { Delivery as SessionDelivery, Stanza } from "../xmpp/mod.ts";
import {
  messageInDatabase,
  messageOverLane,
  numberIn,
  RoomDelivery,
} from "./testing/room_delivery.ts";

const BOB = parseJid("bob@example.com").bare;
const LANES = 3;
const RESOURCES = 3;

/** Something that happens. Lanes and sessions are given by their places in the lists. */
type Event =
  | {
    readonly kind: "write";
    readonly lane: number;
    readonly isCopy: boolean;
    /** Lane over which the message itself comes besides a copy, passed on by a datacenter without sessions. */
    readonly later: number | undefined;
  }
  | { readonly kind: "arrive" | "break"; readonly lane: number }
  | { readonly kind: "come" | "end" | "move" | "acknowledge"; readonly session: number }
  | { readonly kind: "database"; readonly state: Database }
  | { readonly kind: "pass"; readonly ms: number };

type Database = "well" | "slow" | "away";

const LANE = fc.nat(LANES - 1);
const SESSION = fc.nat(RESOURCES - 1);
const EVENT = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("write"),
      lane: LANE,
      isCopy: fc.boolean(),
      later: fc.option(LANE, { nil: undefined }),
    }),
  },
  { weight: 8, arbitrary: fc.record({ kind: fc.constant("arrive"), lane: LANE }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("break"), lane: LANE }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom("come", "end", "move", "acknowledge"),
      session: SESSION,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("database"),
      state: fc.constantFrom("well", "slow", "away"),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.constantFrom(10, 100, 250, 61_000) }),
  },
) as fc.Arbitrary<Event>;

/** A message of the room on its way over a lane. */
interface Sent {
  readonly number: number;
  /** Process where it entered the mesh. */
  readonly process: number;
  readonly lane: number;
  readonly isCopy: boolean;
  /** True once its lane has brought it at least once. */
  hasArrived: boolean;
  isSettled: boolean;
  /** Times that its lane has ended since it was written. */
  breaks: number;
}

/** A session of bob at this node. */
class Session {
  readonly jid: FullJid;
  /** Number of the last message that was written before it came. */
  readonly since: number;
  readonly got: number[] = [];
  readonly kept: SessionDelivery[] = [];
  readonly priority = 0;
  readonly hasCarbons = false;
  readonly isConfidential = true;
  readonly lastPresence = undefined;

  constructor(jid: FullJid, since: number) {
    this.jid = jid;
    this.since = since;
  }

  send(stanza: Stanza, delivery?: SessionDelivery): boolean {
    this.got.push(numberIn(stanza));
    if (delivery === undefined) return true;
    delivery.retain();
    this.kept.push(delivery);
    return true;
  }

  acknowledge(): void {
    for (const delivery of this.kept.splice(0)) delivery.acknowledged();
  }
}

/** The last step of routing at a node with sessions of one person, and the lanes that lead to it. */
class World {
  readonly sent: Sent[] = [];
  /** Messages that the room has taken. */
  written = 0;
  readonly lanes: Sent[][] = Array.from({ length: LANES }, () => []);
  readonly sessions = new Map<string, Session>();
  /** Messages that have left the node for wherever their person is. */
  readonly passedOn = new Set<number>();
  /** Messages that a client has for sure. */
  readonly acknowledged = new Set<number>();
  /** Messages that sessions got from the database. */
  readonly readMessages = new Set<number>();
  readonly faults: string[] = [];
  /** False once anything has happened by which messages may come in another order. */
  isInOrder = true;
  /** Number of the first message that the node gave since the first of its sessions came. */
  first: number | undefined;
  #database: Database = "well";
  #slow: (() => void)[] = [];
  readonly node = new RoomDelivery({
    sessions: {
      find: (jid) => this.sessions.get(jid.text),
      ofAccount: () => [...this.sessions.values()],
      deliver: (stanza, delivery) => {
        if (this.sessions.size === 0) return "no-session";
        this.first ??= numberIn(stanza);
        const isRead = delivery instanceof Envelope && delivery.process === OWN_PROCESS;
        if (isRead) this.readMessages.add(numberIn(stanza));
        for (const session of this.sessions.values()) session.send(stanza, delivery);
        return "delivered";
      },
      deliverTo: (session, stanza, delivery) => {
        session.send(stanza, delivery);
        return "delivered";
      },
    },
    messages: (_, page) => this.#read(page),
    returned: (envelope) => this.#route(envelope),
    answer: () => this.faults.push("somebody was answered"),
  });

  /** Numbers of the messages that the room has taken. */
  get numbers(): readonly number[] {
    return Array.from({ length: this.written }, (_, i) => i + 1);
  }

  async act(event: Event): Promise<void> {
    switch (event.kind) {
      case "write":
        this.#write(event);
        break;
      case "arrive":
        this.#arrive(this.lanes[event.lane]!.shift());
        break;
      case "break":
        this.#break(event.lane);
        break;
      case "come":
      case "end":
      case "move":
      case "acknowledge":
        this.#actAs(event.kind, parseJid(`bob@example.com/${event.session}`) as FullJid);
        break;
      case "database":
        this.#become(event.state);
        break;
      case "pass":
        if (event.ms > 60_000) this.isInOrder = false;
        this.node.clock.advance(event.ms);
    }
    await this.#work();
  }

  /** Lets everything come. */
  async finish(): Promise<void> {
    this.#become("well");
    await this.#work();
    for (const lane of this.lanes) while (lane.length > 0) this.#arrive(lane.shift());
    for (let i = 0; i < 8; i++) {
      this.node.clock.advance(250);
      await this.#work();
    }
    for (const session of this.sessions.values()) {
      this.#check(session);
      this.#acknowledge(session);
    }
  }

  #write({ lane, isCopy, later }: Event & { readonly kind: "write" }): void {
    const about = { number: ++this.written, process: 100 + lane };
    const send = (on: number, isACopy: boolean) => {
      const fresh = { hasArrived: false, isSettled: false, breaks: 0 };
      const sent: Sent = { ...about, lane: on, isCopy: isACopy, ...fresh };
      this.sent.push(sent);
      this.lanes[on]!.push(sent);
    };
    send(lane, isCopy);
    if (isCopy && later !== undefined) send(later, false);
  }

  #arrive(sent: Sent | undefined): void {
    if (sent === undefined) return;
    const { number, process, isCopy } = sent;
    const mayBeRepeat = sent.hasArrived;
    sent.hasArrived = true;
    const { breaks } = sent;
    const settle = () => {
      if (breaks < sent.breaks) return; // its lane has ended: nobody hears of it
      const isDue = isCopy || this.acknowledged.has(number) || this.passedOn.has(number) ||
        this.readMessages.has(number);
      const isKept = [...this.sessions.values()].some(({ got }) => got.includes(number));
      if (!isDue && !isKept) this.faults.push(`${number} is settled, and nobody has it`);
      sent.isSettled = true;
    };
    const fields = { process, isCopy, isSpread: true, mayBeRepeat };
    this.#route(messageOverLane(number, fields, settle));
  }

  /** Delivers a message here, or has it go to where its person is. */
  #route(envelope: Envelope): void {
    if (this.sessions.size > 0 && this.node.deliver(envelope)) return;
    this.passedOn.add(numberIn(envelope.stanza));
    envelope.settle();
  }

  /** Ends a lane. The next one brings again what is not settled, before all others. */
  #break(lane: number): void {
    const waiting = this.lanes[lane]!;
    const again = this.sent.filter((sent) =>
      sent.lane === lane && !sent.isSettled && !waiting.includes(sent)
    );
    for (const sent of again) sent.breaks++;
    waiting.unshift(...again);
  }

  #actAs(kind: "come" | "end" | "move" | "acknowledge", jid: FullJid): void {
    const session = this.sessions.get(jid.text);
    if (session === undefined) {
      if (kind === "come") this.sessions.set(jid.text, new Session(jid, this.written));
      return;
    }
    if (kind === "acknowledge") return this.#acknowledge(session);
    if (kind === "come") return;
    const isLast = this.sessions.size === 1;
    if (kind === "move") {
      this.node.order.leaving(jid, isLast);
      const { since, got } = session;
      const missing = this.sent.filter(({ number, hasArrived }) =>
        hasArrived && number > since && !got.includes(number)
      );
      for (const { number } of missing) this.faults.push(`${jid.text} left without ${number}`);
    }
    if (isLast) this.node.order.gone(BOB);
    this.#check(session);
    this.sessions.delete(jid.text);
    if (isLast) this.first = undefined;
    // The node that it moves to settles what it takes along.
    if (kind === "move") return this.#acknowledge(session);
    for (const delivery of session.kept.splice(0)) {
      if (delivery.abandoned() && delivery instanceof Envelope) this.#takeBack(delivery);
    }
  }

  /** Takes back a message from a session that has ended, and of which nobody else has it. */
  #takeBack(envelope: Envelope): void {
    this.isInOrder = false; // it may come again, to sessions that have later ones
    this.node.memory.forgetDelivered(envelope);
    if (envelope.isCopy) return envelope.settle();
    envelope.isRerouted = true;
    envelope.arrived("taken-back");
    this.#route(envelope);
  }

  #acknowledge(session: Session): void {
    for (const number of session.got) this.acknowledged.add(number);
    session.acknowledge();
  }

  /** Notes what is wrong with that which a session got. */
  #check({ jid, got }: Session): void {
    const twice = got.filter((number, i) => got.indexOf(number) !== i);
    if (twice.length > 0) this.faults.push(`${jid.text} got ${twice.join()} twice`);
    if (!this.isInOrder) return;
    // The first message waits for none.
    const later = got.filter((number) => number >= this.first!);
    const isSorted = later.every((number, i) => i === 0 || number > later[i - 1]!);
    if (!isSorted) this.faults.push(`${jid.text} got ${got.join()} in this order`);
  }

  #become(state: Database): void {
    this.#database = state;
    if (state !== "well") this.isInOrder = false;
    if (state !== "slow") { for (const go of this.#slow.splice(0)) go(); }
  }

  async #read(
    { after = 0, before = Infinity, limit = 99 }: {
      readonly after?: number;
      readonly before?: number;
      readonly limit?: number;
    },
  ): Promise<readonly RoomMessage[]> {
    if (this.#database === "slow") await new Promise<void>((go) => this.#slow.push(go));
    if (this.#database === "away") throw new Error("away");
    return this.numbers.filter((number) => number > after && number < before)
      .map(messageInDatabase).slice(-limit);
  }

  async #work(): Promise<void> {
    for (let i = 0; i < 3; i++) await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Plays a plan with two sessions that are there at first. */
async function play(events: readonly Event[]): Promise<void> {
  const world = new World();
  for (const session of [0, 1]) await world.act({ kind: "come", session });
  for (const event of events) await world.act(event);
  await world.finish();
  deepStrictEqual(world.faults, []);
  for (const { since, got } of world.sessions.values()) {
    const later = got.filter((number) => number > since).toSorted((one, other) => one - other);
    deepStrictEqual(later, world.numbers.slice(since), `of ${got.join()}`);
  }
  for (const { number, isSettled } of world.sent) ok(isSettled, `${number} is not settled`);
  match(await world.node.metrics.prometheus(), /^causeway_muc_light_held(\{.*\})? 0$/m);
  await world.node.order.close();
}

Deno.test("messages of a room come once to each session, whatever happens to lanes and others", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(EVENT, { minLength: 20, maxLength: 60 }), play),
    randomRuns(200),
  );
});
