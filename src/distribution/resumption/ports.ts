import type { FreezeOwner, Freezing, ResumeRequest } from "../../xmpp/mod.ts";
import type { Envelope, EnvelopeFields, OpenLink } from "../mod.ts";

/** The sessions of this node. */
export interface FreezableSessions {
  freeze(request: ResumeRequest, owner: FreezeOwner): Freezing;
}

/** Numbers of one process that were delivered from one sender to one address. */
export interface DeliveredNumbers {
  readonly sender: string;
  readonly process: number;
  readonly highest: number;
  readonly recent: readonly number[];
}

/** Numbers of delivered stanzas that this node remembers, to recognise repeats. */
export interface RepeatMemory {
  /** Returns the numbers for an address, of at most `max` senders, the newest. */
  deliveredTo(address: string, max: number): DeliveredNumbers[];
  /** Adds the numbers that another node delivered to a session, by its full JID. */
  learnDelivered(session: string, numbers: DeliveredNumbers): void;
  /** Notes that a session that has come from another node has got the stanza by way of that node. */
  noteFollowed(envelope: Envelope, session: string): void;
  /** True when the session has got the stanza at that node, or by way of it. */
  hasFollowed(envelope: Envelope, session: string): boolean;
  /** Forgets that the stanza was delivered here: its session has gone to another node. */
  forgetDelivered(envelope: Envelope): void;
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
  /** True when the datacenter `host` may get sessions of `account`, a bare JID. */
  mayHave(account: string, host: string): boolean;
}
