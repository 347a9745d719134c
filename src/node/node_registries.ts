import type { Config } from "../config/mod.ts";
import { isRoomDomain } from "../distribution/mod.ts";
import type { Domains, Router } from "../distribution/routing/mod.ts";
import type { SessionTable } from "../distribution/table/mod.ts";
import type { Envelope } from "../distribution/mod.ts";
import type { MucServer } from "../services/muc/mod.ts";
import type { CopyOrder } from "../services/muc_light/mod.ts";
import type { LogoutNotes } from "../services/last/mod.ts";
import type { PrivacyServer } from "../services/privacy/mod.ts";
import type { OfflineMessages } from "../services/offline/mod.ts";
import type { PepServer } from "../services/pep/mod.ts";
import type { RosterServer } from "../services/roster/mod.ts";
import type { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import { ComponentRegistry, FullJid, parseJid, SessionRegistry } from "../xmpp/mod.ts";
import type { Stanza } from "../xmpp/mod.ts";
import { accountProbe } from "./account_probe.ts";
import type { LocalSide } from "./local_side.ts";
import { sessionBounds } from "./options.ts";
import type { Pressure } from "./pressure.ts";

/**
 * Parts that hear of sessions and components that come and go. Each is read when that happens,
 * never before.
 */
export interface RegistryListeners {
  readonly table: SessionTable;
  readonly pressure: Pressure;
  readonly router: Router;
  readonly requests: SubscriptionRequests;
  readonly logouts: LogoutNotes;
  readonly rosters: RosterServer;
  readonly privacy: PrivacyServer;
  readonly offline: OfflineMessages;
  readonly sessions: SessionRegistry;
  readonly pep: PepServer;
  readonly muc: MucServer<Envelope> | undefined;
  readonly copyOrder: Pick<CopyOrder<Envelope>, "leaving" | "gone"> | undefined;
  readonly local: LocalSide;
  readonly domains: Domains;
}

/** Makes the registry of the clients that are connected to this node. */
export function makeSessions(config: Config, parts: RegistryListeners): SessionRegistry {
  return new SessionRegistry({
    events: {
      opened: (jid, origin) => {
        parts.pep.opened(jid);
        return parts.table.sessionOpened(jid, origin);
      },
      elsewhere: (account) => parts.table.sessionsElsewhere(account),
      // After the table: who changes the lists from now on finds the session there.
      opening: (jid) => parts.privacy.opening(jid),
      leaving: (jid) => {
        parts.copyOrder?.leaving(jid, isLastHere(jid, parts.sessions));
      },
      closed: (jid) => {
        parts.pressure.gone(jid.text);
        parts.rosters.closed(jid);
        parts.privacy.closed(jid);
        parts.offline.closed(jid);
        parts.pep.closed(jid);
        if (isLastHere(jid, parts.sessions)) parts.copyOrder?.gone(jid.bare);
        return parts.table.sessionClosed(jid);
      },
      reachable: (jid) => parts.router.revealed(jid),
      presence: (presence, priority, creation) => {
        tellOtherNodes(presence, priority, parts);
        if (presence.from instanceof FullJid) parts.offline.presence(presence.from, priority);
        if (presence.from instanceof FullJid) parts.pep.presenceChanged(presence.from, presence);
        noteLogout(presence, creation, parts);
      },
      isTelling: (jid) => parts.rosters.isTelling(jid) || parts.pep.isSending(jid),
      isNews: (presence) => parts.rosters.isNews(presence),
      arrived: (jid, priority, isNew) => {
        void parts.table.sessionPriority(jid, priority); // never rejects
        parts.rosters.arrived(jid, { isAvailable: priority !== undefined, isNew });
        parts.privacy.arrived(jid);
        parts.offline.arrived(jid, priority);
        parts.muc?.arrived(jid);
        parts.pep.arrived(jid, parts.sessions.find(jid)?.lastPresence, isNew);
      },
      completed: (presence) => parts.pep.photos.complete(presence),
      available: (jid) => {
        if (parts.table.hasNeighbours) parts.router.copy(accountProbe(jid));
        parts.requests.becameAvailable(jid);
      },
    },
    accountIq: (stanza) => parts.local.askServices(stanza),
    isRoomDomain: (domainpart) => isRoomDomain(domainpart, parts.domains),
    refuses: (session, stanza) => parts.privacy.refuses(session, stanza),
    ...sessionBounds(config),
  });
}

/** True when no other session of the same account is here. */
function isLastHere(jid: FullJid, sessions: SessionRegistry): boolean {
  return sessions.ofAccount(jid.bare.text).every((each) => each.jid.text === jid.text);
}

/** Notes when a session ends whose contacts knew of it. Those who may see the note see no other logout. */
export function noteLogout(
  presence: Stanza,
  creation: string,
  { privacy, logouts }: Pick<RegistryListeners, "privacy" | "logouts">,
): void {
  const { type, from } = presence;
  if (type !== "unavailable") return;
  if (from instanceof FullJid && privacy.isInvisible(from)) return;
  logouts.loggedOut(presence, creation);
}

/** Makes the registry of the components that are connected to this node. */
export function makeComponents(
  parts: Pick<RegistryListeners, "table" | "pressure" | "router">,
): ComponentRegistry {
  return new ComponentRegistry({
    connected: (domain, options) => parts.table.domainAdded(domain, options),
    disconnected: (domain) => {
      parts.pressure.gone(domain);
      return parts.table.domainRemoved(domain);
    },
    reachable: (domain) => parts.router.revealed(parseJid(domain)),
  });
}

/**
 * Tells the account's resources on the other nodes of this datacenter about a presence, and its
 * contacts everywhere.
 */
function tellOtherNodes(
  presence: Stanza,
  priority: number | undefined,
  { table, router, rosters }: Pick<RegistryListeners, "table" | "router" | "rosters">,
): void {
  const { from } = presence;
  if (from instanceof FullJid) void table.sessionPriority(from, priority); // never rejects
  if (table.hasNeighbours) router.copy(presence);
  if (from instanceof FullJid) rosters.presenceChanged(from, presence);
}
