import type { BackoffOptions, CancelTimer, Pauses } from "../../base/mod.ts";
import { backoffMs, CausewayError, describeError } from "../../base/mod.ts";
import type { BareJid, FullJid, XmlElement } from "../../xmpp/mod.ts";
import { parseJid, Turns } from "../../xmpp/mod.ts";
import type { AppliedList, Privacy, PrivacyRoster } from "./account_privacy.ts";
import { AccountPrivacy, NO_LIST, NO_PRIVACY, viewOf } from "./account_privacy.ts";
import { isDamaged } from "./default_lists.ts";
import type { PrivacyList } from "./privacy_list.ts";
import type { PrivacyMetrics } from "./privacy_metrics.ts";
import type { PrivacyDeps } from "./privacy_ports.ts";
import { activeSignal, blockingPushes } from "./privacy_pushes.ts";
import type { StoredLists } from "./stored_lists.ts";
import { VersionBatches } from "./version_batches.ts";

/** Attempts to read lists that have changed elsewhere. Later the regular look finds them. */
const MAX_READS = 10;
/** Milliseconds after which an account's lists are looked at again: several times a replication delay. */
const LOOK_AGAIN_MS = 5_000;
const READ_PAUSES: BackoffOptions = { firstMs: 500, maxMs: 30_000, jitter: 0.5 };

/** Condition of the error for a session whose account's lists cannot be read. */
export type PrivacyFailure = "internal-server-error" | "resource-constraint";

/** Objects behind `ListsHere`. */
export interface ListsHereDeps extends Pick<PrivacyDeps, "hosts" | "changed" | "clock" | "log"> {
  readonly stored: StoredLists;
  readonly metrics: PrivacyMetrics;
  readonly pauses: Pauses;
  /** Sends a request in the name of the account to one of its sessions. */
  push(to: FullJid, payload: XmlElement): void;
}

/**
 * The sessions at this node, and the lists that they go by. The lists of an account are read when a
 * session opens, and stay in memory until its last session here is gone.
 */
export class ListsHere {
  readonly #deps: ListsHereDeps;
  readonly #versions: VersionBatches;
  /** Sessions here of every account whose host has lists. */
  readonly #here = new Map<string, SessionsHere>();
  /** Accounts among them that have, or had, lists. */
  readonly #accounts = new Map<string, AccountPrivacy>();
  /** Reads and changes of one account run one after another. */
  readonly #turns = new Turns();
  /** Reads that have not begun, by account: whoever needs one joins it. */
  readonly #reads = new Map<string, Promise<void>>();

  constructor(deps: ListsHereDeps) {
    this.#deps = deps;
    this.#versions = new VersionBatches((host) => deps.stored.store(host));
  }

  /** Accounts with sessions here that have, or had, lists. */
  get size(): number {
    return this.#accounts.size;
  }

  /** Returns the lists of an account with sessions here, if it has, or had, any. */
  accountOf({ text }: BareJid): AccountPrivacy | undefined {
    return this.#accounts.get(text);
  }

  /** Returns the resources of an account here. */
  resourcesOf({ text }: BareJid): readonly string[] {
    return [...this.#here.get(text)?.resources.keys() ?? []];
  }

  /** True for an account whose lists a session here keeps current. */
  isRead({ text }: BareJid): boolean {
    return this.#here.get(text)?.isRead === true;
  }

  /** Runs a change of an account's lists: no other change, and no read, happens meanwhile. */
  inTurn<T>({ text }: BareJid, change: () => Promise<T>): Promise<T> {
    return this.#turns.run(text, change);
  }

  /** Waits until nothing is read or written any more. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /**
   * Reads the lists of an account before its session gets or sends anything. `closed` follows, if
   * this fails too. Never rejects.
   *
   * @returns the condition of the error when the lists cannot be read: without them nobody would be
   * kept out
   */
  async opening(session: FullJid): Promise<PrivacyFailure | undefined> {
    const { bare, resourcepart } = session;
    if (this.#deps.hosts.store(bare.domainpart) === undefined) return undefined;
    let here = this.#here.get(bare.text);
    if (here === undefined) {
      this.#here.set(
        bare.text,
        here = { resources: new Map(), isRead: false, cancelLook: () => {} },
      );
    }
    const own: SessionHere = { isOpen: false, follows: "no", mayHaveActive: false };
    here.resources.set(resourcepart, own);
    try {
      await this.readSoon(bare);
      // A node that changes the lists just now may not know of the session yet, and pushes nothing to it.
      if (!here.isRead) {
        here.cancelLook = this.#deps.clock.after(LOOK_AGAIN_MS, () => void this.readLater(bare));
      }
      here.isRead = own.isOpen = true;
      return undefined;
    } catch (thrown) {
      own.isOpen = here.isRead; // another session keeps the lists current
      if (own.isOpen) return undefined;
      this.failed("privacy.unread", thrown);
      return codeOf(thrown) === "storage/pool-full"
        ? "resource-constraint"
        : "internal-server-error";
    }
  }

  /** A session came from another node: whether its client uses the block list is not known. */
  arrived(session: FullJid): void {
    const here = this.find(session);
    if (here === undefined) return;
    here.follows = "perhaps";
    here.mayHaveActive = true;
  }

  /** Forgets a session that has ended, or has moved away. Its active list follows it there. */
  closed(session: FullJid): void {
    const { bare, resourcepart } = session;
    const account = this.#accounts.get(bare.text);
    const active = account?.active.get(resourcepart);
    if (active !== undefined) {
      account!.active.delete(resourcepart);
      this.#deps.push(session, activeSignal(active.name));
    }
    const here = this.#here.get(bare.text);
    here?.resources.delete(resourcepart);
    if (here?.resources.size !== 0) return;
    here.cancelLook();
    this.#here.delete(bare.text);
    this.#accounts.delete(bare.text);
  }

  /**
   * Looks whether the lists of accounts with sessions here have changed, or the rosters that they need,
   * where news of it was lost. Never rejects.
   */
  async look(host: string, localparts: readonly string[]): Promise<void> {
    const store = this.#deps.hosts.store(host);
    if (store === undefined || this.#deps.pauses.isClosed) return;
    try {
      const versions = await store.versions(localparts);
      for (const localpart of localparts) {
        const text = `${localpart}@${host}`;
        const known = this.#accounts.get(text);
        const isSame = (known?.privacy.version ?? 0) === (versions.get(localpart) ?? 0);
        // The version says nothing of the roster, whose push may have been lost.
        if (!this.#here.has(text) || (isSame && known?.roster === undefined)) continue;
        await this.readSoon(parseJid(text).bare, true).catch((thrown) => {
          // The lists of this account are damaged. Another failure would meet the next one as well.
          if (!isDamaged(thrown)) throw thrown;
          this.failed("privacy.unread", thrown);
        });
      }
    } catch (thrown) {
      this.failed("privacy.unchecked", thrown);
    }
  }

  /** Makes a list the active list of a session here; undefined ends the use of one. */
  setActive(session: FullJid, account: AccountPrivacy, list: PrivacyList | undefined): void {
    const before = account.appliedTo(session.resourcepart);
    if (list === undefined) account.active.delete(session.resourcepart);
    else account.active.set(session.resourcepart, list);
    this.#reviewed(session, before, account.appliedTo(session.resourcepart));
  }

  /** Reads lists that have changed elsewhere, again and again until it succeeds. Never rejects. */
  async readLater(account: BareJid, isForced = false): Promise<void> {
    for (let attempt = 1; attempt <= MAX_READS; attempt++) {
      if (this.#deps.pauses.isClosed || !this.#here.has(account.text)) return;
      try {
        return await this.readSoon(account, isForced);
      } catch (thrown) {
        this.failed("privacy.unread", thrown);
      }
      if (this.#deps.pauses.isClosed || attempt === MAX_READS) return;
      await this.#deps.pauses.pause(backoffMs(attempt, READ_PAUSES));
    }
  }

  /**
   * Reads the lists of an account with sessions here, if they have changed.
   *
   * @param isForced reads them in any case, and the roster with them
   * @throws CausewayError with a code `storage/…`
   */
  readSoon(account: BareJid, isForced = false): Promise<void> {
    const key = isForced ? `! ${account.text}` : account.text;
    const waiting = this.#reads.get(key);
    if (waiting !== undefined) return waiting;
    const read = this.#turns.run(account.text, async () => {
      await null; // so that `#reads` has this read, and has it no more once it asks the database
      this.#reads.delete(key);
      const { domainpart, localpart, text } = account;
      const known = this.#accounts.get(text);
      if (!isForced) {
        const version = await this.#versions.find(domainpart, localpart);
        if (version === (known?.privacy.version ?? 0)) return;
      }
      const found = await this.#deps.stored.read(account, known);
      this.apply(account, found?.privacy ?? NO_PRIVACY, found?.roster);
    });
    this.#reads.set(key, read);
    return read;
  }

  /**
   * Applies what is stored now to all sessions of the account here, which may have ended meanwhile.
   * Clients hear of what changes in the block list by that: in order, whichever pushes are lost or late.
   */
  apply(account: BareJid, privacy: Privacy, roster: PrivacyRoster | undefined): void {
    const here = this.#here.get(account.text);
    if (here === undefined) return;
    const open = [...here.resources].filter(([, { isOpen }]) => isOpen);
    let known = this.#accounts.get(account.text);
    const pushes = blockingPushes(known?.privacy ?? NO_PRIVACY, privacy);
    const before = open.map(([resourcepart]) => known?.appliedTo(resourcepart) ?? NO_LIST);
    if (known !== undefined) known.update(privacy, roster);
    else this.#accounts.set(account.text, known = new AccountPrivacy(account, privacy, roster));
    for (const [index, [resourcepart, { follows }]] of open.entries()) {
      const session = parseJid(`${account.text}/${resourcepart}`) as FullJid; // it has a resource
      if (follows !== "no") {
        for (const payload of pushes) this.#deps.push(session, payload);
      }
      this.#reviewed(session, before[index]!, known.appliedTo(resourcepart));
    }
    if (privacy.version === 0 && known.active.size === 0) this.#accounts.delete(account.text);
  }

  #reviewed(session: FullJid, before: AppliedList, after: AppliedList): void {
    const isSame = before.list === after.list &&
      (before.roster === after.roster || after.list?.needsRoster !== true);
    if (isSame) return;
    this.#deps.changed(session, { before: viewOf(session, before), after: viewOf(session, after) });
  }

  /** Returns a session of this node. */
  find({ bare, resourcepart }: FullJid): SessionHere | undefined {
    return this.#here.get(bare.text)?.resources.get(resourcepart);
  }

  /** Counts and logs that lists could not be read, or looked at. */
  failed(event: string, thrown: unknown): void {
    this.#deps.metrics.failures.inc();
    this.#deps.log.warn(event, { error: describeError(thrown) });
  }
}

/** A session at this node. One that takes its full JID later is another one. */
export interface SessionHere {
  /** False until the lists have been read for it. Until then no list is a change for it. */
  isOpen: boolean;
  /**
   * Says whether the client gets pushes of the block list (XEP-0191 §3.3). "perhaps": it came from
   * another node, where it may have asked for that list, and may have heard of other changes.
   */
  follows: "no" | "yes" | "perhaps";
  /**
   * True for a session that came from another node, until that node has told its active list, or its
   * client has chosen.
   */
  mayHaveActive: boolean;
}

/** The sessions of an account at this node. */
interface SessionsHere {
  readonly resources: Map<string, SessionHere>;
  /** True once the lists were read for one of them. */
  isRead: boolean;
  /** Ends the wait for the second look at the lists. */
  cancelLook: CancelTimer;
}

function codeOf(thrown: unknown): string | undefined {
  return thrown instanceof CausewayError ? thrown.code : undefined;
}
