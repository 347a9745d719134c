import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { PrivacyStore, RosterStore } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import type { PrivacyBounds } from "./privacy_bounds.ts";

/** The hosts whose accounts may have lists. */
export interface PrivacyHosts {
  readonly localHost: string;
  /** The host whose accounts may have sessions in every datacenter. */
  readonly globalHost: string;
  /** Returns the lists of a host's accounts; undefined where neither protocol is on. */
  store(domain: string): PrivacyStore | undefined;
  /** Returns the rosters of a host's accounts; undefined: they have none here. */
  rosters(domain: string): RosterStore | undefined;
  /** Returns the limits on each account of a host. */
  bounds(domain: string): PrivacyBounds;
}

/** Presence that a session's list keeps from it, or keeps it from sending to others. */
export interface PrivacyView {
  /** True when presence of the session does not go to `contact`. */
  hidesFrom(contact: Jid): boolean;
  /** True when presence of `contact` does not come to the session. */
  isDeafTo(contact: Jid): boolean;
  /** Clients of others that the list names by their full JIDs. */
  readonly devices: readonly FullJid[];
}

/** A change of the list that applies to a session. */
export interface PrivacyChange {
  readonly before: PrivacyView;
  readonly after: PrivacyView;
}

/** Objects behind privacy lists. */
export interface PrivacyDeps {
  /** Incarnation of this process: ids of pushes from different nodes differ by it. */
  readonly process: number;
  readonly hosts: PrivacyHosts;
  /**
   * Returns the sessions of each of `accounts` that has any, in all datacenters. Never rejects.
   */
  everywhere(accounts: readonly string[]): Promise<
    ReadonlyMap<string, readonly { readonly host: string; readonly resourcepart: string }[]>
  >;
  /** Routes a stanza of the server's own by its recipient. */
  route(stanza: Stanza): void;
  /** Writes to a session of this node. */
  deliver(to: FullJid, stanza: Stanza): void;
  /** Tells a session's contacts, and its client, what a change means for presence. */
  changed(session: FullJid, change: PrivacyChange): void;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
}
