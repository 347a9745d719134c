import type { Run } from "../process/mod.ts";
import type { CausewayConfiguration } from "./causeway_configuration.ts";

/** Inputs of an import of accounts into the built-in store. */
export interface Import {
  /** Configuration of the node whose store it is. */
  readonly configuration: CausewayConfiguration;
  /** Content of the list of accounts. */
  readonly list: string;
  readonly run: Run;
}

/**
 * Built-in stores as an import of accounts left them. A cluster with the same accounts and the same
 * configuration copies the file in place of another import, which takes a process of its own.
 */
export class ImportedStores {
  readonly #files = new Map<string, Uint8Array>();

  /** Fills the store of `configuration` with a copy, or else by `importUsers`. */
  async fill(wanted: Import, importUsers: () => Promise<void>): Promise<void> {
    const { path } = wanted.configuration.storage.internal;
    const key = keyOf(wanted);
    const file = this.#files.get(key);
    if (file !== undefined) {
      // With the mode of a store that the program makes: no one else reads it.
      return await Deno.writeFile(path, file, { createNew: true, mode: 0o600 });
    }
    await importUsers();
    // A journal that is left beside the file would hold a part of the accounts.
    if (await exists(`${path}-wal`) || await exists(`${path}-journal`)) return;
    this.#files.set(key, await Deno.readFile(path));
  }
}

/**
 * Returns the same key for imports that leave the same store. It holds all inputs except links and
 * Redis: an import uses neither, and their ports differ in every run.
 */
function keyOf({ configuration, list, run }: Import): string {
  const { modules: { mod_global_distrib, ...modules }, global_distrib_addr: _, ...rest } =
    configuration;
  const { global_host, local_host } = mod_global_distrib;
  const facts = JSON.stringify([rest, modules, global_host, local_host, list]);
  return facts.replaceAll(JSON.stringify(run.directory).slice(1, -1), "");
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}
