import type { Clock } from "../base/mod.ts";

/** Meaning of a signal to stop: drain, end at once, or an echo of the first signal. */
export type StopRequest = "drain" | "at-once" | "echo";

/**
 * Milliseconds after the first signal in which another one is the same request. A terminal, systemd
 * or `timeout` signals the whole process group, and `deno task` forwards the signal: the node gets
 * it twice.
 */
const ECHO_MS = 500;

/**
 * Distinguishes the first signal to stop from its echo, and from a second one that asks to end at
 * once.
 */
export class StopRequests {
  readonly #clock: Clock;
  #firstMs: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Call this for each signal. */
  heard(): StopRequest {
    const nowMs = this.#clock.monotonicMs();
    if (this.#firstMs === undefined) {
      this.#firstMs = nowMs;
      return "drain";
    }
    return nowMs - this.#firstMs < ECHO_MS ? "echo" : "at-once";
  }
}
