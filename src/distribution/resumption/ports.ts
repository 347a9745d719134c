import type { FreezeOwner, Freezing, FullJid, ResumeRequest } from "../../xmpp/mod.ts";
import type { Envelope, EnvelopeFields, OpenLink } from "../mod.ts";

/** The sessions of this node. */
export interface FreezableSessions {
  freeze(request: ResumeRequest, owner: FreezeOwner): Freezing;
  /**
   * Waits until it is decided whether a session that is on its way is here; undefined for any other.
   * @default none is on its way
   */
  arriving?(request: ResumeRequest): Promise<void> | undefined;
}

/** Numbers of one process that were delivered from one sender to one address. */
export interface DeliveredNumbers {
  readonly sender: string;
  readonly process: number;
  readonly highest: number;
  readonly recent: readonly number[];
}

/**
 * Numbers of delivered stanzas that this node remembers, to recognise repeats: by the address that
 * they were sent to, and in records of sessions that have come from other nodes.
 */
export interface RepeatMemory {
  /** Returns the numbers for an address or in a record, of at most `max` senders, the newest. */
  deliveredTo(address: string, max: number): DeliveredNumbers[];
  /** Adds numbers that another node delivered to an address, or to a record. */
  learnDelivered(address: string, numbers: DeliveredNumbers): void;
  /** Notes that the stanza was delivered here to its address. */
  noteDelivered(envelope: Envelope): void;
  noteInRecord(envelope: Envelope, record: string): void;
  isInRecord(envelope: Envelope, record: string): boolean;
  /** True also for a stanza that the record may have lost. */
  mayBeInRecord(envelope: Envelope, record: string): boolean;
  forgetRecord(record: string): void;
}

/** A process of another node. */
export type Peer = Pick<OpenLink, "host" | "nodeName" | "process">;

/** Facts about other nodes. */
export interface Peers {
  /**
   * True while the process's endpoint refuses connections, or another process is there: it has
   * ended.
   */
  hasEnded(peer: Peer): boolean;
  /**
   * True while that process listens at no known endpoint, though no link of ours has ever reached
   * it: it has probably ended.
   */
  seemsEnded(peer: Peer): boolean;
  /** Dials the process's node, so that this node can tell whether it has ended. */
  call(peer: Peer): void;
  /** True when a peer may pass on this stanza, with the origin that it claims. */
  mayBring(arrived: Pick<EnvelopeFields, "stanza" | "origin" | "process">): boolean;
  /**
   * Returns the epoch of the newest claim on a full JID, if it is of that process of this datacenter. Must
   * not reject.
   */
  claimedEpoch(jid: FullJid, process: number): Promise<number | undefined>;
  /** True when the datacenter `host` may get sessions of `account`, a bare JID. */
  mayHave(account: string, host: string): boolean;
}
