import { Stores } from "../../../src/storage/mod.ts";
import type { RosterItem } from "../../../src/storage/mod.ts";
import { deriveScramCredentials } from "../../../src/xmpp/mod.ts";

/** PostgreSQL as a node's configuration names it. */
export interface DatabasePlace {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
  readonly password: string;
}

/** An account to make, with the contacts of its roster, who see each other's presence. */
export interface NewAccount {
  readonly localpart: string;
  readonly contacts: readonly string[];
}

/** Password of every account. */
export const PASSWORD = "bench";
/** Iterations of the accounts' keys: what a node would demand of new ones, or nearly so. */
const ITERATIONS = 10_000;
const CONNECTIONS = 8;

/**
 * Adds accounts with their rosters to the database of a cluster, through the stores of the product.
 * All have one password and one key, because deriving keys takes longer than all the rest.
 *
 * @param file path of a built-in store that the stores need and nobody uses
 */
export async function addAccounts(
  accounts: readonly NewAccount[],
  { domain, place, file }: {
    readonly domain: string;
    readonly place: DatabasePlace;
    readonly file: string;
  },
): Promise<void> {
  const { password, ...address } = place;
  await using stores = await Stores.open({
    internal: { path: file },
    pools: new Map([["default", {
      scope: "global",
      driver: "pgsql",
      address: { ...address, password: { reveal: () => password } },
      bounds: { workers: CONNECTIONS },
    }]]),
    users: new Map([[domain, { backend: "rdbms", pool: "default" }]]),
  });
  const credentials = await deriveScramCredentials(PASSWORD, ITERATIONS);
  const [users, rosters] = [stores.users(domain), stores.rosters(domain)];
  let next = 0;
  const addSome = async () => {
    for (let account = accounts[next++]; account !== undefined; account = accounts[next++]) {
      await users.add(account.localpart, credentials);
      const items = account.contacts.map((contact) => contactItem(`${contact}@${domain}`));
      if (items.length > 0) await rosters.fill(`${account.localpart}@${domain}`, items);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, addSome));
}

function contactItem(jid: string): RosterItem {
  return {
    jid,
    name: `Contact ${jid.slice(0, jid.indexOf("@"))}`,
    groups: ["Friends"],
    subscription: "both",
    isAsking: false,
    isApproved: false,
    isListed: true,
    request: undefined,
  };
}
