import type { CancelTimer } from "../base/mod.ts";
import { CausewayError, describeError } from "../base/mod.ts";
import type { Config } from "../config/mod.ts";
import { LaneDrain } from "../distribution/links/mod.ts";
import { formatAddress } from "../net/mod.ts";
import type { Logger } from "../observe/mod.ts";
import { advertisedEndpoints } from "./advertised_endpoints.ts";
import { nodeHealth } from "./node_health.ts";
import type { NodePhase } from "./node_health.ts";
import type { NodeDeps } from "./node_parts.ts";
import { NodeParts } from "./node_parts.ts";
import { claimHosts } from "./node_table.ts";
import type { ReloadReport } from "./reload.ts";
import { Reload } from "./reload.ts";
import { StopBudget } from "./stop_budget.ts";

/** Addresses of a node that has started, such as `127.0.0.1:5222` or `[::1]:5222`. */
export interface NodeAddresses {
  readonly node: string;
  readonly c2s: readonly string[];
  readonly websocket: readonly string[];
  readonly component: readonly string[];
  readonly links: readonly string[];
  readonly admin: string;
}

/** Progress of a graceful stop, as the admin API shows it. */
interface DrainProgress {
  readonly step: string;
  readonly startedAt: string;
  readonly deadlineAt: string;
}

/**
 * Milliseconds that clients may take at a graceful stop to acknowledge their stanzas. This time and
 * the next three are part of `limits.shutdown_timeout`, which bounds them all.
 */
const COLLECT_MS = 2_000;
/**
 * Milliseconds that archives and other nodes may take at a graceful stop to take over what clients
 * have sent. After that time it counts as covered anyway (`ack_hold_ms`).
 */
const COVER_MS = 5_000;
/**
 * Milliseconds that clients and components may take at a graceful stop to notice that their streams
 * end.
 */
const HEAR_OUT_MS = 2_000;
/** Milliseconds that peers may take at a graceful stop to end their side of each connection. */
const CLOSE_MS = 1_000;

/**
 * One process, from its start to its graceful stop.
 *
 * Its parts are made in the order in which they need one another (`NodeParts`). They stop in the
 * order in which stanzas flow: first no new stanza comes in, then held stanzas are answered, then
 * the lanes empty.
 */
export class CausewayNode {
  readonly #parts: NodeParts;
  readonly #reload: Reload;
  readonly #started = Promise.withResolvers<void>();
  #phase: NodePhase = "starting";
  /** Progress of the graceful stop; undefined before it. */
  #drain: DrainProgress | undefined;
  #cancelWatch: CancelTimer | undefined;

  constructor(config: Config, deps: NodeDeps) {
    this.#parts = new NodeParts(config, deps, {
      health: () =>
        nodeHealth(this.#phase, this.#parts.table.snapshot(), this.#parts.stores.databases()),
      drain: () => ({ isDraining: this.#phase === "draining", ...this.#drain }),
      requestStop: () => {
        if (this.#phase === "draining" || this.#phase === "stopped") return false;
        deps.stopRequested?.();
        return true;
      },
      reload: () => this.reload(),
      config: () => this.#reload.config,
    });
    const parts = this.#parts;
    const { certificates, stores, metrics, log, clock } = parts;
    this.#reload = new Reload(config, {
      isRunning: () => this.#phase === "running",
      read: deps.readConfig ?? (() => config),
      certificates,
      stores,
      change: (newer, before) => {
        deps.changeLog?.(newer.log);
        parts.change(newer);
        void this.#publishEndpoints(before, newer); // never rejects
      },
      renewLinks: async () => {
        await parts.links?.renew();
        await parts.cluster?.renew();
      },
      metrics,
      log,
      clock,
    });
    this.#started.promise.catch(() => {}); // whoever starts the node hears of it
  }

  /** The log of the node, whose events operators see too. */
  get log(): Logger {
    return this.#parts.log;
  }

  /** Rounds of work that the layers of links have both made: while it grows, the node is alive. */
  get rounds(): number {
    const { links, cluster } = this.#parts;
    return Math.min(links?.rounds ?? 0, cluster?.rounds ?? 0);
  }

  /**
   * Starts everything and resolves when the node can be used. Redis may still be away: then the
   * node reports itself as degraded.
   * @throws CausewayError for a port, certificate, name or password that cannot be used; call
   * `stop`
   */
  async start(): Promise<NodeAddresses> {
    try {
      const addresses = await this.#start();
      this.#started.resolve();
      return addresses;
    } catch (thrown) {
      this.#started.reject(thrown);
      throw thrown;
    }
  }

  async #start(): Promise<NodeAddresses> {
    const { config } = this.#reload;
    const { edge, admin, table, budget, requests, rosters, offline, accountWatch, log, clock } =
      this.#parts;
    const { links, cluster } = await this.#parts.addLinks(config);
    // Open every port before writing to Redis. A copy of a running node, started by mistake, fails
    // here: it has neither taken that node's name nor withdrawn what that node published.
    await links.listen();
    await cluster.listen();
    await edge.open(config);
    await admin.start();
    await table.start();
    await claimHosts(config, table);
    await table.publishClusterAddress(cluster.addresses[0]!); // it listens on one address
    await table.clusterNodes();
    cluster.start();
    await table.publishEndpoints(advertisedEndpoints(config.globalDistrib, links.addresses));
    links.start();
    this.#cancelWatch = budget.watch(clock, () => {
      log.warn("node.makes-room", { waitingBytes: budget.total.bytes });
      this.#parts.management?.makeRoom();
    });
    await requests.start();
    accountWatch.start();
    rosters.start();
    offline.start();
    this.#parts.archive?.start();
    this.#parts.muc?.start();
    this.#parts.roomArchives?.start();
    this.#phase = "running";
    return {
      node: config.nodeName,
      c2s: edge.addresses("c2s"),
      websocket: edge.addresses("websocket"),
      component: edge.addresses("component"),
      links: links.addresses.map(({ host, port }) => formatAddress(host, port)),
      admin: admin.address,
    };
  }

  /**
   * Reads the configuration file and every certificate again, once the node has started. What can
   * change while it runs takes effect, and sessions stay. Links that use another certificate connect
   * anew afterwards, one by one.
   *
   * @throws CausewayError that says what cannot be used; then nothing has changed. With the code
   * `node/reload-incomplete` a part has changed
   */
  async reload(): Promise<ReloadReport> {
    await this.#started.promise;
    if (this.#phase !== "running") {
      throw new CausewayError("node/stopping", "Cannot reload: the node is going down");
    }
    return await this.#reload.run();
  }

  /** Publishes this node's endpoints, if they are others than those of `before`. */
  async #publishEndpoints(before: Config, { globalDistrib }: Config): Promise<void> {
    const { links, table, log } = this.#parts;
    const former = JSON.stringify(before.globalDistrib.connections.advertisedEndpoints);
    const wanted = JSON.stringify(globalDistrib.connections.advertisedEndpoints);
    if (links === undefined || former === wanted) return;
    try {
      await table.publishEndpoints(advertisedEndpoints(globalDistrib, links.addresses));
    } catch (error) {
      log.warn("endpoints.unpublished", { error: describeError(error) }); // the next renewal does it
    }
  }

  /**
   * Stops gracefully: delivers, hands over or answers every stanza held here, within
   * `limits.shutdown_timeout`. Idempotent.
   */
  async stop(): Promise<void> {
    if (this.#phase === "draining" || this.#phase === "stopped") return;
    this.#phase = "draining";
    this.#cancelWatch?.();
    this.#parts.accountWatch.stop();
    this.#parts.surveys.stopping();
    // A start may still be under way, so the links are read where they are used.
    const parts = this.#parts;
    const { edge, router, services, requests, logouts, pressure, table, log, clock } = parts;
    const budget = new StopBudget(this.#reload.config.limits.shutdownTimeoutMs, clock);
    const startedMs = clock.wallMs();
    const deadlineMs = startedMs + this.#reload.config.limits.shutdownTimeoutMs;
    const steps = new Set<string>();
    const noteStep = (step: string) => {
      if (steps.has(step)) return; // routing goes on beside later steps
      steps.add(step);
      this.#drain = {
        step,
        startedAt: new Date(startedMs).toISOString(),
        deadlineAt: new Date(deadlineMs).toISOString(),
      };
    };
    const wait = async (what: string, step: Promise<unknown>, withinMs?: number) => {
      noteStep(what);
      if (await budget.wait(step, withinMs) === "late") log.warn("node.stop-late", { what });
    };
    await wait("listeners", edge.closeListeners());
    pressure.freeze();
    parts.rosters.close();
    const drainRouter = (withinMs?: number) => wait("routing", router.drain(), withinMs);
    await drainRouter();
    await wait("services", services.close());
    if (parts.rooms !== undefined) await wait("rooms", parts.rooms.close());
    await wait("rooms", parts.copyOrder?.close() ?? Promise.resolve());
    if (parts.muc !== undefined) await wait("rooms", parts.muc.settled());
    // Streams stay until every stanza read from them is settled: an error must still reach its
    // sender. Stanzas sent to a datacenter that does not answer come back as errors before the
    // streams end.
    const links = [parts.links, parts.cluster].filter((layer) => layer !== undefined);
    noteStep("lanes");
    const drain = new LaneDrain({ clock, links, route: drainRouter });
    if (await drain.run(budget.halfMs()) === "late") {
      drain.giveUpStuck();
      await drainRouter();
    }
    noteStep("acknowledgements");
    await parts.management?.collect(budget.halfMs(COLLECT_MS));
    parts.resumption?.stop();
    // Every session that ends now tells its contacts, while the nodes that tell them are connected.
    parts.paced.hurry();
    await parts.management?.cover(budget.halfMs(COVER_MS));
    pressure.thaw();
    await wait("streams", edge.closeStreams());
    // Clients without stream management never resend what they had written by then, so it is read
    // here.
    await edge.hearOut(budget.halfMs(HEAR_OUT_MS));
    await wait("presence", parts.rosters.settled(), budget.halfMs(CLOSE_MS));
    // Sessions that have ended leave their rooms, which other nodes are told.
    if (parts.muc !== undefined) await wait("rooms", parts.muc.settled(), budget.halfMs(CLOSE_MS));
    await wait("notifications", parts.pep.close(), budget.halfMs(CLOSE_MS));
    await wait("lookups", router.idle(), budget.halfMs(CLOSE_MS));
    parts.tracing.close();
    parts.surveys.close();
    // Other datacenters go on sending until they learn that we leave: so the links to the other
    // nodes, where their recipients are by now, stay open longer. A stanza that another node hands
    // over too late to be answered stays unsettled, and that node keeps it.
    const routed = async (withinMs: number) => {
      await budget.wait(router.idle(), withinMs);
    };
    await parts.links?.leave(budget.halfMs(), routed);
    await parts.cluster?.leave(budget.halfMs(), routed);
    await drainRouter();
    await wait("requests", requests.close());
    await wait("offline", parts.offline.close());
    await wait("rooms", parts.muc?.close() ?? Promise.resolve());
    await wait("room archives", parts.roomArchives?.close() ?? Promise.resolve());
    await wait("archive", parts.archive?.close() ?? Promise.resolve());
    await wait("logouts", logouts.close(), budget.halfMs(CLOSE_MS));
    await wait("privacy", parts.privacy.close(), budget.halfMs(CLOSE_MS));
    await wait("table", table.close());
    // Connections that an unresponsive peer leaves half open end with the process.
    const ends = [parts.links?.close(), parts.cluster?.close(), parts.admin.close()];
    await wait("connections", Promise.all(ends), Math.min(budget.leftMs, CLOSE_MS));
    parts.spans?.close();
    const telemetry = parts.telemetry?.close(Math.min(budget.leftMs, CLOSE_MS));
    await wait("telemetry", telemetry ?? Promise.resolve());
    parts.certificates.close();
    parts.metrics.close();
    await wait("stores", parts.stores.close());
    this.#phase = "stopped";
  }
}
