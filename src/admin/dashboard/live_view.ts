/// <reference lib="dom" />
import type { AdminClient } from "./admin_client.ts";
import { RequestFailed, TokenRequired } from "./admin_client.ts";
import type {
  AdminEvent,
  Bounce,
  Caller,
  Certificate,
  Database,
  Datacenter,
  DatacenterDetail,
  DatacenterLinks,
  List,
  MeshNode,
  Overview,
  Status,
} from "./api_types.ts";
import { appendHistory } from "./traffic.ts";
import type { Facts, ViewState } from "./view_state.ts";
import { INITIAL_VIEW } from "./view_state.ts";

const REFRESH_MS = 4000;
const RECONNECT_MS = 3000;
/** Gathers the refreshes of many events into one. */
const EVENT_REFRESH_MS = 150;
const MAX_FEED_ENTRIES = 100;

/**
 * Keeps the page's state up to date. Rates, round trips and events come as server-sent events; the
 * rest is read every four seconds, and at once when an event or a link's state tells of a change. A
 * page that nobody sees asks nothing.
 */
export class LiveView {
  readonly #client: AdminClient;
  readonly #watchers = new Set<() => void>();
  #state: ViewState = INITIAL_VIEW;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isRefreshing = false;
  #isReadingLinks = false;
  /** Set while the stream of events is open, or being opened. */
  #stream: AbortController | undefined;

  constructor(client: AdminClient) {
    this.#client = client;
  }

  get state(): ViewState {
    return this.#state;
  }

  /** Calls `watcher` after each change until the returned function is called. */
  watch(watcher: () => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  start(): void {
    document.addEventListener("visibilitychange", () => this.#wake());
    this.#wake();
  }

  /** Tries another token. */
  unlock(token: string): void {
    this.#client.setToken(token);
    this.#change({ phase: "loading", problem: undefined });
    this.#wake();
  }

  /** Shows a datacenter in the panel, or no panel. */
  select(datacenter: string | undefined): void {
    this.#change({ selected: datacenter, detail: undefined });
    this.#wake();
  }

  #wake(): void {
    if (document.visibilityState === "hidden" || this.#state.phase === "locked") return;
    this.#schedule(0);
    if (this.#stream === undefined) this.#follow().catch(() => {}); // it handles its own failures
  }

  #schedule(inMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#refresh(), inMs);
  }

  async #refresh(): Promise<void> {
    if (this.#isRefreshing || document.visibilityState === "hidden") return;
    this.#isRefreshing = true;
    const { token } = this.#client;
    void this.#readLinks(); // it takes a second where a node does not answer, and handles its failures
    try {
      const [facts] = await Promise.all([this.#readFacts(), this.#readDetail()]);
      if (token === this.#client.token) {
        this.#change({
          facts,
          phase: "live",
          problem: undefined,
          answeredAt: new Date().toISOString(),
        });
      }
    } catch (thrown) {
      this.#fail(thrown);
    } finally {
      this.#isRefreshing = false;
    }
    if (this.#state.phase === "locked") return;
    // Another token may have come meanwhile: nothing has been read with it yet.
    this.#schedule(token === this.#client.token ? REFRESH_MS : 0);
  }

  async #readFacts(): Promise<Facts> {
    const client = this.#client;
    const [caller, status, datacenters, nodes, bounces, databases, certificates] = await Promise
      .all([
        client.read<Caller>("/api/v1/caller"),
        client.read<Status>("/api/v1/status"),
        client.read<List<Datacenter>>("/api/v1/datacenters?limit=1000"),
        client.read<List<MeshNode>>("/api/v1/nodes?limit=1000"),
        client.read<List<Bounce> & { readonly stanzas: number }>("/api/v1/bounce?limit=50"),
        client.read<List<Database>>("/api/v1/databases"),
        client.read<List<Certificate>>("/api/v1/certificates"),
      ]);
    return {
      caller,
      status,
      datacenters: datacenters.items,
      nodes: nodes.items,
      bounces: bounces.items,
      bounceTotals: { addresses: bounces.total, stanzas: bounces.stanzas },
      databases: databases.items,
      certificates: certificates.items,
    };
  }

  async #readDetail(): Promise<void> {
    const { selected } = this.#state;
    if (selected === undefined) return;
    const path = `/api/v1/datacenters/${encodeURIComponent(selected)}`;
    try {
      const detail = await this.#client.read<DatacenterDetail>(path);
      if (this.#state.selected === selected) this.#change({ detail });
    } catch (thrown) {
      if (!(thrown instanceof RequestFailed && thrown.status === 404)) throw thrown;
      // The mesh has no such datacenter any more.
      if (this.#state.selected === selected) this.#change({ selected: undefined });
    }
  }

  /** Reads the links between all datacenters. Without an answer nothing of them is known. */
  async #readLinks(): Promise<void> {
    if (this.#isReadingLinks) return;
    this.#isReadingLinks = true;
    try {
      const { items } = await this.#client.read<List<DatacenterLinks>>(
        "/api/v1/datacenter-links?limit=1000",
      );
      this.#change({ told: items });
    } catch {
      this.#change({ told: undefined }); // the request for the facts tells why
    }
    this.#isReadingLinks = false;
  }

  /** Follows the stream of events until the page is locked. */
  async #follow(): Promise<void> {
    const stream = this.#stream = new AbortController();
    try {
      for await (
        const event of this.#client.events(
          `/api/v1/events?after=${this.#state.feed[0]?.id ?? 0}`,
          stream.signal,
        )
      ) {
        if (event.name === "overview") this.#take(JSON.parse(event.data) as Overview);
        if (event.name === "event") this.#enter(JSON.parse(event.data) as AdminEvent);
      }
    } catch (thrown) {
      if (thrown instanceof TokenRequired) this.#fail(thrown);
      // Otherwise the node is away or has ended; the next attempt follows.
    }
    if (this.#stream !== stream) return; // the next token has a stream of its own
    this.#stream = undefined;
    setTimeout(() => this.#wake(), RECONNECT_MS);
  }

  /** Shows the newest rates, states and round trips at once. */
  #take(overview: Overview): void {
    const newest = new Map(overview.datacenters.map((each) => [each.datacenter, each]));
    const { facts, history } = this.#state;
    const hasChanged = facts?.datacenters.some(({ datacenter, state }) =>
      newest.get(datacenter)?.state !== state
    );
    const datacenters = facts?.datacenters.map((known) => {
      const { roundTripMs } = newest.get(known.datacenter) ?? known;
      return roundTripMs === undefined ? known : { ...known, roundTripMs };
    });
    this.#change({
      rates: newest,
      total: overview,
      history: appendHistory(history, overview),
      ...(facts !== undefined && datacenters !== undefined && { facts: { ...facts, datacenters } }),
    });
    if (hasChanged) this.#schedule(EVENT_REFRESH_MS);
  }

  #enter(entry: AdminEvent): void {
    // After a reconnection the node repeats its last events.
    if (this.#state.feed.some(({ id }) => id === entry.id)) return;
    const feed = [entry, ...this.#state.feed].slice(0, MAX_FEED_ENTRIES);
    this.#change({ feed });
    this.#schedule(EVENT_REFRESH_MS);
  }

  #fail(thrown: unknown): void {
    const problem = thrown instanceof Error ? thrown.message : String(thrown);
    if (thrown instanceof TokenRequired) {
      if (this.#state.phase === "locked") return; // several requests are refused at once
      if (thrown.token !== this.#client.token) return; // a late answer says nothing of this token
      const isWrong = thrown.token !== null;
      this.#client.forgetToken();
      this.#stream?.abort();
      this.#stream = undefined;
      const { selected } = this.#state;
      this.#state = { ...INITIAL_VIEW, selected };
      this.#change({ phase: "locked", problem: isWrong ? "This token is wrong" : undefined });
    } else this.#change({ phase: "stale", problem });
  }

  #change(changed: Partial<ViewState>): void {
    this.#state = { ...this.#state, ...changed };
    for (const watcher of this.#watchers) watcher();
  }
}
