/** A node in the table of a running cluster. */
export interface NodeView {
  /** `dc1-node1` */
  readonly name: string;
  readonly datacenter: string;
  readonly state: NodeStateView;
  readonly sessions: number;
  readonly sentPerSec: number;
  readonly receivedPerSec: number;
  /** Stanzas that its lanes hold. */
  readonly held: number;
  /** Stanzas that wait for a lookup or bounce. */
  readonly waiting: number;
  /** Process of the datacenter's Redis. */
  readonly redis: "up" | "down";
  /** Address of its dashboard; undefined while the node does not run. */
  readonly dashboard: string | undefined;
}

/** `silent`: it runs, and its admin API does not answer in time. */
export type NodeStateView =
  | "ready"
  | "not ready"
  | "draining"
  | "silent"
  | "starting"
  | "ending"
  | "paused"
  | "stopped";

/** The links between two datacenters, both directions together. */
export interface LinkView {
  readonly one: string;
  readonly other: string;
  /** `cut`: from here; `unknown`: no node of either side answers. */
  readonly state: "up" | "partly up" | "down" | "cut" | "unknown";
  /** Shortest round-trip time that a node of either side has measured. */
  readonly roundTripMs: number | undefined;
  /** From `one` to `other`, and back. */
  readonly sentPerSec: readonly [number, number];
  readonly held: readonly [number, number];
}

/** Somebody who writes to the others, so that something flows. */
export interface VisitorView {
  readonly name: string;
  /** Node where the visitor is logged in, or was last. */
  readonly place: string;
  readonly isOnline: boolean;
}

/** Traffic of the visitors. */
export interface TrafficView {
  readonly state: "on" | "off" | "full" | "missing";
  readonly visitors: readonly VisitorView[];
}

/** All that the screen shows of a cluster. */
export interface ClusterView {
  readonly globalHost: string;
  readonly nodes: readonly NodeView[];
  readonly links: readonly LinkView[];
  readonly traffic: TrafficView;
}
