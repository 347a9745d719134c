import type { Ledger } from "../ledger/mod.ts";
import type { Address } from "../process/mod.ts";
import type { Sideline } from "./sideline.ts";

/** A node as a client sees it. */
export interface LoadPlace {
  /** For messages, and to be recognised by `endOf`; what precedes the first `-` is its datacenter. */
  readonly name: string;
  /** Returns its address for clients now; undefined while it does not run. */
  readonly address: () => Address | undefined;
}

/** Way in which a node was ended, and the time on the clock of `liveMs`. */
export interface NodeEnd {
  readonly how: "killed" | "stopped";
  readonly atMs: number;
}

/** Account and nodes of a client. */
export interface LoadClientOptions {
  readonly localpart: string;
  readonly password: string;
  readonly domain: string;
  readonly resource: string;
  /** Stream management with resumption. */
  readonly isManaged: boolean;
  /** Nodes to try, the first one first. */
  readonly places: readonly LoadPlace[];
  readonly ledger: Ledger;
  /** Returns how the process behind a connection was ended; undefined if it was not. */
  readonly endOf: (place: LoadPlace) => NodeEnd | undefined;
  /** Traffic beside the numbered stanzas. @default none */
  readonly sidelines?: readonly Sideline[];
  /** Binds another resource in each new session, as many clients do. @default false */
  readonly isRenamed?: boolean;
}

/** Counts of a client's events other than stanzas, as proof of faults. */
export interface LoadClientCounts {
  logins: number;
  lost: number;
  resumed: number;
  resumeFailures: number;
  resent: number;
}
