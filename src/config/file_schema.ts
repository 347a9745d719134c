import { z } from "zod";
import { LISTEN } from "./schema_listen.ts";
import { AUTH_LDAP } from "./schema_ldap.ts";
import { LIMITS } from "./schema_limits.ts";
import { HOST_CONFIG_MODULES, MODULES } from "./schema_modules.ts";
import { OBSERVE } from "./schema_observe.ts";
import { BACKEND, OUTGOING_POOLS, POOL_TAG, RDBMS_SERVER_TYPE } from "./schema_pools.ts";
import {
  absent,
  addresses,
  domain,
  filePath,
  remoteAddress,
  secret,
  withWords,
} from "./schema_words.ts";

const AUTH = z.strictObject({
  backend: BACKEND.default("internal").describe(
    "store of the accounts: `internal` is the SQLite file of `storage.internal`, `rdbms` an SQL " +
      "database, `ldap` a directory, `riak` Riak",
  ),
  pool_tag: POOL_TAG.default("default").describe(
    "pool of the backend, by its name under `outgoing_pools`",
  ),
  ldap: AUTH_LDAP.optional().describe("accounts of the backend `ldap`, which requires it"),
  mechanisms: z.array(z.enum(["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])).min(1)
    .default(["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"])
    .describe(
      "SASL mechanisms offered, in this order; PLAIN only where the connection allows it, and each " +
        "SCRAM in front of all as `-PLUS` too where `channel_binding` allows it; a host of the " +
        "backend `ldap` offers PLAIN alone",
    ),
  sasl2: z.boolean().default(true).describe(
    "offers the same mechanisms by SASL2 (XEP-0388) too, where a client may bind its resource " +
      "(XEP-0386), enable stream management or resume a stream together with its login",
  ),
  channel_binding: z.boolean().default(true).describe(
    "offers SCRAM bound to the certificate of the connection (`tls-server-end-point`, RFC 5929) " +
      "inside TLS; set it to false where a proxy ends the clients' TLS with another certificate",
  ),
  scram_iterations: withWords(z.int().min(10_000).max(10_000_000), {
    allowed: "an integer from 10000 to 10000000",
  }).default(10_000).describe("PBKDF2 rounds for passwords that are set from now on"),
  enumeration_secret: absent(
    secret(),
    "a random secret in the store of the global host's accounts",
    "secret from which login answers for accounts that do not exist are made, so that nobody " +
      "can tell which accounts exist; the same at all nodes and datacenters, at least 16 " +
      "characters",
  ),
});

const STORAGE = z.strictObject({
  internal: z.strictObject({
    path: filePath().default("causeway.sqlite").describe("file of the built-in store"),
  }).prefault({}).describe(
    "the built-in store: one SQLite file, which the nodes of one machine may share",
  ),
});

const LOG = z.strictObject({
  level: z.enum(["debug", "info", "warn", "error"]).default("info").describe(
    "least severe level that is written",
  ),
  format: z.enum(["text", "json"]).default("text").describe(
    "one line of text or of JSON per event",
  ),
});

const NODE_NAME = withWords(z.string().max(255).regex(/^[^\s/#{}"\\]+$/), {
  allowed: "a name without spaces, slashes, quotes, # and braces, at most 255 characters",
});

const HOST_AUTH = z.strictObject({
  backend: absent(BACKEND, "as under `auth`", "store of this host's accounts"),
  pool_tag: absent(POOL_TAG, "as under `auth`", "pool of the backend"),
  ldap: absent(AUTH_LDAP, "as under `auth`", "accounts of the backend `ldap`"),
});

const HOST_CONFIG = z.strictObject({
  auth: HOST_AUTH.prefault({}).describe("store of this host's accounts"),
  modules: HOST_CONFIG_MODULES.prefault({}).describe(
    "modules of this host; each replaces the module of the same name under `modules`",
  ),
});

/** The whole file as it is written: TOML's names and units. */
export const FILE_SCHEMA = z.strictObject({
  hosts: withWords(z.array(domain()).min(1), { allowed: "a list of at least one domain" })
    .describe("domains served here; the global host and the local host are among them"),
  node_name: absent(
    NODE_NAME,
    "`HOSTNAME@<local_host>`",
    "name of this process, unique within its datacenter",
  ),
  listen: LISTEN.prefault({}).describe("ports that accept connections"),
  auth: AUTH.prefault({}).describe("how users log in"),
  storage: STORAGE.prefault({}).describe("stores for the data"),
  log: LOG.prefault({}).describe("the log, on standard error"),
  observe: OBSERVE.prefault({}).describe("what operators can see beside the log and metrics"),
  limits: LIMITS.prefault({}).describe("limits on clients, components and peers"),
  modules: withWords(MODULES, { allowed: "a table with mod_global_distrib" }).describe(
    "modules of every host",
  ),
  host_config: z.record(domain(), HOST_CONFIG).default({}).describe(
    "what differs for one of `hosts`, by its name",
  ),
  rdbms_server_type: RDBMS_SERVER_TYPE.optional().describe(
    "kind of all SQL servers; with it, pools need no `driver`",
  ),
  outgoing_pools: OUTGOING_POOLS.prefault({}).describe(
    "connections to databases, by kind and name",
  ),
  global_distrib_addr: withWords(z.record(domain(), addresses(remoteAddress(), 1)), {
    allowed: "a table of lists of { host, port }",
  }).default({}).describe(
    "endpoints to use for a remote local host instead of the ones it advertises",
  ),
});

/** The file with its defaults filled in. */
export type FileConfig = z.output<typeof FILE_SCHEMA>;
