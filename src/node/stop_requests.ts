import type { Clock } from "../base/mod.ts";

/** What a signal to stop asks for: an orderly end, an end at once, or nothing new. */
export type StopRequest = "drain" | "at-once" | "echo";

/**
 * Signals as near as this to the first are the same request. `deno task` hands on the signal that its
 * process group (a terminal, systemd, `timeout`) has sent to the node already: it comes twice.
 */
const ECHO_MS = 500;

/** Tells a first signal to stop from its echo, and from one by somebody who does not want to wait. */
export class StopRequests {
  readonly #clock: Clock;
  #firstMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** To be called for each signal. */
  heard(): StopRequest {
    const nowMs = this.#clock.monotonicMs();
    if (this.#firstMs === undefined) {
      this.#firstMs = nowMs;
      return "drain";
    }
    return nowMs - this.#firstMs < ECHO_MS ? "echo" : "at-once";
  }
}
