import { Client } from "ldapts";
import type { DirectoryContent } from "../../../../harness/databases/mod.ts";
import {
  DIRECTORY_BASE,
  DIRECTORY_KEEPER,
  DIRECTORY_READER,
  DirectoryServer,
} from "../../../../harness/databases/mod.ts";
import type { LdapPoolOptions } from "../ldap_directory.ts";
import type { LdapPlace } from "../ldap_stores.ts";
import { LdapStores } from "../ldap_stores.ts";
import { DEFAULT_VCARD_MAP } from "../ldap_vcard.ts";

/** Options of a pool to a directory of tests. */
export function poolOf(port: number, changes: Partial<LdapPoolOptions> = {}): LdapPoolOptions {
  return {
    servers: ["127.0.0.1"],
    port,
    encryption: "none",
    tls: {},
    rootDn: DIRECTORY_READER.dn,
    password: { reveal: () => DIRECTORY_READER.password },
    connectIntervalMs: 100,
    // Longer than a busy machine needs.
    bounds: {
      workers: 4,
      waitTimeoutMs: 30_000,
      connectTimeoutMs: 30_000,
      statementTimeoutMs: 30_000,
    },
    ...changes,
  };
}

/** Place of accounts in a directory of tests. */
export function placeOf(changes: Partial<LdapPlace["accounts"]> = {}): LdapPlace {
  return {
    backend: "ldap",
    pool: "default",
    bindPool: "default",
    accounts: {
      base: `ou=people,${DIRECTORY_BASE}`,
      uids: [{ attribute: "uid", format: "%u" }],
      filter: "",
      deref: "never",
      ...changes,
    },
    vcardMap: DEFAULT_VCARD_MAP,
  };
}

/** Stores over one pool. */
export function storesAt(pool: LdapPoolOptions): LdapStores & AsyncDisposable {
  const stores = new LdapStores(new Map([["default", pool]]));
  return Object.assign(stores, { [Symbol.asyncDispose]: () => stores.close() });
}

/** Changes a directory of tests. */
export async function changeDirectory(
  port: number,
  change: (client: Client) => Promise<void>,
): Promise<void> {
  const client = new Client({ url: `ldap://127.0.0.1:${port}` });
  try {
    await client.bind(DIRECTORY_KEEPER.dn, DIRECTORY_KEEPER.password);
    await change(client);
  } finally {
    await client.unbind();
  }
}

/** Registers a directory that runs during the tests of a file, and returns a function that gives it. */
export function directoryDuringTests(content: DirectoryContent): () => DirectoryServer {
  let server: DirectoryServer | undefined;
  Deno.test.beforeAll(async () => {
    server = await DirectoryServer.start(content);
  });
  Deno.test.afterAll(async () => {
    await server?.[Symbol.asyncDispose](); // undefined: it did not start, which has been reported
  });
  return () => server!; // tests do not run before it has started
}
