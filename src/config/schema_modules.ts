import { z } from "zod";
import {
  absent,
  addresses,
  domain,
  filePath,
  hostName,
  integer,
  listenAddress,
  milliseconds,
  remoteAddress,
  seconds,
  secret,
  text,
  withWords,
} from "./schema_words.ts";

const TLS_OPTS = withWords(
  z.union([
    z.literal(false),
    z.strictObject({
      certfile: filePath().describe("PEM file with the certificate chain of this datacenter"),
      cafile: filePath().describe(
        "PEM file with the CA that all datacenters' certificates are from",
      ),
      keyfile: filePath().optional().describe(
        "PEM file with the private key, if not in `certfile`",
      ),
    }),
  ]),
  { allowed: "a table with certfile and cafile (and keyfile), or false for plain TCP" },
);

const CONNECTIONS = z.strictObject({
  endpoints: absent(
    addresses(listenAddress()),
    "`[{ host = local_host, port = 5555 }]`",
    "where links from other datacenters are accepted; may be empty; a host name is resolved once, at " +
      "start, and the resolved address is what is listened on and shared; of `0.0.0.0` and `::`, " +
      "which are every address, the name of the local host is shared",
  ),
  advertised_endpoints: absent(
    addresses(remoteAddress()),
    "`endpoints`",
    "what other datacenters are told to connect to, where it differs from `endpoints`",
  ),
  connections_per_endpoint: integer(1, 1000).default(1).describe(
    "links opened to each endpoint of another datacenter",
  ),
  endpoint_refresh_interval: seconds().default(60).describe(
    "how often a remote host's endpoints are read again; one timer for each remote host",
  ),
  endpoint_refresh_interval_when_empty: seconds().default(3).describe(
    "the same while no endpoint of that host is known",
  ),
  disabled_gc_interval: seconds().default(60).describe(
    "how often disabled endpoints whose connections are dead are closed entirely",
  ),
  rehome_after_ms: milliseconds().default(3000).describe(
    "how long stanzas wait for a node of another datacenter to be back before they go to another node " +
      "of it that is reached; the same at all nodes",
  ),
  reroute_after_ms: milliseconds().default(1000).describe(
    "how long they wait for a datacenter of which no node is reached before it is looked whether their " +
      "recipients are elsewhere by now; each further time twice as long, up to a quarter of `expire_after`",
  ),
  seeds: addresses(remoteAddress()).default([]).describe(
    "nodes in other datacenters from which the rest of the mesh is learned",
  ),
  cluster: listenAddress().default({ host: "127.0.0.1", port: 0 }).describe(
    "where links from nodes of this datacenter are accepted, also when `endpoints` is empty; " +
      "an address of this node that they can reach",
  ),
  tls_opts: TLS_OPTS.describe("certificate of this datacenter for its links, and whom it trusts"),
});

const REDIS_SERVER = withWords(z.string().regex(/^(\/\S+|[^\s#/@[\]]+)$/), {
  allowed: "a host name, an IP address or the absolute path of a Unix socket",
});

const REDIS_TLS_FILES = z.strictObject({
  cafile: filePath().optional().describe(
    "PEM file with the authorities that Redis' certificate must come from; left out: those that the runtime trusts",
  ),
  certfile: filePath().optional().describe(
    "PEM file with a certificate for Redis to see, where it wants one",
  ),
  keyfile: filePath().optional().describe("PEM file with its private key, if not in `certfile`"),
  servername: hostName().optional().describe(
    "the name that Redis' certificate must carry; left out: the host that is connected to",
  ),
});

const REDIS_TLS = withWords(z.union([z.boolean(), REDIS_TLS_FILES]), {
  allowed: "true, false, or a table with any of cafile, certfile, keyfile and servername",
});

/** `modules.mod_global_distrib.redis`. */
export const REDIS = z.strictObject({
  server: REDIS_SERVER.default("127.0.0.1").describe("where Redis is"),
  port: z.int().min(1).max(65535).default(8102).describe("its TCP port"),
  tls: REDIS_TLS.default(false).describe(
    "encrypts the connections, those to Sentinels too; `true` stands for an empty table",
  ),
  username: text().optional().describe("ACL user; left out: Redis' default user"),
  password: secret().default("").describe(
    "its password; empty for none, which is what Dynomite needs",
  ),
  sentinels: addresses(remoteAddress()).default([]).describe(
    "Sentinels that name the master, instead of `server` and `port`",
  ),
  sentinel_name: text().default("mymaster").describe("the name by which they know the master"),
  sentinel_username: text().optional().describe("ACL user at the Sentinels"),
  sentinel_password: secret().default("").describe(
    "password at the Sentinels; empty for none. `password` is for Redis itself",
  ),
  cluster: addresses(remoteAddress()).default([]).describe(
    "some nodes of a Redis Cluster, which name the others, instead of `server` and `port`",
  ),
  pool_size: integer(1, 64).default(1).describe(
    "connections to Redis; a cluster has one to each master",
  ),
  replication: z.enum(["builtin", "external"]).default("builtin").describe(
    "who carries the session table between datacenters: the nodes themselves, or something under Redis",
  ),
  expire_after: seconds().default(120).describe("lifetime of what is written and not refreshed"),
  refresh_after: seconds().default(60).describe(
    "how often a node refreshes its own data; below `expire_after`",
  ),
  command_timeout_ms: integer(100, 60_000).default(5000).describe(
    "milliseconds that Redis may say nothing to what it is asked; then its connection is given up, and " +
      "a new one made",
  ),
});

const CACHE = z.strictObject({
  cache_missed: z.boolean().default(true).describe("remembers also that a JID was not found"),
  domain_lifetime_seconds: seconds(0).default(600).describe(
    "how long a domain's host is remembered",
  ),
  jid_lifetime_seconds: seconds(0).default(5).describe("how long a JID's host is remembered"),
  max_jids: integer(1, 100_000_000).default(10_000).describe("JIDs remembered at once"),
});

const BOUNCE_TABLE = z.strictObject({
  resend_after_ms: milliseconds().default(200).describe(
    "wait before the first retry; it doubles with each further one",
  ),
  max_retries: integer(0).default(4).describe("retries before the sender gets an error"),
  max_items: integer(1).default(100_000).describe(
    "stanzas held at once; each sender, recipient and datacenter has a fair share of them",
  ),
  max_bytes: integer(1024).default(67_108_864).describe(
    "bytes held at once, about 1 KiB and its text for each stanza; shared in the same way",
  ),
});

const BOUNCE = withWords(z.union([z.literal(false), BOUNCE_TABLE]), {
  allowed: "a table, or false to turn bouncing off",
});

/** `modules.mod_global_distrib`. */
export const MOD_GLOBAL_DISTRIB = z.strictObject({
  global_host: domain().describe("the domain that all datacenters share; one of `hosts`"),
  local_host: domain().describe(
    "the domain that names this datacenter; one of `hosts`, and of no other datacenter",
  ),
  message_ttl: integer(0).default(4).describe("datacenters that a stanza may be forwarded through"),
  hosts_refresh_interval: milliseconds().default(3000).describe(
    "how often the list of datacenters is read and connections to new ones are opened",
  ),
  connections: CONNECTIONS.describe("links to other nodes"),
  redis: REDIS.prefault({}).describe("the session table"),
  cache: CACHE.prefault({}).describe("what a node remembers of the session table"),
  bounce: BOUNCE.prefault({}).describe("holding stanzas that have no known route"),
});

const STREAM_MANAGEMENT_TABLE = z.strictObject({
  buffer_max: integer(1, 1_000_000).default(5_000).describe(
    "stanzas that a session keeps until its client has acknowledged them; one more ends the session, " +
      "and they are routed again",
  ),
  buffer_max_bytes: integer(16_384, 1_073_741_824).default(8_388_608).describe(
    "bytes that they may cost, about 1 KiB and its text for each",
  ),
  unsettled_max: integer(0, 1_000_000).default(256).describe(
    "the last of them that the nodes which sent them keep as well, for the case that this one dies; " +
      "what is older is lost then",
  ),
  ack_freq: integer(1, 1_000_000).default(10).describe(
    "stanzas after which the client is asked for an acknowledgement",
  ),
  ack_delay_ms: z.int().min(10).max(3_600_000).default(1_000).describe(
    "wait after which it is asked at the latest, in milliseconds",
  ),
  ack_timeout: z.int().min(1).max(86_400).default(60).describe(
    "wait for the answer, in seconds, before the connection is given up; the session stays. Time in " +
      "which the node does not read from the client does not count",
  ),
  resume_timeout: z.int().min(0).max(86_400).default(600).describe(
    "time in seconds for which a session without a connection waits for its client; 0: not at all",
  ),
  resume_elsewhere_timeout: z.int().min(1).max(60).default(5).describe(
    "time in seconds in which a client that resumes at another node than its session's gets it, or is " +
      "told that it does not",
  ),
  resume_elsewhere_max: integer(1, 1_000_000).default(10_000).describe(
    "sessions that other nodes may be taking over from this one at once; one more stays",
  ),
  ack_hold_ms: z.int().min(0).max(3_600_000).default(5_000).describe(
    "time in milliseconds for which a stanza that only this node holds keeps the client from being " +
      "told that it was handled",
  ),
  end_hold_ms: z.int().min(0).max(60_000).default(500).describe(
    "time in milliseconds for which the end of a stream waits for another node to hold what the client " +
      "has sent, at most",
  ),
  moved_check_ms: z.int().min(100).max(3_600_000).default(5_000).describe(
    "time in milliseconds between looks whether the user of a session that keeps stanzas, and whose " +
      "client says nothing, is in another datacenter by now",
  ),
  stream_ends_max: z.int().min(0).max(1_000).default(3).describe(
    "streams of its recipient that a stanza may end before it is given up and its sender gets an error; " +
      "0: it is sent again each time",
  ),
  suspect_within_ms: z.int().min(0).max(60_000).default(2_000).describe(
    "time in milliseconds after a stanza was sent alone in which the end of the connection counts as " +
      "its doing, where the client gives no reason",
  ),
  stale_h: z.strictObject({
    enabled: z.boolean().default(true).describe(
      "tells a client that comes too late how many of its stanzas were handled",
    ),
    geriatric: z.int().min(1).max(86_400).default(3_600).describe(
      "seconds for which that is remembered",
    ),
    max_items: integer(1, 10_000_000).default(100_000).describe(
      "sessions of which it is, and as many of which it is known to which node they went; one more is " +
        "remembered in place of the oldest",
    ),
  }).prefault({}).describe("what is known of sessions that cannot be resumed any more"),
});

const MOD_STREAM_MANAGEMENT = withWords(
  z.union([z.literal(false), STREAM_MANAGEMENT_TABLE]),
  { allowed: "a table, or false to turn stream management off" },
);

const MOD_DISCO = z.strictObject({
  users_can_see_hidden_services: z.boolean().default(false).describe(
    "shows components with `hidden = true` to users too",
  ),
});

/** The modules that a host may have; `byDefault` says what holds where one is left out. */
function hostModules(byDefault: string) {
  const service = <T extends z.ZodType>(table: T, meaning: string) => {
    const schema = withWords(z.union([z.literal(false), table]), {
      allowed: "a table, or false to turn it off",
    });
    return absent(schema, byDefault, meaning);
  };
  return {
    mod_disco: service(MOD_DISCO, "service discovery (XEP-0030)"),
    mod_ping: service(z.strictObject({}), "ping (XEP-0199); no options"),
    mod_time: service(z.strictObject({}), "entity time (XEP-0202); no options"),
    mod_version: service(z.strictObject({}), "software version (XEP-0092); no options"),
    mod_offline: z.looseObject({}).optional().describe(
      "storage for stanzas to users who are logged in nowhere; not on the global or the local host",
    ),
  };
}

/** `[modules]`: what runs for every host. */
export const MODULES = z.strictObject({
  mod_global_distrib: MOD_GLOBAL_DISTRIB.describe("what joins this datacenter to the others"),
  mod_stream_management: MOD_STREAM_MANAGEMENT.prefault({}).describe(
    "stream management for clients (XEP-0198)",
  ),
  ...hostModules("on"),
});

/** `[host_config."x".modules]`: a module named here replaces the table of the same name above. */
export const HOST_CONFIG_MODULES = z.strictObject(hostModules("as under `modules`"));
