import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock } from "../../../base/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { FullJid, parseJid } from "../../../xmpp/mod.ts";
import type { Freezing, FrozenSession, Relay, SessionState } from "../../../xmpp/mod.ts";
import { MemoryMetrics } from "../../../xmpp/stream/testing/memory_metrics.ts";
import { Envelope } from "../../mod.ts";
import type { OpenLink } from "../../mod.ts";
import {
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeQueue,
  decodeSession,
  FRAME_TYPE,
} from "../../wire/mod.ts";
import type { TakerStep } from "../../wire/mod.ts";
import { envelopeOf, HOME } from "./nodes.ts";
import type { TransferRequest } from "../giving.ts";
import { Giving } from "../giving.ts";
import type { DeliveredNumbers } from "../ports.ts";
import { ResumptionMetrics } from "../resumption_metrics.ts";

export const TRANSFER = 7;
const OLD = 1;
export const NEW = 2;
export const TIMEOUT_MS = 5_000;
export const REQUEST: TransferRequest = {
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
export class GivingWorld {
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
