import type { Clock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import type { RoomStanza } from "../rooms/mod.ts";
import type { MucService } from "./muc_options.ts";

/** Objects behind Multi-User Chat rooms. */
export interface MucServerDeps<Taken extends RoomStanza> {
  readonly service: MucService;
  /** Local host of this datacenter, and incarnation of this process. */
  readonly localHost: string;
  readonly process: number;
  /** True for the local host of a datacenter, ours included. */
  isLocalHost(domain: string): boolean;
  /** True while this node has the session. */
  isHere(jid: FullJid): boolean;
  /** True while this node has the session, and its client has no connection and may resume it. */
  isAway(jid: FullJid): boolean;
  /** Writes a stanza to a session of this node; false when this node has it no longer. */
  deliver(to: FullJid, stanza: Stanza): boolean;
  /** Sends a stanza to wherever its recipient is. `settled` is called once when its fate is final. */
  send(stanza: Stanza, settled?: () => void): void;
  /**
   * Sends one message to several sessions of an account, whose archive has it once. `settled` is called
   * for each of them.
   */
  sendToSessions(messages: readonly Stanza[], settled: () => void): void;
  /** Sends the answer to a stanza, which takes over its duty. */
  answer(reply: Stanza, to: Taken): void;
  /** Sends a stanza to the datacenter `host`, where all nodes get it but this one. */
  tell(host: string, stanza: Stanza): void;
  /** Returns the local hosts of all datacenters that can be reached. Never rejects. */
  hosts(): Promise<readonly string[]>;
  /** Returns the local hosts of all datacenters of the mesh, whether or not they can be reached. */
  knownHosts(): readonly string[];
  /**
   * Returns the processes of these datacenters that hold a lease; undefined while the session table
   * cannot tell. Never rejects.
   */
  liveProcesses(
    hosts: readonly string[],
  ): Promise<ReadonlyMap<string, ReadonlySet<number>> | undefined>;
  /** False while this node is the only one of its datacenter. */
  hasNeighbours(): boolean;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}
