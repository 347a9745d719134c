import type { CancelTimer, Clock } from "../../base/mod.ts";
import { CausewayError, SystemClock } from "../../base/mod.ts";
import type { Connection } from "../../net/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import { sweepKeepalive } from "../stream/keepalive_sweep.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import { StreamAdmission } from "../stream/stream_admission.ts";
import type { StreamLimits } from "../stream/stream_limits.ts";
import { resolveStreamLimits } from "../stream/stream_limits.ts";
import { StreamMetrics } from "../stream/stream_metrics.ts";
import { TcpTransport } from "../stream/tcp_transport.ts";
import { turnAway } from "../stream/turn_away.ts";
import type { ComponentContext, ComponentDomain } from "./component_context.ts";
import type { ComponentRegistry } from "./component_registry.ts";
import { ComponentStream } from "./component_stream.ts";

/** What a listener for components is given. */
export interface ComponentListenerOptions {
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
}

/** Turns connections of components (XEP-0114) into sessions of a registry. */
export class ComponentListener {
  readonly #context: ComponentContext;
  readonly #admission: StreamAdmission;
  readonly #streams = new Set<ComponentStream>();
  readonly #cancelSweep: CancelTimer;
  #isClosed = false;

  constructor(options: ComponentListenerOptions) {
    this.#admission = options.admission ?? new StreamAdmission();
    this.#context = {
      domains: options.domains,
      registry: options.registry,
      sink: options.sink,
      limits: resolveStreamLimits(options.limits),
      clock: options.clock ?? new SystemClock(),
      metrics: new StreamMetrics(options.metrics, "component"),
      log: options.log ?? SILENT_LOGGER,
    };
    const { clock, limits, metrics } = this.#context;
    metrics.watchSessions(() => options.registry.count);
    this.#cancelSweep = sweepKeepalive(clock, limits.keepaliveIntervalMs, this.#streams);
  }

  /** Streams that are open, those not yet authenticated included. */
  get streamCount(): number {
    return this.#streams.size;
  }

  /** Takes over a connection that was accepted; nobody else may use it afterwards. */
  accept(connection: Connection): void {
    const transport = new TcpTransport(connection, this.#context.limits);
    if (this.#isClosed) {
      return turnAway(transport, new CausewayError("component/closing", "Cannot accept: closing"));
    }
    const ticket = this.#admission.admit(transport, () => {
      this.#context.metrics.limitHit("unauthenticated-streams");
      stream.fail("resource-constraint");
    });
    if (ticket === undefined) {
      this.#context.metrics.limitHit("streams-per-address");
      return turnAway(
        transport,
        new CausewayError("component/too-many-streams", "Cannot accept: the address has its share"),
      );
    }
    const stream: ComponentStream = new ComponentStream(transport, this.#context, {
      authenticated: () => ticket.authenticated(),
      closed: (closed) => {
        ticket.left();
        this.#streams.delete(closed);
      },
    });
    this.#streams.add(stream);
    stream.start();
  }

  /** Ends all streams and accepts no more; resolves when the registry has been told. */
  async close(condition: StreamErrorCondition = "system-shutdown"): Promise<void> {
    this.#isClosed = true;
    this.#cancelSweep();
    for (const stream of [...this.#streams]) stream.fail(condition);
    await this.#context.registry.settled();
  }
}
