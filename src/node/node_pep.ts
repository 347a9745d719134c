import type { Config } from "../config/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { PepLimits } from "../services/pep/mod.ts";
import { PepServer } from "../services/pep/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { PepStore, RosterStore, Stores, UserStore, VcardStore } from "../storage/mod.ts";
import type { Jid, SessionRegistry } from "../xmpp/mod.ts";
import { FullJid } from "../xmpp/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that personal eventing uses. The last five are read when something happens. */
export interface PepParts {
  readonly stores: Stores;
  /** Accounts by host. */
  readonly accounts: ReadonlyMap<string, Pick<UserStore, "existing">>;
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
  readonly router: Router;
  readonly privacy: PrivacyServer;
  readonly rosters: RosterServer;
}

/** Makes the personal eventing of this node's hosts. */
export function makePep(config: Config, parts: Surroundings & PepParts): PepServer {
  const { stores, domains, metrics, log, clock } = parts;
  const { globalHost, localHost } = domains;
  const nodes = new Map<string, { readonly store: PepStore; readonly limits: PepLimits }>();
  const rosters = new Map<string, RosterStore>();
  const vcards = new Map<string, VcardStore>();
  for (const [host, modules] of config.modules) {
    const { mod_pubsub: pubsub, mod_roster: roster, mod_vcard: vcard } = modules;
    if (vcard !== false) vcards.set(host, stores.vcards(host));
    if (pubsub !== false) nodes.set(host, { store: stores.pep(host), limits: pubsub });
    if (roster !== false) rosters.set(host, stores.rosters(host));
  }
  return new PepServer({
    hosts: {
      globalHost,
      localHost,
      store: (domain) => nodes.get(domain)?.store,
      rosters: (domain) => rosters.get(domain),
      vcards: (domain) => vcards.get(domain),
      limits: (domain) => {
        const found = nodes.get(domain);
        if (found === undefined) throw new TypeError(`Cannot use nodes of ${domain}: it has none`);
        return found.limits;
      },
      creations: (all) => creationsOf(all, parts),
      isElsewhere: (domain) => domains.isOtherLocalHost(domain),
      hiderOf: (owner) => parts.privacy.defaults.hiderOf(owner.bare),
      hiders: (owners) => parts.privacy.defaults.hiders(owners.map(({ bare }) => bare)),
    },
    sessions: {
      here: (account) => parts.sessions.ofAccount(account),
      all: () => parts.sessions.sessions(),
      everywhere: (accounts) => parts.table.trySessionsOf(accounts),
    },
    routes: {
      route: (stanza) => parts.router.accept(stanza),
      sendTo: (host, stanza) => parts.router.sendTo(host, stanza),
      deliver: (to, stanza) => {
        // Items of a contact whom the session's owner blocks are not told.
        if (stanza.kind === "message" && parts.sessions.refuses(to, stanza)) return false;
        return parts.sessions.find(to)?.send(stanza) ?? false;
      },
    },
    contactsTold: (jid) => parts.rosters.contactsTold(jid),
    presenceAgain: (jid) => parts.sessions.find(jid)?.repeatPresence?.(),
    paced: parts.paced,
    clock,
    metrics,
    log,
  });
}

/** Accounts of one query. */
const ACCOUNTS_AT_ONCE = 500;

/** Returns the creations of accounts, from their sessions here or from the database. */
async function creationsOf(
  all: readonly Jid[],
  { sessions, accounts }: Pick<PepParts, "sessions" | "accounts">,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  const isHere = (jid: Jid) => {
    const session = jid instanceof FullJid ? sessions.find(jid) : undefined;
    if (session !== undefined) found.set(jid.bare.text, session.creation ?? "");
    return session !== undefined;
  };
  const others = Map.groupBy(all.filter((jid) => !isHere(jid)), ({ domainpart }) => domainpart);
  for (const [host, jids] of others) {
    const users = accounts.get(host);
    if (users === undefined) continue;
    for (let start = 0; start < jids.length; start += ACCOUNTS_AT_ONCE) {
      const localparts = jids.slice(start, start + ACCOUNTS_AT_ONCE).map((jid) => jid.localpart);
      for (const [localpart, creation] of await users.existing(localparts)) {
        found.set(`${localpart}@${host}`, creation);
      }
    }
  }
  return found;
}
