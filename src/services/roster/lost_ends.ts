import type { FullJid, Jid } from "../../xmpp/mod.ts";
import type { AccountReach } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import { unavailable } from "./presence_stanzas.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { RosterDeps } from "./roster_ports.ts";

/** Collaborators of `LostEnds`. */
export interface LostEndsDeps extends Pick<RosterDeps, "paced"> {
  readonly reach: Pick<AccountReach, "sendAgain">;
  /** True when a session here is available to a recipient, as this node has told by now. */
  isAvailableTo(session: FullJid, to: Jid): boolean;
  readonly turns: AccountTurns;
  readonly metrics: RosterMetrics;
}

/** The end of a session's presence that some recipients at one datacenter have not heard of. */
interface LostEnd {
  readonly session: FullJid;
  /** Wall-clock microseconds when the presence began. */
  sinceUs: number;
  /** Recipients by address. */
  readonly to: Map<string, Jid>;
}

/** The ends that one datacenter has not heard of, by full JID. */
interface Missed {
  readonly ends: Map<string, LostEnd>;
  /** Pairs of a session and a recipient. */
  pairs: number;
}

/**
 * Pairs of a session and a recipient that are remembered. Beyond, the oldest of the datacenter with most
 * of them are forgotten: one that takes nothing must not crowd out the others.
 */
const MAX_PAIRS = 50_000;
/** Pairs that are told in one piece of paced work. */
const TOLD_AT_ONCE = 64;

/**
 * Ends of presence of this node's sessions that were lost on their way to other datacenters, or to other
 * nodes of this one. Most of the sessions are gone, so nobody else can tell of them once the others are
 * within reach again.
 */
export class LostEnds {
  readonly #deps: LostEndsDeps;
  /** By datacenter. */
  readonly #missed = new Map<string, Missed>();
  #pairs = 0;
  #isClosed = false;

  constructor(deps: LostEndsDeps) {
    this.#deps = deps;
  }

  /** Notes that a recipient at `host` does not hear of the end of a presence. */
  note(
    host: string,
    { session, to, sinceUs }: {
      readonly session: FullJid;
      readonly to: Jid;
      readonly sinceUs: number;
    },
  ): void {
    let missed = this.#missed.get(host);
    if (missed === undefined) this.#missed.set(host, missed = { ends: new Map(), pairs: 0 });
    let end = missed.ends.get(session.text);
    if (end === undefined) missed.ends.set(session.text, end = { session, sinceUs, to: new Map() });
    end.sinceUs = Math.max(end.sinceUs, sinceUs);
    if (!end.to.has(to.text)) this.#count(missed, 1);
    end.to.set(to.text, to);
    while (this.#pairs > MAX_PAIRS) this.#forgetOldest();
  }

  /** Tells a datacenter that is within reach again of the ends that it has missed. */
  tell(host: string): void {
    if (!this.#missed.has(host)) return;
    const { turns, metrics } = this.#deps;
    const cost = { payer: `ends ${host}`, bytes: 0, kind: "patient" } as const;
    if (!turns.run(cost.payer, () => this.#tellAll(host), cost)) metrics.failures.inc();
  }

  /** Tells nobody any more. */
  close(): void {
    this.#isClosed = true;
  }

  async #tellAll(host: string): Promise<void> {
    const { paced, reach, isAvailableTo } = this.#deps;
    // An end that is lost again on the way is noted again, and told another time.
    const missed = this.#missed.get(host);
    if (missed === undefined) return;
    this.#missed.delete(host);
    this.#count(missed, -missed.pairs);
    const pairs = [...missed.ends.values()].flatMap((end) =>
      [...end.to.values()].map((to) => ({ ...end, to }))
    );
    for (let at = 0; at < pairs.length && !this.#isClosed; at += TOLD_AT_ONCE) {
      await paced.run(() => {
        for (const { session, to, sinceUs } of pairs.slice(at, at + TOLD_AT_ONCE)) {
          if (isAvailableTo(session, to)) continue; // it is back, and tells of itself
          reach.sendAgain(host, { ...unavailable(session, to), sinceUs });
        }
      });
    }
  }

  #forgetOldest(): void {
    const all = [...this.#missed.values()];
    const most = all.reduce((one, other) => other.pairs > one.pairs ? other : one);
    const [text, { to }] = most.ends.entries().next().value!; // it has most of the pairs
    most.ends.delete(text);
    this.#count(most, -to.size);
  }

  #count(missed: Missed, pairs: number): void {
    missed.pairs += pairs;
    this.#pairs += pairs;
  }
}
