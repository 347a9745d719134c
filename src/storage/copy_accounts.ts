import { createHash } from "node:crypto";
import { CausewayError } from "../base/mod.ts";
import { parseElement } from "../xmpp/mod.ts";
import { peerIn } from "./archive_content.ts";
import type { DataStores } from "./data_stores.ts";
import type { RosterItem } from "./roster_store.ts";
import { storageError } from "./storage_error.ts";
import type { CopyUnitsOptions, UnitCounts } from "./sql/copy_units.ts";
import { MAX_KEPT_NAMES } from "./sql/copy_units.ts";
import { ChecksumSum } from "./sql/unit_summary.ts";
import type { UnitSummary } from "./sql/unit_summary.ts";

/** Accounts that are copied at once. */
const ACCOUNTS_AT_ONCE = 8;
/** Items that a roster takes at once. */
const ITEMS_AT_ONCE = 20_000;
/** Attempts to change a roster or privacy lists that others change at the same time. */
const MAX_ATTEMPTS = 20;
/** Bounds that refuse nothing which a database has taken before. */
const NO_BOUNDS = {
  maxElements: Number.MAX_SAFE_INTEGER,
  maxMessages: Number.MAX_SAFE_INTEGER,
  maxBytes: Number.MAX_SAFE_INTEGER,
};

/** An account, by the parts of its address. */
export interface CopiedAccount {
  readonly localpart: string;
  readonly host: string;
}

/** One kind of data of an account, in whatever database. `T` becomes JSON. */
interface AccountPart<T> {
  /** Name in reports: that of the SQL table. */
  readonly table: string;
  read(stores: DataStores, account: CopiedAccount): Promise<T | undefined>;
  /** Writes data where there are none, or a part of them that an interrupted copy has written. */
  write(stores: DataStores, account: CopiedAccount, content: T): Promise<void>;
  remove(stores: DataStores, account: CopiedAccount): Promise<void>;
  /**
   * True when `write` of `mine` was interrupted, and has left `theirs`. For data that take several
   * writes, which the databases make one after another. @default one write is enough
   */
  isBegun?(theirs: T, mine: T): boolean;
}

function addressOf({ localpart, host }: CopiedAccount): string {
  return `${localpart}@${host}`;
}

/** A key in base64. */
type KeyText = readonly [salt: string, iterations: number, stored: string, server: string] | null;

const USERS: AccountPart<{ sha1: KeyText; sha256: KeyText; creation: string }> = {
  table: "users",
  async read(stores, { localpart, host }) {
    const found = await stores.users!(host).credentials(localpart);
    if (found === undefined) return undefined;
    const textOf = (secret: typeof found.sha1): KeyText =>
      secret === undefined ? null : [
        secret.salt.toBase64(),
        secret.iterations,
        secret.storedKey.toBase64(),
        secret.serverKey.toBase64(),
      ];
    return {
      sha1: textOf(found.sha1),
      sha256: textOf(found.sha256),
      creation: found.creation ?? "",
    };
  },
  async write(stores, { localpart, host }, { sha1, sha256, creation }) {
    const secretIn = (text: KeyText) =>
      text === null ? undefined : {
        salt: Uint8Array.fromBase64(text[0]),
        iterations: text[1],
        storedKey: Uint8Array.fromBase64(text[2]),
        serverKey: Uint8Array.fromBase64(text[3]),
      };
    const [one, other] = [secretIn(sha1), secretIn(sha256)];
    const users = stores.users!(host);
    try {
      if (one !== undefined) {
        await users.add(
          localpart,
          other === undefined ? { sha1: one, sha256: other } : { sha1: one, sha256: other },
          { creation },
        );
      } else if (other !== undefined) {
        await users.add(localpart, { sha1: one, sha256: other }, { creation });
      }
    } catch (thrown) {
      // Riak finishes what an interrupted copy began before it adds anything. Both sides are compared.
      if (!(thrown instanceof CausewayError) || thrown.code !== "storage/user-exists") throw thrown;
    }
  },
  async remove(stores, { localpart, host }) {
    await stores.users!(host).remove(localpart);
  },
};

/** An item with its request in base64. */
type ItemText = Omit<RosterItem, "request"> & { readonly request: string | null };

const ROSTER: AccountPart<readonly ItemText[]> = {
  table: "rosters",
  async read(stores, account) {
    const { items } = await stores.rosters!().read(addressOf(account));
    if (items.length === 0) return undefined;
    return items.map(({ version: _, request, jid, ...item }): ItemText => ({
      jid,
      name: item.name,
      groups: item.groups,
      subscription: item.subscription,
      isAsking: item.isAsking,
      isApproved: item.isApproved,
      isListed: item.isListed,
      request: request === undefined ? null : request.toBase64(),
    })).toSorted((one, other) => one.jid < other.jid ? -1 : 1);
  },
  async write(stores, account, content) {
    const items = content.map(({ request, ...item }): RosterItem => ({
      ...item,
      request: request === null ? undefined : Uint8Array.fromBase64(request),
    }));
    for (let i = 0; i < items.length; i += ITEMS_AT_ONCE) {
      await stores.rosters!().fill(addressOf(account), items.slice(i, i + ITEMS_AT_ONCE));
    }
  },
  isBegun: (theirs, mine) => theirs.length % ITEMS_AT_ONCE === 0 && isBeginning(theirs, mine),
  async remove(stores, account) {
    // Item by item: to remove a roster as a whole ends subscriptions of others, too.
    const [rosters, owner] = [stores.rosters!(), addressOf(account)];
    for (const { jid: contact } of (await rosters.read(owner)).items) {
      await untilWritten(stores, async () => {
        const { version: expected } = await rosters.find(owner, contact);
        return await rosters.write(owner, { expected, contact, item: undefined });
      });
    }
  },
};

const PRIVATE: AccountPart<readonly string[]> = {
  table: "private_storage",
  async read(stores, { localpart, host }) {
    const all = await stores.privateStorage!(host).all(localpart);
    return all.length === 0 ? undefined : all.toSorted();
  },
  async write(stores, { localpart, host }, content) {
    const changes = content.map((xml) => {
      const { name, namespace } = parseElement(new TextEncoder().encode(xml));
      return { name, namespace, xml };
    });
    await stores.privateStorage!(host).change(localpart, changes, NO_BOUNDS);
  },
  async remove(stores, { localpart, host }) {
    await stores.privateStorage!(host).removeAll(localpart);
  },
};

const VCARD: AccountPart<string> = {
  table: "vcards",
  read: (stores, { localpart, host }) => stores.vcards!(host).read(localpart),
  write: (stores, { localpart, host }, content) => stores.vcards!(host).write(localpart, content),
  remove: (stores, { localpart, host }) => stores.vcards!(host).remove(localpart),
};

const LAST: AccountPart<{ readonly atMs: number; readonly status: string }> = {
  table: "last_activity",
  async read(stores, { localpart, host }) {
    const found = await stores.lastLogouts!(host).read(localpart);
    return found && { atMs: found.atMs, status: found.status };
  },
  write: (stores, { localpart, host }, content) =>
    stores.lastLogouts!(host).note([{ localpart, ...content }]),
  remove: (stores, { localpart, host }) => stores.lastLogouts!(host).remove(localpart),
};

interface PrivacyContent {
  readonly defaultName: string | null;
  readonly lists: readonly { readonly name: string; readonly xml: string }[];
}

const PRIVACY: AccountPart<PrivacyContent> = {
  table: "privacy",
  async read(stores, { localpart, host }) {
    const { defaultName, lists } = await stores.privacyLists!(host).read(localpart);
    if (defaultName === undefined && lists.length === 0) return undefined;
    const sorted = lists.map(({ name, xml }) => ({ name, xml }))
      .toSorted((one, other) => one.name < other.name ? -1 : 1);
    return { defaultName: defaultName ?? null, lists: sorted };
  },
  async write(stores, { localpart, host }, { defaultName, lists }) {
    const store = stores.privacyLists!(host);
    // The default is set last: it names one of the lists.
    const steps = [...lists.map((list) => ({ defaultName: undefined, list })), {
      defaultName: defaultName ?? undefined,
    }];
    for (const step of steps) {
      await untilWritten(stores, async () => {
        const { version: expected } = await store.read(localpart);
        return await store.write(localpart, { expected, ...step });
      });
    }
  },
  isBegun: (theirs, mine) => theirs.defaultName === null && isBeginning(theirs.lists, mine.lists),
  remove: (stores, { localpart, host }) => stores.privacyLists!(host).removeAll(localpart),
};

/** A message with its stanza in base64. */
type MessageText = readonly [stanza: string, sentAtMs: number, expiresAtMs: number];

const OFFLINE: AccountPart<readonly MessageText[]> = {
  table: "offline_messages",
  async read(stores, { localpart, host }) {
    const all = await stores.offlineMessages!(host).all(localpart);
    if (all.length === 0) return undefined;
    return all.map(({ stanza, sentAtMs, expiresAtMs }) =>
      [stanza.toBase64(), sentAtMs, expiresAtMs] as const
    );
  },
  async write(stores, account, content) {
    const equals = new Map<string, number>();
    const messages = content.map(([text, sentAtMs, expiresAtMs]) => {
      const stanza = Uint8Array.fromBase64(text);
      const sender = peerIn(stanza, addressOf(account))?.bare ?? account.host;
      const name = JSON.stringify([addressOf(account), text, sentAtMs, expiresAtMs]);
      const number = equals.get(name) ?? 0;
      equals.set(name, number + 1);
      const id = createHash("sha256").update(`${number} ${name}`).digest("hex");
      return { sender, stanza, sentAtMs, expiresAtMs, id };
    });
    await stores.offlineMessages!(account.host).keep(account.localpart, messages, NO_BOUNDS);
  },
  remove: (stores, { localpart, host }) => stores.offlineMessages!(host).removeAll(localpart),
};

/** Kinds of data that are copied account by account, where one of the databases speaks no SQL. */
export const ACCOUNT_PARTS = {
  users: USERS as AccountPart<unknown>,
  roster: ROSTER as AccountPart<unknown>,
  private: PRIVATE as AccountPart<unknown>,
  vcard: VCARD as AccountPart<unknown>,
  last: LAST as AccountPart<unknown>,
  privacy: PRIVACY as AccountPart<unknown>,
  offline: OFFLINE as AccountPart<unknown>,
} as const;

/** A copy of one kind of data of accounts. */
export interface AccountCopyOptions {
  readonly kind: keyof typeof ACCOUNT_PARTS;
  readonly from: DataStores;
  readonly to: DataStores;
  /** Each account once. */
  readonly accounts: AsyncIterable<CopiedAccount>;
  readonly differing: CopyUnitsOptions["differing"];
  /** Called after each batch with the number of accounts that are done; awaited. */
  progress?(done: number): Promise<void> | void;
}

/** Result of a copy. A unit is an account that has data of the kind. */
export interface AccountCopyResult extends UnitCounts {
  readonly table: string;
  readonly source: UnitSummary;
  readonly destination: UnitSummary;
}

/**
 * Copies one kind of data, account by account. A copy that was interrupted is continued by copying
 * again. What has been written is read once more, and compared.
 *
 * @throws CausewayError with a code `storage/…`; what was copied until then stays
 */
export async function copyAccounts(options: AccountCopyOptions): Promise<AccountCopyResult> {
  const part = ACCOUNT_PARTS[options.kind];
  const sides = { source: new Side(), destination: new Side() };
  const counts = { added: 0, same: 0, replaced: 0, removed: 0, kept: 0 };
  const keptNames: string[] = [];
  let done = 0;
  const copy = async (account: CopiedAccount): Promise<void> => {
    const { from, to, differing } = options;
    const [mine, theirs] = [await part.read(from, account), await part.read(to, account)];
    const isSame = JSON.stringify(mine) === JSON.stringify(theirs);
    const isBegun = mine !== undefined && theirs !== undefined &&
      part.isBegun?.(theirs, mine) === true;
    const mayReplace = differing !== "keep" && (mine !== undefined || differing === "mirror");
    let now = theirs;
    if (isSame) counts.same += mine === undefined ? 0 : 1;
    else if (theirs === undefined || isBegun || mayReplace) {
      if (theirs !== undefined && !isBegun) await part.remove(to, account);
      if (mine !== undefined) await part.write(to, account, mine);
      if (theirs === undefined || isBegun) counts.added++;
      else if (mine === undefined) counts.removed++;
      else counts.replaced++;
      now = await part.read(to, account);
    } else if (mine !== undefined) {
      counts.kept++;
      if (keptNames.length < MAX_KEPT_NAMES) keptNames.push(addressOf(account));
    }
    sides.source.add(account, mine);
    sides.destination.add(account, now);
  };
  const batch = async (accounts: readonly CopiedAccount[]): Promise<void> => {
    const outcomes = await Promise.allSettled(accounts.map(copy));
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    done += accounts.length;
    await options.progress?.(done);
  };
  let some: CopiedAccount[] = [];
  for await (const account of options.accounts) {
    some.push(account);
    if (some.length < ACCOUNTS_AT_ONCE) continue;
    await batch(some);
    some = [];
  }
  if (some.length > 0) await batch(some);
  const { source, destination } = sides;
  return {
    table: part.table,
    ...counts,
    keptNames,
    source: source.summary,
    destination: destination.summary,
  };
}

/** The content of one side. */
class Side {
  readonly #sum = new ChecksumSum();
  #units = 0;

  add(account: CopiedAccount, content: unknown): void {
    if (content === undefined) return;
    const text = JSON.stringify([account.localpart, account.host, content]);
    this.#sum.add(createHash("sha256").update(text).digest());
    this.#units++;
  }

  get summary(): UnitSummary {
    return { units: this.#units, checksum: this.#sum.text };
  }
}

/** True when `some` are the first ones of `all`. */
function isBeginning(some: readonly unknown[], all: readonly unknown[]): boolean {
  return JSON.stringify(some) === JSON.stringify(all.slice(0, some.length));
}

/**
 * Repeats a change that names the state which it expects, until it has met that.
 *
 * @throws CausewayError `storage/conflict` when others change the same all the time
 */
async function untilWritten(
  { place }: DataStores,
  write: () => Promise<number | undefined>,
): Promise<void> {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
    if (await write() !== undefined) return;
  }
  throw storageError("conflict", { action: "copy data of an account to", place });
}
