import { describeError, RateLimit } from "../../../base/mod.ts";
import type { Connection, HandshakePeer, Listener, ListenerLimits } from "../../../net/mod.ts";
import { listen } from "../../../net/mod.ts";
import type { LogFields } from "../../../observe/mod.ts";
import { PacedLog } from "../../../observe/mod.ts";
import type { EndpointAddress } from "../ports.ts";
import { IncomingLink } from "./incoming_link.ts";
import type { LinkDeps } from "./link_deps.ts";
import { Shares } from "./shares.ts";

/** The parts that incoming links work with. */
export interface IncomingLinksDeps {
  readonly shared: LinkDeps;
  /** Called before each TLS handshake of a peer; false rejects it. @default always true */
  readonly mayHandshake?: ((peer: HandshakePeer) => boolean) | undefined;
}

/** Callbacks on the life of incoming links. */
export interface IncomingLinksEvents {
  /** Called when a node of `destination`, with the incarnation `process`, has linked to us. */
  arrived(destination: string, process: number): void;
}

/** Rate of log lines for connections refused before their HELLO; all refusals are counted. */
const LOGGED_REFUSALS = { perSec: 1, burst: 100 };

/**
 * The links that other nodes have made to this one. Listens for them and keeps them within their
 * bounds: in all before HELLO, by certificate before HELLO, and by local host after it.
 */
export class IncomingLinks implements Iterable<IncomingLink> {
  readonly #deps: IncomingLinksDeps;
  readonly #events: IncomingLinksEvents;
  readonly #links = new Set<IncomingLink>();
  /** Links without HELLO, by the names in their certificates. */
  readonly #unauthenticated: Shares<IncomingLink>;
  /** Links with HELLO, by local host. */
  readonly #authenticated: Shares<IncomingLink>;
  readonly #listeners: Listener[] = [];
  readonly #refusalLog: RateLimit;
  readonly #crowdLog: PacedLog;
  #isClosing = false;

  constructor(deps: IncomingLinksDeps, events: IncomingLinksEvents) {
    this.#deps = deps;
    this.#events = events;
    const { clock, log } = deps.shared;
    this.#unauthenticated = new Shares(this.#share("maxDatacenterUnauthenticated"));
    this.#authenticated = new Shares(this.#share("maxDatacenterLinks"));
    this.#refusalLog = new RateLimit(LOGGED_REFUSALS, clock);
    this.#crowdLog = new PacedLog(log, clock);
  }

  [Symbol.iterator](): IterableIterator<IncomingLink> {
    return this.#links.values();
  }

  get size(): number {
    return this.#links.size;
  }

  /** Addresses where links are accepted, with ports as bound. */
  get addresses(): readonly EndpointAddress[] {
    return this.#listeners.map(({ host, port }) => ({ host, port }));
  }

  /** Stanzas received over these links whose fate is open. */
  get unsettled(): number {
    let stanzas = 0;
    for (const link of this.#links) stanzas += link.unsettled;
    return stanzas;
  }

  /** True while a node of this local host is linked to us. */
  has(host: string): boolean {
    for (const link of this.#links) if (link.host === host) return true;
    return false;
  }

  /**
   * Binds the ports and begins to accept.
   * @throws CausewayError as `listen` of `net/` does; ports bound before are closed again
   */
  async listen(addresses: readonly EndpointAddress[]): Promise<void> {
    const { mayHandshake, shared: { tls, clock, metrics, log } } = this.#deps;
    try {
      for (const { host, port } of addresses) {
        this.#listeners.push(
          await listen({
            host,
            port,
            ...(tls === undefined ? {} : { tls: { mode: "mutual", context: tls } }),
            limits: this.#portLimits(),
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
  }

  /** Takes the options that are shared by now for links that come from now on. */
  optionsChanged(): void {
    this.#unauthenticated.resize(this.#share("maxDatacenterUnauthenticated"));
    this.#authenticated.resize(this.#share("maxDatacenterLinks"));
    for (const listener of this.#listeners) listener.changeLimits(this.#portLimits());
  }

  /** Returns a share. The nodes of our own datacenter are no strangers: they share what there is. */
  #share(option: "maxDatacenterUnauthenticated" | "maxDatacenterLinks"): number {
    const { scope, options } = this.#deps.shared;
    return scope === "mesh" ? options[option] : Infinity;
  }

  #portLimits(): ListenerLimits {
    const { options } = this.#deps.shared;
    return {
      maxConnections: options.maxConnections,
      maxHandshakes: options.maxUnauthenticated,
      maxPendingBytes: options.maxPendingBytes,
      handshakeTimeoutMs: options.helloTimeoutMs,
    };
  }

  /** Accepts no more links; resolves when all ports are closed. */
  async closePorts(): Promise<void> {
    this.#isClosing = true;
    await Promise.all(this.#listeners.map((listener) => listener.close()));
  }

  /** Grants no more credit, so that peers stop sending. */
  freeze(): void {
    for (const link of this.#links) link.freeze();
  }

  /**
   * Returns a function that is true once all stanzas received until now are settled or left open.
   */
  watchSettling(): () => boolean {
    const settling = Array.from(this.#links, (link) => link.watchSettling());
    return () => settling.every((isOver) => isOver());
  }

  /** Ends every link, and each that comes later, because this node leaves. */
  leave(): void {
    this.#isClosing = true;
    for (const link of this.#links) link.leave("leaving", LEAVING);
  }

  tick(nowMs: number): void {
    for (const link of this.#links) link.tick(nowMs);
    this.#crowdLog.flush();
  }

  #accepted(connection: Connection): void {
    const { shared } = this.#deps;
    const { metrics, options } = shared;
    metrics.incomingEstablished.inc();
    const link = new IncomingLink(connection, shared, {
      mayOpen: (host) => {
        if (this.#authenticated.hasRoom(host)) return true;
        this.#crowded(host, { host, limit: options.maxDatacenterLinks });
        return false;
      },
      authenticated: (link) => {
        this.#unauthenticated.giveBack(link);
        this.#authenticated.take(link, link.host!); // HELLO names it
        this.#events.arrived(link.destination!, link.process!);
      },
      ended: (link) => {
        this.#unauthenticated.giveBack(link);
        this.#authenticated.giveBack(link);
        this.#links.delete(link);
      },
    });
    this.#links.add(link);
    const certificate = connection.peerNames.join(" ");
    if (this.#isClosing) link.leave("leaving", LEAVING);
    else if (this.#unauthenticated.size >= options.maxUnauthenticated) {
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
}

const LEAVING = "this node is going down";
