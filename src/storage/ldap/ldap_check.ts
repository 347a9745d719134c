import { describeError, SystemClock } from "../../base/mod.ts";
import { tryParseJid } from "../../xmpp/mod.ts";
import { LdapAccounts } from "./ldap_accounts.ts";
import { LdapDirectory } from "./ldap_directory.ts";
import type { LdapPoolOptions } from "./ldap_directory.ts";
import type { LdapPlace, SharedRosterPlace } from "./ldap_stores.ts";
import { SharedRoster } from "./shared_roster.ts";
import { LdapUserStore } from "./ldap_user_store.ts";

/** Data that hosts keep in one directory. */
export interface LdapUses {
  /** Accounts and vCards, by what they are and their host: `users of example.com`. */
  readonly accounts: readonly {
    readonly kind: "users" | "vcard";
    readonly host: string;
    readonly place: LdapPlace;
  }[];
  readonly sharedRosters: readonly {
    readonly host: string;
    readonly place: SharedRosterPlace;
    /** Place of the host's accounts, if they are in a directory too. */
    readonly users: LdapPlace | undefined;
  }[];
}

/** Result of looking at a directory. */
export interface LdapCheck {
  /** True when a connection could be opened, and logged in. */
  readonly isReached: boolean;
  readonly problems: readonly string[];
  /** One line for each fact that an operator may want to see. */
  readonly facts: readonly string[];
}

/**
 * Connects to a directory, logs in, and searches what hosts keep there. Never rejects.
 *
 * @param user JID of an account whose attributes are shown; absent: of nobody
 */
export async function checkLdap(
  { pool, options, uses, user }: {
    /** Name of the pool, such as `ldap.default`. */
    readonly pool: string;
    readonly options: LdapPoolOptions;
    readonly uses: LdapUses;
    readonly user?: string | undefined;
  },
): Promise<LdapCheck> {
  const directory = new LdapDirectory({ pool, options, use: "searches" });
  const problems = new Set<string>(); // hosts that share a place share what is wrong there
  const facts: string[] = [];
  let isReached = false;
  const step = async (work: () => Promise<void>) => {
    try {
      await work();
    } catch (thrown) {
      problems.add(describeError(thrown));
    }
  };
  try {
    await step(async () => {
      await directory.probe();
      isReached = true;
    });
    if (!isReached) return { isReached, problems: [...problems], facts };
    const jid = user === undefined ? undefined : tryParseJid(user)?.bare;
    for (const { kind, host, place } of uses.accounts) {
      const accounts = new LdapAccounts(directory, host, place.accounts);
      await step(async () => {
        const found = await accounts.search(`search ${place.accounts.base} in`, {
          filter: "",
          attributes: [accounts.idAttribute],
          maxEntries: 1,
          takesAny: true,
        });
        const [first] = found;
        if (first === undefined) {
          problems.add(`${directory.place}: no account of ${host} below ${place.accounts.base}`);
        } else if (kind === "users" && accounts.creationOf(first.entry) === "") {
          facts.push(
            `users of ${host}: entries show no ${accounts.idAttribute}: whoever gets a name next ` +
              "finds the archive of the account before",
          );
        }
      });
      if (jid?.domainpart !== host) continue;
      await step(async () => {
        const attributes = kind === "vcard"
          ? place.vcardMap.map(({ attribute }) => attribute).filter((each) => each !== "")
          : [...place.accounts.uids.map(({ attribute }) => attribute), accounts.idAttribute];
        const entry = await accounts.find(jid.localpart, attributes);
        if (entry === undefined) {
          problems.add(`${directory.place}: ${jid.text} has no entry (${kind})`);
          return;
        }
        facts.push(`${kind} of ${jid.text}: ${entry.dn}`);
        for (const attribute of new Set(attributes)) {
          const bytes = entry.bytes(attribute);
          const [first] = entry.texts(attribute);
          const value = bytes === undefined ? "none" : first ?? `${bytes.length} bytes`;
          facts.push(`${kind} of ${jid.text}: ${attribute}: ${value.slice(0, 200)}`);
        }
      });
    }
    for (const { host, place, users } of uses.sharedRosters) {
      if (jid?.domainpart !== host) continue;
      await step(async () => {
        const clock = new SystemClock();
        const shared = new SharedRoster({
          directory,
          domainpart: host,
          // Accounts that are kept elsewhere are not looked at here.
          options: { ...place.options, checksAccounts: users !== undefined },
          users: new LdapUserStore({
            accounts: new LdapAccounts(directory, host, users?.accounts ?? NO_ACCOUNTS),
            binds: directory,
            base: "",
            clock,
          }),
          clock,
        });
        const contacts = [...(await shared.contactsOf(jid.localpart)).values()];
        const groups = new Set(contacts.flatMap((each) => each.groups));
        facts.push(
          `shared_roster of ${jid.text}: ${contacts.length} contacts in ${groups.size} groups` +
            (groups.size === 0 ? "" : `: ${[...groups].join(", ").slice(0, 200)}`),
        );
      });
    }
    return { isReached, problems: [...problems], facts };
  } finally {
    await directory.close();
  }
}

const NO_ACCOUNTS: LdapPlace["accounts"] = { base: "", uids: [], filter: "", deref: "never" };
