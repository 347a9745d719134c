import type { CancelTimer, Clock } from "../base/mod.ts";
import { describeError } from "../base/mod.ts";
import { TlsContextHolder } from "../net/mod.ts";
import type { TlsFiles } from "../net/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";

/** A certificate that the process uses. */
export interface CertificateInUse {
  readonly files: TlsFiles;
  /** DNS names that it carries. */
  readonly names: readonly string[];
  readonly expiresAtMs: number;
}

/** Days before a certificate ends from which on a warning is logged. */
const WARN_DAYS = 14;
const DAY_MS = 86_400_000;

/**
 * All certificates that the process uses. Each is read once, read again on request, and watched for
 * its end.
 */
export class Certificates {
  readonly #metrics: Metrics;
  readonly #log: Logger;
  readonly #clock: Clock;
  readonly #holders: TlsContextHolder[] = [];
  #cancelTimer: CancelTimer | undefined;

  constructor(deps: { readonly metrics: Metrics; readonly log: Logger; readonly clock: Clock }) {
    this.#metrics = deps.metrics;
    this.#log = deps.log;
    this.#clock = deps.clock;
  }

  /**
   * Returns the TLS context of these files.
   * @throws CausewayError `net/tls-…`, which names the file
   */
  async load(files: TlsFiles): Promise<TlsContextHolder> {
    const holder = await TlsContextHolder.load(files, this.#clock);
    this.#holders.push(holder);
    this.#metrics.gauge({
      name: "causeway_certificate_expiry_timestamp_seconds",
      help: "When a certificate in use ends, seconds since the Unix epoch",
      labels: { certfile: files.certfile },
    }, () => holder.current.expiresAtMs / 1000);
    this.#warn(holder);
    this.#cancelTimer ??= this.#watch();
    return holder;
  }

  /**
   * Reads all files again. A certificate that cannot be used is logged, and the old one stays in
   * use.
   * @returns the number of certificates that were read, and of those that cannot be used
   */
  async reload(): Promise<{ readonly reloaded: number; readonly failed: number }> {
    let failed = 0;
    for (const holder of this.#holders) {
      const { certfile } = holder.files;
      try {
        await holder.reload();
        this.#log.info("tls.reloaded", { certfile });
        this.#warn(holder);
      } catch (error) {
        failed++;
        this.#log.error("tls.reload-failed", { certfile, error: describeError(error) });
      }
    }
    return { reloaded: this.#holders.length - failed, failed };
  }

  /** The certificates in use, in the order in which they were loaded. */
  get inUse(): readonly CertificateInUse[] {
    return this.#holders.map(({ files, current: { names, expiresAtMs } }) => ({
      files,
      names,
      expiresAtMs,
    }));
  }

  /** Stops watching. */
  close(): void {
    this.#cancelTimer?.();
  }

  #watch(): CancelTimer {
    return this.#clock.after(DAY_MS, () => {
      for (const holder of this.#holders) this.#warn(holder);
      this.#cancelTimer = this.#watch();
    });
  }

  #warn(holder: TlsContextHolder): void {
    const daysLeft = (holder.current.expiresAtMs - this.#clock.wallMs()) / DAY_MS;
    if (daysLeft > WARN_DAYS) return;
    this.#log.warn("tls.expires-soon", {
      certfile: holder.files.certfile,
      daysLeft: Math.floor(daysLeft),
    });
  }
}
