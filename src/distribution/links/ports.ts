import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope, ReturnReason } from "../mod.ts";

/** Address where a node accepts links: a name or IP address, and a port. */
export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

/** Endpoints of other nodes, as the session table knows them. */
export interface EndpointSource {
  /** Endpoints of the nodes of `host`; empty when none is known. A rejection changes nothing. */
  endpoints(host: string): Promise<readonly EndpointAddress[]>;
}

/** Datacenters of the mesh, as the session table knows them. */
export interface HostSource {
  /** Local hosts of all datacenters, ours included. A rejection changes nothing. */
  hosts(): Promise<readonly string[]>;
  /**
   * True where a datacenter that is cut off or dead stays on the list, so that one that is no longer
   * there has left in order or was removed. @default false
   */
  readonly keepsSilentHosts?: boolean;
}

/** Callbacks for what comes over links. Called synchronously, in order of the lane. */
export interface LinkLayerEvents {
  /**
   * Takes a stanza from the datacenter `peerHost`; settling it tells the sender's node. Its bytes
   * lie in a read buffer: `detach` a stanza that is held for long.
   */
  received(envelope: Envelope, peerHost: string): void;
  /** Called with a stanza that was refused and settled. @default nothing happens */
  refused?(envelope: Envelope, peerHost: string, reason: string): void;
  /**
   * Takes back a stanza given to `send` that will not be sent on; per sender in the order of
   * `send`.
   */
  returned(envelope: Envelope, reason: ReturnReason): void;
  /**
   * Looks up a recipient while no node of the stanza's datacenter is linked. Returns the local
   * host; undefined when it is not known. Never rejects. @default stanzas wait until they expire
   */
  whereabouts?(to: Jid): Promise<string | undefined>;
  /**
   * Called when a peer, or another node of it, takes our datacenter for another one of the same
   * name: one of the two may not know its id. @default nothing happens
   */
  identityDoubted?(): void;
  /**
   * Called when the first link to a destination has opened that had none for `awayMs`.
   * @default nothing happens
   */
  linkedAgain?(destination: string, awayMs: number): void;
  /**
   * Called with presence that is given back as `full` or `expired`, before `returned`: it will not
   * reach its destination. @default nothing happens
   */
  lostPresence?(destination: string, envelope: Envelope): void;
  /**
   * Called some time later, when the destination is linked and has room again: it has missed
   * presence. @default nothing happens
   */
  missedPresence?(destination: string): void;
  /** Called when `sender` feeds a lane over its high-water mark, and when that is over. */
  pressure(sender: string, isOver: boolean): void;
}

/** Identity of this process, as HELLO tells it. */
export interface NodeIdentity {
  readonly globalHost: string;
  readonly localHost: string;
  /**
   * All our domains, including `globalHost` and `localHost`: no other datacenter may use one of
   * them.
   */
  readonly hosts: ReadonlySet<string>;
  readonly nodeName: string;
  /** The process's incarnation. */
  readonly process: number;
  /**
   * Returns the id of the datacenter's data, for each HELLO. Empty until Redis has told it, which
   * peers do not take for a contradiction.
   */
  datacenterId(): string;
}
