import type { Clock, PacedWork } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { RosterStore } from "../../storage/mod.ts";
import type { BareJid, FullJid, Jid, LocalSession, Stanza } from "../../xmpp/mod.ts";
import type { LiveProcesses } from "./live_processes.ts";
import type { PresentSession } from "./remote_presence.ts";
import type { RosterBounds } from "./roster_query.ts";

/** A session of an account in one of the datacenters. */
export interface SessionPlace {
  readonly host: string;
  readonly resourcepart: string;
  /** Incarnation of the process that has the session. */
  readonly process: number;
}

/** The sessions of accounts, at this node and elsewhere. */
export interface AccountSessions {
  /** Sessions at this node. */
  here(
    account: string,
  ): readonly (PresentSession & Pick<LocalSession, "directed" | "repeatDirected">)[];
  /** All sessions at this node. */
  all(): Iterable<Pick<LocalSession, "jid" | "lastPresence">>;
  /** Local hosts of all datacenters that can be reached. Never rejects. */
  hosts(): Promise<readonly string[]>;
  /** Live processes of datacenters; undefined while the session table cannot tell. Never rejects. */
  liveProcesses(hosts: readonly string[]): Promise<LiveProcesses | undefined>;
  /**
   * Returns the sessions of each of `accounts` that has any, in all datacenters. It asks the
   * session table once. Undefined while the session table cannot tell. Never rejects.
   */
  everywhere(
    accounts: readonly string[],
  ): Promise<ReadonlyMap<string, readonly SessionPlace[]> | undefined>;
}

/** The ways that the server's own stanzas take. */
export interface ServerRoutes {
  /** Routes a stanza by its recipient. */
  route(stanza: Stanza): void;
  /** Sends presence to the sessions that the account `to` has at one datacenter. */
  sendTo(host: string, stanza: Stanza): void;
  /** Sends presence to the sessions that the account `to` has at the other nodes of this datacenter. */
  sendToNodes(stanza: Stanza): void;
  /** Writes to a session of this node. False when the session does not take it. */
  deliver(to: FullJid, stanza: Stanza): boolean;
  /** As `deliver`, unless the session's list keeps the stanza from it. */
  offer(to: FullJid, stanza: Stanza): boolean;
}

/** Presence that the list of a session hides. */
export interface PresenceView {
  /** True when presence of the session does not go to `contact`. */
  hidesFrom(contact: Jid): boolean;
  /** True when presence of `contact` does not come to the session. */
  isDeafTo(contact: Jid): boolean;
  /** Clients of others that the list names by their full JIDs. */
  readonly devices: readonly FullJid[];
}

/** Privacy lists, as far as presence and subscriptions depend on them (XEP-0016). */
export interface PresencePrivacy {
  /** Returns what the list of a session of this node hides. */
  viewOf(session: FullJid): PresenceView;
  /**
   * True when the default list of the recipient denies a stanza between accounts.
   * @throws CausewayError with a code `storage/…`
   */
  refusesForAccount(stanza: Stanza): Promise<boolean>;
  /**
   * Returns those of some accounts of one host that hide from contacts by their default lists, each
   * with a function that is true for such contacts.
   * @throws CausewayError with a code `storage/…`
   */
  hiders(accounts: readonly BareJid[]): Promise<ReadonlyMap<string, (contact: Jid) => boolean>>;
}

/** The domains that rosters depend on. */
export interface RosterHosts {
  readonly localHost: string;
  /** The host whose accounts may have sessions in every datacenter. */
  readonly globalHost: string;
  /** Returns the rosters of a host's accounts; undefined: its accounts have none here. */
  store(domain: string): RosterStore | undefined;
  /** True when the rosters of both hosts lie in one database. */
  isShared(one: string, other: string): boolean;
  /** True when rosters of this host have versions (RFC 6121 §2.6). */
  hasVersions(domain: string): boolean;
}

/** The parts that rosters, subscriptions and presence work with. */
export interface RosterDeps {
  /** Incarnation of this process: ids of pushes from different nodes differ by it. */
  readonly process: number;
  /** Milliseconds that a lease lives without its process. */
  readonly leaseMs: number;
  readonly hosts: RosterHosts;
  readonly sessions: AccountSessions;
  readonly routes: ServerRoutes;
  readonly bounds: Required<RosterBounds>;
  /** @default nobody has lists */
  readonly privacy?: PresencePrivacy | undefined;
  /** Called when `contact` may see the presence of `owner` from now on. */
  approved?(owner: Jid, contact: Jid): void;
  /** Called when sessions here may have missed something of a datacenter that is within reach again. */
  datacenterBack?(): void;
  /** Returns the `AccountCredentials.creation` of an account. Undefined when it does not exist. */
  creationOf(account: Jid): Promise<string | undefined>;
  /** Does the telling of presence to contacts, a little at a time. */
  readonly paced: Pick<PacedWork, "run" | "task">;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
}
