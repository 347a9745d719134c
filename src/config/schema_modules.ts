import { isFieldName } from "../services/muc_light/mod.ts";
import { isNetwork } from "../services/accounts/mod.ts";
import { z } from "zod";
import { BACKEND, POOL_TAG } from "./schema_pools.ts";
import { MOD_SHARED_ROSTER_LDAP, VCARD_LDAP } from "./schema_ldap.ts";
import {
  absent,
  addresses,
  domain,
  filePath,
  hostName,
  inSeconds,
  integer,
  listenAddress,
  milliseconds,
  remoteAddress,
  seconds,
  secret,
  sets,
  text,
  withWords,
} from "./schema_words.ts";

const TLS_OPTS = withWords(
  z.union([
    z.literal(false),
    z.strictObject({
      certfile: filePath().describe("PEM file with the certificate chain of this datacenter"),
      cafile: filePath().describe(
        "PEM file with the CA that issued the certificates of all datacenters",
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
    "addresses that accept links from other datacenters; may be empty. A host name is " +
      "resolved once, at start; the node listens on the resolved address and shares it. For " +
      "`0.0.0.0` and `::` (every address) it shares the name of the local host",
  ),
  advertised_endpoints: absent(
    addresses(remoteAddress()),
    "`endpoints`",
    "addresses that other datacenters connect to, if they differ from `endpoints`",
  ),
  connections_per_endpoint: sets("links.connectionsPerEndpoint", integer(1, 1000))
    .default(1).describe("links opened to each endpoint of another datacenter"),
  endpoint_refresh_interval: sets("links.endpointRefreshIntervalMs", seconds())
    .default(60).describe(
      "how often a remote host's endpoints are read again; one timer for each remote host",
    ),
  endpoint_refresh_interval_when_empty: sets("links.endpointRefreshIntervalWhenEmptyMs", seconds())
    .default(3).describe(
      "how often a remote host's endpoints are read again while none of them is known",
    ),
  disabled_gc_interval: sets("links.disabledGcIntervalMs", seconds()).default(60).describe(
    "how often disabled endpoints whose connections are dead are closed entirely",
  ),
  rehome_after_ms: sets("links.rehomeAfterMs", milliseconds()).default(3000).describe(
    "how long stanzas wait for a node of another datacenter to return before they go to " +
      "another node there that is reachable; the same at all nodes",
  ),
  reroute_after_ms: sets("links.rerouteFirstMs", milliseconds()).default(1000).describe(
    "how long stanzas wait for a datacenter without a reachable node before their recipients " +
      "are looked up again; each further wait is twice as long, up to a quarter of " +
      "`expire_after`",
  ),
  seeds: addresses(remoteAddress()).default([]).describe(
    "nodes in other datacenters from which this one learns about the rest of the mesh",
  ),
  cluster: listenAddress().default({ host: "127.0.0.1", port: 0 }).describe(
    "address that accepts links from other nodes of this datacenter, even if `endpoints` is " +
      "empty; they must be able to reach it",
  ),
  tls_opts: TLS_OPTS.describe(
    "certificate of this datacenter for its links, and the CA that it trusts",
  ),
});

const REDIS_SERVER = withWords(z.string().regex(/^(\/\S+|[^\s#/@[\]]+)$/), {
  allowed: "a host name, an IP address or the absolute path of a Unix socket",
});

const REDIS_TLS_FILES = z.strictObject({
  cafile: filePath().optional().describe(
    "PEM file with the authorities that may issue Redis' certificate; absent: those that the " +
      "runtime trusts",
  ),
  certfile: filePath().optional().describe(
    "PEM file with the client certificate, if Redis requires one",
  ),
  keyfile: filePath().optional().describe("PEM file with its private key, if not in `certfile`"),
  servername: hostName().optional().describe(
    "name that Redis' certificate must contain; absent: the host of the connection",
  ),
});

const REDIS_TLS = withWords(z.union([z.boolean(), REDIS_TLS_FILES]), {
  allowed: "true, false, or a table with any of cafile, certfile, keyfile and servername",
});

/** `modules.mod_global_distrib.redis`. */
export const REDIS = z.strictObject({
  server: sets("redis.server", REDIS_SERVER)
    .default("127.0.0.1").describe("address of Redis"),
  port: sets("redis.port", integer(1, 65_535))
    .default(8102).describe("TCP port of Redis"),
  tls: REDIS_TLS.default(false).describe(
    "encrypts the connections to Redis and to Sentinels; `true` means an empty table",
  ),
  username: sets("redis.username", text())
    .optional().describe("ACL user; absent: Redis' default user"),
  password: secret().default("").describe(
    "password of Redis; empty for no password, as Dynomite needs it",
  ),
  sentinels: sets("redis.sentinels", addresses(remoteAddress()))
    .default([]).describe("Sentinels that name the master; they replace `server` and `port`"),
  sentinel_name: sets("redis.sentinelName", text())
    .default("mymaster").describe("name of the master at the Sentinels"),
  sentinel_username: sets("redis.sentinelUsername", text())
    .optional().describe("ACL user at the Sentinels"),
  sentinel_password: secret().default("").describe(
    "password at the Sentinels; empty for no password. `password` is for Redis itself",
  ),
  cluster: sets("redis.cluster", addresses(remoteAddress())).default([]).describe(
    "some nodes of a Redis Cluster, which name the others; they replace `server` and `port`",
  ),
  pool_size: sets("redis.poolSize", integer(1, 64))
    .default(1).describe("connections to Redis; a cluster has one to each master"),
  replication: sets("table.replication", z.enum(["builtin", "external"]))
    .default("builtin").describe(
      "how the session table gets to other datacenters: `builtin`, by the nodes themselves, or " +
        "`external`, by a replicator below Redis",
    ),
  expire_after: sets("redis.expireAfterMs", seconds())
    .default(120).describe("lifetime of a key that is not refreshed"),
  refresh_after: sets("redis.refreshAfterMs", seconds())
    .default(60).describe("how often a node refreshes its own keys; below `expire_after`"),
  command_timeout_ms: sets("redis.commandTimeoutMs", integer(100, 60_000)).default(5000).describe(
    "milliseconds that Redis may take for an answer; then the node replaces the connection",
  ),
});

const CACHE = z.strictObject({
  cache_missed: sets("cache.cacheMissed", z.boolean())
    .default(true).describe("also remembers that a JID was not found"),
  domain_lifetime_seconds: sets("cache.domainLifetimeMs", seconds(0))
    .default(600).describe("how long a domain's host is remembered"),
  jid_lifetime_seconds: sets("cache.jidLifetimeMs", seconds(0))
    .default(5).describe("how long a JID's host is remembered"),
  max_jids: sets("cache.maxJids", integer(1, 100_000_000))
    .default(10_000).describe("JIDs remembered at once"),
});

const BOUNCE_TABLE = z.strictObject({
  resend_after_ms: sets("bounce.resendAfterMs", milliseconds())
    .default(200).describe("wait before the first retry; it doubles with each further one"),
  max_retries: sets("bounce.maxRetries", integer(0))
    .default(4).describe("retries before the sender gets an error"),
  max_items: sets("bounce.maxItems", integer(1)).default(100_000).describe(
    "stanzas held at once; each sender, recipient and datacenter has a fair share of them",
  ),
  max_bytes: sets("bounce.maxBytes", integer(1024)).default(67_108_864).describe(
    "bytes held at once, about 1 KiB plus the text for each stanza; shared in the same way",
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
  message_ttl: sets("router.messageTtl", integer(0))
    .default(4).describe("datacenters that a stanza may be forwarded through"),
  hosts_refresh_interval: sets("links.hostsRefreshIntervalMs", milliseconds())
    .default(3000).describe(
      "how often the list of datacenters is read and connections to new ones are opened",
    ),
  connections: CONNECTIONS.describe("links to other nodes"),
  redis: REDIS.prefault({}).describe("the session table"),
  cache: CACHE.prefault({}).describe("part of the session table that a node remembers"),
  bounce: BOUNCE.prefault({}).describe("holding stanzas that have no known route"),
});

const STREAM_MANAGEMENT_TABLE = z.strictObject({
  buffer_max: sets("streamManagement.maxItems", integer(1, 1_000_000)).default(5_000).describe(
    "stanzas that a session keeps until its client acknowledges them; one more ends the " +
      "session, and its stanzas are routed again",
  ),
  buffer_max_bytes: sets("streamManagement.maxBytes", integer(16_384, 1_073_741_824))
    .default(8_388_608).describe(
      "bytes of the stanzas that a session keeps, about 1 KiB plus the text for each",
    ),
  unsettled_max: sets("streamManagement.maxUnsettled", integer(0, 1_000_000)).default(256).describe(
    "newest kept stanzas of a session that the sending nodes keep too, in case this node " +
      "dies; older ones are lost then",
  ),
  ack_freq: sets("streamManagement.ackFreq", integer(1, 1_000_000))
    .default(10).describe("stanzas after which the node asks the client for an acknowledgement"),
  ack_delay_ms: sets("streamManagement.ackDelayMs", integer(10, 3_600_000))
    .default(1_000).describe(
      "time in milliseconds after a stanza at which the node asks for an acknowledgement at the latest",
    ),
  ack_timeout: sets("streamManagement.ackTimeoutMs", inSeconds(integer(1, 86_400)))
    .default(60).describe(
      "time in seconds that the client may take to answer before the node closes the " +
        "connection; the session stays. Time in which the node does not read from the client does " +
        "not count",
    ),
  resume_timeout: sets("streamManagement.resumeTimeoutMs", inSeconds(integer(0, 86_400)))
    .default(600).describe(
      "time in seconds for which a hibernating session waits for its client; 0: not at all",
    ),
  resume_elsewhere_timeout: sets(
    "streamManagement.resumeElsewhereTimeoutMs",
    inSeconds(integer(1, 60)),
  )
    .default(5).describe(
      "time in seconds after which a client that resumes at another node has its session, or a refusal",
    ),
  resume_elsewhere_max: sets("resumption.maxGivings", integer(1, 1_000_000))
    .default(10_000).describe(
      "sessions that other nodes may take over from this one at the same time; one more stays " +
        "here. One account may use at most a quarter of the free places",
    ),
  ack_hold_ms: sets("streamManagement.ackHoldMs", integer(0, 3_600_000))
    .default(5_000).describe(
      "time in milliseconds for which a client waits for the acknowledgement of a stanza that " +
        "only this node holds",
    ),
  end_hold_ms: sets("streamManagement.endHoldMs", integer(0, 60_000)).default(500).describe(
    "longest time in milliseconds for which the end of a stream waits until another node " +
      "holds the client's stanzas too",
  ),
  moved_check_ms: sets("streamManagement.movedCheckMs", integer(100, 3_600_000))
    .default(5_000).describe(
      "time in milliseconds between checks whether a user has moved to another datacenter; for " +
        "sessions that keep stanzas while their client is silent",
    ),
  stream_ends_max: sets("streamManagement.maxStreamEnds", integer(0, 1_000))
    .default(3).describe(
      "streams of its recipient that a stanza may break before its sender gets an error " +
        "instead; 0: the stanza is sent again each time",
    ),
  suspect_within_ms: sets("streamManagement.suspectWithinMs", integer(0, 60_000))
    .default(2_000).describe(
      "time in milliseconds after a stanza was sent alone in which that stanza is blamed if the " +
        "connection ends without a reason",
    ),
  stale_h: z.strictObject({
    enabled: z.boolean().default(true).describe(
      "tells a client that resumes too late how many of its stanzas were handled",
    ),
    geriatric: sets("streamManagement.staleHMs", inSeconds(integer(1, 86_400)))
      .default(3_600).describe("seconds for which the node remembers that count"),
    max_items: sets("streamManagement.maxStaleH", integer(1, 10_000_000)).default(100_000).describe(
      "ended sessions whose count is remembered, and as many moved sessions whose new node is " +
        "remembered; one more replaces the oldest",
    ),
  }).prefault({}).describe("memory of sessions that can no longer be resumed"),
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

/** Options of a module that keeps data: where it keeps them. */
const DATA_PLACE = {
  backend: absent(BACKEND, "as the host's accounts", "store of this data"),
  pool_tag: absent(
    POOL_TAG,
    'as the host\'s accounts in the same backend, else `"default"`',
    "pool of the backend",
  ),
};

/** `mod_private`. */
export const MOD_PRIVATE = z.strictObject({
  ...DATA_PLACE,
  max_elements: integer(1, 10_000).default(200).describe(
    "elements that one account may store; one more is refused",
  ),
  max_bytes: integer(1, 16_777_216).default(1_048_576).describe(
    "bytes of all elements of one account; more is refused",
  ),
});

/** `mod_privacy`. */
export const MOD_PRIVACY = z.strictObject({
  ...DATA_PLACE,
  max_lists: integer(1, 1_000).default(50).describe(
    "privacy lists that one account may have; one more is refused",
  ),
  max_items: integer(1, 10_000).default(1_000).describe(
    "items of one list, and so of the block list; one more is refused",
  ),
  max_bytes: integer(1024, 1_048_576).default(131_072).describe(
    "bytes of all lists of one account; more is refused",
  ),
});

/** `mod_pubsub`. */
export const MOD_PUBSUB = z.strictObject({
  ...DATA_PLACE,
  max_nodes: integer(1, 10_000).default(200).describe(
    "nodes that one account may have; one more is refused",
  ),
  max_items_node: integer(1, 10_000).default(1_000).describe(
    "items that one node may keep: the value of `max` in its configuration",
  ),
  max_payload_size: integer(1024, 1_048_576).default(131_072).describe(
    "bytes of one item; a larger one is refused; at most `max_stanza_bytes` less 8192",
  ),
  max_bytes: integer(1024, 1_073_741_824).default(8_388_608).describe(
    "bytes of all items of one account; more is refused",
  ),
});

/** `mod_roster`. */
export const MOD_ROSTER = z.strictObject({
  ...DATA_PLACE,
  versioning: z.boolean().default(true).describe(
    "sends clients only what has changed since they were here last (RFC 6121 §2.6)",
  ),
});

/** `mod_vcard`. */
export const MOD_VCARD = z.strictObject({
  ...DATA_PLACE,
  max_bytes: integer(1024, 1_048_576).default(131_072).describe(
    "bytes of a vCard; a larger one is refused; at most `max_stanza_bytes` less 8192",
  ),
  search: z.boolean().default(false).describe(
    "lets people of the host search for one another by their vCards (XEP-0055)",
  ),
  search_finds: z.enum(["public", "all"]).default("public").describe(
    "`public`: people whose vCard says so (`<CLASS><PUBLIC/></CLASS>`); `all`: everybody whose " +
      "vCard names no other class",
  ),
  matches: integer(1, 100).default(30).describe("people in one answer to a search"),
  ldap: VCARD_LDAP.optional().describe("vCards of the backend `ldap`, which are only read"),
});

/** `mod_last`. */
export const MOD_LAST = z.strictObject(DATA_PLACE);

/** `mod_offline`. */
export const MOD_OFFLINE = z.strictObject({
  ...DATA_PLACE,
  access_max_user_messages: integer(1, 100_000).default(100).describe(
    "messages that wait for one account; one sender may have at most half of them",
  ),
  max_user_bytes: integer(65_536, 1_073_741_824).default(4_194_304).describe(
    "bytes of the messages that wait for one account, shared alike",
  ),
  expire_after: inSeconds(integer(60, 315_360_000)).default(7_776_000).describe(
    "seconds for which a message waits; then it is removed",
  ),
});

/** `mod_mam`. */
export const MOD_MAM = z.strictObject({
  ...DATA_PLACE,
  default_result_limit: integer(1, 1_000).default(50).describe(
    "messages of one page, when the client names no number",
  ),
  max_result_limit: integer(1, 1_000).default(50).describe(
    "messages of one page at most; a client that asks for more gets as many",
  ),
  archive_chat_markers: z.boolean().default(false).describe(
    "archives chat markers without a body too (XEP-0333)",
  ),
  no_stanzaid_element: z.boolean().default(false).describe(
    "delivers messages without the id that they have in the archive of their recipient (XEP-0359)",
  ),
  full_text_search: z.boolean().default(true).describe(
    "keeps the words of each message, so that people may search their archives for them " +
      "(XEP-0431), where the database can; that costs insertions time and room",
  ),
  pm: withWords(
    z.union([
      z.literal(false),
      z.strictObject({
        archive_groupchats: z.boolean().default(false).describe(
          "archives messages of type `groupchat` for the people who get them, too",
        ),
      }),
    ]),
    { allowed: "a table, or false to turn it off" },
  ).prefault({}).describe("archives of people"),
  muc: withWords(
    z.union([
      z.literal(false),
      z.strictObject({
        default_result_limit: absent(
          integer(1, 1_000),
          "that of people",
          "messages of one page, when the client names no number",
        ),
        max_result_limit: absent(
          integer(1, 1_000),
          "that of people",
          "messages of one page at most; a client that asks for more gets as many",
        ),
        archive_chat_markers: absent(
          z.boolean(),
          "as of people",
          "archives chat markers without a body too (XEP-0333)",
        ),
        retention: z.strictObject({
          max_age: absent(
            inSeconds(integer(3_600, 3_153_600_000)),
            "that of people",
            "seconds for which a message is kept; then it is removed",
          ),
        }).prefault({}).describe("how long messages are kept"),
      }),
    ]),
    { allowed: "a table, or false to turn it off" },
  ).prefault({}).describe(
    "archives of rooms: those of `mod_muc` and `mod_muc_light`; the table of the global host counts",
  ),
  retention: z.strictObject({
    max_age: absent(
      inSeconds(integer(3_600, 3_153_600_000)),
      "for ever",
      "seconds for which a message is kept; then it is removed",
    ),
  }).prefault({}).describe("how long messages are kept"),
});

/** `mod_muc_light`. */
export const MOD_MUC_LIGHT = z.strictObject({
  ...DATA_PLACE,
  host: withWords(z.string().min(1), { allowed: "a domain below `global_host`" })
    .default("muclight.@HOST@").describe(
      "domain of the rooms, the same at all datacenters; `@HOST@` stands for the global host",
    ),
  equal_occupants: z.boolean().default(false).describe(
    "makes all occupants members, so that rooms have no owners",
  ),
  all_can_invite: z.boolean().default(false).describe("lets every occupant add members"),
  all_can_configure: z.boolean().default(false).describe(
    "lets every occupant change all of a room's configuration; the subject they may always change",
  ),
  blocking: z.boolean().default(true).describe(
    "lets people block rooms, and people, from adding them to rooms",
  ),
  max_occupants: integer(1, 1_000).default(100).describe("people in one room"),
  rooms_per_user: integer(1, 10_000).default(200).describe(
    "rooms that one person is in; people who are in as many are not added, as if they blocked it",
  ),
  rooms_per_page: integer(1, 1_000).default(10).describe(
    "rooms in one answer of service discovery, when the client asks for more or names no number",
  ),
  max_config_bytes: integer(64, 65_536).default(4_096).describe(
    "bytes of the configuration of a room; more is refused",
  ),
  config_schema: z.array(z.strictObject({
    field: withWords(z.string().refine(isFieldName), {
      allowed: "a name of letters, digits, `_`, `.` and `-`, but `version` and `prev-version`",
    }).describe("name of the field"),
    string_value: z.string().max(1_024).describe("value in a new room whose creator names none"),
  })).max(50).default([
    { field: "roomname", string_value: "Untitled" },
    { field: "subject", string_value: "" },
  ]).describe("fields of the configuration of rooms, which are texts"),
});

/** `mod_muc.default_room`. */
const DEFAULT_ROOM = z.strictObject({
  title: z.string().max(255).default("").describe("title"),
  description: z.string().max(1_024).default("").describe("description"),
  persistent: z.boolean().default(false).describe(
    "keeps the room when its last occupant has left",
  ),
  public: z.boolean().default(true).describe(
    "shows the room in lists, and what it is like to everybody; else strangers get " +
      "`item-not-found`",
  ),
  moderated: z.boolean().default(true).describe("only people with voice may speak"),
  members_only: z.boolean().default(false).describe("admits members only"),
  members_by_default: z.boolean().default(true).describe(
    "gives newcomers without an affiliation voice in a moderated room",
  ),
  allow_change_subj: z.boolean().default(true).describe(
    "lets everybody with voice change the subject",
  ),
  allow_user_invites: z.boolean().default(false).describe(
    "lets everybody invite people into a members-only room, who become members",
  ),
  allow_private_messages: z.boolean().default(true).describe(
    "lets occupants write to one occupant alone",
  ),
  password_protected: z.boolean().default(false).describe("asks for `password`"),
  password: z.string().max(256).default("").describe("password of new rooms"),
  anonymous: z.boolean().default(true).describe("shows real addresses to moderators alone"),
  max_users: integer(1, 1_000).default(200).describe(
    "occupants at once, at most `max_users` above",
  ),
});

/** `mod_muc`. */
export const MOD_MUC = z.strictObject({
  ...DATA_PLACE,
  host: withWords(z.string().min(1), { allowed: "a domain below `global_host`" })
    .default("conference.@HOST@").describe(
      "domain of the rooms, the same at all datacenters; `@HOST@` stands for the global host",
    ),
  history_size: integer(0, 100).default(20).describe("messages that a newcomer gets at most"),
  max_users: integer(1, 1_000).default(200).describe(
    "occupants of one room, whoever configures it",
  ),
  max_user_conferences: integer(1, 10_000).default(100).describe(
    "rooms that one person is in at once",
  ),
  max_created_rooms: integer(1, 10_000).default(200).describe(
    "rooms that one person has made and that are still there; more are refused",
  ),
  max_room_id: integer(1, 1_023).default(256).describe("bytes of the name of a new room"),
  max_room_name: integer(1, 1_024).default(255).describe("characters of a room's title"),
  max_room_desc: integer(1, 4_096).default(1_024).describe("characters of a room's description"),
  max_affiliations: integer(1, 10_000).default(1_000).describe(
    "people with an affiliation in one room",
  ),
  max_message_rate: integer(1, 1_000).default(10).describe(
    "messages and changes that one person may send to rooms per second, at each node; five " +
      "times as many at once. The same rate applies separately to presence in each room, " +
      "including entries and changes of nickname",
  ),
  rooms_per_page: integer(1, 1_000).default(100).describe(
    "rooms in one answer of service discovery, when the client asks for more or names no number",
  ),
  default_room: DEFAULT_ROOM.prefault({}).describe(
    "settings of new rooms, until an owner changes them",
  ),
});

/** `mod_register`. */
export const MOD_REGISTER = z.strictObject({
  allow_removal: z.boolean().default(true).describe(
    "lets people delete their account, with all its data",
  ),
  allow_registration: z.boolean().default(false).describe(
    "lets everybody make an account before they log in, over TLS",
  ),
  ip_access: z.array(z.strictObject({
    address: withWords(z.string().refine(isNetwork), {
      allowed: 'an address or a network such as "192.0.2.0/24"',
    }).describe("address or network"),
    policy: z.enum(["allow", "deny"]).describe("whether its clients may register"),
  })).default([]).describe(
    "networks from which people may or may not register; the narrowest one that has the address " +
      "decides, and without one they may",
  ),
  registration_timeout: inSeconds(integer(0, 31_536_000)).default(600).describe(
    "seconds between two accounts that one address makes at a node; an IPv6 address counts by " +
      "its /64; 0 turns the limit off",
  ),
  password_strength: integer(0, 1_024).default(32).describe(
    "least strength in bits of a password that people choose, for a new account or to replace " +
      "their old one: its length times the bits of the kinds of characters in it",
  ),
});

/**
 * Builds the modules that a host may have. `byDefault` describes the value of a module that is left
 * out.
 */
function hostModules(byDefault: string) {
  const service = <T extends z.ZodType>(table: T, meaning: string) => {
    const schema = withWords(z.union([z.literal(false), table]), {
      allowed: "a table, or false to turn it off",
    });
    return absent(schema, byDefault, meaning);
  };
  return {
    mod_disco: service(MOD_DISCO, "service discovery (XEP-0030)"),
    mod_carboncopy: service(
      z.strictObject({}),
      "copies of messages for the other devices of their sender and recipient (XEP-0280); no options",
    ),
    mod_ping: service(z.strictObject({}), "ping (XEP-0199); no options"),
    mod_time: service(z.strictObject({}), "entity time (XEP-0202); no options"),
    mod_version: service(z.strictObject({}), "software version (XEP-0092); no options"),
    mod_last: service(
      MOD_LAST,
      "time since the last logout of an account, and since the start of the server (XEP-0012)",
    ),
    mod_mam: service(
      MOD_MAM,
      "archives of messages (XEP-0313): a message to an account that is offline is accepted, too",
    ),
    mod_muc_light: absent(
      withWords(z.union([z.literal(false), MOD_MUC_LIGHT]), {
        allowed: "a table, or false to turn it off",
      }),
      byDefault === "on" ? "off" : byDefault,
      "rooms by the protocol MUC Light, of the global host alone",
    ),
    mod_muc: absent(
      withWords(z.union([z.literal(false), MOD_MUC]), {
        allowed: "a table, or false to turn it off",
      }),
      byDefault === "on" ? "off" : byDefault,
      "rooms by Multi-User Chat (XEP-0045), of the global host alone",
    ),
    mod_blocking: service(
      z.strictObject({}),
      "the blocking command (XEP-0191); no options: the block list is kept where `mod_privacy` " +
        "keeps its lists, and within its bounds",
    ),
    mod_privacy: service(MOD_PRIVACY, "privacy lists (XEP-0016)"),
    mod_private: service(MOD_PRIVATE, "private XML storage (XEP-0049)"),
    mod_pubsub: service(
      MOD_PUBSUB,
      "personal eventing (XEP-0163): avatars, bookmarks, keys of devices, with `+notify` " +
        "(XEP-0115) and the photo of the vCard (XEP-0398)",
    ),
    mod_roster: service(
      MOD_ROSTER,
      "contacts, subscriptions and the presence that contacts see (RFC 6121)",
    ),
    mod_shared_roster_ldap: absent(
      withWords(z.union([z.literal(false), MOD_SHARED_ROSTER_LDAP]), {
        allowed: "a table, or false to turn it off",
      }),
      byDefault === "on" ? "off" : byDefault,
      "contacts that the groups of a directory give all their members",
    ),
    mod_register: service(
      MOD_REGISTER,
      "change of the password, and deletion of the account, by its owner (XEP-0077)",
    ),
    mod_vcard: service(MOD_VCARD, "vCards (XEP-0054), which everybody may read"),
    mod_offline: absent(
      MOD_OFFLINE,
      "off",
      "messages wait for accounts that are offline (XEP-0160); not on the global or the local host",
    ),
  };
}

/** `[modules]`: the modules of every host. */
export const MODULES = z.strictObject({
  mod_global_distrib: MOD_GLOBAL_DISTRIB.describe("connection of this datacenter to the others"),
  mod_stream_management: MOD_STREAM_MANAGEMENT.prefault({}).describe(
    "stream management for clients (XEP-0198)",
  ),
  ...hostModules("on"),
});

/** `[host_config."x".modules]`: a module named here replaces the table of the same name above. */
export const HOST_CONFIG_MODULES = z.strictObject(hostModules("as under `modules`"));
