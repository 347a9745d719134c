import type { CancelTimer } from "../../base/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { StreamErrorCondition } from "./stream_error.ts";
import { sweepKeepalive } from "./keepalive_sweep.ts";
import type { StreamAdmission } from "./stream_admission.ts";
import type { StreamDeps } from "./stream_deps.ts";
import type { StreamEvents } from "./stream_shell.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** A stream, as its port sees it. */
export interface PortStream {
  start(): void;
  keepAlive(): void;
  fail(condition: StreamErrorCondition): void;
  dismiss(condition: StreamErrorCondition, heardOut: () => void): void;
}

/** Dependencies of a port. */
export interface StreamPortDeps {
  readonly shared: StreamDeps;
  readonly admission: StreamAdmission;
  /** Makes the stream for a connection. */
  begin(transport: StreamTransport, events: StreamEvents): PortStream;
}

/**
 * Streams at once that a port refuses with an error; more are cut without a word. The error is a
 * courtesy to strangers, so its limit is no option.
 */
const MAX_REFUSALS = 100;

/** The streams that came in at one port. It admits them, keeps them alive, and ends them. */
export class StreamPort {
  readonly #deps: StreamPortDeps;
  readonly #streams = new Set<PortStream>();
  readonly #refused = new Set<PortStream>();
  /** Dismissed streams that are still being read. */
  readonly #dismissed = new Set<PortStream>();
  #onSilence: (() => void) | undefined;
  #cancelSweep: CancelTimer;
  #isClosed = false;

  constructor(deps: StreamPortDeps) {
    this.#deps = deps;
    const { clock, limits } = deps.shared;
    this.#cancelSweep = sweepKeepalive(clock, limits.keepaliveIntervalMs, this.#streams);
  }

  /** Open streams, including those not yet authenticated. */
  get streamCount(): number {
    return this.#streams.size;
  }

  /** Keeps the streams alive at another interval from now on. */
  keepAliveEach(intervalMs: number): void {
    if (this.#isClosed) return;
    this.#cancelSweep();
    this.#cancelSweep = sweepKeepalive(this.#deps.shared.clock, intervalMs, this.#streams);
  }

  accept(transport: StreamTransport): void {
    if (this.#isClosed) return turnAway(transport, "closing");
    const { shared, admission, begin } = this.#deps;
    if (!shared.rates.mayConnect(transport)) return this.#refuse(transport, "connection-rate");
    const ticket = admission.admit(transport, {
      evict: () => {
        shared.metrics.limitHit("unauthenticated-streams");
        stream.fail("resource-constraint");
      },
      cut: () => transport.destroy(unwanted(transport, "too-many-streams")),
    });
    if (ticket === undefined) return this.#refuse(transport, "streams-per-address");
    const stream: PortStream = begin(transport, {
      greeted: () => ticket.greeted(),
      authenticated: () => ticket.authenticated(),
      closed: () => {
        ticket.left();
        this.#streams.delete(stream);
      },
    });
    this.#streams.add(stream);
    stream.start();
  }

  /** Ends all streams at once and admits no more. */
  close(condition: StreamErrorCondition): void {
    this.#shut();
    for (const stream of [...this.#streams]) stream.fail(condition);
  }

  /** Ends all streams and admits no more; the caller continues with `hearOut`. */
  dismiss(condition: StreamErrorCondition): void {
    this.#shut();
    for (const stream of [...this.#streams]) {
      this.#dismissed.add(stream);
      stream.dismiss(condition, () => {
        this.#dismissed.delete(stream);
        if (this.#dismissed.size === 0) this.#onSilence?.();
      });
    }
  }

  /**
   * Takes what dismissed peers had written, until each has ended its side. After `withinMs` it closes
   * the remaining connections.
   * @returns the number of connections that it closed
   */
  async hearOut(withinMs: number): Promise<number> {
    if (this.#dismissed.size > 0) {
      const silence = Promise.withResolvers<void>();
      this.#onSilence = silence.resolve;
      const cancel = this.#deps.shared.clock.after(withinMs, silence.resolve);
      await silence.promise;
      cancel();
    }
    const late = [...this.#dismissed];
    for (const stream of late) stream.fail("connection-timeout");
    return late.length;
  }

  #shut(): void {
    this.#isClosed = true;
    this.#cancelSweep();
  }

  /** Ends a stream that its address has no right to, with an error that gives the reason. */
  #refuse(transport: StreamTransport, limit: "connection-rate" | "streams-per-address"): void {
    const { shared, begin } = this.#deps;
    shared.metrics.limitHit(limit);
    if (this.#refused.size >= MAX_REFUSALS) return turnAway(transport, "too-many-streams");
    const stream: PortStream = begin(transport, {
      greeted: () => {},
      authenticated: () => {},
      closed: () => {
        this.#refused.delete(stream);
      },
    });
    this.#refused.add(stream);
    stream.start();
    stream.fail("policy-violation");
  }
}

/** Ends a connection that gets no stream. */
function turnAway(transport: StreamTransport, why: "closing" | "too-many-streams"): void {
  const nothing = () => {};
  transport.start({
    header: nothing,
    element: nothing,
    footer: nothing,
    failed: nothing,
    broken: nothing,
    secured: nothing,
    drained: nothing,
    closed: nothing,
  });
  transport.destroy(unwanted(transport, why));
}

function unwanted(transport: StreamTransport, why: "closing" | "too-many-streams"): CausewayError {
  return new CausewayError(
    `stream/${why}`,
    `Cannot accept a stream from ${transport.remoteAddress}: ${why}`,
  );
}
