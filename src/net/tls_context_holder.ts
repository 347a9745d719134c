import type { Clock } from "../base/mod.ts";
import { SystemClock } from "../base/mod.ts";
import { loadTlsContext } from "./tls_context.ts";
import type { TlsContext, TlsFiles } from "./tls_context.ts";

/**
 * The certificate that new connections use, replaceable while the process runs. Listeners and diallers
 * read `current` for each connection. Established connections keep the one they began with.
 */
export class TlsContextHolder {
  #files: TlsFiles;
  readonly #clock: Clock;
  #current: TlsContext;

  private constructor(files: TlsFiles, clock: Clock, current: TlsContext) {
    this.#files = files;
    this.#clock = clock;
    this.#current = current;
  }

  /** Reads `files`. Rejects as `loadTlsContext` does. */
  static async load(files: TlsFiles, clock: Clock = new SystemClock()): Promise<TlsContextHolder> {
    return new TlsContextHolder(files, clock, await loadTlsContext(files, clock.wallMs()));
  }

  /** The files of `current`. */
  get files(): TlsFiles {
    return this.#files;
  }

  get current(): TlsContext {
    return this.#current;
  }

  /**
   * Reads the files again. When one of them cannot be used, it rejects as `loadTlsContext` does and
   * keeps the current context.
   */
  async reload(): Promise<void> {
    this.use(await this.prepare());
  }

  /** Reads files, for `use`. Rejects as `loadTlsContext` does. @param files default: the same again */
  async prepare(files: TlsFiles = this.#files): Promise<PreparedTls> {
    return { files, context: await loadTlsContext(files, this.#clock.wallMs()) };
  }

  /**
   * Uses what was prepared for new connections.
   * @returns true when certificate, key or authorities are others than before
   */
  use({ files, context }: PreparedTls): boolean {
    const before = this.#current.secure;
    this.#files = files;
    this.#current = context;
    const { cert, key, ca } = context.secure;
    return String(cert) !== String(before.cert) || String(key) !== String(before.key) ||
      String(ca) !== String(before.ca);
  }
}

/** Files that were read, and their content. */
export interface PreparedTls {
  readonly files: TlsFiles;
  readonly context: TlsContext;
}
