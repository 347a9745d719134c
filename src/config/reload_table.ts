import { z } from "zod";
import { FILE_SCHEMA } from "./file_schema.ts";
import { branchesOf, shapeOf, unwrap } from "./schema_walk.ts";
import type { KeyPath } from "./toml_lines.ts";

/**
 * Effect of a changed key on a node that reads its configuration again: `now`, `new` for connections,
 * streams or links that begin afterwards, or `restart` for one that only a restart brings.
 */
export type ReloadEffect = "now" | "new" | "restart";

/** Stands for a name that the operator chooses, such as that of a pool. */
const ANY_NAME = "NAME";

/** Returns one entry for each of `keys` of the table `path`. */
function each(path: string, effect: ReloadEffect, keys: string): Record<string, ReloadEffect> {
  return Object.fromEntries(
    keys.trim().split(/\s+/).map((key) => [`${path}.${key}`, effect]),
  );
}

const DISTRIB = "modules.mod_global_distrib";

/**
 * The effect of each key. An entry counts for everything below its key, unless a longer entry says
 * otherwise. The keys of `limits` have an entry each, so that a new limit is not forgotten.
 */
const EFFECTS: Readonly<Record<string, ReloadEffect>> = {
  hosts: "restart",
  node_name: "restart",
  listen: "restart",
  ...each("listen.c2s.tls", "new", "certfile keyfile"),
  ...each("listen.websocket.tls", "new", "certfile keyfile"),
  ...each("listen.component.tls", "new", "certfile keyfile"),
  "listen.component.domains": "new",
  ...each("listen.admin.tls", "new", "certfile keyfile"),
  auth: "restart",
  storage: "restart",
  log: "now",
  observe: "restart",
  ...each(
    "limits",
    "new",
    `max_stanza_bytes max_depth max_attributes authentication_timeout max_connections
    tls_handshake_timeout close_timeout max_unauthenticated_bytes max_late_bytes
    max_directed_presence max_held_presence sasl_attempts max_pending_bytes
    slow_reader_timeout websocket_max_fragments http_max_head_bytes link_handshake_timeout
    link_max_connections link_silence_timeout link_max_pending_bytes`,
  ),
  ...each(
    "limits",
    "now",
    `max_unauthenticated max_connections_per_address max_sessions_per_account
    max_pending_requests max_pending_requests_per_account max_iq_bytes max_iq_elements
    account_check_interval
    connection_rate_per_address connection_burst_per_address login_rate_per_address
    login_burst_per_address failed_login_rate_per_account failed_login_burst_per_account
    session_rate_per_node session_burst_per_node
    stanza_rate_per_account stanza_burst_per_account stanza_rate_per_address
    stanza_burst_per_address stanza_rate_per_component stanza_burst_per_component
    keepalive_interval link_max_unauthenticated link_credit_bytes link_max_lanes
    link_lane_lifetime datacenter_max_links
    datacenter_max_unauthenticated datacenter_max_lanes waiting_max_bytes
    lookup_rate_per_account lookup_burst_per_account lookup_rate_per_component
    lookup_burst_per_component shutdown_timeout`,
  ),
  ...each(
    "limits",
    "restart",
    `kept_requests kept_requests_per_sender kept_requests_per_contact kept_request_bytes
    roster_max_items roster_max_requests roster_max_groups roster_max_name_bytes
    wrong_token_rate_per_address wrong_token_burst_per_address rate_max_keys admin_max_connections
    admin_request_timeout admin_max_head_bytes admin_max_body_bytes max_owed_bytes
    link_max_frame_bytes
    datacenter_max_nodes datacenter_max_endpoints datacenter_max_endpoints_per_node
    datacenter_max_claims
    datacenter_max_claims_per_account datacenter_max_domains datacenter_max_lease
    link_max_unsettled link_max_senders lane_max_bytes lane_max_items lookup_max_items
    lookup_max_bytes handover_max_items handover_max_bytes repeat_max_pairs resend_max_messages`,
  ),
  modules: "restart",
  ...each(DISTRIB, "now", "message_ttl hosts_refresh_interval"),
  ...each(
    `${DISTRIB}.connections`,
    "now",
    `advertised_endpoints connections_per_endpoint endpoint_refresh_interval
    endpoint_refresh_interval_when_empty disabled_gc_interval seeds`,
  ),
  ...each(`${DISTRIB}.connections.tls_opts`, "new", "certfile keyfile cafile"),
  ...each(`${DISTRIB}.bounce`, "now", "resend_after_ms max_retries"),
  host_config: "restart",
  rdbms_server_type: "restart",
  outgoing_pools: "restart",
  ...Object.fromEntries(
    ["cassandra", "elastic", "riak", "ldap", "rdbms"].flatMap((kind) =>
      Object.entries(poolEffects(kind))
    ),
  ),
  global_distrib_addr: "now",
};

/** The effects of the keys of all pools of one kind: those that open connections. */
function poolEffects(kind: string): Record<string, ReloadEffect> {
  const pool = `outgoing_pools.${kind}.${ANY_NAME}`;
  return each(pool, "now", "workers max_waiting call_timeout connection");
}

/**
 * Returns the effect of the key at `path`, below a name that the operator chooses too; undefined when
 * the table has no entry for it.
 */
export function reloadEffectOf(path: KeyPath): ReloadEffect | undefined {
  const pattern = patternOf(path);
  for (let depth = pattern.length; depth > 0; depth--) {
    const effect = EFFECTS[pattern.slice(0, depth).join(".")];
    if (effect !== undefined) return effect;
  }
  return undefined;
}

/** Returns the entries whose key is not in the schema; none, unless the table is wrong. */
export function strayEffects(): readonly string[] {
  return Object.keys(EFFECTS).filter((key) => !isInSchema(key.split(".")));
}

/** Leaves positions out of `path`, and replaces names that the operator chooses. */
function patternOf(path: KeyPath): readonly string[] {
  const pattern: string[] = [];
  let schemas: readonly z.ZodType[] = [FILE_SCHEMA];
  for (const key of path) {
    if (typeof key === "number") continue;
    const tables = schemas.flatMap(tablesOf);
    const record = tables.find((table) => table instanceof z.ZodRecord);
    const named = tables.flatMap((table) => shapeOf(table)?.[key] ?? []);
    if (named.length === 0 && record !== undefined) {
      pattern.push(ANY_NAME);
      schemas = [record.valueType as z.ZodType]; // zod declares its core type here
    } else {
      pattern.push(key);
      schemas = named;
    }
  }
  return pattern;
}

function isInSchema(pattern: readonly string[]): boolean {
  let schemas: readonly z.ZodType[] = [FILE_SCHEMA];
  for (const key of pattern) {
    const tables = schemas.flatMap(tablesOf);
    schemas = tables.flatMap((table) => {
      if (table instanceof z.ZodRecord) {
        return key === ANY_NAME ? [table.valueType as z.ZodType] : []; // as above
      }
      return shapeOf(table)?.[key] ?? [];
    });
  }
  return schemas.length > 0;
}

/** Returns the tables that a value of `schema` may be, or that its items may be. */
function tablesOf(schema: z.ZodType): readonly z.ZodType[] {
  return branchesOf(unwrap(schema).schema).flatMap((branch) => {
    const { schema: plain } = unwrap(branch);
    // zod declares its core type here; every schema of this file is made by the classic one.
    return plain instanceof z.ZodArray ? tablesOf(plain.element as z.ZodType) : [plain];
  });
}
