import { z } from "zod";
import { TLS } from "./schema_tls.ts";
import {
  absent,
  addresses,
  hostName,
  integer,
  milliseconds,
  remoteAddress,
  secret,
  text,
  withWords,
} from "./schema_words.ts";

const PORT = z.int().min(1).max(65535);

/** Options of a connection that all these pools share. */
const CONNECTION = {
  username: text().optional().describe("user that logs in; absent: nobody does"),
  password: secret().optional().describe("password of the user; not allowed without `username`"),
  tls: absent(
    TLS,
    "`true`, but `false` if all servers are on loopback",
    "encrypts the connections and checks each server's certificate, which must name its `host`; " +
      "`true` means an empty table",
  ),
  query_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that a server may take for a request",
  ),
  connect_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that opening a connection may take, its login included",
  ),
};

/** Options of a pool besides its connection. */
const POOL = {
  scope: z.literal("global").default("global").describe("all hosts share the pool"),
  workers: integer(1, 1000).default(10).describe("most requests to the servers at once"),
  max_waiting: integer(0, 1_000_000).default(1000).describe(
    "requests that may wait for their turn; one more fails at once",
  ),
  call_timeout: milliseconds(100).default(5000).describe(
    "milliseconds that a request waits for its turn before it fails",
  ),
};

function servers(replaced: string) {
  return addresses(remoteAddress(), 1).optional().describe(
    `servers with the same content, in place of ${replaced}; another one is asked when one cannot ` +
      "be reached",
  );
}

/** `outgoing_pools.elastic.TAG`. */
export const ELASTIC_POOL = z.strictObject({
  ...POOL,
  connection: z.strictObject({
    host: absent(hostName(), '`"localhost"`', "address of the server"),
    port: absent(PORT, "9200", "port of its HTTP interface"),
    servers: servers("`host` and `port`"),
    ...CONNECTION,
  }).prefault({}).describe("the servers, and how to log in there"),
});

/** `outgoing_pools.riak.TAG`. */
export const RIAK_POOL = z.strictObject({
  ...POOL,
  connection: z.strictObject({
    address: absent(hostName(), '`"localhost"`', "address of the server"),
    port: absent(PORT, "8098", "port of its HTTP interface"),
    servers: servers("`address` and `port`"),
    ...CONNECTION,
  }).prefault({}).describe("the servers, and how to log in there"),
});

/** `outgoing_pools.cassandra.TAG`. */
export const CASSANDRA_POOL = z.strictObject({
  ...POOL,
  connection: z.strictObject({
    servers: addresses(
      z.strictObject({
        host: hostName().describe("host name or IP address to connect to"),
        port: PORT.default(9042).describe("TCP port"),
      }),
      1,
    ).default([{ host: "localhost", port: 9042 }]).describe(
      "servers that are asked first; they name the others",
    ),
    keyspace: withWords(z.string().regex(/^[a-z][a-z0-9_]{0,47}$/), {
      allowed: "a name of small letters, digits and underscores, at most 48 characters",
    }).default("causeway").describe("keyspace of the tables"),
    local_datacenter: absent(
      text(),
      "that of the first server that answers",
      "datacenter of Cassandra, as Cassandra names it, whose servers are asked",
    ),
    consistency: z.enum(["local_one", "local_quorum", "quorum"]).default("local_quorum").describe(
      "replicas that a page of an archive is read from; where these lack a message, more are asked",
    ),
    serial_consistency: z.enum(["serial", "local_serial"]).default("serial").describe(
      "replicas that agree on the order of an archive: those of all datacenters of Cassandra, or those " +
        "of the local one, which is right only if no other datacenter writes",
    ),
    ...CONNECTION,
  }).prefault({}).describe("the servers, and how to log in there"),
});

/** Makes the option of the pools of one kind of server. */
export function serverPools<T extends z.ZodType>(pool: T, product: string) {
  return withWords(z.record(z.string().min(1), pool), { allowed: "a table of pools by name" })
    .default({}).describe(`pools to ${product}`);
}
