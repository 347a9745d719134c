import type { CancelTimer, Clock, FairShares, PacedWork } from "../base/mod.ts";
import { describeError } from "../base/mod.ts";
import type {
  C2sListenConfig,
  CertificateFiles,
  ComponentListenConfig,
  Config,
  WebSocketListenConfig,
} from "../config/mod.ts";
import { listen, listenWebSocket } from "../net/mod.ts";
import type { Connection, Listener, ListenerEvents, ListenOptions } from "../net/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import {
  accountsWithoutKey,
  C2sListener,
  ComponentListener,
  CredentialShapes,
  discoveryPage,
  EdgeRates,
  resolveStreamLimits,
  StreamAdmission,
  WEBSOCKET_PATH,
  WebSocketTransport,
  XMPP_SUBPROTOCOL,
} from "../xmpp/mod.ts";
import type {
  AccountCreation,
  AccountFeature,
  C2sSession,
  ChosenMechanism,
  ComponentRegistry,
  CountedShape,
  CredentialSource,
  SessionRegistry,
  StanzaSink,
  StreamManagement,
} from "../xmpp/mod.ts";
import type { Certificates } from "./certificates.ts";
import { handshakeRates, portLimits, webSocketLimits } from "./options.ts";

/** Dependencies of the ports for clients and components. */
export interface EdgeDeps {
  /**
   * Accounts by domain. The first domain is the one named to clients that ask for an unknown
   * domain.
   */
  readonly accounts: ReadonlyMap<string, Accounts>;
  /** Seed for the credentials that are made up for accounts that do not exist. */
  readonly enumerationSecret: Uint8Array;
  readonly sessions: SessionRegistry;
  readonly components: ComponentRegistry;
  /** Returns the features that a host's accounts have beside those of the stream. */
  readonly accountFeatures: (domain: string) => readonly AccountFeature[];
  /** Makes accounts for clients that have none; undefined where nobody may. */
  readonly creation: AccountCreation | undefined;
  /** True when the accounts of a host have carbons. */
  readonly hasCarbons: (domain: string) => boolean;
  readonly sink: StanzaSink;
  readonly certificates: Certificates;
  /** Budget of the presence that sessions of inactive clients hold back. */
  readonly heldPresence: FairShares;
  /** Undefined when clients are not offered stream management. */
  readonly management: StreamManagement<C2sSession> | undefined;
  /** Does the steps of logins. */
  readonly paced: PacedWork;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Source of accounts and their credentials. */
export interface Accounts extends CredentialSource {
  /** Counts the accounts by the shape of their keys. */
  credentialShapes(): Promise<readonly CountedShape[]>;
}

/** Milliseconds between refreshes of the shapes: an account's shape changes with its password. */
const SHAPES_REFRESH_MS = 600_000;

/** Application protocol of clients that begin with TLS (XEP-0368 §4). */
const XMPP_CLIENT_ALPN = "xmpp-client";

/** Limits on connections that a listener applies, by the codes of their errors. */
const CONNECTION_LIMITS = [
  "net/too-many-connections",
  "net/too-many-handshakes",
  "net/too-often",
] as const;

/** Kind of peer that a port accepts. */
export type EdgeKind = "c2s" | "websocket" | "component";

/** A port, or anything else, that has streams. */
interface StreamPort {
  dismiss(condition: "system-shutdown"): Promise<void>;
  hearOut(withinMs: number): Promise<number>;
}

/** The ports on which clients and components are accepted. */
export class Edge {
  readonly #deps: EdgeDeps;
  readonly #listeners: { readonly kind: EdgeKind; readonly listener: Listener }[] = [];
  readonly #ports: StreamPort[] = [];
  /** Change the limits of one port or of its streams. */
  readonly #changes: ((config: Config) => void)[] = [];
  #admission: StreamAdmission | undefined;
  #rates: EdgeRates | undefined;
  #cancelShapes: CancelTimer | undefined;
  /** The last log line about accounts that cannot use a mechanism. */
  #missingKeys = "[]";
  #isClosed = false;

  constructor(deps: EdgeDeps) {
    this.#deps = deps;
  }

  /** Addresses as bound, in the order of the configuration. */
  addresses(kind: EdgeKind): readonly string[] {
    return this.#listeners.filter((each) => each.kind === kind).map(({ listener }) =>
      listener.address
    );
  }

  /**
   * Binds every port that the configuration names.
   * @throws CausewayError `net/…` for a certificate or port that cannot be used
   */
  async open(config: Config): Promise<void> {
    for (const kind of ["c2s", "websocket", "component"] as const) this.#showConnections(kind);
    const admission = this.#admission = new StreamAdmission(config.admission, this.#deps.clock);
    const shapes = new CredentialShapes(config.auth.scramIterations);
    await this.#learnShapes(shapes, config.auth.mechanisms);
    const rates = this.#rates = new EdgeRates(config.edgeRates, this.#deps.clock);
    const shared = { config, admission, rates, shapes };
    const { c2s, websocket, component } = config.listen;
    for (const [position, each] of c2s.entries()) await this.#openC2s(each, position, shared);
    for (const [position, each] of websocket.entries()) {
      await this.#openWebSocket(each, position, shared);
    }
    for (const [position, each] of component.entries()) {
      await this.#openComponent(each, position, shared);
    }
  }

  /**
   * Takes the limits, rates and component domains of another configuration, whose ports are the same.
   * Streams that are open keep the limits that they began with.
   */
  change(config: Config): void {
    this.#admission?.change(config.admission);
    this.#rates?.change(config.edgeRates);
    for (const change of this.#changes) change(config);
  }

  /** Stops accepting connections. Streams go on. */
  async closeListeners(): Promise<void> {
    this.#isClosed = true;
    this.#cancelShapes?.();
    await Promise.all(this.#listeners.map(({ listener }) => listener.close()));
  }

  /** Ends every stream and resolves when the registries know. Call `hearOut` next. */
  async closeStreams(): Promise<void> {
    await Promise.all(this.#ports.map((port) => port.dismiss("system-shutdown")));
  }

  /**
   * Reads the stanzas that peers wrote before they noticed the end of their streams (RFC 6120
   * §4.4). Ends when the peers have ended their streams too, or after `withinMs`.
   */
  async hearOut(withinMs: number): Promise<void> {
    const left = await Promise.all(this.#ports.map((port) => port.hearOut(withinMs)));
    const hungUpOn = left.reduce((sum, count) => sum + count, 0);
    if (hungUpOn > 0) this.#deps.log.info("edge.hung-up", { streams: hungUpOn, afterMs: withinMs });
  }

  /** Learns the shapes of the accounts' keys, now and every `SHAPES_REFRESH_MS`. */
  async #learnShapes(
    shapes: CredentialShapes,
    mechanisms: readonly ChosenMechanism[],
  ): Promise<void> {
    const { accounts, clock, log } = this.#deps;
    try {
      const counted: CountedShape[] = [];
      for (const each of accounts.values()) counted.push(...await each.credentialShapes());
      shapes.learn(counted);
      this.#warnOfMissingKeys(counted, mechanisms);
    } catch (error) {
      log.warn("accounts.keys-unknown", { error: describeError(error) }); // the last shapes stay in use
    }
    if (this.#isClosed) return;
    this.#cancelShapes = clock.after(SHAPES_REFRESH_MS, () => {
      void this.#learnShapes(shapes, mechanisms); // never rejects
    });
  }

  /** Tells the operator of accounts that cannot use a mechanism on offer, whenever that changes. */
  #warnOfMissingKeys(
    counted: readonly CountedShape[],
    mechanisms: readonly ChosenMechanism[],
  ): void {
    const missing = accountsWithoutKey(counted, mechanisms);
    const said = JSON.stringify(missing);
    if (said === this.#missingKeys) return;
    this.#missingKeys = said;
    for (const each of missing) this.#deps.log.warn("accounts.keys-missing", each);
  }

  async #openC2s(
    listenConfig: C2sListenConfig,
    position: number,
    shared: SharedByPorts,
  ): Promise<void> {
    const { tls } = listenConfig;
    const { config } = shared;
    const port = this.#clients("c2s", { ...shared, allowPlaintext: tls.mode === "none" });
    const secured = tls.mode === "none" ? undefined : {
      mode: tls.mode,
      files: tls,
      ...(tls.mode === "direct" ? { alpnProtocols: [XMPP_CLIENT_ALPN] } : {}),
    };
    const place = { ...listenConfig, path: `listen.c2s[${position}].tls`, secured, config };
    await this.#listen("c2s", place, (connection) => {
      port.accept(connection);
    });
  }

  async #openWebSocket(
    listenConfig: WebSocketListenConfig,
    position: number,
    shared: SharedByPorts,
  ): Promise<void> {
    const { tls, url } = listenConfig;
    const { config } = shared;
    const port = this.#clients("websocket", { ...shared, allowPlaintext: tls === undefined });
    let limits = resolveStreamLimits(config.streams);
    const path = `listen.websocket[${position}].tls`;
    const secured = direct(tls);
    const options = await this.#listenOptions({ ...listenConfig, path, secured, config });
    const listener = await listenWebSocket({
      ...options,
      path: WEBSOCKET_PATH,
      subprotocol: XMPP_SUBPROTOCOL,
      limits: { ...options.limits, ...webSocketLimits(config) },
    }, {
      ...this.#watching("websocket"),
      accepted: (connection) => port.acceptTransport(new WebSocketTransport(connection, limits)),
      page: (path, host) => discoveryPage(path, host, { url, isEncrypted: tls !== undefined }),
    });
    this.#listeners.push({ kind: "websocket", listener });
    this.#changes.push((newer) => {
      limits = resolveStreamLimits(newer.streams);
      listener.changeLimits({ ...portLimits(newer), ...webSocketLimits(newer) });
    });
  }

  /** Turns the connections of one port into client streams. */
  #clients(
    edge: "c2s" | "websocket",
    { allowPlaintext, config, admission, rates, shapes }: SharedByPorts & {
      readonly allowPlaintext: boolean;
    },
  ): C2sListener {
    const { accounts, enumerationSecret, accountFeatures, sessions, sink, management } = this.#deps;
    const { heldPresence, creation, hasCarbons, paced, metrics, log, clock } = this.#deps;
    const port = new C2sListener({
      edge,
      hosts: accounts,
      accountFeatures,
      hasCarbons,
      registry: sessions,
      sink,
      paced,
      metrics,
      log,
      clock,
      mechanisms: config.auth.mechanisms,
      sasl2: config.auth.sasl2,
      channelBinding: config.auth.channelBinding,
      allowPlaintext,
      scramIterations: shapes,
      enumerationSecret,
      limits: config.streams,
      ...config.clients,
      heldPresence,
      admission,
      rates,
      ...(management === undefined ? {} : { management }),
      ...(creation === undefined ? {} : { creation }),
    });
    this.#ports.push(port);
    this.#changes.push((newer) => port.changeLimits({ limits: newer.streams, ...newer.clients }));
    return port;
  }

  async #openComponent(
    listenConfig: ComponentListenConfig,
    position: number,
    { config, admission, rates }: SharedByPorts,
  ): Promise<void> {
    const { components, sink, metrics, log, clock } = this.#deps;
    const port = new ComponentListener({
      host: config.globalDistrib.localHost,
      domains: domainsOf(listenConfig),
      registry: components,
      sink,
      metrics,
      log,
      clock,
      limits: config.streams,
      admission,
      rates,
    });
    this.#ports.push(port);
    this.#changes.push((newer) => {
      const listed = newer.listen.component[position] ?? listenConfig; // the ports are the same
      port.change({ limits: newer.streams, domains: domainsOf(listed) });
    });
    const secured = direct(listenConfig.tls);
    const path = `listen.component[${position}].tls`;
    await this.#listen("component", { ...listenConfig, path, secured, config }, (connection) => {
      port.accept(connection);
    });
  }

  async #listen(
    kind: EdgeKind,
    place: Place,
    accepted: (connection: Connection) => void,
  ): Promise<void> {
    const options = await this.#listenOptions(place);
    const listener = await listen(options, { ...this.#watching(kind), accepted });
    this.#listeners.push({ kind, listener });
    this.#changes.push((newer) => listener.changeLimits(portLimits(newer)));
  }

  async #listenOptions({ host, port, path, secured, config }: Place): Promise<ListenOptions> {
    const { certificates, paced, clock } = this.#deps;
    const handshakes = new EdgeRates(handshakeRates(config), clock);
    this.#changes.push((newer) => handshakes.change(handshakeRates(newer)));
    return {
      host,
      port,
      clock,
      mayHandshake: (peer) => handshakes.mayConnect(peer),
      inTurn: (handshake) => void paced.run(handshake, "stranger"),
      ...(secured === undefined ? {} : {
        tls: {
          mode: secured.mode,
          ...(secured.alpnProtocols === undefined ? {} : { alpnProtocols: secured.alpnProtocols }),
          context: await certificates.load(path, {
            certfile: secured.files.certfile,
            keyfile: secured.files.keyfile,
          }),
        },
      }),
      limits: portLimits(config),
    };
  }

  #showConnections(kind: EdgeKind): void {
    this.#deps.metrics.gauge({
      name: "causeway_connections_open",
      help: "Open connections at the ports of each kind, authenticated or not",
      labels: { port: kind },
    }, () => {
      let count = 0;
      for (const each of this.#listeners) {
        if (each.kind === kind) count += each.listener.connectionCount;
      }
      return count;
    });
  }

  /** Counts and logs connections that a port of this kind refuses or fails to serve. */
  #watching(kind: EdgeKind): Required<Omit<ListenerEvents, "accepted">> {
    const { log, metrics } = this.#deps;
    const refusals = (reason: string) =>
      metrics.counter({
        name: "causeway_connections_refused_total",
        help: "Connections turned away before they became a stream, by port and reason",
        labels: { port: kind, reason },
      });
    // They start at 0: Prometheus sees no increase in a counter that begins at 1.
    for (const limit of CONNECTION_LIMITS) refusals(limit);
    return {
      refused: (error, remote) => {
        refusals(error.code).inc();
        log.debug("edge.refused", { port: kind, remote, reason: error.code });
      },
      failed: (error) => log.error("edge.accept-failed", { port: kind, error: error.message }),
    };
  }
}

/** Objects that all ports share. */
interface SharedByPorts {
  readonly config: Config;
  readonly admission: StreamAdmission;
  readonly rates: EdgeRates;
  readonly shapes: CredentialShapes;
}

/** Address of a port, and its TLS settings. */
interface Place {
  readonly host: string;
  readonly port: number;
  /** Key path of its certificate. */
  readonly path: string;
  readonly secured: SecuredBy | undefined;
  readonly config: Config;
}

interface SecuredBy {
  readonly mode: "starttls" | "direct";
  readonly files: CertificateFiles;
  /** As in `ListenerTls`. */
  readonly alpnProtocols?: readonly string[];
}

function direct(files: CertificateFiles | undefined): SecuredBy | undefined {
  return files === undefined ? undefined : { mode: "direct", files };
}

function domainsOf(
  { domains }: ComponentListenConfig,
): ReadonlyMap<string, { readonly secret: string; readonly isHidden: boolean }> {
  return new Map(domains.map(({ name, secret, isHidden }) => [
    name,
    { secret: secret.reveal(), isHidden },
  ]));
}
