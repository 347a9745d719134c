import type { ActionResult } from "./action_schemas.ts";

/** Outcome of an action, or why nothing was done. */
export type ActionOutcome =
  | Pick<ActionResult, "outcome" | "affected" | "text" | "reload">
  /** The target does not exist, it cannot be done now, or the target's state forbids it. */
  | { readonly failure: "not-found" | "unavailable" | "conflict"; readonly text: string };

/** A datacenter's links, or those to one of its endpoints. */
export interface LinkTarget {
  readonly datacenter: string;
  /** `host:port`. Default: all */
  readonly endpoint?: string | undefined;
}

/** Actions that operators can ask a node for. */
export interface AdminActions {
  /** Begins a graceful stop, after which the process ends. */
  drain(): ActionOutcome;
  /** Keeps links down until `resume`. */
  pause(target: LinkTarget): ActionOutcome;
  resume(target: LinkTarget): ActionOutcome;
  /** Dials what is not connected. @param datacenter default: all */
  retry(datacenter?: string): ActionOutcome;
  /** Spreads senders evenly over the lanes. @param datacenter default: all */
  rebalance(datacenter?: string): ActionOutcome;
  /** Writes this node's entries in the session table anew. */
  refresh(): Promise<ActionOutcome>;
  /** Drops what the cache holds of an address. @param address default: of all addresses */
  dropCache(address?: string): ActionOutcome;
  /** Ends the sessions of a bare or full JID at this node. */
  kick(address: string): ActionOutcome;
  /**
   * Makes this node and the others with sessions of an account look up whether it exists, and end those
   * sessions if it does not.
   */
  checkAccount(address: string): Promise<ActionOutcome>;
  /** Reads the configuration and the certificates again. */
  reload(): Promise<ActionOutcome>;
}
