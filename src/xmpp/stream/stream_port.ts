import type { CancelTimer } from "../../base/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import { sweepKeepalive } from "./keepalive_sweep.ts";
import type { StreamAdmission } from "./stream_admission.ts";
import type { StreamContext } from "./stream_context.ts";
import type { StreamOwner } from "./stream_shell.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** A stream, as the port that it came in at sees it. */
export interface PortStream {
  start(): void;
  keepAlive(): void;
  fail(condition: StreamErrorCondition): void;
  dismiss(condition: StreamErrorCondition, heardOut: () => void): void;
}

/** What a port is given. */
export interface StreamPortOptions {
  readonly context: StreamContext;
  readonly admission: StreamAdmission;
  /** Makes the stream that a connection is for. */
  begin(transport: StreamTransport, owner: StreamOwner): PortStream;
}

/**
 * Streams at once of which a port only says why it will not have them; more are cut without a word. What
 * a stranger hears is a courtesy, which nobody needs more of: no option.
 */
const MAX_REFUSALS = 100;

/** The streams that came in at one port: lets them in, keeps them alive, ends them. */
export class StreamPort {
  readonly #options: StreamPortOptions;
  readonly #streams = new Set<PortStream>();
  readonly #refused = new Set<PortStream>();
  /** Those that were dismissed, and have not been heard out. */
  readonly #dismissed = new Set<PortStream>();
  #onSilence: (() => void) | undefined;
  readonly #cancelSweep: CancelTimer;
  #isClosed = false;

  constructor(options: StreamPortOptions) {
    this.#options = options;
    const { clock, limits } = options.context;
    this.#cancelSweep = sweepKeepalive(clock, limits.keepaliveIntervalMs, this.#streams);
  }

  /** Streams that are open, those not yet authenticated included. */
  get streamCount(): number {
    return this.#streams.size;
  }

  accept(transport: StreamTransport): void {
    if (this.#isClosed) return turnAway(transport, "closing");
    const { context, admission, begin } = this.#options;
    if (!context.rates.mayConnect(transport)) return this.#refuse(transport, "connection-rate");
    const ticket = admission.admit(transport, {
      evict: () => {
        context.metrics.limitHit("unauthenticated-streams");
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

  /** Ends all streams at once and lets no more in. */
  close(condition: StreamErrorCondition): void {
    this.#shut();
    for (const stream of [...this.#streams]) stream.fail(condition);
  }

  /** Ends all streams and lets no more in; `hearOut` is to follow. */
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
   * Takes what peers that were dismissed had written by then, until each has ended its side, but no longer
   * than `withinMs`: then it hangs up.
   * @returns how many were hung up on
   */
  async hearOut(withinMs: number): Promise<number> {
    if (this.#dismissed.size > 0) {
      const silence = Promise.withResolvers<void>();
      this.#onSilence = silence.resolve;
      const cancel = this.#options.context.clock.after(withinMs, silence.resolve);
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

  /** Ends a stream that an address has no right to, with the error that says so. */
  #refuse(transport: StreamTransport, limit: "connection-rate" | "streams-per-address"): void {
    const { context, begin } = this.#options;
    context.metrics.limitHit(limit);
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
