import { archiveKeyOf, roomArchiveKeyOf } from "./archive_store.ts";
import type { DataKind } from "./catalogue/catalogue.ts";
import type { CopiedAccount } from "./copy_accounts.ts";
import type { CopiedArchive } from "./copy_archives.ts";
import type { DataStores } from "./data_stores.ts";
import { importMarkName } from "./offline_store.ts";
import type { Stores } from "./stores.ts";
import type { UserStore } from "./user_store.ts";

/** Accounts, or rooms, that are looked up at once. */
const NAMES_AT_ONCE = 500;

/** Yields the archives of all accounts of some hosts, each once. */
export async function* archivesOfAccounts(
  accounts: Stores,
  others: readonly DataStores[],
  hosts: readonly string[],
): AsyncGenerator<CopiedArchive> {
  const storesOf = (host: string) =>
    [accounts.users(host), ...others.map((each) => each.users?.(host))]
      .filter((each) => each !== undefined);
  // An account that both have is the same one, or has an archive of its own in each.
  const places = accountsOf(hosts, storesOf, { tellsCreations: true });
  for await (const { localpart, host, creation, others } of places) {
    const keyOf = (each: string) => archiveKeyOf(`${localpart}@${host}`, each);
    yield { archive: keyOf(creation), others: others.map(keyOf) };
  }
}

/** Yields the archives of all rooms of the configuration, and of other databases, each once. */
export async function* archivesOfRooms(
  configured: Stores,
  others: readonly DataStores[],
): AsyncGenerator<CopiedArchive> {
  for (const kind of ["muc", "muc_light"] as const) {
    const lists = [...configured.roomNames(kind), ...others.map((each) => each.roomNames?.(kind))]
      .filter((each) => each !== undefined);
    for await (const { name, creation, others } of namesIn(lists, { tellsCreations: true })) {
      const keyOf = (each: number) => roomArchiveKeyOf(name, { creation: each });
      yield { archive: keyOf(creation), others: others.map(keyOf) };
    }
  }
}

interface AccountPlace extends CopiedAccount, Omit<NamedPlace<string>, "name"> {}

/** Yields the accounts of each host in several stores, as `namesIn`. */
export async function* accountsOf(
  hosts: readonly string[],
  storesOf: (host: string) => readonly UserStore[],
  options?: NamesOptions,
): AsyncGenerator<AccountPlace> {
  for (const host of hosts) {
    for await (const { name: localpart, ...place } of namesIn(storesOf(host), options)) {
      yield { localpart, host, ...place };
    }
  }
}

/** Yields the names under which accounts have data of a kind. An import may have left a mark, too. */
export async function* namesWithData(
  kind: DataKind,
  accounts: AsyncIterable<CopiedAccount>,
): AsyncGenerator<CopiedAccount> {
  for await (const { localpart, host } of accounts) {
    yield { localpart, host };
    if (kind === "offline") yield { localpart: importMarkName(localpart), host };
  }
}

/** Names in a database, of accounts or rooms. Creations tell those of one name apart. */
interface NameList<C> {
  list(page: { readonly limit: number; readonly after?: string }): Promise<readonly string[]>;
  existing(names: readonly string[]): Promise<ReadonlyMap<string, C>>;
}

/** A name, and what stands for it in one database. */
interface NamedPlace<C> {
  readonly name: string;
  readonly creation: C;
  /** Other creations, of the same name in other databases. */
  readonly others: readonly C[];
}

interface NamesOptions {
  /** True: yields each creation of a name once. @default false: each name once */
  readonly tellsCreations?: boolean;
}

/** Yields the names in several lists, each once; or each creation of them once. */
async function* namesIn<C extends string | number>(
  lists: readonly NameList<C>[],
  { tellsCreations = false }: NamesOptions = {},
): AsyncGenerator<NamedPlace<C>> {
  for (const [i, list] of lists.entries()) {
    let after: string | undefined;
    for (;;) {
      const names = await list.list({
        limit: NAMES_AT_ONCE,
        ...(after === undefined ? {} : { after }),
      });
      const found = await list.existing(names);
      const all = await Promise.all(lists.map((each, n) => n === i ? found : each.existing(names)));
      for (const [name, creation] of found) {
        const isKnown = all.slice(0, i).some((each) =>
          tellsCreations ? each.get(name) === creation : each.has(name)
        );
        const others = new Set(
          all.map((each) => each.get(name)).filter((each) => each !== undefined),
        );
        others.delete(creation);
        if (!isKnown) yield { name, creation, others: [...others] };
      }
      after = names.at(-1);
      if (after === undefined || names.length < NAMES_AT_ONCE) break;
    }
  }
}
