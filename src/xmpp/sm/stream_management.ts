import type { Clock } from "../../base/mod.ts";
import { describeError, FairShares, randomIncarnation, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { FullJid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { isReply, isSubscription } from "../stanza/stanza.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { Delivery, SessionReturn } from "./delivery.ts";
import type { ComingSession } from "./coming_sessions.ts";
import { ComingSessions } from "./coming_sessions.ts";
import type {
  FreezeOwner,
  Freezing,
  FrozenSession,
  ResumeRequest,
  SessionsElsewhere,
} from "./moving_session.ts";
import { PassedOn } from "./passed_on.ts";
import { newResumeId, processOfResumeId } from "./resume_id.ts";
import type { ManagedEnd } from "./sm_metrics.ts";
import { StreamManagementMetrics } from "./sm_metrics.ts";
import type { ResolvedStreamManagement, StreamManagementOptions } from "./sm_options.ts";
import { resolveStreamManagement } from "./sm_options.ts";
import { StaleCounts } from "./stale_counts.ts";
import { StreamSuspects } from "./stream_suspects.ts";

/** Milliseconds between checks whether clients, or what covers their stanzas, are done. */
const CHECK_MS = 10;

/** A session with stream management, as code that searches for one sees it. */
export interface ManagedSession {
  readonly jid: FullJid;
  readonly isHibernating: boolean;
  /** Stanzas that were written to its client and not acknowledged. */
  readonly owed: number;
  /** True when its client may forget every stanza that was taken from it. */
  readonly isCovered: boolean;
  /** Cost of the stanzas that its client has not acknowledged, in bytes. */
  readonly keptBytes: number;
  /** Takes and writes no more stanzas, and asks for outstanding acknowledgements. */
  settleUp(): void;
  /** Ends a hibernating session, because there is no room for the stanzas it keeps. */
  giveWay(): void;
  /** Ends the stream with `condition`; without a stream, only the session. */
  end(condition: StreamErrorCondition): void;
  /** Ends the session, because the session table has its full JID elsewhere by now. */
  moved(): void;
  /** Highest number of stanzas that its client may have handled. */
  readonly sentCount: number;
  /** Freezes the session for another node; undefined when its client cannot have handled `h` stanzas. */
  freeze(h: number, owner: FreezeOwner): FrozenSession | undefined;
}

/** Objects that stream management needs besides its options. */
export interface StreamManagementDeps {
  readonly metrics: Metrics;
  /** @default the machine's */
  readonly clock?: Clock;
  /** @default SILENT_LOGGER */
  readonly log?: Logger;
  /** This process's incarnation, with which resume ids begin. @default drawn */
  readonly process?: number;
  /** Budget for everything that all sessions keep. @default none */
  readonly budget?: FairShares;
  /** True for a domain whose accounts have a share of it each. @default that of the session's account */
  readonly isUserHost?: (domain: string) => boolean;
  /** Access to the sessions of other processes. @default none */
  readonly elsewhere?: SessionsElsewhere;
  /**
   * Takes back a stanza: routes one of a session that has ended again, and reports to the sender that
   * its recipient's client cannot read it. Stanzas of an ended session come in their order, and after
   * everybody knows that the session is gone.
   */
  returned(delivery: Delivery, reason: SessionReturn): void;
  /**
   * Returns a stanza that followed its session from another node as the client gets it.
   * @default as it is
   */
  told?(delivery: Delivery): Stanza;
  /** True when the session of this full JID is known to be elsewhere. @default never */
  hasMoved?(jid: FullJid): Promise<boolean>;
}

/** Result of a search for a stream to resume. */
export type ResumeLookup<Session extends ManagedSession> =
  | { readonly kind: "found"; readonly session: Session }
  /** Another node may have the session; the request is under way, and the caller ends it. */
  | { readonly kind: "elsewhere"; readonly fetching: ComingSession }
  /** The session is on its way here for another stream. The caller asks again after `over`. */
  | { readonly kind: "coming"; readonly over: Promise<void> }
  /** The search failed. `h` is known when the stream belonged to this account and is over. */
  | { readonly kind: "failed"; readonly h: number | undefined };

/**
 * Shared data of all sessions with stream management in a process: options, counts, the streams that can
 * be resumed by their id, and the handled counts of those that no longer can.
 *
 * A session can move to another node, where its client reconnects. `freeze` begins the move at the old
 * node, `find` at the new one (`docs/protocol.md`, "Resuming at another node").
 */
export class StreamManagement<Session extends ManagedSession = ManagedSession> {
  readonly options: ResolvedStreamManagement;
  readonly budget: FairShares;
  readonly isUserHost: ((domain: string) => boolean) | undefined;
  readonly clock: Clock;
  readonly metrics: StreamManagementMetrics;
  readonly log: Logger;
  /** Stanzas that seem to end the streams they are written to. */
  readonly suspects = new StreamSuspects();
  readonly #deps: StreamManagementDeps;
  readonly #sessions = new Set<Session>();
  readonly #byId = new Map<string, Session>();
  readonly #stale: StaleCounts;
  readonly #passedOn: PassedOn;
  readonly #coming = new ComingSessions();
  readonly #process: number;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: StreamManagementOptions, deps: StreamManagementDeps) {
    this.options = resolveStreamManagement(options);
    this.budget = deps.budget ?? new FairShares();
    this.isUserHost = deps.isUserHost;
    this.clock = deps.clock ?? new SystemClock();
    this.log = deps.log ?? SILENT_LOGGER;
    this.#deps = deps;
    this.metrics = new StreamManagementMetrics(deps.metrics);
    const { staleHMs: lifetimeMs, maxStaleH: maxEntries } = this.options;
    this.#stale = new StaleCounts({ lifetimeMs, maxEntries });
    this.#passedOn = new PassedOn(maxEntries);
    this.#process = deps.process ?? randomIncarnation();
    this.metrics.watch(() => this.#sessions.size, () => this.hibernating);
  }

  /** Returns a stanza that followed its session from another node as the client gets it. */
  told(delivery: Delivery): Stanza {
    return this.#deps.told?.(delivery) ?? delivery.stanza;
  }

  /** Sessions that use stream management. */
  get count(): number {
    return this.#sessions.size;
  }

  /** Sessions that have no connection now. */
  get hibernating(): number {
    let count = 0;
    for (const { isHibernating } of this.#byId.values()) count += isHibernating ? 1 : 0;
    return count;
  }

  /** Registers a session that now uses stream management; returns its resume id, if it wants one. */
  enabled(session: Session, isResumable: boolean): string | undefined {
    this.#sessions.add(session);
    if (!isResumable) return undefined;
    const id = newResumeId(this.#process);
    this.#byId.set(id, session);
    return id;
  }

  /** Searches for the stream that a client wants to resume. Nobody learns of other accounts' streams. */
  find(request: ResumeRequest): ResumeLookup<Session> {
    const { previd, account } = request;
    const session = this.#byId.get(previd);
    if (session !== undefined && session.jid.bare.text === account) {
      return { kind: "found", session };
    }
    const over = session === undefined ? this.#coming.wait(request) : undefined;
    if (over !== undefined) return { kind: "coming", over };
    const h = session === undefined
      ? this.#stale.get(previd, account, this.clock.monotonicMs())
      : undefined;
    const process = session === undefined && h === undefined
      ? this.#passedOn.get(previd, account) ?? processOfResumeId(previd)
      : undefined;
    const { elsewhere } = this.#deps;
    if (process !== undefined && process !== this.#process && elsewhere !== undefined) {
      const fetching = this.#coming.add(request, elsewhere.fetch(request, process));
      return { kind: "elsewhere", fetching };
    }
    const reason = session !== undefined ? "other-account" : h === undefined ? "unknown" : "stale";
    this.metrics.resumeFailed(reason);
    return { kind: "failed", h };
  }

  /**
   * Waits until it is decided whether the session that a client of another node wants is here. Undefined
   * for a session that is not on its way: `freeze` finds it, or says where it is.
   */
  arriving(request: ResumeRequest): Promise<void> | undefined {
    return this.#coming.waitElsewhere(request);
  }

  /** Freezes the session that a client wants at another node, if it belongs to the client's account. */
  freeze({ previd, account, h }: ResumeRequest, owner: FreezeOwner): Freezing {
    const session = this.#byId.get(previd);
    if (session === undefined) {
      const process = this.#passedOn.get(previd, account);
      if (process !== undefined) return { kind: "moved", process };
      const handled = this.#stale.get(previd, account, this.clock.monotonicMs());
      return handled === undefined ? { kind: "unknown" } : { kind: "stale", h: handled };
    }
    if (session.jid.bare.text !== account) return { kind: "other-account" };
    const frozen = session.freeze(h, owner);
    return frozen === undefined
      ? { kind: "handled-too-high", sentCount: session.sentCount }
      : { kind: "frozen", session: frozen };
  }

  /** Records that `session` now belongs to the process `process`. */
  passed(session: Session, id: string, process: number): void {
    this.#sessions.delete(session);
    this.#byId.delete(id);
    this.#passedOn.add(id, session.jid.bare.text, process);
  }

  /** Records that `session` came here from another process, with its id from there. */
  adopted(session: Session, id: string): void {
    this.#sessions.add(session);
    this.#byId.set(id, session);
    this.#passedOn.delete(id);
  }

  /** True when the session table has `jid` elsewhere. */
  async isElsewhere(jid: FullJid): Promise<boolean> {
    return await this.#deps.hasMoved?.(jid) ?? false;
  }

  /** Notes that the session which came from another process gets no place here: it has ended. */
  unplaced({ previd, account }: Omit<ResumeRequest, "h">, h: number): void {
    this.#stale.add(previd, account, { h, nowMs: this.clock.monotonicMs() });
  }

  /** Forgets an ended session; `h` is the number of its client's stanzas that were handled. */
  ended(session: Session, id: string | undefined, end: { h: number; reason: ManagedEnd }): void {
    this.#sessions.delete(session);
    this.metrics.ended(end.reason);
    if (id === undefined) return;
    this.#byId.delete(id);
    this.#stale.add(id, session.jid.bare.text, { h: end.h, nowMs: this.clock.monotonicMs() });
  }

  /**
   * Returns, in order, the stanzas that an ended session had not acknowledged.
   * @param sent how many of the first another node was sent
   * @param reason why those come back
   */
  giveBack(
    deliveries: readonly Delivery[],
    sent = 0,
    reason: SessionReturn = "unacknowledged",
  ): void {
    // All are abandoned first. The session may have kept a copy of one of them besides, which would
    // count as a delivery until it is abandoned, too.
    const areOurs = deliveries.map((each, index) => each.abandoned(index < sent));
    for (const [index, delivery] of deliveries.entries()) {
      if (areOurs[index] !== true) continue;
      const { stanza } = delivery;
      if (isWorthRouting(stanza)) this.metrics.rerouted.inc();
      else this.metrics.dropped(stanza.kind);
      this.#deps.returned(delivery, index < sent ? reason : "unacknowledged");
    }
  }

  /**
   * Withdraws a stanza that ended each of `streams` streams of `jid`. Its sender gets an error, unless
   * another session has the stanza.
   */
  giveUp(delivery: Delivery, { jid, streams }: { readonly jid: FullJid; streams: number }): void {
    const { from, kind, bytes } = delivery.stanza;
    this.metrics.givenUp.inc();
    this.log.warn("sm.given-up", {
      jid: jid.text,
      from: from.text,
      kind,
      stanzaBytes: bytes.length,
      streams,
    });
    if (delivery.abandoned()) this.#deps.returned(delivery, "unreadable");
  }

  /** Ends `session` when the session table has its full JID elsewhere. */
  lookFor(session: Session): void {
    const { hasMoved } = this.#deps;
    if (hasMoved === undefined) return;
    this.track(
      hasMoved(session.jid).then((isElsewhere) => {
        if (isElsewhere && this.#sessions.has(session)) session.moved();
      }),
    );
  }

  /**
   * Makes room: of all accounts, takes the one whose hibernating sessions keep most, and ends those
   * sessions. Their stanzas are routed again. Looks at every session, so call it rarely.
   */
  makeRoom(): void {
    const waiting = new Map<string, { bytes: number; readonly sessions: Session[] }>();
    for (const session of this.hibernated()) {
      const account = session.jid.bare.text;
      let sum = waiting.get(account);
      if (sum === undefined) waiting.set(account, sum = { bytes: 0, sessions: [] });
      sum.bytes += session.keptBytes;
      sum.sessions.push(session);
    }
    let most: { readonly bytes: number; readonly sessions: Session[] } | undefined;
    for (const sum of waiting.values()) if (sum.bytes > (most?.bytes ?? 0)) most = sum;
    for (const session of most?.sessions ?? []) session.giveWay();
  }

  /**
   * Asks every connected client for outstanding acknowledgements, and waits at most `withinMs` for them.
   * Called before shutdown, so that stanzas that clients have long had are not routed again. From now on
   * no session takes or writes a stanza, because the wait would never end otherwise. Clients resend
   * theirs, and stanzas for them are returned when the sessions end.
   */
  async collect(withinMs: number): Promise<void> {
    const connected = [...this.#sessions].filter((each) => !each.isHibernating);
    for (const session of connected) session.settleUp();
    await this.#while(
      withinMs,
      () =>
        connected.some((each) => this.#sessions.has(each) && !each.isHibernating && each.owed > 0),
    );
  }

  /**
   * Waits, at most `withinMs`, until every connected client can be told that all it has sent was handled.
   * Called after `collect` and before the streams end: `h` has no gaps, so a client sends again
   * everything behind one stanza that is still open. Another node cannot know which of that was delivered here.
   *
   * Sessions that keep a stanza for a client that does not acknowledge it end at once: the stanza goes
   * on, and its sender's `h` covers it. An archive that is late takes what it has begun with.
   */
  async cover(withinMs: number): Promise<void> {
    for (const session of [...this.#sessions]) {
      const keeps = session.isHibernating ? session.keptBytes > 0 : session.owed > 0;
      if (keeps) session.end("system-shutdown");
    }
    await this.#while(withinMs, () => {
      for (const { isHibernating, isCovered } of this.#sessions) {
        if (!isHibernating && !isCovered) return true;
      }
      return false;
    });
  }

  /** Waits as long as `isSo`, but at most `withinMs`. */
  async #while(withinMs: number, isSo: () => boolean): Promise<void> {
    const deadlineMs = this.clock.monotonicMs() + withinMs;
    while (isSo() && this.clock.monotonicMs() < deadlineMs) {
      await new Promise<void>((resolve) => this.clock.after(CHECK_MS, resolve));
    }
  }

  /** Adds a task that `settled` waits for. */
  track(task: Promise<void>): void {
    const tracked: Promise<void> = task.catch((thrown) => {
      this.log.error("sm.broken", { error: describeError(thrown) });
    }).then(() => {
      this.#pending.delete(tracked);
    });
    this.#pending.add(tracked);
  }

  /** Hibernating sessions, which no stream will end. */
  hibernated(): Session[] {
    return [...this.#byId.values()].filter(({ isHibernating }) => isHibernating);
  }

  /** Waits until all returned stanzas have been routed. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}

/**
 * True for messages, requests and subscriptions, which are routed again. Other presence, results and
 * errors are of no use later.
 */
export function isWorthRouting(stanza: Stanza): boolean {
  if (isReply(stanza)) return false;
  return stanza.kind !== "presence" || isSubscription(stanza);
}
