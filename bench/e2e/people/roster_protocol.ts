import type { ClientPlan } from "../load_protocol.ts";
import type { DatabasePlace } from "./accounts.ts";

/** Argument of the process that asks a node for rosters, as JSON. */
export interface RosterLoadPlan {
  readonly clients: readonly ClientPlan[];
}

/** Argument of the process that asks the database without a node, as JSON. */
export interface BareDriverPlan {
  readonly place: DatabasePlace;
  /** Connections, each of which has one statement under way. */
  readonly connections: number;
  /** The statement that the node sends. Its one parameter is the key of a roster's owner. */
  readonly statement: string;
  /** Bare JIDs of the owners, asked for in turn. */
  readonly owners: readonly string[];
  /** Rows that each statement has to return. */
  readonly rows: number;
}

/** Command to either process: ask as fast as possible, of which the first `warmUpMs` do not count. */
export interface RateCommand {
  readonly warmUpMs: number;
  readonly measureMs: number;
}

/** Events of either process. */
export type RateEvent =
  | { readonly event: "ready" }
  | { readonly event: "begin" }
  | { readonly event: "rate"; readonly answers: number; readonly elapsedMs: number };
