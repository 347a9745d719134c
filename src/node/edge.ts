import type { Clock } from "../base/mod.ts";
import type { C2sListenConfig, ComponentListenConfig, Config } from "../config/mod.ts";
import { listen } from "../net/mod.ts";
import type { Connection, Listener, ListenerTls } from "../net/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import { C2sListener, ComponentListener, StreamAdmission } from "../xmpp/mod.ts";
import type {
  C2sSession,
  ComponentRegistry,
  CredentialSource,
  SessionRegistry,
  StanzaSink,
  StreamManagement,
} from "../xmpp/mod.ts";
import type { Certificates } from "./certificates.ts";
import { streamLimits } from "./options.ts";

/** What the ports for clients and components are made of. */
export interface EdgeDeps {
  readonly credentials: CredentialSource;
  readonly sessions: SessionRegistry;
  readonly components: ComponentRegistry;
  readonly sink: StanzaSink;
  readonly certificates: Certificates;
  /** Undefined when clients are offered none. */
  readonly management: StreamManagement<C2sSession> | undefined;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
}

/** Something that turns connections into streams. */
interface StreamPort {
  accept(connection: Connection): void;
  close(condition: "system-shutdown"): Promise<void>;
}

/** The ports on which clients and components are accepted. */
export class Edge {
  readonly #deps: EdgeDeps;
  readonly #listeners: { readonly kind: "c2s" | "component"; readonly listener: Listener }[] = [];
  readonly #ports: StreamPort[] = [];

  constructor(deps: EdgeDeps) {
    this.#deps = deps;
  }

  /** Addresses as bound, in the order of the configuration. */
  addresses(kind: "c2s" | "component"): readonly string[] {
    return this.#listeners.filter((each) => each.kind === kind).map(({ listener }) =>
      listener.address
    );
  }

  /**
   * Binds every port that the configuration names.
   * @throws CausewayError `net/…` for a certificate or port that cannot be used
   */
  async open(config: Config): Promise<void> {
    const admission = new StreamAdmission({
      maxUnauthenticated: config.limits.maxUnauthenticated,
      maxPerAddress: config.limits.maxConnectionsPerAddress,
    });
    for (const each of config.listen.c2s) await this.#openC2s(each, config, admission);
    for (const each of config.listen.component) await this.#openComponent(each, config, admission);
  }

  /** Accepts no more; streams go on. */
  async closeListeners(): Promise<void> {
    await Promise.all(this.#listeners.map(({ listener }) => listener.close()));
  }

  /** Ends every stream; resolves when the registries have been told. */
  async closeStreams(): Promise<void> {
    await Promise.all(this.#ports.map((port) => port.close("system-shutdown")));
  }

  async #openC2s(
    listenConfig: C2sListenConfig,
    config: Config,
    admission: StreamAdmission,
  ): Promise<void> {
    const { credentials, sessions, sink, management, metrics, log, clock } = this.#deps;
    const { tls } = listenConfig;
    const port = new C2sListener({
      hosts: new Map([[config.globalDistrib.globalHost, credentials]]),
      registry: sessions,
      sink,
      metrics,
      log,
      clock,
      mechanisms: config.auth.mechanisms,
      allowPlaintext: tls.mode === "none",
      scramIterations: config.auth.scramIterations,
      limits: streamLimits(config),
      admission,
      ...(management === undefined ? {} : { management }),
    });
    this.#ports.push(port);
    const secured = tls.mode === "none" ? undefined : { mode: tls.mode, files: tls };
    await this.#listen("c2s", listenConfig, secured, port, config);
  }

  async #openComponent(
    listenConfig: ComponentListenConfig,
    config: Config,
    admission: StreamAdmission,
  ): Promise<void> {
    const { components, sink, metrics, log, clock } = this.#deps;
    const port = new ComponentListener({
      domains: new Map(listenConfig.domains.map(({ name, secret, isHidden }) => [
        name,
        { secret: secret.reveal(), isHidden },
      ])),
      registry: components,
      sink,
      metrics,
      log,
      clock,
      limits: streamLimits(config),
      admission,
    });
    this.#ports.push(port);
    const { tls } = listenConfig;
    const secured = tls === undefined ? undefined : { mode: "direct" as const, files: tls };
    await this.#listen("component", listenConfig, secured, port, config);
  }

  async #listen(
    kind: "c2s" | "component",
    { host, port }: { readonly host: string; readonly port: number },
    secured: SecuredBy | undefined,
    streams: StreamPort,
    { limits }: Config,
  ): Promise<void> {
    const { certificates, log, clock, metrics } = this.#deps;
    let tls: ListenerTls | undefined;
    if (secured !== undefined) {
      const { certfile, keyfile } = secured.files;
      tls = { mode: secured.mode, context: await certificates.load({ certfile, keyfile }) };
    }
    const refused = (reason: string) =>
      metrics.counter({
        name: "causeway_connections_refused_total",
        help: "Connections turned away before they became a stream, by port and reason",
        labels: { port: kind, reason },
      });
    const listener = await listen({
      host,
      port,
      clock,
      ...(tls === undefined ? {} : { tls }),
      limits: {
        maxPendingBytes: 2 * limits.maxPendingBytes,
        handshakeTimeoutMs: Math.min(limits.authenticationTimeoutMs, 10_000),
        maxHandshakes: limits.maxUnauthenticated,
      },
    }, {
      accepted: (connection) => streams.accept(connection),
      refused: (error, remote) => {
        refused(error.code).inc();
        log.debug("edge.refused", { port: kind, remote, reason: error.code });
      },
      failed: (error) => log.error("edge.accept-failed", { port: kind, error: error.message }),
    });
    this.#listeners.push({ kind, listener });
  }
}

interface SecuredBy {
  readonly mode: "starttls" | "direct";
  readonly files: { readonly certfile: string; readonly keyfile: string };
}
