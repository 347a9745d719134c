import type { CancelTimer, Clock } from "../base/mod.ts";
import { describeError } from "../base/mod.ts";
import { TlsContextHolder } from "../net/mod.ts";
import type { PreparedTls, TlsFiles } from "../net/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";

/** A certificate that the process uses. */
export interface CertificateInUse {
  readonly files: TlsFiles;
  /** DNS names that it carries. */
  readonly names: readonly string[];
  readonly expiresAtMs: number;
}

/** A certificate, and the key path of the configuration that names its files. */
interface NamedHolder {
  readonly path: string;
  readonly holder: TlsContextHolder;
}

/** Certificates that were read again and can be used. */
export interface PreparedCertificates {
  readonly count: number;
  /** Uses them for new connections. Returns the key paths of those that differ from before. */
  use(): readonly string[];
}

const EXPIRY = {
  name: "causeway_certificate_expiry_timestamp_seconds",
  help: "When a certificate in use ends, seconds since the Unix epoch",
};

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
  readonly #holders: NamedHolder[] = [];
  #cancelTimer: CancelTimer | undefined;

  constructor(deps: { readonly metrics: Metrics; readonly log: Logger; readonly clock: Clock }) {
    this.#metrics = deps.metrics;
    this.#log = deps.log;
    this.#clock = deps.clock;
  }

  /**
   * Returns the TLS context of these files.
   *
   * @param path key path of the configuration that names them
   * @throws CausewayError `net/tls-…`, which names the file
   */
  async load(path: string, files: TlsFiles): Promise<TlsContextHolder> {
    const holder = await TlsContextHolder.load(files, this.#clock);
    this.#holders.push({ path, holder });
    this.#show(holder);
    this.#warn(holder);
    this.#cancelTimer ??= this.#watch();
    return holder;
  }

  /**
   * Reads all files again, without using them yet. Each certificate that cannot be used is logged.
   *
   * @param named files by the key path that names them; the others are where they were
   * @throws CausewayError `net/tls-…` when a certificate cannot be used
   */
  async prepare(named: ReadonlyMap<string, TlsFiles> = new Map()): Promise<PreparedCertificates> {
    const prepared: { readonly each: NamedHolder; readonly tls: PreparedTls }[] = [];
    let failure: unknown;
    for (const each of this.#holders) {
      const files = named.get(each.path) ?? each.holder.files;
      try {
        prepared.push({ each, tls: await each.holder.prepare(files) });
      } catch (error) {
        failure ??= error;
        const { certfile } = files;
        this.#log.error("tls.reload-failed", { certfile, error: describeError(error) });
      }
    }
    if (failure !== undefined) throw failure;
    return {
      count: prepared.length,
      use: () => {
        const changed: string[] = [];
        for (const { each: { path, holder }, tls } of prepared) {
          const former = holder.files.certfile;
          const { certfile } = tls.files;
          const differs = holder.use(tls);
          if (former !== certfile) this.#hide(former);
          this.#show(holder);
          this.#warn(holder);
          if (!differs) continue;
          changed.push(path);
          this.#log.info("tls.reloaded", { certfile });
        }
        return changed;
      },
    };
  }

  /** The certificates in use, in the order in which they were loaded. */
  get inUse(): readonly CertificateInUse[] {
    return this.#holders.map(({ holder: { files, current: { names, expiresAtMs } } }) => ({
      files,
      names,
      expiresAtMs,
    }));
  }

  /** Stops watching. */
  close(): void {
    this.#cancelTimer?.();
  }

  #show(holder: TlsContextHolder): void {
    this.#metrics.gauge(
      { ...EXPIRY, labels: { certfile: holder.files.certfile } },
      () => holder.current.expiresAtMs / 1000,
    );
  }

  /** Shows a file no longer, unless another certificate lies in it. */
  #hide(certfile: string): void {
    if (this.#holders.some(({ holder }) => holder.files.certfile === certfile)) return;
    this.#metrics.remove(EXPIRY.name, { certfile });
  }

  #watch(): CancelTimer {
    return this.#clock.after(DAY_MS, () => {
      for (const { holder } of this.#holders) this.#warn(holder);
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
