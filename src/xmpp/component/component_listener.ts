import type { Clock } from "../../base/mod.ts";
import { SystemClock } from "../../base/mod.ts";
import type { Connection } from "../../net/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import { StreamAdmission } from "../stream/stream_admission.ts";
import type { StreamLimits } from "../stream/stream_limits.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { StreamMetrics } from "../stream/stream_metrics.ts";
import { StreamPort } from "../stream/stream_port.ts";
import { TcpTransport } from "../stream/tcp_transport.ts";
import type { ComponentContext, ComponentDomain } from "./component_context.ts";
import type { ComponentRegistry } from "./component_registry.ts";
import { ComponentStream } from "./component_stream.ts";

/** What a listener for components is given. */
export interface ComponentListenerOptions {
  /** Who answers a stream that is for no domain of these: the server's own. */
  readonly host: string;
  /** Domains that may connect here, normalised. */
  readonly domains: ReadonlyMap<string, ComponentDomain>;
  readonly registry: ComponentRegistry;
  readonly sink: StanzaSink;
  readonly metrics: Metrics;
  /** @default SILENT_LOGGER */
  readonly log?: Logger;
  /** @default the machine's */
  readonly clock?: Clock;
  readonly limits?: StreamLimits;
  /** Shared by the listeners of a process. @default one of its own */
  readonly admission?: StreamAdmission;
  /** Shared by the listeners of a process. @default nothing is limited */
  readonly rates?: EdgeRates;
}

/** Turns connections of components (XEP-0114) into sessions of a registry. */
export class ComponentListener {
  readonly #context: ComponentContext;
  readonly #port: StreamPort;

  constructor(options: ComponentListenerOptions) {
    const clock = options.clock ?? new SystemClock();
    this.#context = {
      host: options.host,
      domains: options.domains,
      registry: options.registry,
      sink: options.sink,
      limits: resolveStreamLimits(options.limits),
      rates: options.rates ?? new EdgeRates({}, clock),
      clock,
      metrics: new StreamMetrics(options.metrics, "component"),
      log: options.log ?? SILENT_LOGGER,
    };
    this.#context.metrics.watchSessions(() => options.registry.count);
    this.#port = new StreamPort({
      context: this.#context,
      admission: options.admission ?? new StreamAdmission(),
      begin: (transport, owner) => new ComponentStream(transport, this.#context, owner),
    });
  }

  /** Streams that are open, those not yet authenticated included. */
  get streamCount(): number {
    return this.#port.streamCount;
  }

  /** Takes over a connection that was accepted; nobody else may use it afterwards. */
  accept(connection: Connection): void {
    this.#port.accept(new TcpTransport(connection, this.#context.limits));
  }

  /** Ends all streams and accepts no more; resolves when the registry has been told. */
  async close(condition: StreamErrorCondition = "system-shutdown"): Promise<void> {
    this.#port.close(condition);
    await this.#context.registry.settled();
  }

  /** As `close`, but what components had written before they learn of it is taken still: call `hearOut`. */
  async dismiss(condition: StreamErrorCondition): Promise<void> {
    this.#port.dismiss(condition);
    await this.#context.registry.settled();
  }

  /**
   * Takes what dismissed components had written, until each has ended its stream, and hangs up on the
   * rest after `withinMs`; resolves to how many these were.
   */
  hearOut(withinMs: number): Promise<number> {
    return this.#port.hearOut(withinMs);
  }
}
