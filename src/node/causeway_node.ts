import { createAdmin } from "../admin/mod.ts";
import type { AdminServer, PartHealth } from "../admin/mod.ts";
import type { CancelTimer, Clock } from "../base/mod.ts";
import { randomIncarnation, SystemClock, TurnClock } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { VERSION } from "../config/mod.ts";
import type { LinkLayer } from "../distribution/links/mod.ts";
import { Envelope, isUserHost } from "../distribution/mod.ts";
import { DatacenterSide, Router } from "../distribution/routing/mod.ts";
import type { Domains } from "../distribution/routing/mod.ts";
import type { Resumption } from "../distribution/resumption/mod.ts";
import { SessionTable } from "../distribution/table/mod.ts";
import { formatAddress } from "../net/mod.ts";
import type { Logger } from "../observe/mod.ts";
import { MetricsRegistry, registerProcessMetrics } from "../observe/mod.ts";
import { HostServices } from "../services/mod.ts";
import { SubscriptionRequests } from "../services/subscriptions/mod.ts";
import { InternalStore } from "../storage/mod.ts";
import {
  ComponentRegistry,
  FullJid,
  parseJid,
  SessionRegistry,
  StreamManagement,
} from "../xmpp/mod.ts";
import type { C2sSession, Jid, Stanza, StanzaSink } from "../xmpp/mod.ts";
import { accountProbe } from "./account_probe.ts";
import { advertisedEndpoints } from "./advertised_endpoints.ts";
import { Certificates } from "./certificates.ts";
import { Edge } from "./edge.ts";
import { LocalSide } from "./local_side.ts";
import { makeLinks } from "./node_links.ts";
import {
  adminOptions,
  handoverOptions,
  managementOptions,
  requestBounds,
  routerBounds,
  serviceBounds,
  sessionBounds,
  tableOptions,
} from "./options.ts";
import { Pressure } from "./pressure.ts";
import { seeOffLanes } from "./see_off_lanes.ts";
import { sessionResumption } from "./session_resumption.ts";
import { StopBudget } from "./stop_budget.ts";
import { WaitingBudget } from "./waiting_budget.ts";

/** Addresses of a node that has started, such as `127.0.0.1:5222` or `[::1]:5222`. */
export interface NodeAddresses {
  readonly node: string;
  readonly c2s: readonly string[];
  readonly websocket: readonly string[];
  readonly component: readonly string[];
  readonly links: readonly string[];
  readonly admin: string;
}

/** Dependencies of a node besides its configuration. */
export interface NodeDeps {
  readonly log: Logger;
  readonly clock?: Clock;
  /** Called when another process has taken this node's name: this process must end. */
  readonly superseded: () => void;
}

/**
 * Milliseconds that clients may take at a graceful stop to acknowledge their stanzas. This time and
 * the next two are part of `limits.shutdown_timeout`, which bounds them all.
 */
const COLLECT_MS = 2_000;
/**
 * Milliseconds that clients and components may take at a graceful stop to notice that their streams
 * end.
 */
const HEAR_OUT_MS = 2_000;
/** Milliseconds that peers may take at a graceful stop to end their side of each connection. */
const CLOSE_MS = 1_000;

/**
 * One process: the edge, the router between the two sides, the links and the session table.
 *
 * Parts are made in the order in which they need one another. They stop in the order in which
 * stanzas flow: first no new stanza comes in, then held stanzas are answered, then the lanes empty.
 */
export class CausewayNode {
  readonly #config: Config;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #metrics: MetricsRegistry;
  readonly #table: SessionTable;
  readonly #pressure = new Pressure();
  readonly #budget: WaitingBudget;
  readonly #sessions: SessionRegistry;
  readonly #components: ComponentRegistry;
  readonly #services: HostServices;
  readonly #requests: SubscriptionRequests;
  readonly #edge: Edge;
  readonly #management: StreamManagement<C2sSession> | undefined;
  readonly #resumption: Resumption | undefined;
  readonly #certificates: Certificates;
  readonly #store: InternalStore;
  readonly #incarnation = randomIncarnation();
  readonly #router: Router;
  readonly #admin: AdminServer;
  #cancelWatch: CancelTimer | undefined;
  #links: LinkLayer | undefined;
  /** Links to the other nodes of this datacenter. */
  #cluster: LinkLayer | undefined;
  #phase: "starting" | "running" | "draining" | "stopped" = "starting";

  /** @throws CausewayError `storage/…` when the store cannot be opened */
  constructor(config: Config, deps: NodeDeps) {
    const { globalHost, localHost } = config.globalDistrib;
    this.#config = config;
    this.#log = deps.log;
    const log = this.#log;
    const clock = this.#clock = deps.clock ?? new TurnClock(new SystemClock());
    const metrics = this.#metrics = new MetricsRegistry(clock);
    registerProcessMetrics(metrics, clock);
    const { places } = this.#budget = new WaitingBudget(config.limits.waitingMaxBytes, metrics);
    this.#store = new InternalStore({ path: config.storage.internal.path });
    this.#table = new SessionTable(tableOptions(config, this.#incarnation), {
      metrics,
      clock,
      logger: log,
      onSuperseded: deps.superseded,
      onRenamed: () => {
        this.#links?.reintroduce();
        this.#cluster?.reintroduce();
      },
      meshChanged: (host) => this.#links?.learn(host),
      meshHinted: (host) => this.#links?.call(host),
      hostRemoved: (host) => this.#links?.remove(host),
      onDisplaced: (fullJid) => {
        const jid = parseJid(fullJid);
        if (jid instanceof FullJid) this.#sessions.find(jid)?.end("conflict");
      },
      onChanged: (keys) => this.#tableChanged(keys),
    });
    this.#sessions = new SessionRegistry({
      hooks: {
        opened: (jid) => this.#table.sessionOpened(jid),
        closed: (jid) => {
          this.#pressure.gone(jid.text);
          return this.#table.sessionClosed(jid);
        },
        reachable: (jid) => this.#router.revealed(jid),
        presence: (presence, priority) => this.#told(presence, priority),
        arrived: (jid, priority) => void this.#table.sessionPriority(jid, priority), // never rejects
        available: (jid) => {
          if (this.#table.hasNeighbours) this.#router.copy(accountProbe(jid));
          this.#requests.becameAvailable(jid);
        },
      },
      accountIq: (stanza) => local.askServices(stanza),
      ...sessionBounds(config),
    });
    this.#components = new ComponentRegistry({
      connected: (domain, options) => this.#table.domainAdded(domain, options),
      disconnected: (domain) => {
        this.#pressure.gone(domain);
        return this.#table.domainRemoved(domain);
      },
      reachable: (domain) => this.#router.revealed(parseJid(domain)),
    });
    this.#services = new HostServices({
      software: { name: "Causeway", version: VERSION },
      hasModule: (host, module) => config.modules.get(host)?.[module] !== false,
      publicDomains: (host) => {
        const disco = config.modules.get(host)?.mod_disco;
        return disco !== undefined && disco !== false && disco.usersCanSeeHiddenServices
          ? this.#table.allDomains()
          : this.#table.publicDomains();
      },
      reply: (answer, request) => local.answered(answer, request),
      ...serviceBounds(config),
      metrics,
      logger: log,
      clock,
    });
    const hosts: ReadonlySet<string> = new Set([globalHost, ...config.hosts]);
    const local = new LocalSide({
      globalHost,
      hosts,
      sessions: this.#sessions,
      components: this.#components,
      services: this.#services,
      answer: (reply, request) => this.#router.answer(reply, request),
    });
    const accounts = new Map([...hosts].map((host) => [host, this.#store.users(host)]));
    const domains: Domains = {
      globalHost,
      localHost,
      hosts,
      isOtherLocalHost: (domain) => this.#links?.isOtherLocalHost(domain) ?? false,
    };
    const { maxBytes, ...bounds } = requestBounds(config);
    this.#requests = new SubscriptionRequests({
      store: this.#store.subscriptionRequests(bounds),
      exists: async (jid) => await accounts.get(jid.domainpart)?.exists(jid.localpart) ?? false,
      isHere: (contact) => this.#sessions.ofAccount(contact).length > 0,
      locate: (contact) => this.#table.locate(contact),
      route: (request, kept, entry) => this.#router.acceptKept(request, kept, entry),
      deliver: (to, request) => this.#sessions.find(to)?.send(request) ?? false,
      senderOf: ({ text, domainpart }) =>
        isUserHost(domainpart, domains) || domains.isOtherLocalHost(domainpart) ? text : domainpart,
      maxBytes,
      metrics,
      logger: log,
      clock,
    });
    this.#router = new Router({
      domains,
      messageTtl: config.globalDistrib.messageTtl,
      bounce: config.globalDistrib.bounce ?? false,
      ...routerBounds(config),
    }, {
      process: this.#incarnation,
      outbound: { send: (host, envelope) => this.#openLinks.send(host, envelope) },
      locations: {
        // While a session moves to another node, its stanzas come to this node and follow it from
        // here. A shorter way would let later stanzas overtake them.
        cached: (jid) =>
          this.#resumption?.follows(jid.text) === undefined ? this.#table.cached(jid) : localHost,
        locate: (jid) => this.#table.locate(jid),
        locateAgain: (jids) => this.#table.locateAgain(jids),
        learn: (jid, host) => this.#table.learn(jid, host),
        forget: (jid) => this.#table.forget(jid),
        expire: (jid) => this.#table.expire(jid),
      },
      local: new DatacenterSide({
        domains,
        node: local,
        placements: this.#table,
        handover: {
          send: (node, envelope) => this.#openCluster.send(node, envelope),
          isGone: (node) => this.#openCluster.isGone(node),
          isGivenUp: (node) => this.#openCluster.isGivenUp(node),
          reconsider: (node) => this.#openCluster.reconsider(node),
        },
        resume: (returned, waiting) => this.#router.resume(returned, waiting),
        metrics,
        budget: places.handover,
      }, handoverOptions(config)),
      requests: this.#requests,
      clock,
      metrics,
      log,
      budget: places,
      pressure: (sender, isOver) => this.#pressure.changed(sender, isOver),
    });
    const sink: StanzaSink = {
      accept: (stanza, source, fate, number) => {
        this.#pressure.saw(source);
        if (source.isResending === true) this.#router.acceptResent(stanza, fate, number);
        else this.#router.accept(stanza, fate, number);
      },
    };
    const managementConfig = managementOptions(config);
    const management = managementConfig && new StreamManagement<C2sSession>(managementConfig, {
      metrics,
      clock,
      log,
      process: this.#incarnation,
      budget: places.sessions,
      isUserHost: (domain) => isUserHost(domain, domains),
      elsewhere: { fetch: (request, process) => this.#resumption!.fetch(request, process) },
      reroute: (delivery, mayBeRepeat) => {
        // Only envelopes are routed again: the rest is what the session itself wrote to its client.
        if (delivery instanceof Envelope) this.#router.reroute(delivery, mayBeRepeat);
      },
      giveUp: (delivery) => {
        if (delivery instanceof Envelope) this.#router.giveUp(delivery);
      },
      hasMoved: async (jid) => {
        if (jid.domainpart !== globalHost) return false; // no other datacenter serves this host
        this.#table.forget(jid); // so that the lookup asks the session table, not the cache
        const host = await this.#table.locate(jid);
        return host !== undefined && host !== localHost;
      },
    });
    this.#management = management;
    this.#resumption = management && sessionResumption(config, {
      process: this.#incarnation,
      sessions: management,
      memory: this.#router.memory,
      links: () => [this.#links, this.#cluster].filter((layer) => layer !== undefined),
      mesh: () => this.#links,
      isOtherLocalHost: domains.isOtherLocalHost,
      isComponentDomain: (domain) => this.#isComponentDomain(parseJid(domain)),
      isOwnProcess: (process) => this.#table.isOwnProcess(process),
      budget: places["arriving-sessions"],
      metrics,
      log,
      clock,
    });
    this.#certificates = new Certificates({ metrics, log, clock });
    const { enumerationSecret } = config.auth;
    this.#edge = new Edge({
      accounts,
      enumerationSecret: enumerationSecret === undefined
        ? this.#store.secret("enumeration")
        : new TextEncoder().encode(enumerationSecret.reveal()),
      sessions: this.#sessions,
      components: this.#components,
      sink,
      management,
      certificates: this.#certificates,
      metrics,
      log,
      clock,
    });
    this.#admin = createAdmin(
      {
        node: config.nodeName,
        version: VERSION,
        metrics,
        parts: () => this.#parts(),
        links: () => ({
          ...this.#links?.snapshot(),
          cluster: this.#cluster?.snapshot(),
          replication: this.#table.snapshot().replication,
        }),
        removeHost: (host) => this.#table.removeHost(host.toLowerCase()),
        sessions: () => ({
          sessions: this.#sessions.count,
          components: this.#components.count,
          heldBack: this.#pressure.heldBack,
          bouncing: this.#router.bouncing,
          waitingForLookup: this.#router.queued,
        }),
      },
      adminOptions(config),
      {
        log,
        clock,
        refused: (reason) => {
          metrics.counter({
            name: "causeway_connections_refused_total",
            help: "Connections turned away before they became a stream, by port and reason",
            labels: { port: "admin", reason },
          }).inc();
        },
      },
    );
  }

  /**
   * Starts everything and resolves when the node can be used. Redis may still be away: then the
   * node reports itself as degraded.
   * @throws CausewayError for a port, certificate, name or password that cannot be used; call
   * `stop`
   */
  async start(): Promise<NodeAddresses> {
    const config = this.#config;
    const { links, cluster } = await makeLinks(config, {
      process: this.#incarnation,
      table: this.#table,
      router: this.#router,
      resumption: this.#resumption,
      certificates: this.#certificates,
      pressure: (sender, isOver) => this.#pressure.changed(sender, isOver),
      isComponentDomain: (domain) => this.#isComponentDomain(parseJid(domain)),
      budget: this.#budget.places,
      metrics: this.#metrics,
      log: this.#log,
      clock: this.#clock,
    });
    this.#links = links;
    this.#cluster = cluster;
    // Open every port before writing to Redis. A copy of a running node, started by mistake, fails
    // here: it has neither taken that node's name nor withdrawn what that node published.
    await links.listen();
    await cluster.listen();
    await this.#edge.open(config);
    await this.#admin.start();
    await this.#table.start();
    await this.#claimHosts();
    await this.#table.publishClusterAddress(cluster.addresses[0]!); // it listens on one address
    await this.#table.clusterNodes();
    cluster.start();
    await this.#table.publishEndpoints(
      advertisedEndpoints(config.globalDistrib, links.addresses),
    );
    links.start();
    this.#cancelWatch = this.#budget.watch(this.#clock, () => {
      this.#log.warn("node.makes-room", { waitingBytes: this.#budget.total.bytes });
      this.#management?.makeRoom();
    });
    await this.#requests.start();
    this.#phase = "running";
    return {
      node: config.nodeName,
      c2s: this.#edge.addresses("c2s"),
      websocket: this.#edge.addresses("websocket"),
      component: this.#edge.addresses("component"),
      links: links.addresses.map(({ host, port }) => formatAddress(host, port)),
      admin: this.#admin.address,
    };
  }

  /** Reads every certificate again and reconnects the links, one by one, to use them. */
  async reloadCertificates(): Promise<void> {
    await this.#certificates.reload();
    await this.#links?.renew();
    await this.#cluster?.renew();
  }

  /**
   * Stops gracefully: delivers, hands over or answers every stanza held here, within
   * `limits.shutdown_timeout`. Idempotent.
   */
  async stop(): Promise<void> {
    if (this.#phase === "draining" || this.#phase === "stopped") return;
    this.#phase = "draining";
    this.#cancelWatch?.();
    const budget = new StopBudget(this.#config.limits.shutdownTimeoutMs, this.#clock);
    const wait = async (what: string, step: Promise<unknown>, withinMs?: number) => {
      if (await budget.wait(step, withinMs) === "late") this.#log.warn("node.stop-late", { what });
    };
    await wait("listeners", this.#edge.closeListeners());
    this.#pressure.freeze();
    const drainRouter = (withinMs?: number) => wait("routing", this.#router.drain(), withinMs);
    await drainRouter();
    await wait("services", this.#services.close());
    // Streams stay until every stanza read from them is settled: an error must still reach its
    // sender. Stanzas sent to a datacenter that does not answer come back as errors before the
    // streams end.
    const layers = [this.#links, this.#cluster].filter((layer) => layer !== undefined);
    const seeOff = { clock: this.#clock, withinMs: budget.halfMs(), drainRouter };
    if (!await seeOffLanes(layers, seeOff)) await drainRouter();
    await this.#management?.collect(budget.halfMs(COLLECT_MS));
    this.#resumption?.stop();
    this.#pressure.thaw();
    await wait("streams", this.#edge.closeStreams());
    // Clients without stream management never resend what they had written by then, so it is read
    // here.
    await this.#edge.hearOut(budget.halfMs(HEAR_OUT_MS));
    await wait("lookups", this.#router.idle(), budget.halfMs(CLOSE_MS));
    // Other datacenters go on sending until they learn that we leave: so the links to the other
    // nodes, where their recipients are by now, stay open longer. A stanza that another node hands
    // over too late to be answered stays unsettled, and that node keeps it.
    const routed = () => this.#router.idle();
    await this.#links?.drain(budget.halfMs(), routed);
    await this.#cluster?.drain(budget.halfMs(), routed);
    await drainRouter();
    await wait("requests", this.#requests.close());
    await wait("table", this.#table.close());
    // Connections that an unresponsive peer leaves half open end with the process.
    const ends = [this.#links?.close(), this.#cluster?.close(), this.#admin.close()];
    await wait("connections", Promise.all(ends), Math.min(budget.leftMs, CLOSE_MS));
    this.#certificates.close();
    this.#metrics.close();
    this.#store.close();
    this.#phase = "stopped";
  }

  /** Returns the state of each part, for `/health` and `/ready`. */
  #parts(): readonly PartHealth[] {
    const { status, reason } = this.#table.snapshot();
    const redis = reason === undefined
      ? { name: "redis", state: status }
      : { name: "redis", state: status, reason };
    switch (this.#phase) {
      case "running":
        return [redis, { name: "node", state: "up" }];
      case "starting":
        return [redis, { name: "node", state: "down", reason: "starting" }];
      case "draining":
      case "stopped":
        return [redis, { name: "node", state: "draining", reason: "stopping" }];
      default:
        return this.#phase satisfies never;
    }
  }

  get #openLinks(): LinkLayer {
    if (this.#links === undefined) throw new TypeError("Cannot send before the links are made");
    return this.#links;
  }

  get #openCluster(): LinkLayer {
    if (this.#cluster === undefined) throw new TypeError("Cannot send before the links are made");
    return this.#cluster;
  }

  /** Tells the account's resources on the other nodes of this datacenter about a presence. */
  #told(presence: Stanza, priority: number | undefined): void {
    const { from } = presence;
    if (from instanceof FullJid) void this.#table.sessionPriority(from, priority); // never rejects
    if (this.#table.hasNeighbours) this.#router.copy(presence);
  }

  /**
   * Claims the hosts that only some datacenters serve, so that the others can find their accounts.
   * The local host needs no claim: its name already says where it is.
   */
  async #claimHosts(): Promise<void> {
    const { globalHost, localHost } = this.#config.globalDistrib;
    const others = this.#config.hosts.filter((host) => host !== globalHost && host !== localHost);
    await Promise.all(others.map((host) => this.#table.domainAdded(host, { hidden: true })));
  }

  /** Lets stanzas continue that wait for `keys`, which the session table has just updated. */
  #tableChanged(keys: readonly string[]): void {
    for (const key of keys) this.#requests.revealed(key);
    if (this.#router.bouncing === 0) return;
    const jids = keys.map((key) => parseJid(key));
    // A full JID reveals its account too. A login names both JIDs, so the account is handled once.
    const accounts = new Set(
      jids.filter((jid) => jid instanceof FullJid).map(({ bare }) => bare.text),
    );
    for (const jid of jids) if (!accounts.has(jid.text)) this.#router.revealed(jid);
  }

  #isComponentDomain(domain: Jid): boolean {
    return this.#table.lastKnown(domain) !== undefined;
  }
}
