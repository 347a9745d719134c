import { createHash, timingSafeEqual } from "node:crypto";
import { CausewayError } from "../base/mod.ts";
import type { PepLimits } from "../services/pep/mod.ts";
import type {
  OfflineBounds,
  PrivateBounds,
  PrivateChange,
  RosterItem,
  Stores,
} from "../storage/mod.ts";
import { removeUnownedMessages } from "../storage/mod.ts";
import type { CompleteCredentials, ScramCredentials, ScramSecret } from "../xmpp/mod.ts";
import { parseElement, serialize } from "../xmpp/mod.ts";
import { AccountLock } from "./account_lock.ts";
import { MessagesMark } from "./messages_mark.ts";
import type { MovedAccount, MovedKind, MovedLogin } from "./moved_account.ts";
import { takeNodes } from "./take_nodes.ts";

/** Stores that accounts are taken to, with the rules for it. */
export interface TakingDeps {
  readonly stores: Pick<
    Stores,
    | "users"
    | "rosters"
    | "vcards"
    | "privateStorage"
    | "pep"
    | "lastLogouts"
    | "offlineMessages"
    | "archives"
  >;
  /** Hosts whose accounts are taken. */
  readonly hosts: readonly string[];
  /** Returns the limits on the private storage of an account of a host. */
  privateBoundsOf(host: string): PrivateBounds;
  /** Returns the limits on the personal eventing of an account of a host; undefined: it has none. */
  pepLimitsOf(host: string): PepLimits | undefined;
  /** Returns the limits on messages that wait at a host, and milliseconds for which they do. */
  offlineOptionsOf(host: string): OfflineBounds & { readonly lifetimeMs: number } | undefined;
  /** Wall-clock milliseconds. */
  nowMs(): number;
  /** Derives the keys of a new password. Rejects with `sasl/password-unusable` for a bad one. */
  derive(password: string): Promise<CompleteCredentials>;
  /** Returns true when a password belongs to these keys. */
  verify(credentials: ScramCredentials, password: string): Promise<boolean>;
  /** Waits for a second, in which another import may go on with accounts that it has reserved. */
  waitForOther(): Promise<void>;
}

/** An import that takes accounts. */
export interface TakingImport extends TakingDeps {
  /** Text that no other import has. It stays the same when this one is continued. */
  readonly importId: string;
  /** True: takes accounts that another import has reserved. That one has come to an end. */
  readonly takesReserved: boolean;
}

/** Findings about an account that an operator or its owner has deleted. */
const DELETED = "it was deleted while it was taken";
const REPLACED =
  "it was deleted while it was taken, and its name has a new owner, who may have got " +
  "some of its data";

/** Findings about an account of a host whose accounts are in a directory. */
const NOT_IN_DIRECTORY = "the directory that keeps the host's accounts has none of this name";
const IN_DIRECTORY =
  "the host's accounts are kept in a directory, which checks the password itself";

/** Messages that one step writes. */
const MESSAGES_AT_ONCE = 64;

/** Result of taking one account. */
export interface Taken {
  /** `there`: it existed already. `refused`: nothing of it was taken. */
  readonly outcome: "added" | "there" | "refused";
  /** Keys of an account that was added and has one only. */
  readonly onlyKey?: "SHA-1" | "SHA-256";
  readonly findings: readonly { readonly kind: MovedKind; readonly reason: string }[];
}

/** An account that is here with its data, and lacks its keys: nobody can log in yet. */
export interface Reserved {
  /** See `AccountCredentials.creation`. */
  readonly creation: string;
  /** The result, if the keys go to this very account. */
  readonly taken: Taken;
  /**
   * Gives the account its keys, unless somebody has given it a password.
   * @throws CausewayError with a code `storage/…`; it may have them then
   */
  finish(): Promise<Taken>;
}

/**
 * Takes an account with its data. What is here already stays as it is, so that to repeat it is safe.
 *
 * A new account comes first, with keys that no password has, so that nobody can log in or take the
 * name. Then come its data, and last its keys. If the process is killed in between and never
 * continues, no later owner of the name gets the data: an operator deletes the account, or gives it a
 * password.
 *
 * Nobody can be kept from logging in to an account of a directory, which checks the passwords. Such an
 * account gets its messages from one import, and only if it has no other data here: it may have got
 * them before. If that import is killed between some of them, and the person reads these before it
 * continues, they come once more.
 *
 * Two imports that take one account at once would give it all messages twice. So one leaves it to the
 * other, which has reserved it, or has the lock of an account whose messages it takes.
 *
 * To repeat it up to the keys gives the same result. Behind them it would be that of an account which
 * existed already. The caller therefore notes what is reserved, and then lets it have its keys.
 *
 * @returns undefined for an account that another import takes, or somebody has just made
 * @throws CausewayError with a code `storage/…`; then the account may be taken again
 */
export async function takeAccount(
  account: MovedAccount,
  deps: TakingImport,
): Promise<Taken | Reserved | undefined> {
  const { localpart, domainpart } = account.jid;
  if (!deps.hosts.includes(domainpart)) {
    return refused("account", `${domainpart} is not one of hosts`);
  }
  const users = deps.stores.users(domainpart);
  const taking = new Taking(account, deps);
  if (users.checkPassword !== undefined) {
    // A directory makes accounts itself, and keeps no keys.
    if (!await users.exists(localpart)) return refused("account", NOT_IN_DIRECTORY);
    if (account.login !== undefined) taking.note("password", IN_DIRECTORY);
    if (!await taking.alone(() => taking.dataOfDirectory())) return undefined;
    return { outcome: "there", findings: taking.findings };
  }
  const existing = await users.credentials(localpart);
  if (existing === undefined || isLocked(existing)) {
    if (existing !== undefined && !isLockedBy(existing, deps.importId) && !deps.takesReserved) {
      return undefined;
    }
    if (account.login === undefined) return refused("account", "nobody could log in to it");
    const credentials = await taking.credentials(account.login);
    if (credentials === undefined) return refused("account", "its password cannot be used");
    if (existing === undefined && !await taking.reserve(credentials)) return undefined;
    // Somebody may delete it, and take the name, at any moment from now on.
    const reserved = await users.credentials(localpart);
    if (reserved === undefined) return refused("account", DELETED);
    if (!isLocked(reserved)) return undefined; // somebody has set a password, or has the name now
    if (!await taking.alone(() => taking.data(true))) return undefined;
    const { creation = "" } = reserved;
    const { findings } = taking;
    const taken: Taken = { outcome: "added", ...onlyKeyOf(credentials), findings };
    const { login } = account;
    const finish = async () => {
      const meant = { creation, credentials: reserved };
      if (await users.setPassword(localpart, credentials, meant)) return taken;
      // It is gone, or somebody has set a password: an operator, or an import that was taken for gone.
      const existing = await users.credentials(localpart);
      if (existing !== undefined && (existing.creation ?? "") === creation) {
        await taking.compareLogin(login, existing);
      }
      return await taking.there(creation);
    };
    return { creation, taken, finish };
  }
  await taking.data(false);
  if (account.login !== undefined) await taking.compareLogin(account.login, existing);
  return await taking.there(existing.creation ?? "");
}

/**
 * Returns true when an account that was reserved got its keys before the process was killed.
 *
 * @param creation that of the reserved account
 * @throws CausewayError with a code `storage/…`
 */
export async function hasKeys(
  account: MovedAccount,
  creation: string,
  deps: TakingDeps,
): Promise<boolean> {
  const { jid: { localpart, domainpart }, login } = account;
  if (!deps.hosts.includes(domainpart)) return false;
  const users = deps.stores.users(domainpart);
  if (users.checkPassword !== undefined) return false; // it was moved to a directory meanwhile
  const existing = await users.credentials(localpart);
  if (existing === undefined || isLocked(existing) || login === undefined) return false;
  if ((existing.creation ?? "") !== creation) return false;
  return login.kind === "password"
    ? await deps.verify(existing, login.password)
    : areSame(existing, login.credentials);
}

function refused(kind: MovedKind, reason: string): Taken {
  return { outcome: "refused", findings: [{ kind, reason }] };
}

/** The process, or the database, stood still for so long that the lock has ended. */
function lockLost({ jid }: MovedAccount): CausewayError {
  return new CausewayError(
    "migration/in-use",
    `Cannot take ${jid.text}: another import takes it; repeat the import to go on`,
    { retryable: true },
  );
}

class Taking {
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

  /** Returns the keys of a login, undefined for a password that cannot be used. */
  async credentials(login: MovedLogin): Promise<ScramCredentials | undefined> {
    if (login.kind === "keys") return login.credentials;
    try {
      return await this.#deps.derive(login.password);
    } catch (thrown) {
      if (thrown instanceof CausewayError && thrown.code === "sasl/password-unusable") {
        return undefined;
      }
      throw thrown;
    }
  }

  /** Makes the account, and leaves it locked; false when it is there by now. */
  async reserve(credentials: ScramCredentials): Promise<boolean> {
    const { localpart, domainpart, text } = this.#account.jid;
    const { stores, importId } = this.#deps;
    const users = stores.users(domainpart);
    const messages = stores.offlineMessages(domainpart);
    try {
      await stores.archives(domainpart).closeUnowned?.(text);
      await removeUnownedMessages(localpart, { users, messages });
      await users.add(localpart, locked(credentials, importId));
      return true;
    } catch (thrown) {
      if (thrown instanceof CausewayError && thrown.code === "storage/user-exists") return false;
      throw thrown;
    }
  }

  /** Returns the result for an account that existed when it was looked for. */
  async there(creation: string): Promise<Taken> {
    const { localpart, domainpart } = this.#account.jid;
    const owners = await this.#deps.stores.users(domainpart).existing([localpart]);
    if (owners.get(localpart) !== creation) return await this.gone();
    return { outcome: "there", findings: this.findings };
  }

  /** Returns the result for an account that was deleted while it was taken. */
  async gone(): Promise<Taken> {
    const { localpart, domainpart } = this.#account.jid;
    if (await this.#deps.stores.users(domainpart).exists(localpart)) {
      return refused("account", REPLACED);
    }
    await this.removeData();
    return refused("account", DELETED);
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
      (await stores.pep(domainpart).nodes(localpart)).length > 0 ||
      await stores.lastLogouts(domainpart).read(localpart) !== undefined;
  }

  /**
   * Takes all but the keys.
   *
   * @param isNew false for an account that may have got its messages already
   */
  async data(isNew: boolean): Promise<void> {
    await this.#messages(isNew);
    await this.#otherData();
  }

  /**
   * Takes the data of an account of a directory. Messages come first: an account that has other data
   * may have got them from an import that left no mark.
   */
  async dataOfDirectory(): Promise<void> {
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
    await this.#nodes();
    const { jid: { localpart, domainpart }, last } = this.#account;
    if (last !== undefined) {
      await this.#deps.stores.lastLogouts(domainpart).note([{ localpart, ...last }]);
    }
  }

  /** Removes the data of an account that is gone: no later owner of the name may get them. */
  async removeData(): Promise<void> {
    const { stores } = this.#deps;
    const { jid: { text, localpart, domainpart } } = this.#account;
    await stores.offlineMessages(domainpart).removeAll(localpart);
    await stores.rosters(domainpart).removeAll(text);
    const vcards = stores.vcards(domainpart);
    if (vcards.isReadOnly !== true) await vcards.remove(localpart);
    await stores.privateStorage(domainpart).removeAll(localpart);
    await stores.pep(domainpart).removeAll(localpart);
    await stores.lastLogouts(domainpart).remove(localpart);
  }

  /** Adds a key that an account lacks, or reports that it has another password. */
  async compareLogin(login: MovedLogin, existing: ScramCredentials): Promise<void> {
    const { localpart, domainpart } = this.#account.jid;
    if (login.kind === "password") {
      if (await this.#deps.verify(existing, login.password)) return;
    } else {
      const { credentials } = login;
      if (areSame(existing, credentials)) {
        const sha1 = existing.sha1 ?? credentials.sha1;
        const sha256 = existing.sha256 ?? credentials.sha256;
        if (sha1 === undefined || sha256 === undefined) return;
        if (existing.sha1 !== undefined && existing.sha256 !== undefined) return;
        await this.#deps.stores.users(domainpart).complete(localpart, { sha1, sha256 });
        return;
      }
    }
    this.note("password", "the account exists with another password, which it keeps");
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

/**
 * Returns keys of the same shape to which no password is known, and nobody can find one. They name the
 * import that has reserved the account.
 */
function locked({ sha1, sha256 }: ScramCredentials, importId: string): ScramCredentials {
  const lock = (secret: ScramSecret, hash: "sha1" | "sha256"): ScramSecret => ({
    ...secret,
    storedKey: new Uint8Array(secret.storedKey.length),
    serverKey: createHash(hash).update(importId).digest(),
  });
  if (sha1 === undefined) return { sha1, sha256: lock(sha256, "sha256") };
  return sha256 === undefined
    ? { sha1: lock(sha1, "sha1"), sha256 }
    : { sha1: lock(sha1, "sha1"), sha256: lock(sha256, "sha256") };
}

/** True for the keys of an account that an import has reserved and not finished yet. */
export function isLocked({ sha1, sha256 }: ScramCredentials): boolean {
  return (sha1 ?? sha256)!.storedKey.every((byte) => byte === 0); // it has one of the two
}

/** True for keys that `locked` made in one import. */
function isLockedBy({ sha1, sha256 }: ScramCredentials, importId: string): boolean {
  const [hash, { serverKey }] = sha1 === undefined ? ["sha256", sha256] : ["sha1", sha1];
  return createHash(hash).update(importId).digest().equals(serverKey);
}

function nameOf({ name, namespace }: PrivateChange): string {
  return `${name} of ${namespace}`;
}

function onlyKeyOf({ sha1, sha256 }: ScramCredentials): Pick<Taken, "onlyKey"> {
  if (sha256 === undefined) return { onlyKey: "SHA-1" };
  return sha1 === undefined ? { onlyKey: "SHA-256" } : {};
}

/** True when both have a key for one hash function at least, and no keys that differ. */
function areSame(one: ScramCredentials, other: ScramCredentials): boolean {
  const pairs = [[one.sha1, other.sha1], [one.sha256, other.sha256]] as const;
  const shared = pairs.filter(([mine, theirs]) => mine !== undefined && theirs !== undefined);
  return shared.length > 0 &&
    shared.every(([mine, theirs]) => isSameKey(mine as ScramSecret, theirs as ScramSecret));
}

function isSameKey(one: ScramSecret, other: ScramSecret): boolean {
  return one.iterations === other.iterations && one.salt.length === other.salt.length &&
    timingSafeEqual(one.salt, other.salt) && timingSafeEqual(one.storedKey, other.storedKey);
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
