import type { Fate, Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import type { Envelope, EnvelopeFields } from "../envelope.ts";

/** The lanes to other datacenters, as routing sees them. */
export interface Outbound {
  /**
   * Takes `envelope` over and sends it on the lane that its sender is bound to. Keeps the order of
   * calls per sender. A stanza that cannot be sent in the end comes back through the router's
   * `returned`.
   */
  send(host: string, envelope: Envelope): void;
  /**
   * Makes a message that was given to `send` within this event-loop turn bring its carbon: the node at
   * the other end makes it for the sender's own sessions there. It keeps its place among the
   * carbons that are sent `boundAs` the same sender.
   * @returns false when the carbon must be sent by itself. @default always false
   */
  bringCarbon?(host: string, sender: Jid, id: Pick<Envelope, "process" | "sequence">): boolean;
}

/** The session table as routing sees it: where users and components are. */
export interface Locations {
  /**
   * Local host from memory alone; null for a remembered miss, undefined when only Redis can tell.
   */
  cached(jid: Jid): string | null | undefined;
  /**
   * Local host; undefined when it is not known. Never rejects: an unreachable Redis counts as a
   * miss.
   */
  locate(jid: Jid): Promise<string | undefined>;
  /**
   * Local hosts of `jids`, all of one account or domain, whose lookup found nothing. Drops what
   * memory holds on them and looks them up in one request. Keeps their order; never rejects.
   */
  locateAgain(jids: readonly Jid[]): Promise<readonly (string | undefined)[]>;
  /**
   * Remembers that `jid` was seen writing from `host`, if nothing is known of it. Cache only.
   * @returns false when that was known already
   */
  learn(jid: Jid, host: string): boolean;
  /**
   * Sessions in all datacenters of an account that has some in several, as `cached` or `locate`
   * have just found them; none for other accounts. Each resource is at its newest login.
   */
  spread(jid: Jid): readonly SessionHost[];
  /** True when a bare JID has to be located before `spread` can answer for its account. */
  isUnplaced(jid: Jid): boolean;
  /** Drops what memory holds on `jid`, so that the next lookup asks Redis. */
  forget(jid: Jid): void;
  /** Like `forget`, except that the entry still counts while Redis cannot be asked. */
  expire(jid: Jid): void;
}

/** A session of an account that has sessions in several datacenters. */
export interface SessionHost {
  /** Local host of its datacenter. */
  readonly host: string;
  readonly resourcepart: string;
}

/** A session, or a component's connection, on another node of this datacenter. */
export interface Placement {
  readonly node: string;
  /** Empty for a component. */
  readonly resourcepart: string;
  /** Undefined while the resource is connected but not available. */
  readonly priority: number | undefined;
}

/** Nodes of this datacenter where users and components are, as the session table knows them. */
export interface Placements {
  /** False while this is the datacenter's only node, when lookups are of no use. */
  readonly hasNeighbours: boolean;
  /** The datacenter's other nodes. */
  readonly neighbours: Iterable<string>;
  /** Places on other nodes that the last lookup of `jid` found. */
  placements(jid: Jid): readonly Placement[];
  /** True when `jid` has to be located before `placements` can answer for it. */
  isUnplaced(jid: Jid): boolean;
  locate(jid: Jid): Promise<string | undefined>;
}

/** The lanes to the other nodes of this datacenter. */
export interface Handover {
  /** Takes `envelope` over; one that cannot be sent in the end comes back through `returned`. */
  send(node: string, envelope: Envelope): void;
  /** True while the node's process has ended: no stanza may be handed to it. */
  isGone(node: string): boolean;
  /** True when stanzas sent there come back at once. */
  isGivenUp(node: string): boolean;
  /**
   * Makes stanzas handed to `node` come back if it cannot be reached, as others wait for their fate.
   */
  reconsider(node: string): void;
}

/**
 * Fate of a stanza handed to this node's side: `delivered` (it now owns the envelope and settles
 * it), `no-session` (nothing here answers to the address), `hidden` (a session here does, and the
 * sender must not learn of it), `ignored` (RFC 6121 says to drop it silently), or the stanza error
 * that RFC 6121 §8.5 asks for.
 */
export type NodeOutcome =
  | "delivered"
  | "no-session"
  | "hidden"
  | "ignored"
  | StanzaErrorCondition;

/**
 * Fate of a stanza on the datacenter's side: `handed-over` when another of its nodes has the
 * envelope.
 */
export type LocalOutcome = NodeOutcome | "handed-over";

/** Keeps requests for subscriptions until their contacts have answered them (RFC 6121 §3.1.3). */
export interface RequestKeeper {
  /**
   * Takes note of presence that manages a subscription, before it is routed to a person. Returns a
   * promise if the stanza is to be kept. It resolves to the stanza's keeper once it is kept, or to
   * undefined when it could not be kept. Never rejects.
   *
   * @param entryPoint comes back with a request that is routed again
   */
  note(stanza: Stanza, entryPoint: EntryPoint): Promise<Keeper | undefined> | undefined;
}

/** Keeps messages of which no resource of an account takes any (XEP-0160). */
export interface OfflineKeeper {
  /**
   * Takes over a message for which its sender would get `service-unavailable`. Returns false for a
   * message that is not kept: the sender gets the error at once. Otherwise calls one of `kept`,
   * `refused` and `dropped`, later. A dropped message is lost, and its sender must not learn so.
   *
   * @param sentAtMs wall-clock milliseconds when the message was accepted
   */
  keep(
    stanza: Stanza,
    sentAtMs: number,
    outcome: { kept(): void; refused(condition: StanzaErrorCondition): void; dropped(): void },
  ): boolean;
  /**
   * Takes over a message that found nobody and could not wait, as there was no room. Returns false
   * when its sender may know so, and gets the error at once. Otherwise calls one of `refused` and
   * `dropped`, later.
   */
  refuse(
    stanza: Stanza,
    outcome: { refused(condition: StanzaErrorCondition): void; dropped(): void },
  ): boolean;
}

/**
 * Archive that is to have a message: its sender's, or its recipient's.
 *
 * | side | meaning |
 * | --- | --- |
 * | `sender` | the sender's archive |
 * | `recipient` | the recipient's, as sessions here are about to get the message |
 * | `absent` | the recipient's, if the account exists, as nobody is there to get the message |
 */
export type ArchiveSide = "sender" | "recipient" | "absent";

/** A message on its way into an archive. */
export interface Noting {
  /** Calls `goOn` when the message may go on: within this call if that is so already. */
  whenReady(goOn: () => void): void;
  /** Calls `call` when the message need no longer be kept for the archive, at once if that is so already. */
  whenSettled(call: () => void): void;
  /** True once it need no longer be kept for the archive. */
  readonly isSettled: boolean;
  /** True when the archive has the message. */
  readonly isStored: boolean;
  /** Takes the message back, unless a transaction has it already. */
  takeBack(): void;
}

/** A message's wait for room in the archive of one side. */
export interface WaitForRoom {
  readonly side: ArchiveSide;
  /** Monotonic milliseconds since which the message waits. */
  readonly sinceMs: number;
  /** Calls `note` again, if that is still of use; false when there is no room. */
  attempt(): boolean;
}

/**
 * Archives the messages of accounts (XEP-0313). Messages that it has taken for one store end in that
 * order, and each goes on within the call that ends it: before the next one ends.
 */
export interface Archive {
  /** True when this node has sessions that may get a message for a person. */
  isHere(envelope: Envelope): boolean;
  /**
   * Makes an archive take a message. Undefined when it does not. Otherwise the message waits, or there
   * is no room for it.
   * @param isEarly true when the router asks again in the end, if there is no room now
   */
  note(
    envelope: Envelope,
    side: ArchiveSide,
    isEarly?: boolean,
  ): Noting | "resource-constraint" | undefined;
  /**
   * Makes a message for which `note` has found no room wait until there is some.
   * @returns false when it has waited for too long, and is refused. Never rejects
   */
  whenRoom(envelope: Envelope, wait: WaitForRoom): Promise<boolean>;
  /** Lets messages wait for room only briefly from now on: the node stops. */
  hurry(): void;
  /**
   * As `OfflineKeeper.keep`. A message that the archive has already counts as kept, and so does one
   * whose sender the account has blocked, which is not stored.
   */
  keep(
    envelope: Envelope,
    outcome: { kept(isStored: boolean): void; refused(condition: StanzaErrorCondition): void },
  ): boolean;
  /** Returns a message as its recipient gets it, with its id in the archive, if it is there. */
  stamped(envelope: Envelope): Stanza;
}

/** Handles presence for accounts on their behalf (RFC 6121 §3, §4.3). */
export interface PresenceServer {
  /** True for a host whose accounts have rosters at this datacenter. */
  serves(domain: string): boolean;
  /** Takes over a subscription stanza, or a probe, for an account, and settles the envelope. */
  take(envelope: Envelope): void;
}

/** Decides which messages a person's other sessions are told of (XEP-0280). */
export interface CarbonCopies {
  /** True for a message of which other sessions of its recipient get carbons. */
  copies(stanza: Stanza): boolean;
}

/** The place where a stanza entered the mesh, as its envelope says. */
export type EntryPoint = Pick<EnvelopeFields, "origin" | "process" | "sequence">;

/** Fate that keeps a stanza until its contact answers, whatever becomes of it on this node. */
export type Keeper = Fate & { stays(number?: number): void };

/** Sessions, components and services connected to this datacenter. */
export interface LocalDelivery {
  /** True for the domain of a component that is connected to this datacenter. */
  servesDomain(domain: string): boolean;
  deliver(envelope: Envelope): LocalOutcome;
  /** Returns the sessions of `to`'s account at this datacenter. */
  sessionsOf(to: Jid): OwnSessions;
  /**
   * Gives sessions of this node a message in the place of copies that they keep: a copy would be dropped
   * when its session ends. False when no session keeps any. @default false
   */
  replaceCopies?(message: Envelope): boolean;
  /**
   * Prepares `deliver` to an address that was not looked up. Returns a promise, which never
   * rejects, when there is something to wait for.
   *
   * @param turn is called before a lookup; its promise, if any, waits until the sender may look up
   */
  prepare?(
    envelope: Envelope,
    turn: (envelope: Envelope) => Promise<void> | undefined,
  ): Promise<unknown> | undefined;
  /**
   * Gives a stanza that this node can no longer hold to another node of the datacenter, which
   * routes it. False when there is none.
   */
  handOn?(envelope: Envelope): boolean;
  /**
   * Takes over a stanza that must not overtake earlier ones of its sender to the same address
   * within the datacenter. False when it need not wait, `full` when it must and there is no room.
   */
  keepBehind?(envelope: Envelope): boolean | "full";
  /**
   * Takes back an `envelope` that another node returned; true when it is to be routed anew in its
   * order.
   * @param isToGoOn false when the stanza ends on this node
   */
  takeBack?(envelope: Envelope, isToGoOn: boolean): boolean;
  /** Returns all stanzas that were taken over and still wait, in order. */
  giveUpWaiting?(): readonly Envelope[];
  /**
   * Gives a copy, which needs no answer, to the other nodes of the datacenter that have its
   * recipient.
   */
  deliverElsewhere?(envelope: Envelope): void;
  /** False when no other node of the datacenter has sessions of the account. @default never */
  mayBeElsewhere?(account: Jid): boolean;
}

/** Sessions of one account in one place, as far as RFC 6121 §8.5 needs them. */
export interface OwnSessions {
  /** True when the account has any session here. */
  readonly isHere: boolean;
  /** True when the addressed full JID is here. */
  readonly isResourceHere: boolean;
  /** Highest priority of the available ones; undefined when none is available. */
  readonly priority: number | undefined;
}

/** The local side of one node, from which `DatacenterSide` builds the datacenter's. */
export interface NodeSide {
  servesDomain(domain: string): boolean;
  deliver(envelope: Envelope): NodeOutcome;
  /** Returns the sessions of `to`'s account on this node. */
  ownSessions(to: Jid): OwnSessions;
  /** As of `LocalDelivery`. */
  replaceCopies?(message: Envelope): boolean;
}
