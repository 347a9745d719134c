import { CausewayError, randomHex } from "../../base/mod.ts";
import type {
  AccountCredentials,
  CompleteCredentials,
  CountedShape,
  ScramCredentials,
  ScramSecret,
} from "../../xmpp/sasl/mod.ts";
import type { ListPage, MeantAccount, UserStore } from "../user_store.ts";
import { DEFAULT_PAGE_LIMIT } from "../user_store.ts";
import type { DocumentState } from "./document_state.ts";
import type { NumberedDocuments } from "./numbered_documents.ts";
import { BEHIND_NAMES, nameOf, placeOf, textOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";
import type { PlainObjects } from "./plain_objects.ts";
import type { RiakClient } from "./riak_client.ts";

/** Entry of the document of an account. */
const ACCOUNT = "account";
/** Bytes of what tells an account from an earlier one of the same name. */
const CREATION_BYTES = 16;
/** Accounts that are sampled for the shapes of their keys: each is a request. */
const SAMPLE_ACCOUNTS = 1_000;

/** An account as it is stored: bytes in Base64. */
interface StoredAccount {
  readonly creation: string;
  readonly sha1?: StoredSecret;
  readonly sha256?: StoredSecret;
}

type StoredSecret = readonly [salt: string, iterations: number, stored: string, server: string];

/** Objects behind the stores in Riak. */
export interface RiakDeps {
  readonly client: RiakClient;
  readonly documents: NumberedDocuments;
  readonly objects: PlainObjects;
}

/** The accounts of one domain in Riak: a numbered document each. */
export class RiakUserStore implements UserStore {
  readonly #deps: RiakDeps;
  readonly #domainpart: string;

  constructor(deps: RiakDeps, domainpart: string) {
    this.#deps = deps;
    this.#domainpart = domainpart;
  }

  async add(
    localpart: string,
    credentials: ScramCredentials,
    { creation = randomHex(CREATION_BYTES) }: { readonly creation?: string } = {},
  ): Promise<void> {
    const account = storedAccount(creation, credentials);
    const added = await this.#change(
      localpart,
      "add an account to",
      (before) => before === undefined ? account : undefined,
    );
    if (added) return;
    const jid = `${localpart}@${this.#domainpart}`;
    throw new CausewayError("storage/user-exists", `Cannot add ${jid}: the account exists`);
  }

  async remove(localpart: string, options?: { readonly creation: string }): Promise<boolean> {
    return await this.#change(localpart, "remove an account from", (before) => {
      if (before === undefined) return undefined;
      return options !== undefined && options.creation !== before.creation ? undefined : null;
    });
  }

  async setPassword(
    localpart: string,
    credentials: ScramCredentials,
    meant?: MeantAccount,
  ): Promise<boolean> {
    return await this.#change(localpart, "change an account in", (before) => {
      if (before === undefined) return undefined;
      if (meant !== undefined && meant.creation !== before.creation) return undefined;
      if (meant?.credentials !== undefined) {
        const { sha1, sha256 } = storedAccount(meant.creation, meant.credentials);
        // The server's key depends on the password, the salt and the iterations.
        if (before.sha1?.[3] !== sha1?.[3] || before.sha256?.[3] !== sha256?.[3]) return undefined;
      }
      return storedAccount(before.creation, credentials);
    });
  }

  async complete(localpart: string, credentials: CompleteCredentials): Promise<void> {
    await this.#change(localpart, "change an account in", (before) => {
      if (before === undefined) return undefined;
      const { sha1, sha256 } = storedAccount(before.creation, credentials);
      // The key that is there proves that the account still has the password.
      if (before.sha1 === undefined && before.sha256?.[2] === sha256?.[2]) {
        return { ...before, sha1: sha1! };
      }
      if (before.sha256 === undefined && before.sha1?.[2] === sha1?.[2]) {
        return { ...before, sha256: sha256! };
      }
      return undefined;
    });
  }

  async credentialShapes(): Promise<readonly CountedShape[]> {
    const names = await this.list({ limit: SAMPLE_ACCOUNTS });
    const accounts = await this.#deps.client.forEach(names, (name) => this.#read(name));
    const counted = new Map<string, CountedShape>();
    for (const account of accounts) {
      if (account === undefined) continue;
      const shapeOf = (secret: StoredSecret | undefined) =>
        secret && { iterations: secret[1], saltBytes: Uint8Array.fromBase64(secret[0]).length };
      const shape = {
        sha1: shapeOf(account.sha1),
        sha256: shapeOf(account.sha256),
        sharesSalt: account.sha1 !== undefined && account.sha1[0] === account.sha256?.[0],
      };
      const key = JSON.stringify(shape);
      counted.set(key, { shape, accounts: (counted.get(key)?.accounts ?? 0) + 1 });
    }
    return [...counted.values()];
  }

  async credentials(localpart: string): Promise<AccountCredentials | undefined> {
    const account = await this.#read(localpart);
    if (account === undefined) return undefined;
    const { creation } = account;
    const [sha1, sha256] = [secretIn(account.sha1), secretIn(account.sha256)];
    if (sha1 !== undefined) {
      return sha256 === undefined ? { sha1, sha256, creation } : { sha1, sha256, creation };
    }
    return sha256 === undefined ? undefined : { sha1, sha256, creation };
  }

  async exists(localpart: string): Promise<boolean> {
    return await this.#read(localpart) !== undefined;
  }

  async existing(localparts: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    await this.#deps.client.forEach(localparts, async (localpart) => {
      const account = await this.#read(localpart);
      if (account !== undefined) found.set(localpart, account.creation);
    });
    return found;
  }

  /**
   * Lists the keys of the domain by Riak's index of keys. An account that was removed has left an
   * empty document behind, so that each is looked at.
   */
  async list({ after, limit = DEFAULT_PAGE_LIMIT }: ListPage = {}): Promise<readonly string[]> {
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new RangeError(`Cannot list ${limit} accounts: the limit is at least 1`);
    }
    const page: string[] = [];
    let last = nameOf(after ?? "");
    for (;;) {
      const { keys } = await this.#deps.objects.keysBetween(this.#place(""), {
        index: "$key",
        from: last,
        to: BEHIND_NAMES,
        limit: limit + 1,
        action: "list the accounts in",
      });
      const names = keys.filter((key) => key !== last).map(textOf);
      const accounts = await this.#deps.client.forEach(names, (name) => this.#read(name));
      page.push(...names.filter((_, i) => accounts[i] !== undefined));
      if (page.length >= limit || keys.length <= limit) return page.slice(0, limit);
      last = keys.at(-1)!;
    }
  }

  async #read(localpart: string): Promise<StoredAccount | undefined> {
    const place = this.#place(localpart);
    return accountIn(await this.#deps.documents.read(place, "read an account from"));
  }

  /** Changes an account. Undefined changes nothing, and null removes it. */
  async #change(
    localpart: string,
    action: string,
    decide: (before: StoredAccount | undefined) => StoredAccount | null | undefined,
  ): Promise<boolean> {
    const place = this.#place(localpart);
    const version = await this.#deps.documents.change(place, action, (state) => {
      const after = decide(accountIn(state));
      if (after === undefined) return undefined;
      return [[ACCOUNT, after === null ? null : JSON.stringify(after)]];
    });
    return version !== undefined;
  }

  #place(localpart: string): RiakPlace {
    return placeOf("users", { localpart, domainpart: this.#domainpart });
  }
}

function accountIn({ entries }: DocumentState): StoredAccount | undefined {
  const entry = entries.get(ACCOUNT);
  return entry && JSON.parse(entry.value) as StoredAccount; // this program wrote it
}

function storedAccount(creation: string, { sha1, sha256 }: ScramCredentials): StoredAccount {
  return {
    creation,
    ...(sha1 === undefined ? {} : { sha1: storedSecret(sha1) }),
    ...(sha256 === undefined ? {} : { sha256: storedSecret(sha256) }),
  };
}

function storedSecret({ salt, iterations, storedKey, serverKey }: ScramSecret): StoredSecret {
  return [salt.toBase64(), iterations, storedKey.toBase64(), serverKey.toBase64()];
}

function secretIn(secret: StoredSecret | undefined): ScramSecret | undefined {
  if (secret === undefined) return undefined;
  const [salt, iterations, storedKey, serverKey] = secret;
  return {
    salt: Uint8Array.fromBase64(salt),
    iterations,
    storedKey: Uint8Array.fromBase64(storedKey),
    serverKey: Uint8Array.fromBase64(serverKey),
  };
}
