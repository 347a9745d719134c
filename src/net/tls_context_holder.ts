import type { Clock } from "../base/mod.ts";
import { SystemClock } from "../base/mod.ts";
import { loadTlsContext } from "./tls_context.ts";
import type { TlsContext, TlsFiles } from "./tls_context.ts";

/**
 * The certificate that new connections use, replaceable while the process runs. Listeners and diallers
 * read `current` for each connection. Established connections keep the one they began with.
 */
export class TlsContextHolder {
  readonly files: TlsFiles;
  readonly #clock: Clock;
  #current: TlsContext;

  private constructor(files: TlsFiles, clock: Clock, current: TlsContext) {
    this.files = files;
    this.#clock = clock;
    this.#current = current;
  }

  /** Reads `files`. Rejects as `loadTlsContext` does. */
  static async load(files: TlsFiles, clock: Clock = new SystemClock()): Promise<TlsContextHolder> {
    return new TlsContextHolder(files, clock, await loadTlsContext(files, clock.wallMs()));
  }

  get current(): TlsContext {
    return this.#current;
  }

  /**
   * Reads the files again. When one of them cannot be used, it rejects as `loadTlsContext` does and
   * keeps the current context.
   */
  async reload(): Promise<void> {
    this.#current = await loadTlsContext(this.files, this.#clock.wallMs());
  }
}
