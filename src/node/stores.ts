import type { Config } from "../config/mod.ts";
import type { Logger } from "../observe/mod.ts";
import { Stores } from "../storage/mod.ts";

/** The stores of a node, and the secret that goes with its accounts. */
export interface NodeStores {
  readonly stores: Stores;
  /** Key of the answers to logins of names without an account. */
  readonly enumerationSecret: Uint8Array;
}

/**
 * Opens the stores. A database that cannot be reached is logged, and connected once it is back; but
 * without `auth.enumeration_secret` the accounts' database must be there, because it has the secret.
 *
 * @throws CausewayError `storage/…` for a store that cannot be used
 */
export async function openStores(config: Config, log: Logger): Promise<NodeStores> {
  const stores = await Stores.open(config.storage);
  try {
    for (const { pool, error } of await stores.probe()) {
      log.warn("storage.unreachable", { pool, error });
    }
    const { enumerationSecret } = config.auth;
    return {
      stores,
      enumerationSecret: enumerationSecret === undefined
        ? await stores.secret("enumeration", config.globalDistrib.globalHost)
        : new TextEncoder().encode(enumerationSecret.reveal()),
    };
  } catch (thrown) {
    await stores.close();
    throw thrown;
  }
}
