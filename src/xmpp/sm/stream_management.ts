import type { Clock } from "../../base/mod.ts";
import { describeError, randomHex, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { FullJid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";
import { isReply, isSubscription } from "../stanza.ts";
import type { Delivery } from "./delivery.ts";
import type { ManagedEnd } from "./sm_metrics.ts";
import { StreamManagementMetrics } from "./sm_metrics.ts";
import type { ResolvedStreamManagement, StreamManagementOptions } from "./sm_options.ts";
import { resolveStreamManagement } from "./sm_options.ts";
import { StaleCounts } from "./stale_counts.ts";

/** Milliseconds between looks at whether clients have acknowledged what they were asked about. */
const COLLECT_CHECK_MS = 10;

/** A session with stream management, as whoever looks for one sees it. */
export interface ManagedSession {
  readonly jid: FullJid;
  readonly isHibernating: boolean;
  /** Stanzas that were written to its client and not acknowledged. */
  readonly owed: number;
  /** Takes and writes no stanza any more, and asks for what is owed. */
  settleUp(): void;
  /** Ends it because its user's session of that full JID is somewhere else by now. */
  moved(): void;
}

/** What stream management is given besides its options. */
export interface StreamManagementDeps {
  readonly metrics: Metrics;
  /** @default the machine's */
  readonly clock?: Clock;
  /** @default SILENT_LOGGER */
  readonly log?: Logger;
  /**
   * Takes back a stanza that a session which has ended had not acknowledged, to see to it again; called
   * in the order of that session, and after everybody was told that the session is gone.
   */
  reroute(delivery: Delivery): void;
  /** True when the session of this full JID is known to be at another place. @default never */
  hasMoved?(jid: FullJid): Promise<boolean>;
}

/** What became of an attempt to find a stream to resume. */
export type ResumeLookup<Session extends ManagedSession> =
  | { readonly kind: "found"; readonly session: Session }
  /** `h` is known when the stream was this account's and is over. */
  | { readonly kind: "failed"; readonly h: number | undefined };

/**
 * What all sessions with stream management of a process share: options, counts, the streams that can be
 * resumed by their id, and what was handled of those that no longer can.
 *
 * Ids are known to this process only: elsewhere a stream is answered `item-not-found`.
 */
export class StreamManagement<Session extends ManagedSession = ManagedSession> {
  readonly options: ResolvedStreamManagement;
  readonly clock: Clock;
  readonly metrics: StreamManagementMetrics;
  readonly log: Logger;
  readonly #deps: StreamManagementDeps;
  readonly #sessions = new Set<Session>();
  readonly #byId = new Map<string, Session>();
  readonly #stale: StaleCounts;
  readonly #pending = new Set<Promise<void>>();

  constructor(options: StreamManagementOptions, deps: StreamManagementDeps) {
    this.options = resolveStreamManagement(options);
    this.clock = deps.clock ?? new SystemClock();
    this.log = deps.log ?? SILENT_LOGGER;
    this.#deps = deps;
    this.metrics = new StreamManagementMetrics(deps.metrics);
    const { staleHMs: lifetimeMs, maxStaleH: maxEntries } = this.options;
    this.#stale = new StaleCounts({ lifetimeMs, maxEntries });
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
    const id = randomHex(16);
    this.#byId.set(id, session);
    return id;
  }

  /** The stream `id` of the account `bareJid`; nobody learns of streams of other accounts. */
  find(id: string, bareJid: string): ResumeLookup<Session> {
    const session = this.#byId.get(id);
    if (session !== undefined && session.jid.bare.text === bareJid) {
      return { kind: "found", session };
    }
    const h = session === undefined
      ? this.#stale.get(id, bareJid, this.clock.monotonicMs())
      : undefined;
    const reason = session !== undefined ? "other-account" : h === undefined ? "unknown" : "stale";
    this.metrics.resumeFailed(reason);
    return { kind: "failed", h };
  }

  /** `session` is over; `h` is how many of its client's stanzas were taken. */
  ended(session: Session, id: string | undefined, end: { h: number; reason: ManagedEnd }): void {
    this.#sessions.delete(session);
    this.metrics.ended(end.reason);
    if (id === undefined) return;
    this.#byId.delete(id);
    this.#stale.add(id, session.jid.bare.text, { h: end.h, nowMs: this.clock.monotonicMs() });
  }

  /** Gives back, in order, what a session that is gone had not acknowledged. */
  giveBack(deliveries: readonly Delivery[]): void {
    for (const delivery of deliveries) {
      if (!delivery.abandoned()) continue;
      const { stanza } = delivery;
      if (isWorthRouting(stanza)) this.metrics.rerouted.inc();
      else this.metrics.dropped(stanza.kind);
      this.#deps.reroute(delivery);
    }
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
