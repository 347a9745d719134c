import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { Connection } from "../../net/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import { StreamAdmission } from "../stream/stream_admission.ts";
import type { StreamLimits } from "../stream/stream_limits.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { StreamMetrics } from "../stream/stream_metrics.ts";
import { StreamPort } from "../stream/stream_port.ts";
import { TcpTransport } from "../stream/tcp_transport.ts";
import type { ComponentDomain, ComponentStreamDeps } from "./component_stream_deps.ts";
import type { ComponentRegistry } from "./component_registry.ts";
import { ComponentStream } from "./component_stream.ts";

/** Dependencies of a listener for components. */
export interface ComponentListenerDeps {
  /** Host that answers a stream for none of `domains`: the server's own. */
  readonly host: string;
  /** Normalised domains that may connect here. */
  readonly domains: ReadonlyMap<string, ComponentDomain>;
  readonly registry: ComponentRegistry;
  readonly sink: StanzaSink;
  readonly metrics: Metrics;
  /** @default SILENT_LOGGER */
  readonly log?: Logger;
  /** @default the machine's */
  readonly clock?: Clock;
  readonly limits?: StreamLimits;
  /** Admission shared by the listeners of a process. @default one of its own */
  readonly admission?: StreamAdmission;
  /** Rates shared by the listeners of a process. @default nothing is limited */
  readonly rates?: EdgeRates;
}

/** Turns connections of components (XEP-0114) into sessions of a registry. */
export class ComponentListener {
  #shared: ComponentStreamDeps;
  readonly #port: StreamPort;

  constructor(deps: ComponentListenerDeps) {
    const clock = deps.clock ?? new SystemClock();
    this.#shared = {
      host: deps.host,
      domains: deps.domains,
      registry: deps.registry,
      sink: deps.sink,
      limits: resolveStreamLimits(deps.limits),
      rates: deps.rates ?? new EdgeRates({}, clock),
      clock,
      metrics: new StreamMetrics(deps.metrics, "component"),
      log: deps.log ?? SILENT_LOGGER,
    };
    this.#shared.metrics.watchSessions(() => deps.registry.count);
    this.#port = new StreamPort({
      shared: this.#shared,
      admission: deps.admission ?? new StreamAdmission(),
      begin: (transport, events) => new ComponentStream(transport, this.#shared, events),
    });
  }

  /** Open streams, including those not yet authenticated. */
  get streamCount(): number {
    return this.#port.streamCount;
  }

  /** Takes other limits and domains for streams that begin from now on. */
  change(
    { limits, domains }: Pick<ComponentListenerDeps, "limits" | "domains">,
  ): void {
    const before = this.#shared.limits.keepaliveIntervalMs;
    this.#shared = { ...this.#shared, limits: resolveStreamLimits(limits), domains };
    const { keepaliveIntervalMs } = this.#shared.limits;
    if (keepaliveIntervalMs !== before) this.#port.keepAliveEach(keepaliveIntervalMs);
  }

  /** Takes over an accepted connection; nobody else may use it afterwards. */
  accept(connection: Connection): void {
    this.#port.accept(new TcpTransport(connection, this.#shared.limits));
  }

  /** Ends all streams and accepts no more; resolves when the registry has reported their end. */
  async close(condition: StreamErrorCondition = "system-shutdown"): Promise<void> {
    this.#port.close(condition);
    await this.#shared.registry.settled();
  }

  /**
   * Ends all streams as `close` does, but still takes what components wrote before they learn of the
   * end: call `hearOut`.
   */
  async dismiss(condition: StreamErrorCondition): Promise<void> {
    this.#port.dismiss(condition);
    await this.#shared.registry.settled();
  }

  /**
   * Takes what dismissed components wrote, until each has ended its stream. After `withinMs` it closes
   * the remaining connections and resolves to their number.
   */
  hearOut(withinMs: number): Promise<number> {
    return this.#port.hearOut(withinMs);
  }
}
