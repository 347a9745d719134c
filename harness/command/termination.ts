/** The signals that ask a program to end. */
const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows"
  ? ["SIGINT", "SIGBREAK"]
  : ["SIGINT", "SIGTERM", "SIGHUP"];

/**
 * Turns the first request to end into `signal`, so that what runs can be ended in order. The second one
 * ends the program on the spot; the run's watchdog then ends what it had started.
 */
export class Termination implements Disposable {
  readonly #controller = new AbortController();
  readonly #handler = () => {
    if (this.signal.aborted) Deno.exit(130);
    this.#controller.abort();
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
