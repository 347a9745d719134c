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

/** What this node remembers of what it has delivered, to know repeats. */
export interface RepeatMemory {
  /** What is known for an address, at most `max`, the newest. */
  deliveredTo(address: string, max: number): DeliveredNumbers[];
  learnDelivered(address: string, numbers: DeliveredNumbers): void;
  /** The stanza is delivered here: it belongs to a session that has come from another node. */
  noteDelivered(envelope: Envelope): void;
  /** It is not: its session has gone to another node. */
  forgetDelivered(envelope: Envelope): void;
}

/** A process of another node. */
export type Peer = Pick<OpenLink, "host" | "nodeName" | "process">;

/** What is known of other nodes. */
export interface Peers {
  /** True while nobody listens where that process did, or nowhere in its place: it has ended. */
  hasEnded(peer: Peer): boolean;
  /**
   * True while that process listens nowhere as far as this node is told, though no link of ours has
   * ever reached it: it has probably ended.
   */
  seemsEnded(peer: Peer): boolean;
  /** Has its node called, so that this node can tell whether the process has ended. */
  call(peer: Peer): void;
  /** True when a peer may bring this stanza, which as it says entered the mesh there. */
  mayBring(arrived: Pick<EnvelopeFields, "stanza" | "origin" | "process">): boolean;
  /** True when the datacenter `host` may be given sessions of `account`, a bare JID. */
  mayHave(account: string, host: string): boolean;
}
