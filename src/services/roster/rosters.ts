import { describeError } from "../../base/mod.ts";
import type { Roster, RosterItem, RosterStore } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { IqAnswer } from "../iq_service.ts";
import type { AccountReach } from "./account_reach.ts";
import type { RosterChange } from "./change_roster.ts";
import { changeRoster } from "./change_roster.ts";
import { PassedPushes } from "./passed_pushes.ts";
import { changesSince } from "./roster_changes.ts";
import type { RosterMetrics } from "./roster_metrics.ts";
import type { RosterDeps } from "./roster_ports.ts";
import type { RosterSet } from "./roster_query.ts";
import { writeItem, writeRemoved, writeRosterQuery } from "./roster_query.ts";
import { isVisibleChange, unlistedItem } from "./subscription_state.ts";

/** Collaborators of `Rosters`. */
export interface RostersDeps
  extends Pick<RosterDeps, "hosts" | "bounds" | "paced" | "clock" | "log"> {
  readonly reach: AccountReach;
  readonly metrics: RosterMetrics;
  /** Called when a client is told a whole roster, or all that has changed up to this version. */
  told(client: FullJid, version: number): void;
  /** Called with each change that clients can see, and its version, before they are told. */
  changed(owner: Jid, contact: string, version: number): void;
  /** Ends what the owner and a contact whose item was removed see of each other. */
  parted(owner: Jid, contact: Jid, before: RosterItem | undefined): Promise<void>;
}

/** A client's request for its roster. */
interface RosterRequest {
  readonly owner: Jid;
  readonly client: FullJid;
  /** The version that the client has; undefined: it does not ask for versions. */
  readonly known: string | undefined;
  /** Resolves when the answer may go out; undefined: at once. */
  readonly checked: Promise<unknown> | undefined;
}

/** Place of a change: one item of a roster. */
interface ChangePlace {
  readonly owner: Jid;
  readonly contact: string;
  /**
   * True while the owner is the account that the change is for, and nobody who took its name. Never
   * rejects. @default nobody asks: the change leaves nothing in the roster of another account
   */
  readonly isStill?: (() => Promise<boolean>) | undefined;
}

/** A step between a change and its pushes. */
interface ChangeSteps<T> {
  /** Runs once the change is on the disk, or was not needed, and before clients get it as a push. */
  readonly beforePush?: (change: RosterChange<T>) => Promise<void>;
}

/** Most reads for one request: each push that overtakes the answer costs one more. */
const MAX_READS = 5;

/** Rosters as clients read and change them (RFC 6121 §2). */
export class Rosters {
  readonly #deps: RostersDeps;
  readonly #pushes = new PassedPushes();

  constructor(deps: RostersDeps) {
    this.#deps = deps;
  }

  /**
   * Answers a roster get. The client gets pushes from the moment it asks, so the roster is read again
   * when a push passes to it between the read and the answer. Otherwise the answer could undo the push.
   */
  async get(request: RosterRequest): Promise<IqAnswer> {
    const { paced } = this.#deps;
    const { owner, client } = request;
    const read = () => this.#store(owner).read(owner.text);
    using watch = this.#pushes.watch(client);
    const { contacts: pushed } = watch;
    const roster = await paced.run(read);
    await request.checked;
    let answer = await paced.run(() =>
      pushed.size === 0 ? this.#answer(roster, request) : undefined
    );
    for (let reads = 2; answer === undefined; reads++) {
      answer = await paced.run(async () => {
        pushed.clear();
        const again = await read();
        // Written in the same turn: no push can pass between.
        const mayAnswer = pushed.size === 0 || reads === MAX_READS;
        return mayAnswer ? this.#answer(again, request) : undefined;
      });
    }
    return answer;
  }

  /** Notes a roster push that is about to be delivered to a client here. Never throws. */
  pushed(push: Stanza): void {
    this.#pushes.passed(push);
  }

  #answer(roster: Roster, { owner, client, known }: RosterRequest): IqAnswer {
    const { hosts, clock, reach } = this.#deps;
    const hasVersions = known !== undefined && hosts.hasVersions(owner.domainpart);
    const changes = hasVersions ? changesSince(roster, known) : undefined;
    this.#deps.told(client, roster.version);
    if (changes === undefined) {
      let items = "";
      for (const item of roster.items) if (item.isListed) items += writeItem(item);
      return { written: writeRosterQuery(items, hasVersions ? roster.version : undefined) };
    }
    if (changes.length > 0) {
      const watch = this.#pushes.watch(client);
      // The pushes follow the result, which goes out before the next turn of the event loop.
      clock.after(0, () => {
        watch[Symbol.dispose]();
        for (const item of changes) {
          if (watch.contacts.has(item.jid)) continue; // the client has a newer one
          reach.pushTo(client, owner, writeRosterQuery(writeItem(item), item.version));
        }
      });
    }
    return "empty";
  }

  /**
   * Applies a roster set.
   * @param isStill see `ChangePlace`
   */
  async set(owner: Jid, set: RosterSet, isStill?: ChangePlace["isStill"]): Promise<IqAnswer> {
    const { bounds } = this.#deps;
    if (set.kind === "remove") return await this.#remove(owner, set.contact, isStill);
    const { contact, name, groups } = set;
    const place = { owner, contact, isStill };
    const change = await this.change<"ok" | "full">(place, ({ item, ...entry }) => {
      const isNew = item?.isListed !== true;
      if (isNew && entry.items - entry.requests >= bounds.maxItems) return { item, result: "full" };
      const listed = { ...item ?? unlistedItem(contact), name, groups, isListed: true };
      return { item: isVisibleChange(item, listed) ? listed : item, result: "ok" };
    });
    if (change === undefined) return { error: "registration-required" };
    if (change.result === "full") return { error: "resource-constraint" };
    // RFC 6121 §2.4.2: each set is pushed. A repeated one may be of a node that died before its push.
    if (change.item === change.before) await this.#tell(owner, contact, change);
    return "empty";
  }

  /**
   * Changes one item of a roster, and tells the owner's clients of what they can see of it. Resolves to
   * undefined when the account was deleted meanwhile: its roster has nothing of the change then.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async change<T>(
    { owner, contact, isStill }: ChangePlace,
    decide: Parameters<typeof changeRoster<T>>[2],
    { beforePush }: ChangeSteps<T> = {},
  ): Promise<RosterChange<T> | undefined> {
    const { clock, metrics } = this.#deps;
    const change = await changeRoster(
      this.#store(owner),
      { owner: owner.text, contact, clock, isStill },
      decide,
    );
    if (change === undefined) return undefined;
    const { before, item } = change;
    if (item === before) {
      await beforePush?.(change);
      return change;
    }
    if (await isStill?.() === false) {
      // Nobody who takes the name gets the item. What they have noted of the contact since stays.
      await this.change({ owner, contact }, (found) => {
        const isLeft = found.item !== undefined && item !== undefined &&
          isSameItem(found.item, item);
        return { item: isLeft ? undefined : found.item, result: undefined };
      });
      return undefined;
    }
    metrics.changes.inc();
    await beforePush?.(change);
    if (isVisibleChange(before, item)) await this.#tell(owner, contact, change);
    return change;
  }

  /** Pushes an item to the owner's clients, as the roster has it at this version. */
  async #tell(
    owner: Jid,
    contact: string,
    { item, version }: Pick<RosterChange<unknown>, "item" | "version">,
  ): Promise<void> {
    const { hosts, reach, log } = this.#deps;
    this.#deps.changed(owner, contact, version);
    const told = item?.isListed === true ? writeItem(item) : writeRemoved(contact);
    const ver = hosts.hasVersions(owner.domainpart) ? version : undefined;
    try {
      await reach.push(owner, writeRosterQuery(told, ver));
    } catch (thrown) {
      log.error("roster.push-failed", { error: describeError(thrown) }); // a bug: nothing rejects
    }
  }

  async #remove(
    owner: Jid,
    contact: string,
    isStill: ChangePlace["isStill"],
  ): Promise<IqAnswer> {
    const change = await this.change({ owner, contact, isStill }, ({ item }) => ({
      item: item?.isListed === true ? undefined : item,
      result: undefined,
    }));
    if (change === undefined) return { error: "registration-required" };
    const { before, item } = change;
    if (item !== undefined) return { error: "item-not-found" }; // a request, which clients do not see
    // Without an item, too: a client repeats what a node that has died did not answer.
    await this.#deps.parted(owner, parseJid(contact), before);
    return before === undefined ? { error: "item-not-found" } : "empty";
  }

  #store({ domainpart }: Jid): RosterStore {
    const store = this.#deps.hosts.store(domainpart);
    if (store === undefined) {
      throw new TypeError(`Cannot use rosters of ${domainpart}: it has none`);
    }
    return store;
  }
}

function isSameItem(one: RosterItem, other: RosterItem): boolean {
  const [first, second] = [one, other].map((item) => {
    const { jid, name, groups, subscription, isAsking, isApproved, isListed, request } = item;
    const hex = request?.toHex() ?? null;
    return JSON.stringify([jid, name, groups, subscription, isAsking, isApproved, isListed, hex]);
  });
  return first === second;
}
