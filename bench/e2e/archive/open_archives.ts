import type {
  ArchiveStore,
  DataPlace,
  ServerPoolOptions,
  StoresOptions,
} from "../../../src/storage/mod.ts";
import { Stores } from "../../../src/storage/mod.ts";
import { DOMAIN } from "./archive_messages.ts";
import type { ArchivePlace } from "./archive_protocol.ts";

/** Bounds of every pool: a busy machine is no failure. */
const BOUNDS = {
  connectTimeoutMs: 60_000,
  statementTimeoutMs: 60_000,
  waitTimeoutMs: 60_000,
} as const;

/** Opens archives through the stores of the product. */
export async function openArchives(
  place: ArchivePlace,
): Promise<AsyncDisposable & { readonly store: ArchiveStore }> {
  const stores = await Stores.open(storesOptions(place));
  return { store: stores.archives(DOMAIN), [Symbol.asyncDispose]: () => stores.close() };
}

/** Returns the options of stores that keep the archives at a place, and nothing else there. */
export function storesOptions(place: ArchivePlace): StoresOptions {
  const mam = dataPlaceOf(place);
  const { port, username, password: text } = place;
  const [host, password] = ["127.0.0.1", { reveal: () => text }];
  const server = { servers: [{ host, port }], username, password, bounds: BOUNDS };
  const serverPools = new Map<string, ServerPoolOptions>();
  if (mam.backend === "elasticsearch") {
    serverPools.set("elastic.default", { ...server, backend: mam.backend, username: undefined });
  } else if (mam.backend === "cassandra") {
    serverPools.set("cassandra.default", { ...server, backend: mam.backend, keyspace: place.name });
  }
  const isSql = mam.backend === "rdbms";
  return {
    internal: { path: place.file },
    pools: new Map(
      isSql
        ? [["default", {
          scope: "global",
          driver: place.database === "postgresql" ? "pgsql" : "mysql",
          address: { host, port, database: place.name, username, password },
          bounds: BOUNDS,
        }]]
        : [],
    ),
    serverPools,
    users: new Map([[DOMAIN, { backend: "internal" }]]),
    data: new Map([["mam", new Map([[DOMAIN, mam]])]]),
  };
}

function dataPlaceOf({ database }: ArchivePlace): DataPlace {
  switch (database) {
    case "sqlite":
      return { backend: "internal" };
    case "elasticsearch":
    case "opensearch":
      return { backend: "elasticsearch", pool: "default" };
    case "cassandra":
      return { backend: "cassandra", pool: "default" };
    default:
      return { backend: "rdbms", pool: "default" };
  }
}
