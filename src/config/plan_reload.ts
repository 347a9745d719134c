import type { Config } from "./config.ts";
import { ConfigError } from "./config_error.ts";
import { FILE_SCHEMA } from "./file_schema.ts";
import { formatKeyPath } from "./key_path.ts";
import type { PartialFile } from "./partial_file.ts";
import type { ReloadEffect } from "./reload_table.ts";
import { checkReferences } from "./references.ts";
import { reloadEffectOf } from "./reload_table.ts";
import { resolveConfig } from "./resolve_config.ts";
import { applyRules } from "./rules.ts";
import { Surroundings } from "./surroundings.ts";

/** A key whose value has changed. */
export interface ChangedKey {
  /** Key path as in TOML; positions in a list are `[n]`. */
  readonly path: string;
  readonly effect: ReloadEffect;
}

/** Changes that a newer configuration brings to a running node. */
export interface ReloadPlan {
  /**
   * The configuration to run with from now on: the newer one, with every setting that needs a restart
   * as it was at the start.
   */
  readonly config: Config;
  /** Keys that differ between the running configuration and the newer one, in order. */
  readonly changes: readonly ChangedKey[];
}

/**
 * Compares the configuration of a running node with a newer one of the same file. Secrets that need a
 * restart stay as they were read at the start, even if their files are gone.
 *
 * @throws ConfigError when the changes that need no restart break a rule together with the settings
 * that do
 */
export function planReload(running: Config, newer: Config): ReloadPlan {
  const paths = running.settings.changesTo(newer.settings);
  const changes = paths.map((path): ChangedKey => ({
    path: formatKeyPath(path),
    effect: reloadEffectOf(path) ?? "restart",
  }));
  const kept = paths.filter((_, position) => changes[position]!.effect === "restart");
  if (kept.length === 0) return { config: newer, changes };
  const written = newer.settings.writtenWith(running.settings, kept);
  const file = FILE_SCHEMA.parse(written);
  const partial = written as PartialFile; // it has just passed the schema
  const surroundings = new Surroundings(
    newer.settings.options,
    newer.settings.referencesWith(running.settings, kept),
  );
  checkReferences(partial, surroundings);
  const mistakes = [...applyRules(partial), ...surroundings.mistakes];
  if (mistakes.length > 0) {
    const waiting = kept.map(formatKeyPath).join(", ");
    throw new ConfigError(mistakes.map(({ path, problem }) => ({
      file: newer.file,
      line: undefined,
      path: formatKeyPath(path),
      problem: `${problem}, as long as the node has not been restarted for ${waiting}`,
    })));
  }
  const config = resolveConfig({ written, file }, newer.file, surroundings);
  const settings = newer.settings.keeping(running.settings, kept, { written, file });
  return { config: Object.freeze({ ...config, settings }), changes };
}
