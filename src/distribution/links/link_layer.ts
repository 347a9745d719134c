import type { CancelTimer, Clock, FairShares, Random } from "../../base/mod.ts";
import { describeError, MATH_RANDOM, RateLimit, SystemClock } from "../../base/mod.ts";
import type { Connection, HandshakePeer, Listener, TlsContextHolder } from "../../net/mod.ts";
import { listen } from "../../net/mod.ts";
import type { LogFields, Logger, Metrics } from "../../observe/mod.ts";
import { LIFE_LINES, PacedLog, SILENT_LOGGER } from "../../observe/mod.ts";
import type { Envelope, LinkTraffic } from "../mod.ts";
import { CallPace } from "./connection/call_pace.ts";
import { HeldWatch } from "./pools/held_watch.ts";
import { HostLinks } from "./pools/host_links.ts";
import { InboundLanes } from "./lanes/inbound_lanes.ts";
import { IncomingLink } from "./connection/incoming_link.ts";
import { LinkMetrics } from "./link_metrics.ts";
import type { LinkScope } from "./connection/link_scope.ts";
import { destinationOf } from "./connection/link_scope.ts";
import type { LinkShared } from "./connection/link_shared.ts";
import type { LinksOptions } from "./links_options.ts";
import { resolveLinksOptions } from "./links_options.ts";
import type { LinksSnapshot } from "./links_snapshot.ts";
import { snapshotOf } from "./links_snapshot.ts";
import { MeshHosts } from "./connection/mesh_hosts.ts";
import type {
  EndpointAddress,
  EndpointSource,
  HostSource,
  LinkHandlers,
  NodeIdentity,
  ReturnReason,
} from "./ports.ts";
import { SeedLink } from "./connection/seed_link.ts";
import { Shares } from "./connection/shares.ts";
import { UnprovenSenders } from "./connection/unproven_senders.ts";

/** The parts that the links of one process work with. */
export interface LinkLayerConfig {
  /** @default "mesh" */
  readonly scope?: LinkScope;
  readonly identity: NodeIdentity;
  /** Addresses to accept links on; may be empty. Port 0 lets the system choose. */
  readonly listen: readonly EndpointAddress[];
  /** Our certificate, and the authorities of peers' certificates; undefined for plain TCP. */
  readonly tls: TlsContextHolder | undefined;
  /** Endpoints by local host that replace those of the session table. */
  readonly overrides?: Readonly<Record<string, readonly EndpointAddress[]>>;
  readonly endpoints: EndpointSource;
  readonly hosts: HostSource;
  readonly handlers: LinkHandlers;
  /**
   * Replicates the session table over the links; absent when the table is not replicated over
   * links.
   */
  readonly traffic?: LinkTraffic;
  /**
   * Nodes of other datacenters, of any local host, that tell of the rest of the mesh. Each is
   * dialled until it has answered once, and again whenever no other datacenter is linked.
   */
  readonly seeds?: readonly EndpointAddress[];
  readonly metrics: Metrics;
  readonly options?: LinksOptions;
  /** Called before each TLS handshake of a peer; false rejects it. @default always true */
  readonly mayHandshake?: (peer: HandshakePeer) => boolean;
  /** True for the domain of a component that is not under the global host but in the session table. */
  readonly isComponentDomain?: (domain: string) => boolean;
  /**
   * Looks up in the session table whether an unknown domain is a component's. @default it is not
   */
  readonly findComponent?: (domain: string) => Promise<boolean>;
  /** True for the incarnation of a node of our datacenter, living or not. @default this process */
  readonly isOwnProcess?: (process: number) => boolean;
  /** Wider bounds that lanes, and stanzas of unproven senders, count for. @default no bound */
  readonly budget?: { readonly lanes: FairShares; readonly unproven: FairShares };
  readonly log?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Rate of log lines for connections refused before their HELLO; all refusals are counted. */
const LOGGED_REFUSALS = { perSec: 1, burst: 100 };

/** Milliseconds between checks of whether a drain or the end of all connections is done. */
const CHECK_MS = 10;

/**
 * The links of one process in one scope. Accepts links of other nodes, keeps its own links to
 * those, and carries stanzas in order per sender until they are settled (docs/promises.md,
 * "Delivery across a link").
 */
export class LinkLayer {
  readonly #config: LinkLayerConfig;
  readonly #shared: LinkShared;
  /** The destination of this node itself. */
  readonly #own: string;
  readonly #hosts = new Map<string, HostLinks>();
  /** Forgotten destinations whose connections have not ended yet. */
  readonly #leaving = new Set<HostLinks>();
  readonly #incoming = new Set<IncomingLink>();
  /** Links without HELLO, by the names in their certificates. */
  readonly #unauthenticated: Shares<IncomingLink>;
  /** Links with HELLO, by local host. */
  readonly #authenticated: Shares<IncomingLink>;
  readonly #seeds: readonly SeedLink[];
  readonly #listeners: Listener[] = [];
  readonly #refusalLog: RateLimit;
  readonly #crowdLog: PacedLog;
  #phase: "running" | "draining" | "closed" = "running";
  #cancelTick: CancelTimer | undefined;
  #cancelHosts: CancelTimer | undefined;
  #hasHostsFailed = false;
  #lanes = 0;
  #givenBack = 0;

  constructor(config: LinkLayerConfig) {
    this.#config = config;
    const clock = config.clock ?? new SystemClock();
    this.#refusalLog = new RateLimit(LOGGED_REFUSALS, clock);
    const options = resolveLinksOptions(config.options);
    const { localHost, globalHost } = config.identity;
    const scope = config.scope ?? "mesh";
    // The nodes of our own datacenter are no strangers: they share what there is.
    const log = config.log ?? SILENT_LOGGER;
    const share = (most: number) => scope === "mesh" ? most : Infinity;
    this.#unauthenticated = new Shares(share(options.maxDatacenterUnauthenticated));
    this.#authenticated = new Shares(share(options.maxDatacenterLinks));
    this.#own = destinationOf(scope, config.identity);
    this.#shared = {
      scope,
      identity: config.identity,
      options,
      tls: config.tls,
      handlers: {
        ...config.handlers,
        returned: (envelope, reason) => {
          this.#givenBack++;
          config.handlers.returned(envelope, reason);
        },
      },
      traffic: config.traffic,
      endpoints: config.endpoints,
      calls: new CallPace(clock),
      inbound: new InboundLanes({
        ...options,
        maxDatacenterLanes: share(options.maxDatacenterLanes),
      }),
      mesh: new MeshHosts({
        globalHost,
        localHost,
        hosts: Object.keys(config.overrides ?? {}),
        isComponentDomain: config.isComponentDomain ?? (() => false),
        isOwnProcess: config.isOwnProcess ?? ((process) => process === config.identity.process),
      }),
      unproven: config.findComponent &&
        new UnprovenSenders(config.findComponent, config.budget?.unproven),
      budget: config.budget?.lanes,
      metrics: new LinkMetrics(config.metrics, scope),
      clock,
      random: config.random ?? MATH_RANDOM,
      log,
      lives: new PacedLog(log, clock, LIFE_LINES),
      nextLane: () => ++this.#lanes,
    };
    this.#crowdLog = new PacedLog(this.#shared.log, this.#shared.clock);
    this.#seeds = (config.seeds ?? []).map((address) =>
      new SeedLink(address, this.#shared, () => !this.#isAnyHostOpen())
    );
  }

  /** Addresses where links are accepted, with ports as bound. */
  get addresses(): readonly EndpointAddress[] {
    return this.#listeners.map(({ host, port }) => ({ host, port }));
  }

  /**
   * Binds the ports and begins to accept.
   * @throws CausewayError as `listen` of `net/` does; ports bound before are closed again
   */
  async listen(): Promise<void> {
    const { options, clock, metrics, log } = this.#shared;
    const { tls, mayHandshake } = this.#config;
    try {
      for (const { host, port } of this.#config.listen) {
        this.#listeners.push(
          await listen({
            host,
            port,
            ...(tls === undefined ? {} : { tls: { mode: "mutual", context: tls } }),
            limits: {
              maxConnections: options.maxConnections,
              maxHandshakes: options.maxUnauthenticated,
              maxPendingBytes: options.maxPendingBytes,
              handshakeTimeoutMs: options.helloTimeoutMs,
            },
            clock,
            ...(mayHandshake === undefined ? {} : { mayHandshake }),
          }, {
            accepted: (connection) => this.#accepted(connection),
            refused: (error, remote) => {
              metrics.refused(error.code).inc();
              // Strangers may connect as often as they like, and must not fill the disk.
              if (!this.#refusalLog.take("")) return;
              log.warn("link.refused", { remote, reason: error.code, detail: error.message });
            },
            failed: (error) => log.error("link.accept-failed", { error: describeError(error) }),
          }),
        );
      }
    } catch (error) {
      await Promise.all(this.#listeners.splice(0).map((listener) => listener.close()));
      throw error;
    }
    this.#tickLater();
  }

  /** Begins to look for other datacenters and to connect to them. */
  start(): void {
    for (const host of Object.keys(this.#config.overrides ?? {})) {
      if (host !== this.#own) this.#links(host);
    }
    this.#tickLater();
    for (const seed of this.#seeds) seed.start();
    this.#lookForHosts().catch(() => {}); // it logs its failures
  }

  /** Takes `envelope` over, as `Outbound` says; one that cannot be sent comes to `returned`. */
  send(host: string, envelope: Envelope): void {
    if (this.#phase === "closed") {
      this.#shared.handlers.returned(envelope, "leaving");
      return;
    }
    (this.#hosts.get(host) ?? this.#links(host)).send(envelope);
  }

  /**
   * True while the endpoint of that process of `destination` refuses connections: the process has
   * ended.
   * @param process its incarnation
   */
  hasEnded(destination: string, process: number): boolean {
    for (const { links } of this.#hosts.get(destination)?.pools ?? []) {
      if (links.some((link) => link.lastProcess === process && link.lane.isGone)) return true;
    }
    return false;
  }

  /**
   * True while that process of `destination` listens at none of the listed endpoints. Unlike
   * `hasEnded`, this needs no link that has ever reached the process. It is not certain, as the
   * list may be wrong.
   */
  isNowhere(destination: string, process: number): boolean {
    return this.#hosts.get(destination)?.isNowhere(process) ?? false;
  }

  /** True while every endpoint of `destination` refuses connections: its processes have ended. */
  isGone(destination: string): boolean {
    return this.#hosts.get(destination)?.isGone ?? false;
  }

  /** True when stanzas for `destination` come back at once, as it was given up. */
  isGivenUp(destination: string): boolean {
    return this.#phase === "closed" || this.#hosts.get(destination)?.isGivenUp === true;
  }

  /** Has stanzas for `destination` routed anew soon, unless it is linked before. */
  reconsider(destination: string): void {
    this.#hosts.get(destination)?.reconsider();
  }

  /** Adds a datacenter that is new, or reads its endpoints again if it may have moved. */
  learn(host: string): void {
    this.#shared.mesh.add(host);
    this.call(host);
  }

  /**
   * Connects to a datacenter that others claim exists. It counts as one once it has proven its
   * name.
   */
  call(host: string): void {
    if (this.#phase !== "running" || host === this.#own) return;
    const known = this.#hosts.get(host);
    if (known === undefined) this.#links(host);
    else known.refresh(); // never rejects
  }

  /** Removes `host` at an operator's request: ends its links, and has its stanzas routed anew. */
  remove(host: string): void {
    const links = this.#hosts.get(host);
    // A host that the configuration names stays, and so does a host that is linked.
    if (links === undefined || links.openLinks > 0 || this.#config.overrides?.[host]) return;
    for (const incoming of this.#incoming) if (incoming.host === host) return;
    this.#shared.mesh.remove(host);
    this.#forget(host, links, "peer-gone");
  }

  /**
   * True for the local host of another datacenter that has proven it over a link, or that our
   * configuration or session table names.
   */
  isOtherLocalHost(domain: string): boolean {
    const { mesh, identity } = this.#shared;
    return domain !== identity.localHost && mesh.isLocalHost(domain);
  }

  /**
   * Renews our links one after the other, so that all of them use the certificate that `tls` holds
   * now. Their lanes resume. A link that is not up again within `helloTimeoutMs` is not waited for.
   */
  async renew(): Promise<void> {
    const { clock, options } = this.#shared;
    for (const host of this.#hosts.values()) {
      for (const { links } of host.pools) {
        for (const link of links) {
          if (this.#phase !== "running" || !link.isOpen) continue;
          const { timesOpened } = link;
          link.renew();
          const deadlineMs = clock.monotonicMs() + options.helloTimeoutMs;
          await this.#wait(() =>
            link.timesOpened > timesOpened || clock.monotonicMs() >= deadlineMs
          );
        }
      }
    }
  }

  /**
   * Renews every link, those of peers too, as HELLO has changed. It does so all at once, as a peer
   * refuses the new HELLO while it holds a link with the old one. Lanes resume.
   */
  reintroduce(): void {
    if (this.#phase !== "running") return;
    for (const link of this.#incoming) link.leave("superseded", "introducing itself anew");
    for (const host of this.#hosts.values()) {
      for (const { links } of host.pools) for (const link of links) link.renew();
    }
  }

  /** Reads the endpoints of `host` from the session table now. */
  async refresh(host: string): Promise<void> {
    await this.#hosts.get(host)?.refresh();
  }

  /** Watches the stanzas that the lanes hold now. */
  watchHeld(): HeldWatch {
    return new HeldWatch(this.#hosts.values(), this.#shared.clock, () => this.#givenBack);
  }

  /** Hosts, endpoints and links as they are now. */
  snapshot(): LinksSnapshot {
    return snapshotOf(this.#hosts.values(), this.#incoming, this.#shared.inbound.size);
  }

  /**
   * Leaves in order. Accepts no more links, grants no more credit, and waits until all stanzas held
   * here or received from peers are settled, or live peers own them (`HeldWatch`), or `withinMs`
   * have passed. Then says GOODBYE, and gives the rest back with `leaving`. From then on `send`
   * gives back too. Ends with `close`.
   *
   * Stanzas that arrive meanwhile are not waited for: peers have credit left, and under load there
   * would be no end. Peers send them elsewhere once they know that this node leaves.
   *
   * @param routed resolves when stanzas that lanes have given back are routed, perhaps into other
   * lanes
   */
  async drain(withinMs: number, routed: () => Promise<void> = async () => {}): Promise<void> {
    if (this.#phase !== "running") return;
    this.#phase = "draining";
    const { clock, log, scope } = this.#shared;
    await Promise.all(this.#listeners.map((listener) => listener.close()));
    for (const link of this.#incoming) link.freeze();
    const deadlineMs = clock.monotonicMs() + withinMs;
    const settling = Array.from(this.#incoming, (link) => link.watchSettling());
    const isLate = () => clock.monotonicMs() >= deadlineMs;
    let held: HeldWatch;
    const isDone = () => held.isGone && settling.every((isOver) => isOver());
    const isKept = () => held.isSeenTo && !held.isGone && !this.watchHeld().isOpen;
    do {
      // Stanzas that lanes have given back may be in a lookup; half of the time is left for the
      // lanes.
      let isRouted = false;
      routed().then(() => isRouted = true, () => isRouted = true);
      const halfMs = (deadlineMs + clock.monotonicMs()) / 2;
      await this.#wait(() => isRouted || clock.monotonicMs() >= halfMs);
      held = this.watchHeld();
      await this.#wait(() => isDone() || isKept() || isLate());
    } while (held.hasGivenBack && !isLate());
    log.info("links.drained", { scope, left: this.#openItems(), isDone: isDone() });
    this.#goodbye();
    for (const host of this.#hosts.values()) host.giveBackAll("leaving");
  }

  /** Says GOODBYE, ends every connection and timer; resolves when all have ended. */
  async close(): Promise<void> {
    this.#goodbye();
    await Promise.all(this.#listeners.splice(0).map((listener) => listener.close()));
    this.#cancelTick?.();
    this.#cancelHosts?.();
    await this.#wait(() => this.#hasEnded());
  }

  async #wait(isMet: () => boolean): Promise<void> {
    // The clock's timers do not keep a process alive that has nothing else to do; this one does.
    const keepAlive = setInterval(() => {}, 60_000);
    try {
      while (!isMet()) {
        await new Promise<void>((resolve) => this.#shared.clock.after(CHECK_MS, resolve));
      }
    } finally {
      clearInterval(keepAlive);
    }
  }

  #goodbye(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#shared.traffic?.leaving?.();
    for (const link of this.#incoming) link.leave("leaving", "this node is going down");
    for (const seed of this.#seeds) seed.stop();
    for (const host of this.#hosts.values()) host.stop("leaving", "this node is going down");
  }

  #hasEnded(): boolean {
    if (this.#incoming.size > 0) return false;
    for (const host of this.#hosts.values()) if (!host.hasEnded) return false;
    for (const host of this.#leaving) if (!host.hasEnded) return false;
    return this.#seeds.every((seed) => seed.hasEnded);
  }

  #isAnyHostOpen(): boolean {
    for (const host of this.#hosts.values()) if (host.openLinks > 0) return true;
    return false;
  }

  /** Returns the stanzas in our lanes, and those received whose fate is open. */
  #openItems(): number {
    let items = 0;
    for (const host of this.#hosts.values()) items += host.items;
    for (const link of this.#incoming) items += link.unsettled;
    return items;
  }

  #accepted(connection: Connection): void {
    const { metrics, options } = this.#shared;
    metrics.incomingEstablished.inc();
    const link = new IncomingLink(connection, this.#shared, {
      mayOpen: (host) => {
        if (this.#authenticated.hasRoom(host)) return true;
        this.#crowded(host, { host, limit: options.maxDatacenterLinks });
        return false;
      },
      authenticated: (link) => {
        this.#unauthenticated.giveBack(link);
        this.#authenticated.take(link, link.host!); // HELLO names it
        this.#peerArrived(link.destination!);
      },
      ended: (link) => {
        this.#unauthenticated.giveBack(link);
        this.#authenticated.giveBack(link);
        this.#incoming.delete(link);
      },
    });
    this.#incoming.add(link);
    const certificate = connection.peerNames.join(" ");
    if (this.#phase !== "running") {
      link.leave("leaving", "this node is going down");
    } else if (this.#unauthenticated.size >= options.maxUnauthenticated) {
      this.#crowded("", { remote: link.remoteAddress, limit: options.maxUnauthenticated });
      link.leave("busy", "too many links have not said HELLO");
    } else if (!this.#unauthenticated.hasRoom(certificate)) {
      const limit = options.maxDatacenterUnauthenticated;
      this.#crowded(certificate, { remote: link.remoteAddress, certificate, limit });
      link.leave("busy", "too many links with this certificate have not said HELLO");
    } else this.#unauthenticated.take(link, certificate);
  }

  #crowded(source: string, fields: LogFields): void {
    this.#crowdLog.warn("link.too-many", source, fields);
  }

  #peerArrived(destination: string): void {
    const isNews = this.#shared.scope === "datacenter" && this.#phase === "running";
    if (isNews) this.#links(destination);
    this.#hosts.get(destination)?.peerArrived();
  }

  /**
   * Ends the links to `host` for good, and gives the stanzas of their lanes back to be routed anew.
   */
  #forget(host: string, links: HostLinks, reason: ReturnReason): void {
    this.#hosts.delete(host);
    this.#leaving.add(links);
    links.giveBackAll(reason);
    links.stop("endpoint-gone", "it is not listed any more");
    this.#shared.metrics.forget(host);
    this.#shared.log.info("links.forgotten", { host });
  }

  /** Returns the links to `host`, made at first need. */
  #links(host: string): HostLinks {
    if (host === this.#own) throw new RangeError(`Cannot link to ${host}: it is this node itself`);
    let links = this.#hosts.get(host);
    if (links === undefined) {
      const override = this.#config.overrides?.[host];
      links = new HostLinks(host, this.#shared, override);
      this.#hosts.set(host, links);
      links.refresh(); // never rejects
    }
    return links;
  }

  async #lookForHosts(): Promise<void> {
    const { scope, log, options, clock } = this.#shared;
    try {
      const hosts = await this.#config.hosts.hosts();
      if (this.#phase !== "running") return;
      for (const host of hosts) {
        if (host === this.#own) continue;
        this.#shared.mesh.add(host);
        this.#links(host);
      }
      // A silent datacenter may be cut off and come back, but a node without a lease is gone.
      if (scope === "datacenter") {
        for (const [host, links] of this.#hosts) {
          if (!hosts.includes(host) && links.openLinks === 0) {
            this.#forget(host, links, "peer-restarted");
          }
        }
      }
      this.#hasHostsFailed = false;
    } catch (error) {
      if (!this.#hasHostsFailed) log.warn("hosts.unknown", { error: describeError(error) });
      this.#hasHostsFailed = true;
    }
    if (this.#phase !== "running") return;
    this.#cancelHosts = clock.after(options.hostsRefreshIntervalMs, () => {
      this.#lookForHosts().catch(() => {}); // it logs its failures
    });
  }

  /** Starts the one timer that checks the time limits of all links. */
  #tickLater(): void {
    if (this.#phase === "closed") return;
    this.#cancelTick?.();
    this.#cancelTick = this.#shared.clock.after(this.#shared.options.tickMs, () => {
      const nowMs = this.#shared.clock.monotonicMs();
      for (const link of this.#incoming) link.tick(nowMs);
      for (const host of this.#hosts.values()) host.tick(nowMs);
      for (const seed of this.#seeds) seed.tick(nowMs);
      for (const host of this.#leaving) {
        host.tick(nowMs);
        if (host.hasEnded) this.#leaving.delete(host);
      }
      this.#shared.inbound.tick(nowMs);
      this.#crowdLog.flush();
      this.#shared.lives.flush();
      this.#cancelTick = undefined;
      this.#tickLater();
    });
  }
}
