import type { CancelTimer, Clock, FairShares, Random } from "../../base/mod.ts";
import { MATH_RANDOM, SystemClock } from "../../base/mod.ts";
import type { HandshakePeer, TlsContextHolder } from "../../net/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { LIFE_LINES, PacedLog, SILENT_LOGGER } from "../../observe/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { CarbonOf, Envelope, LinkTraffic } from "../mod.ts";
import { CallPace } from "./connection/call_pace.ts";
import { Destinations } from "./pools/destinations.ts";
import type { HostLinks } from "./pools/host_links.ts";
import { LinkControl } from "./link_control.ts";
import type { DrainedDestination, DrainedLinks } from "./lane_drain.ts";
import { LaneDrain } from "./lane_drain.ts";
import { InboundLanes } from "./lanes/inbound_lanes.ts";
import type { InboundLanesOptions } from "./lanes/inbound_lanes.ts";
import { IncomingLinks } from "./connection/incoming_links.ts";
import { LinkMetrics } from "./link_metrics.ts";
import type { LinkScope } from "./connection/link_scope.ts";
import type { LinkDeps } from "./connection/link_deps.ts";
import type { LinksOptions, ResolvedLinksOptions } from "./links_options.ts";
import { resolveLinksOptions } from "./links_options.ts";
import type { LinksFlow, LinksSnapshot } from "./links_snapshot.ts";
import { flowOf, snapshotOf } from "./links_snapshot.ts";
import { MeshHosts } from "./connection/mesh_hosts.ts";
import type {
  EndpointAddress,
  EndpointSource,
  HostSource,
  LinkLayerEvents,
  NodeIdentity,
} from "./ports.ts";
import { SeedLink } from "./connection/seed_link.ts";
import { UnprovenSenders } from "./connection/unproven_senders.ts";
import { waitUntil } from "./wait_until.ts";

/** The parts that the links of one process work with. */
export interface LinkLayerDeps {
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
  readonly events: LinkLayerEvents;
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
  /** Makes the carbon of a message that brings one (XEP-0280). @default no message brings any */
  readonly carbonOf?: CarbonOf;
  readonly log?: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** Settings of the links that may change while they run. */
export type ChangedLinks = Pick<LinkLayerDeps, "options" | "overrides" | "seeds">;

/**
 * The links of one process in one scope. Accepts links of other nodes, keeps its own links to
 * those, and carries stanzas in order per sender until they are settled (docs/promises.md,
 * "Delivery across a link").
 */
export class LinkLayer implements DrainedLinks {
  readonly #deps: LinkLayerDeps;
  readonly #shared: LinkDeps;
  readonly #incoming: IncomingLinks;
  readonly #destinations: Destinations;
  /** `#destinations.all`, kept here to save a step for each stanza. */
  readonly #hosts: ReadonlyMap<string, HostLinks>;
  /** Seeds that are called, and former ones whose connections have not ended yet. */
  #seeds: readonly SeedLink[];
  /** Actions of operators on the links. */
  readonly control: LinkControl;
  #phase: "running" | "leaving" | "closed" = "running";
  /** True once it has looked for others: there may be something to empty. */
  #hasStarted = false;
  #rounds = 0;
  #cancelTick: CancelTimer | undefined;
  #lanes = 0;
  #givenBack = 0;

  constructor(deps: LinkLayerDeps) {
    this.#deps = deps;
    const clock = deps.clock ?? new SystemClock();
    const options = resolveLinksOptions(deps.options);
    const { localHost, globalHost } = deps.identity;
    const scope = deps.scope ?? "mesh";
    const overrides = deps.overrides ?? {};
    const log = deps.log ?? SILENT_LOGGER;
    this.#shared = {
      scope,
      identity: deps.identity,
      options,
      tls: deps.tls,
      events: {
        ...deps.events,
        returned: (envelope, reason) => {
          this.#givenBack++;
          deps.events.returned(envelope, reason);
        },
      },
      traffic: deps.traffic,
      endpoints: deps.endpoints,
      calls: new CallPace(clock),
      inbound: new InboundLanes(inboundOptions(scope, options)),
      mesh: new MeshHosts({
        globalHost,
        localHost,
        hosts: Object.keys(overrides),
        isComponentDomain: deps.isComponentDomain ?? (() => false),
        isOwnProcess: deps.isOwnProcess ?? ((process) => process === deps.identity.process),
      }),
      unproven: deps.findComponent &&
        new UnprovenSenders(deps.findComponent, deps.budget?.unproven),
      budget: deps.budget?.lanes,
      carbonOf: deps.carbonOf,
      metrics: new LinkMetrics(deps.metrics, scope),
      clock,
      random: deps.random ?? MATH_RANDOM,
      log,
      lives: new PacedLog(log, clock, LIFE_LINES),
      nextLane: () => ++this.#lanes,
    };
    this.#incoming = new IncomingLinks({
      shared: this.#shared,
      mayHandshake: deps.mayHandshake,
    }, { arrived: (destination, process) => this.#peerArrived(destination, process) });
    this.#destinations = new Destinations({ shared: this.#shared, hosts: deps.hosts, overrides });
    this.#hosts = this.#destinations.all;
    this.control = new LinkControl(this.#hosts, log, () => this.#phase === "running");
    this.#seeds = (deps.seeds ?? []).map((address) => this.#newSeed(address));
  }

  /** Addresses where links are accepted, with ports as bound. */
  get addresses(): readonly EndpointAddress[] {
    return this.#incoming.addresses;
  }

  /**
   * Binds the ports and begins to accept.
   * @throws CausewayError as `listen` of `net/` does; ports bound before are closed again
   */
  async listen(): Promise<void> {
    await this.#incoming.listen(this.#deps.listen);
    this.#tickLater();
  }

  /** Begins to look for other datacenters and to connect to them. */
  start(): void {
    this.#hasStarted = true;
    this.#destinations.start();
    this.#tickLater();
    for (const seed of this.#seeds) seed.start();
  }

  /**
   * Takes other options, endpoints and seeds while it runs. Links that are open keep the time and byte
   * limits that they began with. Links that are too many end in order, and their stanzas move to the
   * others.
   * @throws RangeError as `resolveLinksOptions`; then nothing has changed
   */
  change({ options, overrides = {}, seeds = [] }: ChangedLinks): void {
    if (this.#phase !== "running") return;
    const resolved = resolveLinksOptions(options);
    this.#shared.options = resolved;
    this.#shared.inbound.change(inboundOptions(this.#shared.scope, resolved));
    this.#incoming.optionsChanged();
    this.#destinations.change(overrides);
    this.#changeSeeds(seeds);
  }

  #changeSeeds(addresses: readonly EndpointAddress[]): void {
    const isWanted = ({ address }: SeedLink) =>
      addresses.some((each) => each.host === address.host && each.port === address.port);
    const kept = this.#seeds.filter((seed) => !seed.isStopped && isWanted(seed));
    const ending = this.#seeds.filter((seed) => !kept.includes(seed));
    for (const seed of ending) seed.stop("this seed is not wanted any more");
    const added = addresses
      .filter(({ host, port }) =>
        !kept.some(({ address }) => address.host === host && address.port === port)
      )
      .map((address) => this.#newSeed(address));
    this.#seeds = [...kept, ...added, ...ending.filter((seed) => !seed.hasEnded)];
    for (const seed of added) seed.start();
  }

  #newSeed(address: EndpointAddress): SeedLink {
    return new SeedLink(address, this.#shared, () => !this.#destinations.isAnyOpen);
  }

  /** Takes `envelope` over, as `Outbound` says; one that cannot be sent comes to `returned`. */
  send(host: string, envelope: Envelope): void {
    if (this.#phase === "closed") {
      this.#shared.events.returned(envelope, "leaving");
      return;
    }
    (this.#hosts.get(host) ?? this.#destinations.to(host)).send(envelope);
  }

  /** Makes a message that was just given to `send` bring its carbon, as `Outbound` says. */
  bringCarbon(host: string, sender: Jid, id: Pick<Envelope, "process" | "sequence">): boolean {
    return this.#hosts.get(host)?.bringCarbon(sender, id) ?? false;
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

  /** Routes stanzas for `destination` anew soon, unless it is linked before. */
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
    if (this.#phase !== "running" || this.#destinations.isOwn(host)) return;
    const known = this.#hosts.get(host);
    if (known === undefined) this.#destinations.to(host);
    else known.refresh(); // never rejects
  }

  /** Removes `host` at an operator's request: ends its links, and has its stanzas routed anew. */
  remove(host: string): void {
    const links = this.#hosts.get(host);
    // A host that the configuration names stays, and so does a host that is linked.
    if (links === undefined || links.openLinks > 0 || this.#destinations.isNamed(host)) return;
    if (this.#incoming.has(host)) return;
    this.#shared.mesh.remove(host);
    this.#destinations.forget(host, "peer-gone");
  }

  /**
   * True for the local host of another datacenter that has proven it over a link, or that our
   * configuration or session table names.
   */
  isOtherLocalHost(domain: string): boolean {
    const { mesh, identity } = this.#shared;
    return domain !== identity.localHost && mesh.isLocalHost(domain);
  }

  /** Returns the local hosts of all datacenters of the mesh, ours included, linked or not. */
  localHosts(): readonly string[] {
    return [...this.#shared.mesh.hosts];
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
          await waitUntil(
            clock,
            () => link.timesOpened > timesOpened || clock.monotonicMs() >= deadlineMs,
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

  /** The links to each destination, for a drain of their lanes. */
  get destinations(): Iterable<DrainedDestination> {
    return this.#hosts.values();
  }

  /** Number of times that all links were looked at, as they are again and again. */
  get rounds(): number {
    return this.#rounds;
  }

  /** Stanzas held in all lanes. */
  get items(): number {
    return this.#destinations.items;
  }

  /** Stanzas that the lanes have given back so far. */
  get givenBack(): number {
    return this.#givenBack;
  }

  /** Hosts, endpoints and links as they are now. */
  snapshot(): LinksSnapshot {
    return snapshotOf(this.#hosts.values(), this.#incoming, {
      rememberedLanes: this.#shared.inbound.size,
      nowMs: this.#shared.clock.monotonicMs(),
    });
  }

  /** Traffic to and from each destination. Cheaper than `snapshot`. */
  flows(): readonly LinksFlow[] {
    const { metrics } = this.#shared;
    return Array.from(this.#hosts.values(), (links) => {
      const { outgoingMessages, incomingMessages } = metrics.host(links.destination);
      return flowOf(links, { sent: outgoingMessages.value, received: incomingMessages.value });
    });
  }

  /**
   * Leaves in order. Accepts no more links, grants no more credit, and drains the lanes
   * (`LaneDrain`) within `withinMs`. Then says GOODBYE, and gives the rest back with `leaving`.
   * From then on `send` gives back too. Ends with `close`.
   *
   * @param routed resolves when stanzas that lanes have given back are routed, perhaps into other
   * lanes; at the latest after `withinMs`
   */
  async leave(
    withinMs: number,
    routed: (withinMs: number) => Promise<void> = async () => {},
  ): Promise<void> {
    if (this.#phase !== "running") return;
    this.#phase = "leaving";
    const { clock, log, scope } = this.#shared;
    this.#destinations.stopLooking();
    await this.#incoming.closePorts();
    this.#incoming.freeze();
    const drain = new LaneDrain({
      clock,
      links: [this],
      // Half of the time is left for the lanes.
      route: (leftMs) => routed(leftMs / 2),
      isInboundSettled: this.#incoming.watchSettling(),
    });
    const outcome = await drain.run(withinMs);
    const left = this.#destinations.items + this.#incoming.unsettled;
    // A node that cannot start says why, and nothing else.
    if (this.#hasStarted) log.info("links.drained", { scope, left, isDone: outcome === "settled" });
    this.#goodbye();
    this.#destinations.giveBackAll("leaving");
  }

  /** Says GOODBYE, ends every connection and timer; resolves when all have ended. */
  async close(): Promise<void> {
    this.#goodbye();
    await this.#incoming.closePorts();
    this.#cancelTick?.();
    await waitUntil(this.#shared.clock, () => this.#hasEnded());
  }

  #goodbye(): void {
    if (this.#phase === "closed") return;
    this.#phase = "closed";
    this.#shared.traffic?.leaving?.();
    this.#incoming.leave();
    for (const seed of this.#seeds) seed.stop("this node is going down");
    this.#destinations.leave();
  }

  #hasEnded(): boolean {
    return this.#incoming.size === 0 && this.#destinations.hasEnded &&
      this.#seeds.every((seed) => seed.hasEnded);
  }

  #peerArrived(destination: string, process: number): void {
    const isNews = this.#shared.scope === "datacenter" && this.#phase === "running";
    if (isNews) this.#destinations.to(destination);
    this.#hosts.get(destination)?.peerArrived(process);
  }

  /** Starts the one timer that checks the time limits of all links. */
  #tickLater(): void {
    if (this.#phase === "closed") return;
    this.#cancelTick?.();
    this.#cancelTick = this.#shared.clock.after(this.#shared.options.tickMs, () => {
      const nowMs = this.#shared.clock.monotonicMs();
      this.#incoming.tick(nowMs);
      this.#destinations.tick(nowMs);
      for (const seed of this.#seeds) seed.tick(nowMs);
      this.#shared.inbound.tick(nowMs);
      this.#shared.lives.flush();
      this.#rounds++;
      this.#cancelTick = undefined;
      this.#tickLater();
    });
  }
}

/** The nodes of our own datacenter are no strangers: they share what there is. */
function inboundOptions(scope: LinkScope, options: ResolvedLinksOptions): InboundLanesOptions {
  const { maxDatacenterLanes, ...others } = options;
  return { ...others, maxDatacenterLanes: scope === "mesh" ? maxDatacenterLanes : Infinity };
}
