import type { Clock } from "../../base/mod.ts";
import { describeError, FairShares, randomIncarnation, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { FullJid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";
import { isReply, isSubscription } from "../stanza.ts";
import type { Delivery } from "./delivery.ts";
import type {
  Fetching,
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

/** Milliseconds between looks at whether clients have acknowledged what they were asked about. */
const COLLECT_CHECK_MS = 10;

/** A session with stream management, as whoever looks for one sees it. */
export interface ManagedSession {
  readonly jid: FullJid;
  readonly isHibernating: boolean;
  /** Stanzas that were written to its client and not acknowledged. */
  readonly owed: number;
  /** Bytes that what its client has not acknowledged costs. */
  readonly keptBytes: number;
  /** Takes and writes no stanza any more, and asks for what is owed. */
  settleUp(): void;
  /** Ends it, as it waits without a connection and there is no room for what it keeps. */
  giveWay(): void;
  /** Ends it because its user's session of that full JID is somewhere else by now. */
  moved(): void;
  /** What its client may have handled at most. */
  readonly sentCount: number;
  /** Stops it, for another node; undefined when its client cannot have handled `h` stanzas. */
  freeze(h: number, owner: FreezeOwner): FrozenSession | undefined;
}

/** What stream management is given besides its options. */
export interface StreamManagementDeps {
  readonly metrics: Metrics;
  /** @default the machine's */
  readonly clock?: Clock;
  /** @default SILENT_LOGGER */
  readonly log?: Logger;
  /** This process's incarnation, which ids to resume by begin with. @default drawn */
  readonly process?: number;
  /** The bound that what all sessions keep counts for. @default none */
  readonly budget?: FairShares;
  /** True for a domain whose accounts have a share of it each. @default that of the session's account */
  readonly isUserHost?: (domain: string) => boolean;
  /** Where sessions of other processes are to be had. @default nowhere */
  readonly elsewhere?: SessionsElsewhere;
  /**
   * Takes back a stanza that a session which has ended had not acknowledged, to see to it again; called
   * in the order of that session, and after everybody was told that the session is gone.
   * @param mayBeRepeat true when a node to which it went may still deliver it
   */
  reroute(delivery: Delivery, mayBeRepeat: boolean): void;
  /**
   * Takes back a stanza that its recipient's streams ended over, to tell its sender that it was not
   * delivered.
   */
  giveUp(delivery: Delivery): void;
  /** True when the session of this full JID is known to be at another place. @default never */
  hasMoved?(jid: FullJid): Promise<boolean>;
}

/** What became of an attempt to find a stream to resume. */
export type ResumeLookup<Session extends ManagedSession> =
  | { readonly kind: "found"; readonly session: Session }
  /** Another node may have it, and is being asked. */
  | { readonly kind: "elsewhere"; readonly fetching: Fetching }
  /** `h` is known when the stream was this account's and is over. */
  | { readonly kind: "failed"; readonly h: number | undefined };

/**
 * What all sessions with stream management of a process share: options, counts, the streams that can be
 * resumed by their id, and what was handled of those that no longer can.
 *
 * A session may go to another node, where its client has come back to: `freeze` begins that here, and
 * `find` there (`docs/protocol.md`, "Resuming at another node").
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

  /** Sessions that use stream management. */
  get count(): number {
    return this.#sessions.size;
  }

  /** Those that have no connection now. */
  get hibernating(): number {
    let count = 0;
    for (const { isHibernating } of this.#byId.values()) count += isHibernating ? 1 : 0;
    return count;
  }

  /** `session` uses stream management from now on; gives the id to resume it by, if it wants one. */
  enabled(session: Session, isResumable: boolean): string | undefined {
    this.#sessions.add(session);
    if (!isResumable) return undefined;
    const id = newResumeId(this.#process);
    this.#byId.set(id, session);
    return id;
  }

  /** The stream that a client wants, if it is its account's; nobody learns of streams of others. */
  find(request: ResumeRequest): ResumeLookup<Session> {
    const { previd, account } = request;
    const session = this.#byId.get(previd);
    if (session !== undefined && session.jid.bare.text === account) {
      return { kind: "found", session };
    }
    const h = session === undefined
      ? this.#stale.get(previd, account, this.clock.monotonicMs())
      : undefined;
    const process = session === undefined && h === undefined
      ? this.#passedOn.get(previd, account) ?? processOfResumeId(previd)
      : undefined;
    const { elsewhere } = this.#deps;
    if (process !== undefined && process !== this.#process && elsewhere !== undefined) {
      return { kind: "elsewhere", fetching: elsewhere.fetch(request, process) };
    }
    const reason = session !== undefined ? "other-account" : h === undefined ? "unknown" : "stale";
    this.metrics.resumeFailed(reason);
    return { kind: "failed", h };
  }

  /** Stops the session that a client wants at another node, if it is its account's. */
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

  /** `session` is the process `process`'s from now on. */
  passed(session: Session, id: string, process: number): void {
    this.#sessions.delete(session);
    this.#byId.delete(id);
    this.#passedOn.add(id, session.jid.bare.text, process);
  }

  /** `session` has come here from another process, under the id that it had there. */
  adopted(session: Session, id: string): void {
    this.#sessions.add(session);
    this.#byId.set(id, session);
    this.#passedOn.delete(id);
  }

  /** True when the table places `jid` somewhere else. */
  async isElsewhere(jid: FullJid): Promise<boolean> {
    return await this.#deps.hasMoved?.(jid) ?? false;
  }

  /** `session` is over; `h` is how many of its client's stanzas were taken. */
  ended(session: Session, id: string | undefined, end: { h: number; reason: ManagedEnd }): void {
    this.#sessions.delete(session);
    this.metrics.ended(end.reason);
    if (id === undefined) return;
    this.#byId.delete(id);
    this.#stale.add(id, session.jid.bare.text, { h: end.h, nowMs: this.clock.monotonicMs() });
  }

  /**
   * Gives back, in order, what a session that is gone had not acknowledged.
   * @param mayBeRepeat true when a node to which it went may still deliver it
   */
  giveBack(deliveries: readonly Delivery[], mayBeRepeat = false): void {
    for (const delivery of deliveries) {
      if (!delivery.abandoned()) continue;
      const { stanza } = delivery;
      if (isWorthRouting(stanza)) this.metrics.rerouted.inc();
      else this.metrics.dropped(stanza.kind);
      this.#deps.reroute(delivery, mayBeRepeat);
    }
  }

  /**
   * Gives up a stanza that `jid` was sent by so many streams, each of which ended over it. Its sender is
   * told, unless another session has it.
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
    if (delivery.abandoned()) this.#deps.giveUp(delivery);
  }

  /** Ends `session` when the table places its full JID somewhere else. */
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
   * Ends the sessions without a connection of the account for which they keep most, to make room: what they
   * keep is routed again. Looks at every session: to be called now and then only.
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

  /** The session of this full JID is somewhere else now: one that is kept here for it ends. */
  movedAway(jid: FullJid): void {
    for (const session of this.#sessions) {
      if (session.jid.text === jid.text) return session.moved();
    }
  }

  /**
   * Asks every client that is connected for what it owes, and waits for that, at most `withinMs`: before
   * the end, so that nothing has to be seen to again that clients have long had. From now on no session
   * takes or writes a stanza, or this would never come to an end: the clients send theirs again, and
   * what comes for them is given back when they end.
   */
  async collect(withinMs: number): Promise<void> {
    const connected = [...this.#sessions].filter((each) => !each.isHibernating);
    for (const session of connected) session.settleUp();
    const deadlineMs = this.clock.monotonicMs() + withinMs;
    const isOwed = () =>
      connected.some((each) => this.#sessions.has(each) && !each.isHibernating && each.owed > 0);
    while (isOwed() && this.clock.monotonicMs() < deadlineMs) {
      await new Promise<void>((resolve) => this.clock.after(COLLECT_CHECK_MS, resolve));
    }
  }

  /** Something to wait for at the end. */
  track(task: Promise<void>): void {
    const tracked: Promise<void> = task.catch((thrown) => {
      this.log.error("sm.broken", { error: describeError(thrown) });
    }).then(() => {
      this.#pending.delete(tracked);
    });
    this.#pending.add(tracked);
  }

  /** The sessions without a connection, which no stream will end. */
  hibernated(): Session[] {
    return [...this.#byId.values()].filter(({ isHibernating }) => isHibernating);
  }

  /** Waits until all that was given back has been. */
  async settled(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }
}

/** Messages and requests are seen to again; other presence, results and errors are of no use later. */
export function isWorthRouting(stanza: Stanza): boolean {
  if (isReply(stanza)) return false;
  return stanza.kind !== "presence" || isSubscription(stanza);
}
