import { CausewayError } from "../base/mod.ts";
import type { BackendId } from "./catalogue/catalogue.ts";
import { CATALOGUE } from "./catalogue/catalogue.ts";
import { sqlServerOf } from "./database_pools.ts";
import type { DataStores } from "./data_stores.ts";
import { openInternalDatabase } from "./internal_store.ts";
import { serverKindOf } from "./server_kinds.ts";
import type { SqlDatabase } from "./sql/sql_database.ts";
import { sqlServerDatabase } from "./sql/sql_server.ts";
import { SqlStores } from "./sql/sql_stores.ts";
import type { StoresOptions } from "./stores.ts";

/** Milliseconds that one statement may take: it may count a large table. */
const COPY_STATEMENT_MS = 600_000;

/**
 * Returns the backend of a name such as `rdbms.default`.
 *
 * @throws CausewayError `storage/no-backend` for a name of none, and for a directory
 */
export function backendIdOf(name: string): BackendId {
  if (name === "internal") return name;
  const [poolKind] = name.split(".", 1);
  const row = CATALOGUE.find((each) => each.poolKind === poolKind);
  if (row?.isReadOnly) {
    throw new CausewayError(
      "storage/no-backend",
      `Cannot copy from or to ${name}: Causeway only reads directories, and copies none`,
    );
  }
  if (row !== undefined && name.includes(".")) return row.id;
  throw new CausewayError(
    "storage/no-backend",
    `Cannot use the backend ${name}: it is \`internal\`, or a pool such as rdbms.default`,
  );
}

/** A backend that is open. */
export interface OpenBackend extends AsyncDisposable {
  readonly stores: DataStores;
  /** Undefined for one without SQL. */
  readonly database: SqlDatabase | undefined;
}

export async function openBackend(
  stores: StoresOptions,
  name: string,
  { isMade }: { readonly isMade: boolean },
): Promise<OpenBackend> {
  if (name === "internal") {
    const { path } = stores.internal;
    if (!isMade && !isThere(path)) {
      throw new CausewayError(
        "storage/cannot-open",
        `Cannot open the built-in store ${path}: there is no such file`,
      );
    }
    return opened(await openInternalDatabase(stores.internal));
  }
  for (const [tag, pool] of stores.pools) {
    if (name !== `rdbms.${tag}`) continue;
    const server = sqlServerOf(tag, pool);
    const bounds = { ...server.bounds, statementTimeoutMs: COPY_STATEMENT_MS };
    const database = sqlServerDatabase({ ...server, bounds });
    await openOrClose(database, () => database.open());
    return opened(database);
  }
  const options = stores.serverPools?.get(name);
  if (options !== undefined) {
    const server = serverKindOf(options).open({ name, options });
    await openOrClose(server, () => server.probe());
    const close = () => server.close();
    return { stores: server, database: undefined, [Symbol.asyncDispose]: close };
  }
  const known = [
    "internal",
    ...[...stores.pools.keys()].map((tag) => `rdbms.${tag}`),
    ...stores.serverPools?.keys() ?? [],
  ];
  throw new CausewayError(
    "storage/no-backend",
    `Cannot use the backend ${name}: the configuration has ${known.join(", ")}`,
  );
}

/** Opens a database, and closes it if that fails. */
async function openOrClose(
  database: { close(): Promise<void> },
  open: () => Promise<void>,
): Promise<void> {
  try {
    await open();
  } catch (thrown) {
    await database.close();
    throw thrown;
  }
}

function opened(database: SqlDatabase): OpenBackend {
  return {
    stores: new SqlStores(database),
    database,
    [Symbol.asyncDispose]: () => database.close(),
  };
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
