import type { Clock, PacedWork } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type {
  PepBounds,
  PepStore,
  RosterContact,
  RosterItem,
  RosterStore,
  VcardStore,
} from "../../storage/mod.ts";
import type { FullJid, Jid, LocalSession, Stanza, XmlElement } from "../../xmpp/mod.ts";
import type { SessionPlace } from "../roster/mod.ts";
import type { FormValues } from "./data_form.ts";

/** Limits on the nodes of each account of a host. */
export interface PepLimits extends PepBounds {
  /** Items that a node may keep; at least 1. */
  readonly maxItemsPerNode: number;
  /** Bytes of one item's payload; at least 1. */
  readonly maxItemBytes: number;
}

/** A session of this node, as far as personal eventing needs it. */
export type PepSession = Pick<LocalSession, "jid" | "lastPresence" | "isOpen">;

/** The sessions of accounts, at this node and elsewhere. */
export interface PepSessions {
  /** Sessions of an account at this node, also those that are ending or moving away. */
  here(account: string): readonly PepSession[];
  /** All sessions of this node. */
  all(): Iterable<PepSession>;
  /**
   * Returns the sessions of accounts in all datacenters; undefined while the session table cannot tell.
   * Never rejects.
   */
  everywhere(
    accounts: readonly string[],
  ): Promise<ReadonlyMap<string, readonly SessionPlace[]> | undefined>;
}

/** The hosts that personal eventing depends on. */
export interface PepHosts {
  readonly localHost: string;
  /** The host whose accounts may have sessions in every datacenter. */
  readonly globalHost: string;
  /** Returns the nodes of a host's accounts; undefined: they have none here. */
  store(domain: string): PepStore | undefined;
  /** Returns the rosters of a host's accounts; undefined: they have none here. */
  rosters(domain: string): RosterStore | undefined;
  /** Returns the vCards of a host's accounts; undefined: they have none here. */
  vcards(domain: string): Pick<VcardStore, "isReadOnly" | "read" | "replace"> | undefined;
  limits(domain: string): PepLimits;
  /**
   * Returns the creations of those of some accounts that belong to hosts of ours, by bare JID. It asks
   * the database for none that has the session here which a full JID names.
   *
   * @throws CausewayError with a code `storage/…`
   */
  creations(accounts: readonly Jid[]): Promise<ReadonlyMap<string, string>>;
  /** True for a domain whose accounts belong to another datacenter of the mesh. */
  isElsewhere(domain: string): boolean;
  /**
   * Returns those of some accounts of one host that hide from contacts by their privacy lists, each
   * with a function that is true for such contacts. @default none does
   *
   * @throws CausewayError with a code `storage/…`
   */
  hiders?(owners: readonly Jid[]): Promise<ReadonlyMap<string, (contact: Jid) => boolean>>;
  /**
   * Returns a function that is true for somebody from whom the owner's privacy list hides it, if its
   * roster has this item for them. It must take the same steps whether or not the owner exists, or is
   * online. @default it hides from nobody
   *
   * @throws CausewayError with a code `storage/…`
   */
  hiderOf?(owner: Jid): Promise<(asker: Jid, item: RosterItem | undefined) => boolean>;
}

/** The ways that notifications take. */
export interface PepRoutes {
  /** Routes a stanza by its recipient. */
  route(stanza: Stanza): void;
  /** Sends a stanza to a session that is at this datacenter, without a lookup. */
  sendTo(host: string, stanza: Stanza): void;
  /** Writes to a session of this node. False when the session does not take it. */
  deliver(to: FullJid, stanza: Stanza): boolean;
}

/** The parts that personal eventing works with. */
export interface PepDeps {
  readonly hosts: PepHosts;
  readonly sessions: PepSessions;
  readonly routes: PepRoutes;
  /**
   * Returns the contacts of a session of this node, also those without a subscription, once they have
   * been told its presence. Undefined when nothing is being told, or that failed. Never rejects.
   */
  contactsTold(jid: FullJid): Promise<readonly RosterContact[] | undefined>;
  /** Makes a session send its presence anew, because the server adds something else to it now. */
  presenceAgain(jid: FullJid): void;
  readonly paced: PacedWork;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
}

/** One item to publish. */
export interface Publication {
  readonly node: string;
  readonly id: string;
  readonly payload: XmlElement;
  /** Options that the node must have, or gets if it is made (XEP-0060 §7.1.5). */
  readonly options?: FormValues;
}

/**
 * True while the owner of a node is the account that a change is for, and nobody who took its name.
 * Never rejects. Without one nobody asks.
 */
export type StillCheck = () => Promise<boolean>;

/** Outcome of a change of a node. */
export type PepOutcome =
  | "done"
  | "no-node"
  | "no-item"
  | "exists"
  | "not-acceptable"
  | "no-access-model"
  | "precondition-not-met"
  | "full"
  | "too-large"
  | "contended"
  /** The account was deleted meanwhile: nothing of the change is left to the next owner of its name. */
  | "former";
