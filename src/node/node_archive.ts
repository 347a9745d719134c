import type { Config } from "../config/mod.ts";
import { isUserHost } from "../distribution/mod.ts";
import type { Domains } from "../distribution/routing/mod.ts";
import { MessageArchive } from "../services/archive/mod.ts";
import type { ArchiveHostOptions } from "../services/archive/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { ArchiveStore, Stores, UserStore } from "../storage/mod.ts";
import type { Jid, SessionRegistry } from "../xmpp/mod.ts";
import { FullJid } from "../xmpp/mod.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that archives use. */
export interface ArchiveParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly privacy: PrivacyServer;
}

/** Makes the archives of this node's hosts (XEP-0313). Undefined when no host has any. */
export function makeArchive(
  config: Config,
  parts: Surroundings & ArchiveParts,
): MessageArchive | undefined {
  const { stores, accounts, domains, sessions, privacy, places, metrics, log, clock } = parts;
  const hosts = new Map<string, ArchiveHostOptions>();
  const archives = new Map<string, ArchiveStore>();
  for (const [host, { mod_mam: module }] of config.modules) {
    if (module === false) continue;
    hosts.set(host, module);
    archives.set(host, stores.archives(host));
  }
  if (hosts.size === 0) return undefined;
  return new MessageArchive({
    hosts,
    storeOf: (host) => {
      const store = archives.get(host);
      if (store === undefined) throw new TypeError(`Cannot use archives of ${host}: it has none`);
      return store;
    },
    existing: async (host, localparts) =>
      await accounts.get(host)?.existing(localparts) ?? new Map(),
    // A source that checks passwords by itself is a directory.
    keepsAll: (host) => accounts.get(host)?.checkPassword !== undefined,
    creationHere: (jid) => creationHere(jid, sessions),
    refusalsFor: (account) => privacy.defaults.refusalsFor(account),
    here: (message) => {
      const all = sessions.ofAccount(message.to.bare.text);
      if (all.length === 0) return "nobody";
      return all.every(({ jid }) => privacy.wouldRefuse(jid, message)) ? "blocked" : "somebody";
    },
    isContact: async (account, contact) => {
      const roster = config.modules.get(account.domainpart)?.mod_roster;
      if (roster === undefined || roster === false) return false;
      const { item } = await stores.rosters(account.domainpart).find(account.text, contact.text);
      return item?.isListed === true;
    },
    isUserHost: (domain) => isUserHost(domain, domains),
    budget: places.archive,
    metrics,
    logger: log,
    clock,
  });
}

/**
 * Returns the creation of the account whose sessions at this node a JID names. Undefined without such a
 * session, or when they are of accounts that had the name one after another.
 */
function creationHere(jid: Jid, sessions: SessionRegistry): string | undefined {
  const own = jid instanceof FullJid ? sessions.find(jid) : undefined;
  const [first, ...others] = own === undefined ? sessions.ofAccount(jid.bare.text) : [own];
  if (first === undefined) return undefined;
  const creation = first.creation ?? "";
  return others.every((other) => (other.creation ?? "") === creation) ? creation : undefined;
}
