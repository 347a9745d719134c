import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { FairShares, ManualClock } from "../../../base/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import type { Arrival, ArrivedSession, Delivery, ResumeRequest } from "../../../xmpp/mod.ts";
import { MemoryMetrics } from "../../../xmpp/stream/testing/memory_metrics.ts";
import { Envelope } from "../../mod.ts";
import type { EnvelopeFields, OpenLink } from "../../mod.ts";
import { decodeHave, decodeResume, FRAME_TYPE } from "../../wire/mod.ts";
import type { EndFields, SessionFields } from "../../wire/mod.ts";
import { envelopeOf, HOME, idOf, message } from "./nodes.ts";
import { recordsOf } from "../records.ts";
import { ResumptionMetrics } from "../resumption_metrics.ts";
import type { ResumptionOptions } from "../resumption_options.ts";
import { Taking } from "../taking.ts";

export const TRANSFER = 7;
export const OLD = 1;
export const OTHER = 3;
export const DC1 = "dc1.example.com";
export const DC2 = "dc2.example.com";
export const TIMEOUT_MS = 5_000;
export const REQUEST: ResumeRequest = { previd: "1-1", account: "alice@example.com", h: 3 };
/** Bytes that a stanza costs besides its own. */
export const OVERHEAD_BYTES = 1_024;

export const SESSION: SessionFields = {
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

export const END: EndFields = {
  transfer: TRANSFER,
  reason: "done",
  h: undefined,
  sentCount: 0,
  process: 0,
};

/** Records of the session that comes. */
export const RECORDS = Object.values(recordsOf(TRANSFER));

/** One transfer to a node of dc2, with everything around it faked. */
export class TakingWorld implements Disposable {
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
  /** Epoch of the session's claim, in the table. */
  claimed = Promise.resolve<number | undefined>(undefined);
  /** Claims that were read: full JID and process. */
  readonly claimsRead: string[] = [];
  /** Numbers and records of stanzas that sessions have got by way of their old node. */
  readonly known = new Set<string>();
  readonly guessed = new Set<string>();
  readonly forgotten: string[] = [];

  constructor(
    options: Partial<ResumptionOptions> = {},
    readonly budget = new FairShares(),
    host = DC1,
  ) {
    this.links.set(OLD, this.link("", host));
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
      localHost: DC2,
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
        claimedEpoch: (jid, process) => {
          this.claimsRead.push(`${jid.text} ${process}`);
          return this.claimed;
        },
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
export function stanza(number: number, changes: Partial<EnvelopeFields> = {}): EnvelopeFields {
  return new Envelope({ ...envelopeOf(`m${number}`, number), ...changes });
}

/** Makes a stanza of the session itself for its client. */
export function own(id: string): EnvelopeFields {
  return stanza(0, { stanza: message(id) });
}
