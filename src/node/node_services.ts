import { describeError } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { VERSION } from "../config/mod.ts";
import { isUserHost } from "../distribution/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import { archiveRequests } from "../services/archive/mod.ts";
import type { MessageArchive } from "../services/archive/mod.ts";
import { AccountCheck, AccountWatch, ownAccount, removalNotice } from "../services/accounts/mod.ts";
import type { Carbons } from "../services/carbons/mod.ts";
import { LastActivity, LogoutNotes } from "../services/last/mod.ts";
import { HostServices } from "../services/mod.ts";
import type { AccountUse, IqService } from "../services/mod.ts";
import { blockingServices, privacyServices } from "../services/privacy/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { PepServer } from "../services/pep/mod.ts";
import { PepDisco, pepRequests, relationOf } from "../services/pep/mod.ts";
import { privateStorage } from "../services/private/mod.ts";
import type { OfflineMessages } from "../services/offline/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import { vcards, vcardSearch } from "../services/vcard/mod.ts";
import type { VcardSearchOptions } from "../services/vcard/mod.ts";
import type { Stores, UserStore } from "../storage/mod.ts";
import { seesPresence } from "../storage/mod.ts";
import type { BareJid, Jid, SessionRegistry } from "../xmpp/mod.ts";
import { deriveScramCredentials, FullJid, HashGate, parseJid } from "../xmpp/mod.ts";
import type { LocalSide } from "./local_side.ts";
import { roomDomainsOf } from "./node_rooms.ts";
import { accountWatchOptions, requestBounds, serviceBounds } from "./options.ts";
import type { Surroundings } from "./surroundings.ts";

/** Parts that the services of the node's hosts use. Each is read when they use it. */
export interface ServiceParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly logouts: LogoutNotes;
  readonly table: SessionTable;
  readonly router: Router;
  readonly local: LocalSide;
  readonly rosters: RosterServer;
  readonly carbons: Carbons;
  readonly requests: SubscriptionRequests;
  readonly privacy: PrivacyServer;
  readonly offline: OfflineMessages;
  readonly archive: MessageArchive | undefined;
  readonly pep: PepServer;
  readonly accountCheck: AccountCheck;
}

/** Makes the services that answer for this node's hosts and for its users' accounts. */
export function makeServices(config: Config, parts: Surroundings & ServiceParts): HostServices {
  const { metrics, log, clock } = parts;
  return new HostServices({
    software: { name: "Causeway", version: VERSION },
    hasModule: (host, module) =>
      module === "vcard_search"
        ? searchOf(config, host) !== undefined
        : config.modules.get(host)?.[module] !== false,
    // XEP-0160 §4.
    hostFeatures: (host) => parts.offline.serves(host) ? ["msgoffline"] : [],
    publicDomains: async (host) => {
      const disco = config.modules.get(host)?.mod_disco;
      const seesHidden = disco !== undefined && disco !== false && disco.usersCanSeeHiddenServices;
      const found = await (seesHidden ? parts.table.allDomains() : parts.table.publicDomains());
      const { globalHost, localHost } = config.globalDistrib;
      if (host !== globalHost) return found;
      return [...found, ...roomDomainsOf(config).map((domain) => ({ domain, host: localHost }))];
    },
    reply: (answer, request, isLast) => parts.local.answered(answer, request, isLast),
    accounts: new PepDisco(
      parts.pep.hosts,
      (host) => (config.modules.get(host)?.mod_vcard ?? false) !== false,
    ),
    services: [
      ...accountServices(config, parts),
      ...parts.rosters.services,
      ...parts.carbons.services,
      ...blockingServices(parts.privacy),
      ...privacyServices(parts.privacy),
      ...pepRequests({ server: parts.pep, hosts: parts.pep.hosts }),
      ...parts.archive === undefined ? [] : archiveRequests({
        archive: parts.archive,
        creationOf: (client) => {
          const session = parts.sessions.find(client);
          return session && (session.creation ?? "");
        },
        send: (to, message) => parts.sessions.find(to)?.send(message) ?? false,
      }),
    ],
    isCurrent: (account, { creation = "" }, use) =>
      parts.accountCheck.isCurrent(account, creation, use),
    ...serviceBounds(config),
    metrics,
    logger: log,
    clock,
  });
}

/** Derivations of keys from new passwords at once; each takes a thread for milliseconds. */
const DERIVATIONS_AT_ONCE = 1;

/** Makes the services for the data of accounts, and for accounts themselves. */
function accountServices(
  config: Config,
  parts: Surroundings & ServiceParts,
): readonly IqService[] {
  const { stores, accounts, sessions, logouts, rosters, pep, log, clock } = parts;
  const { modules, auth } = config;
  const gate = new HashGate(DERIVATIONS_AT_ONCE);
  return [
    ...ownAccount({
      usersOf: (host) => usersOf(accounts, host),
      derive: (password) => gate.run(() => deriveScramCredentials(password, auth.scramIterations)),
      passwordStrengthOf: (host) => moduleOf(modules.get(host)?.mod_register).passwordStrength,
      mayRemove: (host) => moduleOf(modules.get(host)?.mod_register).allowRemoval,
      remove: async (account, creation) => {
        const { localpart, domainpart } = account;
        const present = (await usersOf(accounts, domainpart).existing([localpart])).get(localpart);
        if (present !== undefined && present !== creation) return false;
        await rosters.leave(account);
        await stores.removeAccount(localpart, domainpart, { creation });
        return true;
      },
      endSessions: (account, creation) =>
        end(
          sessionsOf(sessions, account).filter((session) => (session.creation ?? "") === creation),
        ),
      cleanUp: async (account) => {
        await tellOfRemoval(account, parts);
        parts.requests.forget(account.text);
        await cleanUp(account, { stores, accounts, logouts });
      },
      logger: log,
    }),
    ...privateStorage({
      storeOf: (host) => stores.privateStorage(host),
      boundsOf: (host) => moduleOf(modules.get(host)?.mod_private),
    }),
    new LastActivity({
      storeOf: (host) => stores.lastLogouts(host),
      isOnline: (account, asker) => rosters.isSeenOnline(account, asker),
      maySee: (asker, account) => maySee(asker, account, parts),
      clock,
    }),
    ...vcards({
      storeOf: (host) => stores.vcards(host),
      maxBytesOf: (host) => moduleOf(modules.get(host)?.mod_vcard).maxBytes,
      photos: pep.photos,
      isHidden: async (owner, asker) => (await relationOf(pep.hosts, owner, asker)).isHidden,
    }),
    ...vcardSearch({
      storeOf: (host) => stores.vcards(host),
      optionsOf: (host) => moduleOf(searchOf(config, host)),
      hidersFrom: (asker, accounts) => parts.privacy.defaults.hidersFrom(asker, accounts),
    }),
  ];
}

/**
 * True for those who may see the presence of an account, unless its privacy list hides it from them.
 * The steps are the same for every address: their time tells nobody who is hidden from whether the
 * account is online.
 */
export async function maySee(
  asker: Jid,
  account: BareJid,
  { pep }: { readonly pep: { readonly hosts: Parameters<typeof relationOf>[0] } },
): Promise<boolean> {
  const { isOwner, item } = await relationOf(pep.hosts, account, asker);
  return isOwner || seesPresence(item?.subscription);
}

/** Returns the options of the search at a host; undefined where it is off. */
function searchOf({ modules }: Config, host: string): VcardSearchOptions | undefined {
  const module = modules.get(host)?.mod_vcard;
  return module === undefined || module === false ? undefined : module.search;
}

/** Returns the options of a module that is on: nobody asks a service that is off. */
function moduleOf<T>(module: T | false | undefined): T {
  if (module === undefined || module === false) {
    throw new TypeError("Cannot use a module: it is off");
  }
  return module;
}

/** Parts that the watch over accounts uses. */
export interface WatchParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly sessions: SessionRegistry;
  readonly logouts: LogoutNotes;
  readonly services: HostServices;
  readonly rosters: RosterServer;
  readonly requests: SubscriptionRequests;
  readonly privacy: PrivacyServer;
}

/** Makes the notes of the last logouts. */
export function makeLogoutNotes(
  { modules }: Config,
  { stores, accounts, metrics, log, clock }:
    & Surroundings
    & Pick<ServiceParts, "stores" | "accounts">,
): LogoutNotes {
  return new LogoutNotes({
    storeOf: (host) => modules.get(host)?.mod_last === true ? stores.lastLogouts(host) : undefined,
    existing: (host, localparts) => usersOf(accounts, host).existing(localparts),
    metrics,
    logger: log,
    clock,
  });
}

/** Makes the watch that ends the sessions of accounts that were deleted elsewhere. */
export function makeAccountWatch(
  config: Config,
  parts: Surroundings & WatchParts,
): AccountWatch {
  const { stores, accounts, sessions, services, logouts, rosters, privacy, log, clock } = parts;
  return new AccountWatch({
    ...accountWatchOptions(config),
    sessions,
    existing: async (host, localparts) => {
      await privacy.look(host, localparts);
      return await usersOf(accounts, host).existing(localparts);
    },
    end: ({ jid: account, creation }) => {
      const ending = sessionsOf(sessions, account)
        .filter((session) => (session.creation ?? "") !== creation);
      rosters.gone(ending.map(({ jid }) => jid));
      parts.requests.forget(account.text);
      end(ending);
      services.runInTurn(account.text, () => cleanUp(account, { stores, accounts, logouts }));
    },
    clock,
    logger: log,
  });
}

/** Makes the check of the accounts of sessions that read or change data. */
export function makeAccountCheck(
  parts: Pick<Surroundings, "log" | "clock"> & Pick<WatchParts, "accounts"> & {
    /** It is read when an account is gone. */
    readonly accountWatch: AccountWatch;
  },
): AccountCheck {
  const { accounts, log, clock } = parts;
  return new AccountCheck({
    existing: (host, localparts) => usersOf(accounts, host).existing(localparts),
    gone: (account) => parts.accountWatch.lookAt(account),
    clock,
    logger: log,
  });
}

/**
 * Returns a function that is true while the account of a session here exists, although a session of a
 * new owner of the name may have its address by then. Never rejects.
 */
export function currentCheck(
  client: Jid,
  use: AccountUse,
  { sessions, accountCheck }: {
    readonly sessions: Pick<SessionRegistry, "find">;
    readonly accountCheck: AccountCheck;
  },
): () => Promise<boolean> {
  const session = client instanceof FullJid ? sessions.find(client) : undefined;
  if (session === undefined) return () => Promise.resolve(true);
  const { jid, creation = "" } = session;
  return () => accountCheck.isCurrent(jid.bare, creation, use);
}

/** Returns the creation of an account. Undefined when it does not exist, or its host is not served. */
export async function creationOf(
  { localpart, domainpart }: Jid,
  accounts: ReadonlyMap<string, UserStore>,
): Promise<string | undefined> {
  return (await accounts.get(domainpart)?.existing([localpart]))?.get(localpart);
}

/** Returns the open sessions of an account here. */
function sessionsOf(sessions: SessionRegistry, account: BareJid) {
  return sessions.ofAccount(account.text).filter(({ isOpen }) => isOpen);
}

function end(sessions: ReturnType<typeof sessionsOf>): void {
  for (const session of sessions) session.end("not-authorized"); // XEP-0077 §3.2
}

/** Parts that tell other nodes of a removal. */
interface TellingParts
  extends
    Pick<ServiceParts, "table" | "router" | "domains" | "sessions">,
    Pick<Surroundings, "log"> {}

/**
 * Tells the other nodes with sessions of an account that it was deleted. Returns the number of those
 * sessions. Never rejects: those nodes look by themselves, too.
 */
async function tellOfRemoval(account: BareJid, parts: TellingParts): Promise<number> {
  const { table, router, domains, sessions, log } = parts;
  const { globalHost, localHost } = domains;
  let told = 0;
  try {
    for (const each of (await table.sessionsOf([account.text])).get(account.text) ?? []) {
      // Accounts of other hosts have sessions at this datacenter alone.
      if (account.domainpart !== globalHost && each.host !== localHost) continue;
      const to = new FullJid(account, each.resourcepart);
      if (sessions.find(to) !== undefined) continue;
      router.accept(removalNotice(account, to));
      told++;
    }
  } catch (thrown) {
    log.debug("accounts.untold", { jid: account.text, error: describeError(thrown) });
  }
  return told;
}

/** Parts that look at an account at all nodes. */
export interface CheckedParts extends TellingParts {
  readonly accountWatch: Pick<AccountWatch, "lookAt">;
}

/**
 * Makes this node and the others with sessions of an account look up whether it exists. Returns the
 * number of those sessions. Never rejects.
 */
export async function checkAccount(
  account: BareJid,
  parts: CheckedParts,
): Promise<number> {
  parts.accountWatch.lookAt(account);
  return sessionsOf(parts.sessions, account).length + await tellOfRemoval(account, parts);
}

/** Deletes the data of an account that is gone. */
async function cleanUp(
  account: BareJid,
  { stores, accounts, logouts }: Pick<WatchParts, "stores" | "accounts" | "logouts">,
): Promise<void> {
  const { localpart, domainpart } = account;
  await logouts.forget(account);
  if (await usersOf(accounts, domainpart).exists(localpart)) return;
  await stores.removeData(localpart, domainpart, { isGone: true });
}

/** Returns the accounts of a host that has sessions or services here, which is one of `hosts`. */
function usersOf(accounts: ReadonlyMap<string, UserStore>, host: string): UserStore {
  const users = accounts.get(host);
  if (users === undefined) throw new TypeError(`Cannot find the accounts of ${host}: not served`);
  return users;
}

/** Parts that the keeper of requests uses. The last four are read when it uses them. */
export interface RequestParts {
  readonly stores: Stores;
  /** Accounts by domain. */
  readonly accounts: ReadonlyMap<string, UserStore>;
  readonly domains: Domains;
  readonly sessions: SessionRegistry;
  readonly table: SessionTable;
  readonly router: Router;
  readonly rosters: RosterServer;
}

/**
 * Makes the keeper of requests for subscriptions to this node's accounts (RFC 6121 §3.1.3). Where
 * accounts have rosters, those hold the requests: what an earlier version has kept goes there.
 */
export function makeRequests(
  config: Config,
  parts: Surroundings & RequestParts,
): SubscriptionRequests {
  const { stores, accounts, domains, metrics, log, clock } = parts;
  const { maxBytes, ...bounds } = requestBounds(config);
  return new SubscriptionRequests({
    store: stores.subscriptionRequests(bounds),
    exists: async (jid) => await accounts.get(jid.domainpart)?.exists(jid.localpart) ?? false,
    isHere: (contact) =>
      !parts.rosters.serves(parseJid(contact).domainpart) &&
      parts.sessions.ofAccount(contact).length > 0,
    locate: (contact) => parts.table.locate(contact),
    route: (request, kept, entry) => parts.router.acceptKept(request, kept, entry),
    deliver: (to, request) => {
      const session = parts.rosters.serves(to.domainpart) ? undefined : parts.sessions.find(to);
      return session !== undefined && parts.sessions.deliverTo(session, request) === "delivered";
    },
    senderOf: ({ text, domainpart }) =>
      isUserHost(domainpart, domains) || domains.isOtherLocalHost(domainpart) ? text : domainpart,
    maxBytes,
    metrics,
    logger: log,
    clock,
  });
}
