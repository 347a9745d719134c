import type {
  AdminEvent,
  Bounce,
  Caller,
  Certificate,
  Database,
  Datacenter,
  DatacenterDetail,
  DatacenterLinks,
  MeshNode,
  Rate,
  Status,
} from "./api_types.ts";
import type { TrafficHistory } from "./traffic.ts";
import { EMPTY_HISTORY, NO_TRAFFIC } from "./traffic.ts";

/** Answers of the admin API of one moment. */
export interface Facts {
  /** Whoever reads the page, and the role of the token. */
  readonly caller: Caller;
  readonly status: Status;
  readonly datacenters: readonly Datacenter[];
  readonly nodes: readonly MeshNode[];
  readonly bounces: readonly Bounce[];
  /** Addresses and stanzas of the whole list, of which `bounces` is the beginning. */
  readonly bounceTotals: { readonly addresses: number; readonly stanzas: number };
  readonly databases: readonly Database[];
  readonly certificates: readonly Certificate[];
}

/** Everything that the page shows. */
export interface ViewState {
  /**
   * `loading` until the first answer; `live` while answers come; `stale` when the node does not
   * answer; `locked` until somebody enters a token.
   */
  readonly phase: "loading" | "live" | "stale" | "locked";
  /** Reason of `stale` and `locked`. */
  readonly problem: string | undefined;
  readonly facts: Facts | undefined;
  /** Rates by local host. */
  readonly rates: ReadonlyMap<string, Rate>;
  /** Rates over all datacenters. */
  readonly total: Rate;
  readonly history: TrafficHistory;
  /** Local host of the datacenter in the panel. */
  readonly selected: string | undefined;
  readonly detail: DatacenterDetail | undefined;
  /** Links of all datacenters as they tell of them; undefined until the node has asked them. */
  readonly told: readonly DatacenterLinks[] | undefined;
  /** Time of the last whole answer. */
  readonly answeredAt: string | undefined;
  /** Newest first. */
  readonly feed: readonly AdminEvent[];
}

export const INITIAL_VIEW: ViewState = {
  phase: "loading",
  problem: undefined,
  facts: undefined,
  rates: new Map(),
  total: NO_TRAFFIC,
  history: EMPTY_HISTORY,
  selected: undefined,
  detail: undefined,
  told: undefined,
  answeredAt: undefined,
  feed: [],
};
