/** The signals that ask a program to end. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGBREAK"]
  : ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Signals as near as this to the first are the same request: `deno task` hands on the signal that its
 * process group has sent to the program already.
 */
const ECHO_MS = 500;

/**
 * Turns the first request to end into `signal`, so that what runs can be ended in order. Another one,
 * half a second or more later, ends the program on the spot; the run's watchdog then ends what it had
 * started.
 */
export class Termination implements Disposable {
  readonly #controller = new AbortController();
  #firstMs: number | undefined;
  readonly #handler = () => {
    if (this.#firstMs === undefined) {
      this.#firstMs = performance.now();
      this.#controller.abort();
    } else if (performance.now() - this.#firstMs >= ECHO_MS) {
      Deno.exit(130);
    }
  };

  constructor() {
    for (const signal of SIGNALS) Deno.addSignalListener(signal, this.#handler);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) Deno.removeSignalListener(signal, this.#handler);
  }
}
