import { CausewayError, describeError } from "../base/mod.ts";
import type { Clock } from "../base/mod.ts";
import type { ChangedKey, Config } from "../config/mod.ts";
import { planReload } from "../config/mod.ts";
import type { TlsFiles } from "../net/mod.ts";
import type { Logger, Metrics } from "../observe/mod.ts";
import type { Stores } from "../storage/mod.ts";
import { certificateFindings, certificatesOf } from "./certificate_findings.ts";
import type { Certificates } from "./certificates.ts";

/** Code of the error of a reload that took effect only in part. */
const INCOMPLETE = "node/reload-incomplete";

/** Effects of a reload. */
export interface ReloadReport {
  /** Settings that differ from the running ones. Those with the effect `restart` are not in force. */
  readonly changes: readonly ChangedKey[];
  /** Key paths of certificates whose files have another content, or are others. */
  readonly certificates: readonly string[];
  /** Pools of connections that were replaced. */
  readonly pools: readonly string[];
}

/** Parts that a reload reads and changes. */
export interface ReloadDeps {
  /** False once the node stops. */
  readonly isRunning: () => boolean;
  /** Reads the configuration file again. Throws ConfigError for a file with a mistake. */
  readonly read: () => Config;
  readonly certificates: Pick<Certificates, "prepare">;
  readonly stores: Pick<Stores, "prepare">;
  /** Takes the settings that may change while the node runs. */
  readonly change: (config: Config, before: Config) => void;
  /** Called when the certificate of the links has changed. No reload waits for its end. */
  readonly renewLinks: () => Promise<void>;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly clock: Clock;
}

/**
 * Reads the configuration again while the node runs.
 *
 * Everything that may fail comes first: reading and checking the file, reading the certificates, and
 * connecting to databases whose pools have changed. When one of these fails, nothing changes at all.
 * Only then everything takes effect, in one turn of the event loop. A bug that ends that turn early is
 * told apart from a refusal. Links are renewed afterwards, while later reloads may run.
 */
export class Reload {
  readonly #deps: ReloadDeps;
  #config: Config;
  #running: Promise<ReloadReport> | undefined;
  /** The reload that begins after the running one; whoever asks meanwhile shares it. */
  #next: Promise<ReloadReport> | undefined;
  #hasSucceeded = true;
  #succeededAtMs: number;
  #waiting = 0;
  #renewing: Promise<void> | undefined;
  /** True when the links have to be renewed from the first to the last, once more. */
  #mustRenew = false;

  constructor(config: Config, deps: ReloadDeps) {
    this.#config = config;
    this.#deps = deps;
    this.#succeededAtMs = deps.clock.wallMs();
    const { metrics } = deps;
    metrics.gauge({
      name: "causeway_config_last_reload_successful",
      help: "Has the last reload of the configuration taken effect (1), or was it refused (0)?",
    }, () => this.#hasSucceeded ? 1 : 0);
    metrics.gauge({
      name: "causeway_config_last_reload_success_timestamp_seconds",
      help: "When the configuration in force was read, seconds since the Unix epoch",
    }, () => this.#succeededAtMs / 1000);
    metrics.gauge({
      name: "causeway_config_restart_needed",
      help: "How many changed settings of the configuration file wait for a restart of the node?",
    }, () => this.#waiting);
  }

  /** The configuration in force. */
  get config(): Config {
    return this.#config;
  }

  /**
   * Reads the configuration again. Two reloads never run at the same time: one that is asked for
   * meanwhile begins afterwards, and serves everybody who asked.
   *
   * @throws CausewayError that says what cannot be used; then nothing has changed. With the code
   * `node/reload-incomplete` a part has changed
   */
  run(): Promise<ReloadReport> {
    if (this.#running === undefined) return this.#begin();
    this.#next ??= this.#running.catch(() => {}).then(() => {
      this.#next = undefined;
      return this.#begin();
    });
    return this.#next;
  }

  #begin(): Promise<ReloadReport> {
    const running = this.#running = this.#load();
    const ended = () => {
      this.#running = undefined;
    };
    running.then(ended, ended);
    return running;
  }

  async #load(): Promise<ReloadReport> {
    const { log, clock } = this.#deps;
    try {
      const report = await this.#apply();
      this.#hasSucceeded = true;
      this.#succeededAtMs = clock.wallMs();
      const { changes, certificates, pools } = report;
      const restart = pathsOf(changes, true);
      this.#waiting = restart.length;
      log.info("config.reloaded", {
        changed: pathsOf(changes, false),
        restart,
        certificates,
        pools,
      });
      return report;
    } catch (thrown) {
      this.#hasSucceeded = false;
      const error = describeError(thrown);
      if (thrown instanceof CausewayError && thrown.code === INCOMPLETE) {
        log.error("config.reload-incomplete", { error });
      } else log.error("config.reload-refused", { error });
      if (thrown instanceof CausewayError) throw thrown;
      throw new CausewayError("node/reload-failed", `Cannot reload: ${error}`, { cause: thrown });
    }
  }

  async #apply(): Promise<ReloadReport> {
    const { isRunning, read, certificates, stores, change, log, clock } = this.#deps;
    const { config, changes } = planReload(this.#config, read());
    const files = new Map<string, TlsFiles>(certificatesOf(config));
    const preparedCertificates = await certificates.prepare(files);
    // A certificate can be whole and yet be none for its purpose: peers refuse another name.
    const { problems: [mistake] } = await certificateFindings(config, clock.wallMs());
    if (mistake !== undefined) {
      const message = `Cannot reload: ${mistake.path}: ${mistake.problem}`;
      throw new CausewayError("node/certificate-unusable", message);
    }
    const preparedPools = await stores.prepare(config.storage);
    if (!isRunning()) {
      await preparedPools.discard(); // nobody would close them any more
      throw new CausewayError("node/stopping", "Cannot reload: the node is going down");
    }
    // From here on nothing waits, and only a bug fails.
    const before = this.#config;
    this.#config = config;
    let renewed: readonly string[] = [];
    try {
      renewed = preparedCertificates.use();
      preparedPools.use();
      change(config, before);
    } catch (thrown) {
      const message = `The configuration is in force only in part: ${describeError(thrown)}. ` +
        "Reload again, or restart the node";
      throw new CausewayError(INCOMPLETE, message, { cause: thrown });
    } finally {
      if (renewed.some((path) => path.startsWith("modules."))) this.#renewLinks();
    }
    for (const { path, text } of config.notes) {
      const isOld = before.notes.some((each) => each.path === path && each.text === text);
      if (!isOld) log.warn("config.note", { path, text });
    }
    return { changes, certificates: renewed, pools: preparedPools.pools };
  }

  /** Renews the links now, or once they have been renewed for an earlier certificate. */
  #renewLinks(): void {
    this.#mustRenew = true;
    this.#renewing ??= this.#renewAll(); // never rejects
  }

  async #renewAll(): Promise<void> {
    const { renewLinks, log } = this.#deps;
    while (this.#mustRenew) {
      this.#mustRenew = false;
      try {
        await renewLinks();
      } catch (thrown) {
        log.error("links.not-renewed", { error: describeError(thrown) });
      }
    }
    this.#renewing = undefined;
  }
}

/** Returns the paths of the changes that need a restart, or of the others. */
export function pathsOf(
  changes: readonly ChangedKey[],
  needsRestart: boolean,
): readonly string[] {
  return changes.filter(({ effect }) => (effect === "restart") === needsRestart)
    .map(({ path }) => path);
}
