import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../mod.ts";

/** Where a node accepts links: a name or address, and a port. */
export interface EndpointAddress {
  readonly host: string;
  readonly port: number;
}

/** What the session table knows of other datacenters' nodes. */
export interface EndpointSource {
  /** Endpoints of the nodes of `host`; empty when none is known. A rejection changes nothing. */
  endpoints(host: string): Promise<readonly EndpointAddress[]>;
}

/** What the session table knows of the mesh. */
export interface HostSource {
  /** Local hosts of all datacenters, ours included. A rejection changes nothing. */
  hosts(): Promise<readonly string[]>;
}

/**
 * Why a stanza comes back: its lane is `full`; the process that had it is gone (`peer-restarted`);
 * nobody listens there any more (`peer-gone`), and those whom it is for may be elsewhere by now;
 * nothing of its datacenter was reachable for long (`expired`); this process `leaving`.
 */
export type ReturnReason = "full" | "peer-restarted" | "peer-gone" | "expired" | "leaving";

/** Who takes what comes over links. Called synchronously, in order of the lane. */
export interface LinkHandlers {
  /**
   * A stanza from the datacenter `peerHost`; settling it tells the sender's node. Its bytes lie in
   * a read buffer: `detach` what is held for long.
   */
  received(envelope: Envelope, peerHost: string): void;
  /** A stanza given to `send` that will not be sent on; per sender in the order of `send`. */
  returned(envelope: Envelope, reason: ReturnReason): void;
  /**
   * Asked while nothing of a datacenter is reached: where the recipient of what waits for it is now, by
   * local host; undefined when nobody knows. Never rejects. @default it waits until it expires
   */
  whereabouts?(to: Jid): Promise<string | undefined>;
  /**
   * A peer takes our datacenter for another one of the same name, or another node of it does: one of us
   * may not know its id. @default it is left at that
   */
  identityDoubted?(): void;
  /** `sender` feeds a lane that has risen over its high-water mark, or no longer does. */
  pressure(sender: string, isOver: boolean): void;
}

/** Who this process is, as HELLO tells it. */
export interface NodeIdentity {
  readonly globalHost: string;
  readonly localHost: string;
  /** All domains of ours, `globalHost` and `localHost` among them: no other datacenter is one of them. */
  readonly hosts: ReadonlySet<string>;
  readonly nodeName: string;
  /** The process's incarnation. */
  readonly process: number;
  /**
   * Identity of the datacenter's data, asked for at each HELLO; empty as long as Redis has not told
   * it, which peers take for no contradiction.
   */
  datacenterId(): string;
}
