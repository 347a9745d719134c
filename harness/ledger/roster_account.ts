import type { Due } from "./counts.ts";
import { ON_ITS_WAY_MS } from "./allowances.ts";
import { LEARNED_MS } from "./interruptions.ts";
import type { Span } from "./span.ts";

/** A change of one roster item that a client has asked for. */
export class RosterChange {
  readonly account: string;
  readonly item: string;
  /** The new name of the item; undefined removes it. */
  readonly name: string | undefined;
  /** Time of the request. */
  readonly fromMs: number;
  /** Time of the answer; infinite without one. */
  toMs = Infinity;

  constructor({ account, item, name, fromMs }: {
    readonly account: string;
    readonly item: string;
    readonly name: string | undefined;
    readonly fromMs: number;
  }) {
    this.account = account;
    this.item = item;
    this.name = name;
    this.fromMs = fromMs;
  }
}

/** A session that has asked for the roster of its account, and so gets pushes. */
export class RosterSession {
  readonly account: string;
  readonly fromMs: number;
  /** Time of the last push of each item with each name. */
  readonly pushedAtMs = new Map<string, number>();

  constructor(account: string, fromMs: number) {
    this.account = account;
    this.fromMs = fromMs;
  }
}

/** A push that a session is owed. */
interface OwedPush {
  readonly session: RosterSession;
  readonly change: RosterChange;
}

/** Fates of all roster changes. */
export interface RosterBalance {
  readonly changes: number;
  /** Answered by a result. */
  readonly acknowledged: number;
  /** Answered by an error: they may have been made or not. */
  readonly refused: number;
  /** Without an answer, and their session is gone or its client has stopped reading. */
  readonly abandoned: number;
  /** Without an answer, although their session went on. */
  readonly unanswered: number;
  /** Items that were compared with a roster as it was in the end. */
  readonly compared: number;
  /** Rosters that were never compared. */
  readonly unseen: number;
  /** Items that no longer are what the last acknowledged change made them. */
  readonly lost: number;
  /** Pushes of acknowledged changes, outside the fault's own windows. */
  readonly pushes: Due;
  /** The first few findings. */
  readonly examples: readonly string[];
}

const MAX_EXAMPLES = 8;

/**
 * Account of the changes that clients make to rosters. The last acknowledged change of an item must
 * be in the roster in the end. Two changes of which neither was acknowledged before the other was
 * asked for may have been made in either order, and one that was not acknowledged at all may have
 * been made at any time, or not.
 */
export class RosterAccount {
  readonly #nowMs: () => number;
  /** Changes that may be the last one, by account and item. Undefined stands for no change at all. */
  readonly #candidates = new Map<string, Map<string, (RosterChange | undefined)[]>>();
  readonly #open = new Set<RosterChange>();
  readonly #sessions = new Set<RosterSession>();
  #owed: OwedPush[] = [];
  readonly #missed: OwedPush[] = [];
  /** Changes of which a session has got the push. */
  readonly #pushedMs: number[] = [];
  #changes = 0;
  #acknowledged = 0;
  #refused = 0;
  #abandoned = 0;
  #compared = 0;
  readonly #seen = new Set<string>();
  #lost = 0;
  readonly #examples: string[] = [];

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** Changes that wait for an answer. */
  get waiting(): number {
    return this.#open.size;
  }

  /** Notes an item that the account's roster has from the beginning, with this name. */
  prepared(account: string, item: string, name: string): void {
    const change = new RosterChange({ account, item, name, fromMs: -Infinity });
    change.toMs = -Infinity;
    this.#candidatesOf(account).set(item, [change]);
  }

  /** Notes that a client asks for a change: the new name of an item, or undefined to remove it. */
  asked(account: string, item: string, name: string | undefined): RosterChange {
    const change = new RosterChange({ account, item, name, fromMs: this.#nowMs() });
    const items = this.#candidatesOf(account);
    const candidates = items.get(item) ?? [undefined];
    candidates.push(change);
    items.set(item, candidates);
    this.#open.add(change);
    this.#changes++;
    return change;
  }

  /** Notes the result for a change. From now on it holds. */
  acknowledged(change: RosterChange, by?: RosterSession): void {
    this.#open.delete(change);
    this.#acknowledged++;
    this.#holds(change);
    for (const session of this.#sessions) {
      const isOwed = session !== by && session.account === change.account &&
        session.fromMs + LEARNED_MS < change.fromMs;
      if (isOwed) this.#owed.push({ session, change });
    }
    this.#settlePushes();
  }

  /** Notes the error for a change, which then may have been made or not. */
  refused(change: RosterChange, condition: string): void {
    this.#open.delete(change);
    // There was nothing to remove.
    if (condition === "item-not-found" && change.name === undefined) {
      this.#acknowledged++;
      this.#holds(change);
      return;
    }
    this.#refused++;
    this.#show(`refused with ${condition}: ${describe(change)}`);
  }

  /** Notes that the answer to a change may never come: its session is gone, or does not read. */
  abandoned(change: RosterChange): void {
    if (this.#open.delete(change)) this.#abandoned++;
  }

  /** Notes a session that has asked for its roster. */
  opened(account: string): RosterSession {
    const session = new RosterSession(account, this.#nowMs());
    this.#sessions.add(session);
    return session;
  }

  /** Notes that a session is gone. It is owed nothing any more. */
  closed(session: RosterSession): void {
    this.#settlePushes();
    this.#sessions.delete(session);
    this.#owed = this.#owed.filter((each) => each.session !== session);
  }

  /** Notes a push that a session has received. */
  pushed(session: RosterSession, item: string, name: string | undefined): void {
    session.pushedAtMs.set(keyOf(item, name), this.#nowMs());
  }

  /** Compares a roster as it is in the end: the names by item. All changes are settled. */
  found(account: string, roster: ReadonlyMap<string, string>): void {
    this.#seen.add(account);
    for (const [item, candidates] of this.#candidatesOf(account)) {
      this.#compared++;
      const name = roster.get(item);
      if (candidates.some((change) => change?.name === name)) continue;
      this.#lost++;
      const expected = candidates.map((change) => change?.name ?? "no item").join(" or ");
      this.#show(`lost: ${item} of ${account} is ${name ?? "no item"}, expected ${expected}`);
    }
  }

  /** Counts everything up. Pushes of changes within `windows` do not count. */
  balance({ windows }: { readonly windows: readonly Span[] }): RosterBalance {
    this.#settlePushes();
    const isOutside = (atMs: number) =>
      windows.every(({ fromMs, toMs }) => atMs < fromMs - ON_ITS_WAY_MS || atMs > toMs);
    const missed = [...this.#missed, ...this.#owed].filter(({ change }) =>
      isOutside(change.fromMs)
    );
    const came = this.#pushedMs.filter(isOutside).length;
    const examples = [
      ...this.#examples,
      ...missed.slice(0, MAX_EXAMPLES).map(({ change }) => `no push: ${describe(change)}`),
      ...[...this.#open].slice(0, MAX_EXAMPLES).map((change) => `no answer: ${describe(change)}`),
    ];
    return {
      changes: this.#changes,
      acknowledged: this.#acknowledged,
      refused: this.#refused,
      abandoned: this.#abandoned,
      unanswered: this.#open.size,
      compared: this.#compared,
      unseen: this.#candidates.size - this.#seen.size,
      lost: this.#lost,
      pushes: { due: missed.length + came, came },
      examples,
    };
  }

  /** Takes out the earlier candidates that `change` has surely replaced. */
  #holds(change: RosterChange): void {
    change.toMs = this.#nowMs();
    const items = this.#candidatesOf(change.account);
    const candidates = items.get(change.item) ?? [];
    items.set(
      change.item,
      candidates.filter((each) => each === change || (each?.toMs ?? -Infinity) >= change.fromMs),
    );
  }

  /** Takes out what was owed and has come, and what is overdue. */
  #settlePushes(): void {
    const overdueMs = this.#nowMs() - PUSHED_WITHIN_MS;
    this.#owed = this.#owed.filter((owed) => {
      const { session, change } = owed;
      const atMs = session.pushedAtMs.get(keyOf(change.item, change.name)) ?? -Infinity;
      if (atMs >= change.fromMs) this.#pushedMs.push(change.fromMs);
      else if (change.toMs < overdueMs) this.#missed.push(owed);
      else return true;
      return false;
    });
  }

  #candidatesOf(account: string): Map<string, (RosterChange | undefined)[]> {
    let items = this.#candidates.get(account);
    if (items === undefined) this.#candidates.set(account, items = new Map());
    return items;
  }

  #show(example: string): void {
    if (this.#examples.length < MAX_EXAMPLES) this.#examples.push(example);
  }
}

/** A push that takes longer counts as missed. No stanza is on its way for longer. */
const PUSHED_WITHIN_MS = 120_000;

function keyOf(item: string, name: string | undefined): string {
  return `${item} ${name ?? ""}`;
}

function describe({ account, item, name, fromMs, toMs }: RosterChange): string {
  const what = name === undefined ? `removal of ${item}` : `${item} called ${name}`;
  const answer = toMs === Infinity ? "" : `, answered ${Math.round(toMs - fromMs)} ms later`;
  return `${what} in the roster of ${account}, asked for at ${Math.round(fromMs)}${answer}`;
}
