import { CausewayError } from "../base/mod.ts";
import type { PrivateChange, RosterItem } from "../storage/mod.ts";
import { parseElement, serialize } from "../xmpp/mod.ts";
import { AccountLock } from "./account_lock.ts";
import { MessagesMark } from "./messages_mark.ts";
import type { MovedAccount, MovedKind } from "./moved_account.ts";
import { takeNodes } from "./take_nodes.ts";
import { takePrivacy } from "./take_privacy.ts";
import type { TakingImport } from "./taking_deps.ts";

/** Messages that one step writes. */
const MESSAGES_AT_ONCE = 64;

/**
 * The data of one account of another server, on its way into our stores. What is here already stays as
 * it is.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when a backend cannot
 * do it; to repeat the call is safe.
 */
export class AccountData {
  /** Data that were not taken, or not as they stood. */
  readonly findings: { readonly kind: MovedKind; readonly reason: string }[] = [];
  readonly #account: MovedAccount;
  readonly #deps: TakingImport;
  #lock: AccountLock | undefined;

  constructor(account: MovedAccount, deps: TakingImport) {
    this.#account = account;
    this.#deps = deps;
  }

  note(kind: MovedKind, reason: string): void {
    this.findings.push({ kind, reason });
  }

  /**
   * Takes data while no other import gives the account messages.
   *
   * @returns false when another one does, and nothing was taken
   * @throws CausewayError with a code `storage/…`
   */
  async alone(take: () => Promise<void>): Promise<boolean> {
    const { stores, importId, offlineOptionsOf, nowMs } = this.#deps;
    const { jid, messages } = this.#account;
    if (messages.length === 0 || offlineOptionsOf(jid.domainpart) === undefined) {
      await take();
      return true;
    }
    const store = stores.offlineMessages(jid.domainpart);
    this.#lock = await AccountLock.take(store, jid, { importId, nowMs: nowMs() });
    if (this.#lock === undefined) return false;
    try {
      await take();
    } finally {
      await this.#lock.release();
    }
    return true;
  }

  /** True for an account that has any of the data that are taken behind the messages. */
  async #hasData(): Promise<boolean> {
    const { stores } = this.#deps;
    const { text, localpart, domainpart } = this.#account.jid;
    const vcards = stores.vcards(domainpart);
    // The version of a roster does not count contacts that a directory gives.
    return (await stores.rosters(domainpart).read(text)).version > 0 ||
      (vcards.isReadOnly !== true && await vcards.read(localpart) !== undefined) ||
      (await stores.privateStorage(domainpart).all(localpart)).length > 0 ||
      (await stores.privacyLists(domainpart).read(localpart)).version > 0 ||
      (await stores.pep(domainpart).nodes(localpart)).length > 0 ||
      await stores.lastLogouts(domainpart).read(localpart) !== undefined;
  }

  /**
   * Takes all but the keys.
   *
   * @param isNew false for an account that may have got its messages already
   */
  async take(isNew: boolean): Promise<void> {
    await this.#messages(isNew);
    await this.#otherData();
  }

  /**
   * Takes the data of an account of a directory. Messages come first: an account that has other data
   * may have got them from an import that left no mark.
   */
  async takeOfDirectory(): Promise<void> {
    const { stores, importId, offlineOptionsOf, nowMs } = this.#deps;
    const { jid, messages } = this.#account;
    if (messages.length > 0 && offlineOptionsOf(jid.domainpart) !== undefined) {
      const store = stores.offlineMessages(jid.domainpart);
      await this.#messagesOnce(
        await MessagesMark.read(store, jid, { importId, nowMs: nowMs() }),
      );
    } else await this.#messages(false);
    await this.#otherData();
  }

  async #messagesOnce(mark: MessagesMark): Promise<void> {
    const isOwn = mark.owner === "this";
    if (isOwn && mark.reasons !== undefined) {
      for (const reason of mark.reasons) this.note("offline", reason);
      return;
    }
    if (!isOwn && (mark.owner !== undefined || await this.#hasData())) {
      return await this.#messages(false);
    }
    if (!isOwn) await mark.begin();
    const before = this.findings.length;
    await this.#messages(true);
    await mark.end(this.findings.slice(before).map(({ reason }) => reason));
  }

  async #otherData(): Promise<void> {
    await this.#roster();
    await this.#vcard();
    await this.#private();
    await this.#privacy();
    await this.#nodes();
    const { jid: { localpart, domainpart }, last } = this.#account;
    if (last !== undefined) {
      await this.#deps.stores.lastLogouts(domainpart).note([{ localpart, ...last }]);
    }
  }

  /** Removes the data of an account that is gone: no later owner of the name may get them. */
  async removeAll(): Promise<void> {
    const { stores } = this.#deps;
    const { jid: { text, localpart, domainpart } } = this.#account;
    await stores.offlineMessages(domainpart).removeAll(localpart);
    await stores.rosters(domainpart).removeAll(text);
    const vcards = stores.vcards(domainpart);
    if (vcards.isReadOnly !== true) await vcards.remove(localpart);
    await stores.privateStorage(domainpart).removeAll(localpart);
    await stores.privacyLists(domainpart).removeAll(localpart);
    await stores.pep(domainpart).removeAll(localpart);
    await stores.lastLogouts(domainpart).remove(localpart);
  }

  async #roster(): Promise<void> {
    const { jid, roster } = this.#account;
    if (roster.length === 0) return;
    const store = this.#deps.stores.rosters(jid.domainpart);
    const kept = new Set<string>();
    const left = await takeFitting(roster, async (some) => {
      for (const contact of await store.fill(jid.text, some)) kept.add(contact);
      return true;
    });
    for (const [item, reason] of left) this.note("roster", `contact ${item.jid}: ${reason}`);
    if (kept.size === 0) return;
    const items = new Map((await store.read(jid.text)).items.map((item) => [item.jid, item]));
    for (const item of roster) {
      if (!kept.has(item.jid) || areEqual(item, items.get(item.jid))) continue;
      this.note("roster", `contact ${item.jid}: it is in the roster already, and differs`);
    }
  }

  async #messages(isNew: boolean): Promise<void> {
    const { jid: { localpart, domainpart }, messages } = this.#account;
    if (messages.length === 0) return;
    const options = this.#deps.offlineOptionsOf(domainpart);
    if (options === undefined) {
      return this.note("offline", `${messages.length} messages: the host keeps none (mod_offline)`);
    }
    const store = this.#deps.stores.offlineMessages(domainpart);
    // Somebody may have sent the same text twice.
    const here = new Map<string, number>();
    for (const { stanza } of await store.all(localpart)) {
      here.set(textOf(stanza), (here.get(textOf(stanza)) ?? 0) + 1);
    }
    const missing = messages.filter(({ stanza }) => {
      const left = here.get(textOf(stanza)) ?? 0;
      here.set(textOf(stanza), left - 1);
      return left <= 0;
    });
    if (missing.length === 0) return;
    if (!isNew) {
      const reason =
        `${missing.length} messages: the account is here, and may have got them already`;
      return this.note("offline", reason);
    }
    const nowMs = this.#deps.nowMs();
    const lasting = missing.filter(({ expiresAtMs = Infinity }) => expiresAtMs > nowMs);
    let kept = 0;
    let tooLarge = 0;
    for (let from = 0; from < lasting.length; from += MESSAGES_AT_ONCE) {
      if (from > 0 && await this.#lock?.renew() === false) throw lockLost(this.#account);
      const some = lasting.slice(from, from + MESSAGES_AT_ONCE).map((each) => ({
        sender: each.sender,
        stanza: each.stanza,
        sentAtMs: each.sentAtMs ?? nowMs,
        expiresAtMs: Math.min(each.expiresAtMs ?? Infinity, nowMs + options.lifetimeMs),
      }));
      const left = await takeFitting(some, async (part) => {
        kept += (await store.keep(localpart, part, options)).filter((isKept) => isKept).length;
        return true;
      });
      tooLarge += left.length;
    }
    if (tooLarge > 0) {
      this.note("offline", `${tooLarge} messages: they are too large for the database`);
    }
    const lost = missing.length - kept - tooLarge;
    if (lost > 0) this.note("offline", `${lost} messages: they have expired, or there is no room`);
  }

  async #vcard(): Promise<void> {
    const { jid: { localpart, domainpart }, vcard } = this.#account;
    if (vcard === undefined) return;
    const store = this.#deps.stores.vcards(domainpart);
    if (store.isReadOnly === true) {
      return this.note("vcard", "the host's vCards are kept in a directory");
    }
    const existing = await store.read(localpart);
    if (existing === undefined) {
      const left = await takeFitting([vcard], async () => {
        await store.write(localpart, vcard);
        return true;
      });
      for (const [, reason] of left) this.note("vcard", reason);
    } else if (unmarked(existing) !== vcard) this.note("vcard", "there is another one already");
  }

  async #private(): Promise<void> {
    const { jid: { localpart, domainpart }, privateElements } = this.#account;
    if (privateElements.length === 0) return;
    const store = this.#deps.stores.privateStorage(domainpart);
    const existing = new Map<string, string>();
    for (const xml of await store.all(localpart)) {
      const { name, namespace } = parseElement(new TextEncoder().encode(xml));
      existing.set(`${name} ${namespace}`, unmarked(xml));
    }
    const missing: PrivateChange[] = [];
    for (const change of privateElements) {
      const found = existing.get(`${change.name} ${change.namespace}`);
      if (found === undefined) missing.push(change);
      else if (found !== change.xml) {
        this.note("private", `element ${nameOf(change)}: there is another one already`);
      }
    }
    if (missing.length === 0) return;
    const bounds = this.#deps.privateBoundsOf(domainpart);
    const left = await takeFitting(
      missing,
      async (some) => await store.change(localpart, some, bounds) === "done",
    );
    for (const [change, reason] of left) {
      this.note("private", `element ${nameOf(change)}: ${reason}`);
    }
  }

  async #privacy(): Promise<void> {
    const { jid: { localpart, domainpart }, privacy } = this.#account;
    if (privacy.lists.length === 0) return;
    const options = this.#deps.privacyOptionsOf(domainpart);
    if (options === undefined) {
      const reason = "the host has none (mod_privacy), and no block list (mod_blocking)";
      return this.note("privacy", `${privacy.lists.length} lists: ${reason}`);
    }
    const store = this.#deps.stores.privacyLists(domainpart);
    const note = (reason: string) => this.note("privacy", reason);
    await takePrivacy(localpart, privacy, { ...options, store, note });
  }

  async #nodes(): Promise<void> {
    const { jid, nodes } = this.#account;
    if (nodes.length === 0) return;
    const limits = this.#deps.pepLimitsOf(jid.domainpart);
    if (limits === undefined) {
      return this.note("pep", `${nodes.length} nodes: the host has none (mod_pubsub)`);
    }
    const store = this.#deps.stores.pep(jid.domainpart);
    const note = (reason: string) => this.note("pep", reason);
    await takeNodes(jid, nodes, { store, limits, note });
  }
}

/** The process, or the database, stood still for so long that the lock has ended. */
function lockLost({ jid }: MovedAccount): CausewayError {
  return new CausewayError(
    "migration/in-use",
    `Cannot take ${jid.text}: another import takes it; repeat the import to go on`,
    { retryable: true },
  );
}

/**
 * Takes items together, or else in halves: all that a store does not refuse alone.
 *
 * @param take false: the account has no room for them, and none of them was taken
 * @returns the items that are left, each with the reason
 */
async function takeFitting<T>(
  items: readonly T[],
  take: (some: readonly T[]) => Promise<boolean>,
): Promise<readonly (readonly [item: T, reason: string])[]> {
  let reason = "the account has no room for it";
  try {
    if (await take(items)) return [];
  } catch (thrown) {
    if (!(thrown instanceof CausewayError) || thrown.code !== "storage/value-too-large") {
      throw thrown;
    }
    reason = "it is too large for the database";
  }
  if (items.length === 1) return items.map((item) => [item, reason]);
  const half = items.length >> 1;
  return [
    ...await takeFitting(items.slice(0, half), take),
    ...await takeFitting(items.slice(half), take),
  ];
}

/** Returns an element as it is written without the mark of `storedElement`. */
function unmarked(xml: string): string {
  return serialize(parseElement(new TextEncoder().encode(xml)));
}

function nameOf({ name, namespace }: PrivateChange): string {
  return `${name} of ${namespace}`;
}

function areEqual(one: RosterItem, other: RosterItem | undefined): boolean {
  return other !== undefined && factsOf(one) === factsOf(other);
}

function factsOf(item: RosterItem): string {
  const { name, groups, subscription, isAsking, isApproved, isListed, request } = item;
  const hasRequest = request !== undefined;
  return JSON.stringify([
    name,
    groups.toSorted(),
    subscription,
    isAsking,
    isApproved,
    isListed,
    hasRequest,
  ]);
}

function textOf(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
