import { describeError } from "../../base/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import { parseJid, readdress } from "../../xmpp/mod.ts";
import type { AccountReach } from "./account_reach.ts";
import type { AccountTurns } from "./account_turns.ts";
import { requestOf } from "./presence_stanzas.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { RosterDeps } from "./roster_ports.ts";
import { writeItem, writeRemoved, writeRosterQuery } from "./roster_query.ts";

/** Collaborators of `MissedChanges`. */
export interface MissedChangesDeps
  extends Pick<RosterDeps, "process" | "hosts" | "routes" | "paced" | "clock" | "log"> {
  readonly reach: Pick<AccountReach, "sessionsOf" | "pushTo">;
  readonly turns: AccountTurns;
  readonly metrics: RosterMetrics;
}

/** A change of one item that this node has made. */
interface Change {
  readonly owner: Jid;
  /** Bare JID of the contact. */
  readonly contact: string;
  /** Monotonic milliseconds when it was made. */
  readonly atMs: number;
  /** False when clients see no difference in the item, but a request has come with it. */
  readonly isVisible: boolean;
  /**
   * Version of the roster with it. A later version would tell clients that they have changes of other
   * items, too, which nobody has told them of.
   */
  readonly version: number;
  /** By datacenter: full JIDs of the sessions that were told of it again, and were there the last time. */
  readonly told: Map<string, ReadonlySet<string>>;
}

/** Changes that are remembered; the oldest are forgotten first. */
const MAX_CHANGES = 10_000;
/** Milliseconds for which a change is remembered. */
const KEPT_MS = 86_400_000;
/** Accounts whose sessions are looked up at once. */
const OWNERS_AT_ONCE = 500;

/**
 * Changes of rosters that this node has made in the last day. A datacenter that was cut off meanwhile
 * has got neither their pushes nor the requests for subscriptions. When it is back, the sessions there
 * are told of the items as they are now, once for each change.
 */
export class MissedChanges {
  readonly #deps: MissedChangesDeps;
  /** By owner and contact, the oldest first. */
  readonly #changes = new Map<string, Change>();
  /** Datacenters that wait to be told: one that comes and goes all the time waits once. */
  readonly #due = new Set<string>();
  #isClosed = false;

  constructor(deps: MissedChangesDeps) {
    this.#deps = deps;
  }

  /** Notes that an item has changed, or that a request has come from the contact. */
  note(
    owner: Jid,
    contact: string,
    { isVisible, version }: Pick<Change, "isVisible" | "version">,
  ): void {
    const { hosts, clock } = this.#deps;
    if (owner.domainpart !== hosts.globalHost) return; // its sessions are all at this datacenter
    const key = `${owner.text} ${contact}`; // no bare JID has a space
    const before = this.#changes.get(key);
    this.#changes.delete(key);
    this.#changes.set(key, {
      owner,
      contact,
      atMs: clock.monotonicMs(),
      isVisible: isVisible || before?.isVisible === true,
      version,
      told: new Map(),
    });
    if (this.#changes.size <= MAX_CHANGES) return;
    const [oldest] = this.#changes.keys();
    this.#changes.delete(oldest!); // there are several
  }

  /** Tells the sessions at a datacenter that is back. */
  tell(host: string): void {
    this.#dropOld();
    if (this.#changes.size === 0 || this.#due.has(host)) return;
    const { turns, metrics } = this.#deps;
    const cost = { payer: `missed ${host}`, bytes: 0, kind: "patient" } as const;
    this.#due.add(host);
    const isTaken = turns.run(cost.payer, () => {
      this.#due.delete(host);
      return this.#tellAll(host);
    }, cost);
    if (isTaken) return;
    this.#due.delete(host);
    metrics.failures.inc();
  }

  /** Tells nobody any more. */
  close(): void {
    this.#isClosed = true;
  }

  #dropOld(): void {
    const sinceMs = this.#deps.clock.monotonicMs() - KEPT_MS;
    for (const [key, { atMs }] of this.#changes) {
      if (atMs > sinceMs) return;
      this.#changes.delete(key);
    }
  }

  async #tellAll(host: string): Promise<void> {
    const { process, reach, paced, metrics, log } = this.#deps;
    const byOwner = [...Map.groupBy(this.#changes.values(), ({ owner }) => owner.text).values()];
    for (let at = 0; at < byOwner.length; at += OWNERS_AT_ONCE) {
      const some = byOwner.slice(at, at + OWNERS_AT_ONCE);
      const found = await reach.sessionsOf(some.map(([change]) => change!.owner)); // a group has one
      if (found === undefined) return; // the datacenter is told once more
      for (const changes of some) {
        const { owner } = changes[0]!;
        const sessions = (found.get(owner.text) ?? []).filter((each) =>
          each.host === host && each.process !== process
        )
          .map(({ resourcepart }) => parseJid(`${owner.text}/${resourcepart}`) as FullJid); // it has one
        if (sessions.length === 0) continue;
        for (const change of changes) {
          if (this.#isClosed) return;
          try {
            await paced.run(() => this.#tellOf(change, host, sessions));
          } catch (thrown) {
            metrics.failures.inc();
            log.warn("roster.missed-failed", { error: describeError(thrown) });
            return; // the datacenter is told once more
          }
        }
      }
    }
  }

  /** @throws CausewayError with a code `storage/…` */
  async #tellOf(
    { owner, contact, isVisible, version, told }: Change,
    host: string,
    sessions: readonly FullJid[],
  ): Promise<void> {
    const { hosts, routes, reach } = this.#deps;
    const takers = sessions.filter(({ text }) => told.get(host)?.has(text) !== true);
    const store = hosts.store(owner.domainpart);
    if (takers.length === 0 || store === undefined) return;
    const { item } = await store.find(owner.text, contact);
    // Sessions that are gone are forgotten: a datacenter may name ever new ones.
    told.set(host, new Set(sessions.map(({ text }) => text)));
    const ver = hosts.hasVersions(owner.domainpart) ? version : undefined;
    const written = item?.isListed === true ? writeItem(item) : writeRemoved(contact);
    for (const to of takers) {
      if (isVisible) reach.pushTo(to, owner, writeRosterQuery(written, ver));
      if (item?.request === undefined) continue;
      routes.route(readdress(requestOf(parseJid(contact), owner, item.request), to));
    }
  }
}
