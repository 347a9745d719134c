import { stringify } from "smol-toml";
import { translateModules } from "./from_mongooseim_modules.ts";
import {
  NO_TLS_CHOICE,
  tlsOf,
  translatePools,
  translateRiakNames,
} from "./from_mongooseim_pools.ts";
import { parseToml } from "./load_config.ts";
import { isLoopbackHost } from "./loopback.ts";
import {
  defined,
  ForeignTable,
  formatRemark,
  type Remark,
  type Table,
} from "./mongooseim_source.ts";
import { indexTomlLines } from "./toml_lines.ts";

/** A configuration for Causeway, and lines about it in the order of the foreign file. */
export interface Translation {
  readonly toml: string;
  /** Lines about options that are missing from the translation. */
  readonly lost: readonly string[];
  /** Lines about options that mean something else here. */
  readonly notes: readonly string[];
}

const LOG_LEVELS: Readonly<Record<string, string>> = {
  none: "error",
  emergency: "error",
  alert: "error",
  critical: "error",
  error: "error",
  warning: "warn",
  notice: "info",
  info: "info",
  debug: "debug",
  all: "debug",
};

const MECHANISMS: Readonly<Record<string, string>> = {
  scram_sha256: "SCRAM-SHA-256",
  scram_sha256_plus: "SCRAM-SHA-256", // channel binding is on by default
  scram_sha1: "SCRAM-SHA-1",
  scram_sha1_plus: "SCRAM-SHA-1",
  plain: "PLAIN",
};

/** The longest intervals that Causeway takes. */
const MOST_SECONDS = 31_536_000;
const MOST_MS = 86_400_000;

/**
 * Translates the configuration file of a MongooseIM (4.0 or newer, TOML) into one for Causeway.
 *
 * @throws ConfigError when `text` is not TOML
 */
export function translateMongooseim(text: string, file: string): Translation {
  const remarks: Remark[] = [];
  const source = new ForeignTable(parseToml(text, file) as Table, [], remarks);
  const target = translate(source);
  source.close();
  const lines = indexTomlLines(text);
  const placed = remarks
    .map((remark) => ({ ...remark, line: lines.lineOf(remark.path) }))
    .toSorted((one, other) => (one.line ?? 0) - (other.line ?? 0));
  const format = ({ line, ...remark }: typeof placed[number]) => formatRemark(remark, file, line);
  return {
    toml: stringify(target),
    lost: placed.filter(({ isLost }) => isLost).map(format),
    notes: placed.filter(({ isLost }) => !isLost).map(format),
  };
}

function translate(source: ForeignTable): Table {
  const general = source.table("general");
  const level = general?.text("loglevel");
  const pools = source.table("outgoing_pools");
  const modules = source.table("modules");
  const listen = source.table("listen");
  const maxStanzaBytes = largestStanza(listen);
  const ownLevel = level === undefined ? undefined : LOG_LEVELS[level];
  if (ownLevel === undefined) general?.lost("loglevel", "not translated: no such level here");
  if (ownLevel === "error" && level !== "error") {
    general?.note("loglevel", "errors are always logged here");
  }
  source.lost(
    "instrumentation",
    "not translated: the admin API always serves metrics at /metrics, under names of its own",
  );
  return defined({
    hosts: general?.texts("hosts"),
    log: ownLevel === undefined ? undefined : { level: ownLevel },
    listen: listen && translateListeners(listen),
    limits: maxStanzaBytes === undefined ? undefined : { max_stanza_bytes: maxStanzaBytes },
    auth: translateAuth(source.table("auth")),
    modules: modules && {
      ...translateModules(modules),
      ...defined({
        mod_global_distrib: translateDistribution(modules.table("mod_global_distrib"), pools),
      }),
    },
    outgoing_pools: pools && translatePools(pools),
    global_distrib_addr: source.value("global_distrib_addr"),
  });
}

/**
 * Returns the one bound that holds for all ports here: the largest of theirs, within the range.
 * Remarks each port that had another.
 */
function largestStanza(listen: ForeignTable | undefined): number | undefined {
  const ports = (listen?.tables("c2s") ?? []).map((port) => {
    const size = port.value("max_stanza_size");
    return { port, size: typeof size === "number" && size > 0 ? size : undefined };
  });
  const sizes = ports.flatMap(({ size }) => size === undefined ? [] : [size]);
  const bound = sizes.length === 0 ? undefined : Math.min(16_777_216, Math.max(10_000, ...sizes));
  for (const { port, size } of ports) {
    if (size !== undefined && size === bound) continue;
    port.lost(
      "max_stanza_size",
      bound === undefined
        ? "not translated: limits.max_stanza_bytes always bounds stanzas here"
        : `not translated as it stands: limits.max_stanza_bytes is ${bound} for all ports; it may ` +
          "be 10000 to 16777216",
    );
  }
  return bound;
}

function translateListeners(listen: ForeignTable): Table {
  const c2s = listen.tables("c2s").map((port) => {
    const host = port.text("ip_address") ?? "0.0.0.0";
    port.ignore("num_acceptors", "backlog", "proto", "backwards_compatible_session");
    port.lost("shaper", "not translated: see the rates under [limits]");
    return { host, port: port.integer("port") ?? 5222, ...clientTls(port, host) };
  });
  const websocket = listen.tables("http").flatMap((port) => {
    const handlers = port.table("handlers");
    const [handler] = handlers?.tables("mod_websockets") ?? [];
    if (handler === undefined) return [];
    handler.ignore("host");
    handler.text("path");
    handler.note("path", 'the path is "/xmpp-websocket" here');
    const transport = port.table("transport");
    transport?.ignore("num_acceptors");
    transport?.lost("max_connections", "not translated: see max_connections under [limits]");
    port.ignore("protocol");
    const host = port.text("ip_address") ?? "0.0.0.0";
    const tls = certificate(port.table("tls"));
    return [{
      host,
      port: port.integer("port") ?? 5280,
      ...tls === undefined ? plaintext(host) : { tls },
    }];
  });
  for (const key of ["service", "component"]) {
    listen.lost(
      key,
      "not translated: a component's domain is named beside its secret here; write " +
        "[[listen.component]] with domains",
    );
  }
  return { c2s, websocket };
}

function clientTls(port: ForeignTable, host: string): Table {
  const tls = port.table("tls");
  const files = certificate(tls);
  if (tls === undefined || files === undefined) {
    port.note("port", "passwords and messages travel in the clear, as they did");
    return { tls: { mode: "none" }, ...plaintext(host) };
  }
  const mode = tls.text("mode") ?? "starttls";
  if (mode === "starttls") tls.note("mode", "clients must use TLS before they log in here");
  return { tls: { mode: mode === "tls" ? "direct" : "starttls", ...files } };
}

function plaintext(host: string): Table {
  return isLoopbackHost(host) ? {} : { allow_plaintext: true };
}

function certificate(tls: ForeignTable | undefined): Table | undefined {
  if (tls === undefined) return undefined;
  for (const key of ["ciphers", "dhfile", "versions", "protocol_options"]) {
    tls.lost(key, NO_TLS_CHOICE);
  }
  tls.ignore("module", "disconnect_on_failure");
  const certfile = tls.text("certfile");
  if (certfile === undefined) return undefined;
  if (tls.text("verify_mode") === "none") tls.ignore("cacertfile");
  return defined({ certfile, keyfile: tls.text("keyfile") });
}

/** Methods of logging in whose accounts a backend of the same name may hold here. */
const SERVED_METHODS = ["internal", "rdbms", "ldap", "riak"] as const;

function translateAuth(auth: ForeignTable | undefined): Table | undefined {
  if (auth === undefined) return undefined;
  // Newer versions name the method by its table alone.
  const methods = auth.texts("methods") ??
    [...SERVED_METHODS, "http", "jwt", "external"].filter((each) => auth.has(each));
  auth.table("internal");
  auth.table("rdbms");
  translateRiakNames(auth.table("riak"), { bucket_type: "users" });
  const [method] = methods;
  const served = SERVED_METHODS.some((each) => each === method);
  if (methods.length > 1 || (method !== undefined && !served)) {
    auth.lost(
      "methods",
      `not translated whole: one of ${SERVED_METHODS.join(", ")} serves a host here`,
    );
  }
  if (method === "internal") {
    auth.note("methods", "accounts in Mnesia stay there: move them with causeway import");
  }
  const password = auth.table("password");
  if (password?.text("format") === "plain") {
    password.note("format", "passwords are kept as SCRAM keys here");
  }
  password?.note("hash", "keys for SHA-1 and for SHA-256 are kept here, and no others");
  password?.ignore("hash");
  const iterations = password?.integerWithin("scram_iterations", 10_000, 10_000_000) ??
    auth.integerWithin("scram_iterations", 10_000, 10_000_000);
  const mechanisms = auth.texts("sasl_mechanisms");
  const known = mechanisms?.map((each) => MECHANISMS[each]).filter((each) => each !== undefined);
  if (mechanisms !== undefined && mechanisms.some((each) => MECHANISMS[each] === undefined)) {
    auth.lost("sasl_mechanisms", "not translated whole: SCRAM with SHA-256 and SHA-1, and PLAIN");
  }
  if (method === "ldap" && known?.some((each) => each !== "PLAIN")) {
    auth.note("sasl_mechanisms", "a host with accounts in LDAP offers PLAIN alone here");
  }
  const ldap = method === "ldap" ? auth.table("ldap") : undefined;
  return defined({
    backend: served ? method : undefined,
    mechanisms: method === "ldap"
      ? ["PLAIN"]
      : known === undefined || known.length === 0
      ? undefined
      : [...new Set(known)],
    scram_iterations: iterations,
    ldap: ldap && defined({
      pool_tag: ldap.text("pool_tag"),
      bind_pool_tag: ldap.text("bind_pool_tag"),
      base: ldap.text("base"),
      uids: ldap.value("uids"),
      filter: ldap.text("filter"),
      local_filter: ldap.value("local_filter"),
      deref: ldap.text("deref"),
    }),
  });
}

function translateDistribution(
  source: ForeignTable | undefined,
  pools: ForeignTable | undefined,
): Table | undefined {
  if (source === undefined) return undefined;
  const connections = source.table("connections");
  const cache = source.table("cache");
  return defined({
    global_host: source.text("global_host"),
    local_host: source.text("local_host"),
    message_ttl: source.integer("message_ttl"),
    hosts_refresh_interval: source.integerWithin("hosts_refresh_interval", 1, MOST_MS),
    connections: defined({
      endpoints: connections?.value("endpoints"),
      advertised_endpoints: connections?.value("advertised_endpoints") || undefined, // false: none
      connections_per_endpoint: connections?.integerWithin("connections_per_endpoint", 1, 1000),
      endpoint_refresh_interval: connections?.integerWithin(
        "endpoint_refresh_interval",
        1,
        MOST_SECONDS,
      ),
      endpoint_refresh_interval_when_empty: connections?.integerWithin(
        "endpoint_refresh_interval_when_empty",
        1,
        MOST_SECONDS,
      ),
      disabled_gc_interval: connections?.integerWithin("disabled_gc_interval", 1, MOST_SECONDS),
      tls_opts: linkTls(connections),
    }),
    redis: translateRedis(source.table("redis"), pools?.table("redis")),
    cache: cache && defined({
      cache_missed: cache.boolean("cache_missed"),
      domain_lifetime_seconds: cache.integer("domain_lifetime_seconds"),
      jid_lifetime_seconds: cache.integer("jid_lifetime_seconds"),
      max_jids: cache.integerWithin("max_jids", 1, 100_000_000),
    }),
    bounce: translateBounce(source),
  });
}

/** Reads `connections.tls` and its older spelling, `connections.tls_opts`. */
function linkTls(connections: ForeignTable | undefined): Table | false {
  const tls = connections?.table("tls") ?? connections?.table("tls_opts");
  if (connections?.has("tls_opts")) connections.ignore("tls_opts"); // false: without TLS
  if (tls === undefined || tls.boolean("enabled") === false) {
    tls?.ignore(...tls.keys);
    return false;
  }
  tls.ignore("module");
  if (tls.text("verify_mode") === "none") {
    tls.note("verify_mode", "the certificates of links are always checked here");
  }
  for (const key of ["ciphers", "dhfile", "versions", "protocol_options"]) {
    tls.lost(key, "not translated: links use TLS 1.3 alone, where it would have no effect");
  }
  return defined({
    certfile: tls.text("certfile"),
    cafile: tls.text("cacertfile") ?? tls.text("cafile"),
    keyfile: tls.text("keyfile"),
  });
}

/** Reads the pool that `redis.pool` names, or the older options, which name the server themselves. */
function translateRedis(redis: ForeignTable | undefined, pools: ForeignTable | undefined): Table {
  const pool = pools?.table(redis?.text("pool") ?? "global_distrib");
  const connection = pool?.table("connection");
  pool?.ignore("scope", "strategy");
  pool?.note("call_timeout", "a connection that takes longer to answer is replaced here");
  if (connection?.integer("database") === 0) connection.ignore("database");
  else connection?.lost("database", "not translated: database 0 of a Redis of its own is used");
  return defined({
    server: connection?.text("host") ?? redis?.text("server"),
    port: connection?.integer("port") ?? redis?.integer("port") ?? (pool && 6379),
    tls: connection && redisTlsOf(connection),
    password: connection?.text("password") ?? redis?.text("password"),
    pool_size: pool?.integerWithin("workers", 1, 64) ?? redis?.integerWithin("pool_size", 1, 64),
    replication: "external", // Dynomite carries the table, as it did
    expire_after: redis?.integer("expire_after"),
    refresh_after: redis?.integerWithin("refresh_after", 1, MOST_SECONDS),
    command_timeout_ms: pool?.integerWithin("call_timeout", 100, 60_000),
  });
}

function redisTlsOf(connection: ForeignTable): Table | undefined {
  const files = tlsOf(connection);
  if (files === false) return undefined;
  const indication = connection.table("tls")?.table("server_name_indication");
  indication?.ignore("enabled", "protocol");
  return defined({ ...files, servername: indication?.text("host") });
}

function translateBounce(source: ForeignTable): Table | false | undefined {
  const bounce = source.table("bounce");
  if (bounce === undefined) return source.boolean("bounce") === false ? false : undefined;
  const isEnabled = bounce.boolean("enabled") ?? true;
  const options = defined({
    resend_after_ms: bounce.integerWithin("resend_after_ms", 1, MOST_MS),
    max_retries: bounce.integer("max_retries"),
  });
  return isEnabled && options;
}
