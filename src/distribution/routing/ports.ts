import type { Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import type { Settler } from "../mod.ts";
import type { Envelope, EnvelopeFields } from "../envelope.ts";
import type { OwnSessions } from "./placement.ts";

/** The lanes to other datacenters, as routing sees them. */
export interface Outbound {
  /**
   * Takes `envelope` over and sends it on the lane that its sender is bound to. Keeps the order of
   * calls per sender. What cannot be sent in the end comes back through the router's `returned`.
   */
  send(host: string, envelope: Envelope): void;
}

/** Where users and components are, as routing sees the session table. */
export interface Locations {
  /** Local host from memory alone; null for a remembered miss, undefined when Redis must be asked. */
  cached(jid: Jid): string | null | undefined;
  /** Local host; undefined when nobody knows it. Never rejects: an unreachable Redis knows nothing. */
  locate(jid: Jid): Promise<string | undefined>;
  /**
   * Local hosts of `jids`, all of one account or domain, which were looked up in vain: drops what memory
   * holds on them, and asks for them together. In their order; never rejects.
   */
  locateAgain(jids: readonly Jid[]): Promise<readonly (string | undefined)[]>;
  /**
   * Remembers that `jid` was seen writing from `host`, where nothing is known of it. Cache only.
   * @returns false when that was known already
   */
  learn(jid: Jid, host: string): boolean;
  /** Drops what memory holds on `jid`, so that the next lookup asks Redis. */
  forget(jid: Jid): void;
  /** As `forget`; but where Redis cannot be asked, what memory holds still counts. */
  expire(jid: Jid): void;
}

/** A session, or a component's connection, on another node of this datacenter. */
export interface Placement {
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  /** Undefined while the resource is connected but not available. */
  readonly priority: number | undefined;
}

/** Where in this datacenter users and components are, as the session table knows it. */
export interface Placements {
  /** False while this is the datacenter's only node: then there is nothing to ask. */
  readonly hasNeighbours: boolean;
  /** The datacenter's other nodes. */
  readonly neighbours: Iterable<string>;
  /** What the last lookup of `jid` found on other nodes. */
  placements(jid: Jid): readonly Placement[];
  /** True when `jid` has to be located before `placements` can answer for it. */
  isUnplaced(jid: Jid): boolean;
  locate(jid: Jid): Promise<string | undefined>;
}

/** The lanes to the other nodes of this datacenter. */
export interface Handover {
  /** Takes `envelope` over; what cannot be sent in the end comes back through `handedBack`. */
  send(node: string, envelope: Envelope): void;
  /** True while the node's process has ended: nothing is handed to it. */
  isGone(node: string): boolean;
  /** True when what is sent there comes back at once. */
  isGivenUp(node: string): boolean;
  /** Somebody waits for the fate of what `node` was handed: if it cannot be reached, it comes back. */
  reconsider(node: string): void;
}

/**
 * What became of a stanza handed to this node's side: `delivered` (it now owns the envelope and settles
 * it), `no-session` (nothing here answers to the address), `ignored` (RFC 6121 says to
 * drop it silently), or the stanza error that RFC 6121 §8.5 asks for.
 */
export type NodeOutcome = "delivered" | "no-session" | "ignored" | StanzaErrorCondition;

/** The same of the whole datacenter's side: `handed-over` when another node of it has the envelope. */
export type LocalOutcome = NodeOutcome | "handed-over";

/** Keeps requests for subscriptions until their contacts have answered them (RFC 6121 §3.1.3). */
export interface RequestKeeper {
  /**
   * Takes note of presence that manages a subscription, before it is routed to a person. A promise when
   * the stanza is to be kept: it resolves when that is done, to the one who keeps it, or to undefined when
   * it could not be. Never rejects.
   *
   * @param entry comes back with a request that is routed again
   */
  note(stanza: Stanza, entry: StanzaEntry): Promise<Keeper | undefined> | undefined;
}

/** Where a stanza entered the mesh, as its envelope says. */
export type StanzaEntry = Pick<EnvelopeFields, "origin" | "process" | "sequence">;

/** Who keeps a stanza whatever becomes of it here. */
export type Keeper = Settler & { stays(): void };

/** Sessions, components and services connected to this datacenter. */
export interface LocalDelivery {
  /** True for the domain of a component that is connected to this datacenter. */
  servesDomain(domain: string): boolean;
  deliver(envelope: Envelope): LocalOutcome;
  /**
   * For an address that nobody has looked up, to be called before `deliver`: a promise when there is
   * something to wait for, which never rejects.
   *
   * @param turn to be called before a lookup, and to be waited for where its sender has none left
   */
  prepare?(
    envelope: Envelope,
    turn: (envelope: Envelope) => Promise<void> | undefined,
  ): Promise<unknown> | undefined;
  /**
   * Gives what this node can hold no longer to another node of the datacenter, to bring it where it is
   * for; false when there is none.
   */
  handOn?(envelope: Envelope): boolean;
  /**
   * Takes over what must wait, so as not to overtake what its sender has under way to the same address
   * within the datacenter; false when it need not. `full` when it must and there is no room.
   */
  keepBehind?(envelope: Envelope): boolean | "full";
  /**
   * Another node has given `envelope` back. True when it was taken over, to be routed anew in its order.
   * @param isToGoOn false when it ends with this node
   */
  takeBack?(envelope: Envelope, isToGoOn: boolean): boolean;
  /** Gives up all that was taken over and waits still, in order. */
  giveUpWaiting?(): readonly Envelope[];
  /** Gives a copy, which nobody answers for, to the datacenter's other nodes that want it. */
  deliverElsewhere?(envelope: Envelope): void;
}

/** The local side of one node, as a datacenter of several puts it together. */
export interface NodeSide {
  servesDomain(domain: string): boolean;
  deliver(envelope: Envelope): NodeOutcome;
  /** What `to`'s account has connected to this node. */
  ownSessions(to: Jid): OwnSessions;
}
