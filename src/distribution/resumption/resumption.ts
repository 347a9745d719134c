import type { CancelTimer, Clock, Holders } from "../../base/mod.ts";
import { FairShares, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { Fetching, ResumeRequest, SessionsElsewhere } from "../../xmpp/mod.ts";
import { LinkBook, trafficBefore } from "../mod.ts";
import type { FrameRange, LinkTraffic, OpenLink } from "../mod.ts";
import {
  decodeDetails,
  decodeEnd,
  decodeGiven,
  decodeHave,
  decodeQueue,
  decodeResume,
  decodeSession,
  endFrame,
  FRAME_TYPE,
  haveFrame,
  isResumeType,
} from "../wire/mod.ts";
import type { TransferEnd } from "../wire/mod.ts";
import type { GivingDeps, TransferRequest } from "./giving.ts";
import { Giving } from "./giving.ts";
import type { FreezableSessions, Peers, RepeatMemory } from "./ports.ts";
import { ResumptionMetrics } from "./resumption_metrics.ts";
import type { ResumptionOptions } from "./resumption_options.ts";
import {
  DEFAULT_MAX_GIVINGS,
  DEFAULT_MAX_TAKINGS,
  NOWHERE_MS,
  PEER_CHECK_MS,
} from "./resumption_options.ts";
import type { TakingDeps } from "./taking.ts";
import { Taking } from "./taking.ts";

/** The parts that a node's resumption works with. */
export interface ResumptionDeps {
  /** This process's incarnation. */
  readonly process: number;
  readonly localHost: string;
  readonly sessions: FreezableSessions;
  readonly memory: RepeatMemory;
  readonly peers: Peers;
  readonly metrics: Metrics;
  /** A wider bound for stanzas of sessions that have no place here yet. @default none */
  readonly budget?: FairShares;
  readonly log?: Logger;
  readonly clock?: Clock;
}

/**
 * Moves sessions with stream management to the node to which their client has come back: to here
 * (`fetch`) and from here (frames of other nodes), over any link between the two
 * (`docs/protocol.md`, "Resuming at another node").
 */
export class Resumption implements SessionsElsewhere {
  readonly #options: ResumptionOptions;
  readonly #clock: Clock;
  readonly #peers: Peers;
  readonly #links: LinkBook;
  /** Transfers by the taker's local host, its process, and its number for the transfer. */
  readonly #givings = new Map<string, Giving>();
  /** Requests that wait for a session on its way here, by the same. */
  readonly #waiting = new Set<string>();
  /**
   * Places of those transfers, of which each account has a share. A session that goes to and fro with
   * a stanza that its client does not acknowledge takes a place with each move.
   */
  readonly #places: FairShares;
  readonly #takings = new Map<number, Taking>();
  /** Transfer of each moved session, by full JID, while stanzas that come here still follow it. */
  readonly #followed = new Map<string, Giving>();
  /** Given transfers whose stanzas are not all settled, by the bare JID of their account. */
  readonly #gone = new Map<string, Set<Giving>>();
  readonly #givingDeps: GivingDeps;
  readonly #takingDeps: TakingDeps;
  #transfers = 0;
  #isClosed = false;
  #cancelCheck: CancelTimer | undefined;

  constructor(options: ResumptionOptions, deps: ResumptionDeps) {
    this.#options = options;
    this.#clock = deps.clock ?? new SystemClock();
    this.#peers = deps.peers;
    this.#links = new LinkBook(deps.localHost);
    this.#places = new FairShares({ maxItems: options.maxGivings ?? DEFAULT_MAX_GIVINGS });
    const common = {
      options,
      memory: deps.memory,
      metrics: new ResumptionMetrics(deps.metrics, {
        givings: () => this.#givings.size,
        takings: () => this.#takings.size,
      }),
      localHost: deps.localHost,
      clock: this.#clock,
      log: deps.log ?? SILENT_LOGGER,
    };
    const { process, sessions, peers } = deps;
    this.#givingDeps = {
      ...common,
      process,
      sessions,
      follows: (jid, giving) => {
        this.#followed.set(jid.text, giving);
        this.#gone.getOrInsertComputed(jid.bare.text, () => new Set()).add(giving);
      },
      followsNoMore: (jid, giving) => {
        if (this.#followed.get(jid.text) === giving) this.#followed.delete(jid.text);
      },
      goneOf: (account) => this.#gone.get(account) ?? [],
      emptied: (giving) => this.#forgetGone(giving),
      over: (giving) => {
        this.#givings.delete(keyOf(giving, giving.transfer));
        this.#places.release(holdersOf(giving.account), 0);
      },
    };
    this.#takingDeps = {
      ...common,
      peers,
      budget: deps.budget ?? new FairShares(),
      find: (to) => this.#links.find(to),
      linkTo: (peer) => this.#links.to(peer),
      over: ({ transfer }) => this.#takings.delete(transfer),
    };
  }

  /** Number of sessions that other nodes ask for, or have without all stanzas settled. */
  get givings(): number {
    return this.#givings.size;
  }

  /**
   * Number of sessions of other nodes that are asked for here, or came and may have more to follow.
   */
  get takings(): number {
    return this.#takings.size;
  }

  fetch(request: ResumeRequest, process: number): Fetching {
    // A session that came now would end with this node.
    if (this.#isClosed) return NOTHING;
    const transfer = ++this.#transfers;
    const taking = new Taking(transfer, { request, process }, this.#takingDeps);
    this.#takings.set(transfer, taking);
    const max = this.#options.maxTakings ?? DEFAULT_MAX_TAKINGS;
    if (this.#takings.size > max) this.#forgetOldest();
    taking.begin();
    return taking;
  }

  /**
   * Local host of the datacenter to which a session of this full JID has gone, while stanzas that
   * come here still follow it there. They must take no other way.
   */
  follows(jid: string): string | undefined {
    return this.#followed.size === 0 ? undefined : this.#followed.get(jid)?.host;
  }

  /** Returns the taker of frames on links; `inner` gets the frames of others. */
  traffic(inner?: LinkTraffic): LinkTraffic {
    return trafficBefore({
      linked: (link, isDialled) => this.#linked(link, isDialled),
      takes: isResumeType,
      frame: (link, type, buffer, range) => this.#frame(link, type, buffer, range),
      leaving: () => {
        for (const taking of this.#takings.values()) taking.tellSettled();
      },
      unlinked: (link, hasLeft) => this.#ended(link, hasLeft),
    }, inner);
  }

  /**
   * Ends all transfers from here: takers that have placed a session own what they have received. Nodes whose sessions are here
   * still hear what is settled of their stanzas, until our links end.
   */
  stop(): void {
    this.#isClosed = true;
    this.#cancelCheck?.();
    for (const giving of [...this.#givings.values()]) giving.stop();
    for (const taking of [...this.#takings.values()]) taking.stop();
  }

  #linked(link: OpenLink, isDialled: boolean): void {
    this.#links.add(link, isDialled);
    for (const giving of [...this.#givings.values()]) {
      if (isSame(giving, link)) {
        if (giving.link === undefined) giving.linked(link);
      } else if (giving.host === link.host && giving.nodeName === link.nodeName) {
        giving.peerGone(true); // another process has its name
      }
    }
    for (const taking of this.#takings.values()) {
      if (taking.isFrom(link) && taking.link === undefined) taking.linked(link);
    }
  }

  #ended(link: OpenLink, hasLeft: boolean): void {
    this.#links.remove(link);
    const other = this.#links.to(link);
    for (const giving of [...this.#givings.values()]) {
      if (giving.link !== link) {
        if (hasLeft && isSame(giving, link)) giving.peerGone(true);
        continue;
      }
      giving.lost();
      if (!this.#givings.has(keyOf(giving, giving.transfer))) continue;
      if (hasLeft) giving.peerGone(true);
      else if (other !== undefined) giving.linked(other);
      else {
        // This node may never have dialled the taker, which dialled here to ask for the session.
        this.#peers.call(giving);
        this.#checkLater();
      }
    }
    for (const taking of [...this.#takings.values()]) {
      if (taking.link === link) {
        taking.lost();
        if (other !== undefined) taking.linked(other);
      }
      // It has dropped its state of the transfer: it no longer asks for settled numbers.
      if (hasLeft && taking.isFrom(link) && taking.isTaken) this.#forget(taking);
    }
  }

  #frame(
    link: OpenLink,
    type: number,
    buffer: Uint8Array,
    { start, end }: FrameRange,
  ): void {
    switch (type) {
      case FRAME_TYPE.resume:
        return this.#asked(link, decodeResume(buffer, start, end));
      case FRAME_TYPE.have: {
        const have = decodeHave(buffer, start, end);
        const key = keyOf(link, have.transfer);
        if (have.step === "decline") this.#waiting.delete(key); // it no longer wants the session
        return this.#givings.get(key)?.have(have);
      }
      case FRAME_TYPE.session: {
        const fields = decodeSession(buffer, start, end);
        const taking = this.#taking(link, fields.transfer);
        return taking === undefined ? decline(link, fields.transfer) : taking.session(fields);
      }
      case FRAME_TYPE.details: {
        const { transfer, details } = decodeDetails(buffer, start, end);
        return this.#taking(link, transfer)?.details(details);
      }
      case FRAME_TYPE.queue: {
        const fields = decodeQueue(buffer, start, end);
        return this.#taking(link, fields.transfer)?.queue(fields);
      }
      case FRAME_TYPE.given: {
        const transfer = decodeGiven(buffer, start, end);
        const taking = this.#taking(link, transfer);
        return taking === undefined ? decline(link, transfer) : taking.given();
      }
      case FRAME_TYPE.end: {
        const fields = decodeEnd(buffer, start, end);
        return this.#taking(link, fields.transfer)?.ended(fields);
      }
    }
  }

  #taking(link: OpenLink, transfer: number): Taking | undefined {
    const taking = this.#takings.get(transfer);
    return taking?.isFrom(link) ? taking : undefined;
  }

  #asked(link: OpenLink, request: TransferRequest): void {
    const { transfer, account } = request;
    const key = keyOf(link, transfer);
    const hasPlace = this.#places.mayHold(holdersOf(account), 0);
    const isKnown = this.#givings.has(key) || this.#waiting.has(key);
    if (this.#isClosed || !hasPlace || isKnown) return refuse(link, transfer, "busy");
    if (!this.#peers.mayHave(account, link.host)) return refuse(link, transfer, "unknown");
    this.#places.hold(holdersOf(account), 0);
    const arriving = this.#givingDeps.sessions.arriving?.(request);
    if (arriving === undefined) return this.#give(link, request);
    this.#waiting.add(key);
    const { log } = this.#givingDeps;
    arriving.then(() => {
      if (this.#waiting.delete(key)) this.#give(link, request);
      else this.#places.release(holdersOf(account), 0);
    }).catch((thrown) => log.error("resume.broken", { error: String(thrown) }));
  }

  /** Begins a transfer that has its place. */
  #give(link: OpenLink, request: TransferRequest): void {
    const { transfer, account } = request;
    const key = keyOf(link, transfer);
    if (this.#isClosed || !this.#links.has(link) || this.#givings.has(key)) {
      this.#places.release(holdersOf(account), 0);
      return refuse(link, transfer, "busy");
    }
    const giving = new Giving(request, link, this.#givingDeps);
    this.#givings.set(key, giving);
    giving.begin();
  }

  /** Checks again later whether takers without a link have ended. */
  #checkLater(): void {
    if (this.#isClosed) return;
    this.#cancelCheck ??= this.#clock.after(PEER_CHECK_MS, () => {
      this.#cancelCheck = undefined;
      const nowMs = this.#clock.monotonicMs();
      let isAnyLost = false;
      for (const giving of [...this.#givings.values()]) {
        const { lostAtMs } = giving;
        if (lostAtMs === undefined) continue;
        const lostMs = nowMs - lostAtMs;
        const isOld = lostMs >= this.#options.expireAfterMs;
        const isNowhere = lostMs >= NOWHERE_MS && this.#peers.seemsEnded(giving);
        if (this.#peers.hasEnded(giving)) giving.peerGone(true);
        else if (isOld || isNowhere) giving.peerGone(false);
        else isAnyLost = true;
      }
      if (isAnyLost) this.#checkLater();
    });
  }

  #forgetGone(giving: Giving): void {
    const { account } = giving;
    const gone = this.#gone.get(account);
    if (gone?.delete(giving) === true && gone.size === 0) this.#gone.delete(account);
  }

  /** Forgets the oldest taken session: its node no longer asks for it. */
  #forgetOldest(): void {
    for (const taking of this.#takings.values()) {
      if (!taking.isTaken) continue;
      return this.#forget(taking);
    }
  }

  #forget(taking: Taking): void {
    taking.forget();
    this.#takings.delete(taking.transfer);
  }
}

/** Answer of a node that goes down. */
const NOTHING: Fetching = {
  arrival: Promise.resolve({ kind: "stopped" }),
  hasBegun: false,
  cancel: () => {},
};

/** Ends a transfer before it has begun. */
function refuse(link: OpenLink, transfer: number, reason: TransferEnd): void {
  link.send(endFrame({ transfer, reason, h: undefined, sentCount: 0, process: 0 }));
}

/** Declines a session that is no longer wanted: it stays, or goes back to, where it was. */
function decline(link: OpenLink, transfer: number): void {
  link.send(haveFrame({ transfer, step: "decline", received: 0, settled: 0 }));
}

/** A process is only a peer's claim: it counts for that peer's datacenter alone. */
type Process = Pick<OpenLink, "host" | "process">;

function holdersOf(account: string): Holders {
  return { singles: [account], crowds: [] };
}

function isSame(one: Process, other: Process): boolean {
  return one.process === other.process && one.host === other.host;
}

function keyOf({ host, process }: Process, transfer: number): string {
  return `${host}#${process}#${transfer}`;
}
