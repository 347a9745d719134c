import { joinWords } from "./schema_walk.ts";
import { isLoopbackHost } from "./loopback.ts";
import { nearestKey } from "./nearest_key.ts";
import { roomsAreTheGlobalHosts } from "./room_rules.ts";
import type { PartialFile } from "./partial_file.ts";
import { LIMITS } from "./schema_limits.ts";
import { ADMIN, C2S, WEBSOCKET } from "./schema_listen.ts";
import { REDIS } from "./schema_modules.ts";
import type { Mistake } from "./shape_findings.ts";
import { normalizeDomain } from "./normalize_domain.ts";

/**
 * Bytes of a frame besides the stanza as received: the head, sender and recipient of 3 071 bytes
 * each, and 16 384 bytes by which a stanza may grow when it is stamped.
 */
export const FRAME_OVERHEAD_BYTES = 24_576;

/** Bytes of a request besides the vCard or the item that it brings. */
const REQUEST_OVERHEAD_BYTES = 8_192;

/** Domains that no host or component can have: the session table itself uses their keys in Redis. */
export const RESERVED_DOMAINS: ReadonlySet<string> = new Set(["hosts"]);

type Rule = (file: PartialFile) => readonly Mistake[];

/**
 * Demands of one option on another. Each rule skips values that are missing or of a wrong shape,
 * and takes defaults from the schema.
 */
const RULES: readonly Rule[] = [
  hostsAreDistinct,
  hostsAreNoKeys,
  distributedHostsAreServed,
  hostConfigIsServed,
  offlineStaysOffDistributedHosts,
  roomsAreTheGlobalHosts,
  refreshPrecedesExpiry,
  redisIsInOnePlace,
  redisOptionsBelongTogether,
  clientPortsAreEncrypted,
  webSocketsAreEncrypted,
  componentDomainsAreDistinct,
  adminIsGuarded,
  adminNamesDiffer,
  adminCertificatesAreVerified,
  collectorHeadersAreEncrypted,
  stanzasFitFrames,
  payloadsFitStanzas,
  stanzasFitShares,
  creditFitsOutput,
  clusterAddressIsOne,
];

/** Returns every mistake that breaks a rule. */
export function applyRules(file: PartialFile): Mistake[] {
  return RULES.flatMap((rule) => rule(file));
}

function hostsAreDistinct(file: PartialFile): Mistake[] {
  const seen = new Set<string>();
  const mistakes: Mistake[] = [];
  for (const [position, host] of (file.hosts ?? []).entries()) {
    const name = normalizeDomain(host);
    if (seen.has(name)) {
      mistakes.push({ path: ["hosts", position], problem: `"${host}" is listed twice` });
    }
    seen.add(name);
  }
  return mistakes;
}

function hostsAreNoKeys(file: PartialFile): Mistake[] {
  return (file.hosts ?? []).flatMap((host, position) =>
    RESERVED_DOMAINS.has(normalizeDomain(host))
      ? [{ path: ["hosts", position], problem: isReserved(host) }]
      : []
  );
}

function isReserved(domain: string): string {
  return `"${domain}" is a key of the session table, and cannot be a domain`;
}

function distributedHostsAreServed(file: PartialFile): Mistake[] {
  const module = file.modules?.mod_global_distrib;
  const mistakes: Mistake[] = [];
  for (const key of ["global_host", "local_host"] as const) {
    const host = module?.[key];
    if (host !== undefined) {
      mistakes.push(...mustBeServed(file, host, ["modules", "mod_global_distrib", key]));
    }
  }
  const { global_host: globalHost, local_host: localHost } = module ?? {};
  if (globalHost === undefined || localHost === undefined) return mistakes;
  if (normalizeDomain(globalHost) === normalizeDomain(localHost)) {
    mistakes.push({
      path: ["modules", "mod_global_distrib", "local_host"],
      problem: `expected a domain of this datacenter alone, found the global host "${localHost}"`,
    });
  }
  return mistakes;
}

function hostConfigIsServed(file: PartialFile): Mistake[] {
  return Object.keys(file.host_config ?? {}).flatMap((host) => {
    const path = ["host_config", host];
    const mistakes = mustBeServed(file, host, path);
    // TOML takes the dots of a name without quotes for tables within tables.
    const whole = file.hosts?.find((name) => name.startsWith(`${host}.`));
    return mistakes.length === 0 || whole === undefined
      ? mistakes
      : [{ path, problem: `a name with dots needs quotes, as in [host_config."${whole}"]` }];
  });
}

function mustBeServed(file: PartialFile, host: string, path: readonly string[]): Mistake[] {
  const { hosts } = file;
  if (hosts === undefined) return [];
  const names = hosts.map(normalizeDomain);
  if (names.includes(normalizeDomain(host))) return [];
  const nearest = nearestKey(host, names);
  const question = nearest === undefined ? "" : `, did you mean "${nearest}"?`;
  const allowed = joinWords(names.map((name) => `"${name}"`));
  return [{ path, problem: `expected one of hosts (${allowed}), found "${host}"${question}` }];
}

function offlineStaysOffDistributedHosts(file: PartialFile): Mistake[] {
  const { global_host: globalHost, local_host: localHost } = file.modules?.mod_global_distrib ?? {};
  if (file.modules?.mod_offline !== undefined) {
    return [{
      path: ["modules", "mod_offline"],
      problem:
        "not allowed: here it is active on every host, and mod_offline must not be active on " +
        "the global host or the local host; name the other hosts it is for, as " +
        '[host_config."HOST".modules.mod_offline]',
    }];
  }
  return Object.entries(file.host_config ?? {}).flatMap(([host, config]) => {
    if (config?.modules?.mod_offline === undefined) return [];
    const name = normalizeDomain(host);
    const path = ["host_config", host, "modules", "mod_offline"];
    const refused = (kind: string) => [{
      path,
      problem: `not allowed: mod_offline must not be active on the ${kind} host "${host}"`,
    }];
    if (globalHost !== undefined && name === normalizeDomain(globalHost)) return refused("global");
    if (localHost !== undefined && name === normalizeDomain(localHost)) return refused("local");
    return [];
  });
}

function refreshPrecedesExpiry(file: PartialFile): Mistake[] {
  const redis = file.modules?.mod_global_distrib?.redis;
  const { refresh_after: refreshAfter, expire_after: expireAfter } = REDIS.parse(redis ?? {});
  if (refreshAfter < expireAfter) return [];
  const key = redis?.refresh_after === undefined ? "expire_after" : "refresh_after";
  const problem = key === "refresh_after"
    ? `expected less than expire_after (${expireAfter}), found ${refreshAfter}`
    : `expected more than refresh_after (${refreshAfter}), found ${expireAfter}`;
  return [{ path: ["modules", "mod_global_distrib", "redis", key], problem }];
}

const REDIS_PATH = ["modules", "mod_global_distrib", "redis"];

/** A server, Sentinels or a cluster: what one of them says, the others must not contradict. */
function redisIsInOnePlace(file: PartialFile): Mistake[] {
  const redis = file.modules?.mod_global_distrib?.redis ?? {};
  const has = (key: "sentinels" | "cluster") => (redis[key]?.length ?? 0) > 0;
  const place = has("cluster") ? "cluster" : has("sentinels") ? "sentinels" : undefined;
  const mistakes: Mistake[] = [];
  const refuse = (key: keyof typeof redis, why: string) => {
    if (redis[key] === undefined) return;
    mistakes.push({ path: [...REDIS_PATH, key], problem: `not allowed ${why}` });
  };
  if (place !== undefined) {
    const why = `together with ${place}, which says where Redis is`;
    refuse("server", why);
    refuse("port", why);
    if (place === "cluster" && has("sentinels")) refuse("sentinels", why);
  }
  if (place === "cluster") {
    refuse("pool_size", "together with cluster: one connection goes to each of its masters");
  }
  if (!has("sentinels")) {
    for (const key of ["sentinel_name", "sentinel_username", "sentinel_password"] as const) {
      refuse(key, "without sentinels");
    }
  }
  return mistakes;
}

function redisOptionsBelongTogether(file: PartialFile): Mistake[] {
  const redis = file.modules?.mod_global_distrib?.redis ?? {};
  const { tls, server, username, password, sentinel_username: sentinelUsername } = redis;
  const mistakes: Mistake[] = [];
  const note = (key: string, problem: string) => {
    mistakes.push({ path: [...REDIS_PATH, ...key.split(".")], problem });
  };
  if (username !== undefined && password === undefined) {
    note("username", "not allowed without password");
  }
  if (sentinelUsername !== undefined && redis.sentinel_password === undefined) {
    note("sentinel_username", "not allowed without sentinel_password");
  }
  if (tls !== undefined && tls !== false && server?.startsWith("/")) {
    note("tls", `not allowed with a Unix socket, found server = "${server}"`);
  }
  if (typeof tls === "object" && tls.keyfile !== undefined && tls.certfile === undefined) {
    note("tls.keyfile", "not allowed without certfile, to which it belongs");
  }
  return mistakes;
}

function clientPortsAreEncrypted(file: PartialFile): Mistake[] {
  return (file.listen?.c2s ?? []).flatMap((listener, position) => {
    const path = ["listen", "c2s", position, "tls"];
    const { mode, certfile, keyfile } = listener.tls ?? {};
    if (mode === undefined) return [];
    if (mode !== "none") {
      if (certfile !== undefined) return [];
      return [{
        path: [...path, "certfile"],
        problem: `missing; mode "${mode}" needs a file path`,
      }];
    }
    const mistakes: Mistake[] = [];
    for (const [key, value] of Object.entries({ certfile, keyfile })) {
      if (value !== undefined) {
        mistakes.push({ path: [...path, key], problem: 'not allowed with mode "none"' });
      }
    }
    const host = C2S.shape.host.parse(listener.host);
    if (!isLoopbackHost(host) && listener.allow_plaintext !== true) {
      mistakes.push({
        path: [...path, "mode"],
        problem: `"none" is refused on ${host}, which is not loopback: expected "starttls" or ` +
          '"direct", or allow_plaintext = true beside tls',
      });
    }
    return mistakes;
  });
}

function webSocketsAreEncrypted(file: PartialFile): Mistake[] {
  return (file.listen?.websocket ?? []).flatMap((listener, position) => {
    const host = WEBSOCKET.shape.host.parse(listener.host);
    const isPlain = listener.tls === undefined && listener.allow_plaintext !== true;
    if (!isPlain || isLoopbackHost(host)) return [];
    return [{
      path: ["listen", "websocket", position, "tls"],
      problem: `missing; a port on ${host}, which is not loopback, needs it, or ` +
        "allow_plaintext = true",
    }];
  });
}

function componentDomainsAreDistinct(file: PartialFile): Mistake[] {
  const hosts = new Set(file.hosts?.map(normalizeDomain));
  const seen = new Set<string>();
  return (file.listen?.component ?? []).flatMap((listener, position) =>
    (listener.domains ?? []).flatMap((domain, domainPosition) => {
      if (domain.name === undefined) return [];
      const path = ["listen", "component", position, "domains", domainPosition, "name"];
      const name = normalizeDomain(domain.name);
      if (hosts.has(name)) {
        return [{ path, problem: `"${domain.name}" is one of hosts, and is served here itself` }];
      }
      if (RESERVED_DOMAINS.has(name)) return [{ path, problem: isReserved(domain.name) }];
      if (seen.has(name)) return [{ path, problem: `"${domain.name}" is listed twice` }];
      seen.add(name);
      return [];
    })
  );
}

function adminIsGuarded(file: PartialFile): Mistake[] {
  const host = ADMIN.shape.host.parse(file.listen?.admin?.host);
  const { token, tokens = [], certificates = [] } = file.listen?.admin ?? {};
  const isGuarded = token !== undefined || tokens.length > 0 || certificates.length > 0;
  if (isLoopbackHost(host) || isGuarded) return [];
  return [{
    path: ["listen", "admin", "token"],
    problem: `missing; the admin port on ${host}, which is not loopback, needs a token`,
  }];
}

/** Checks that client certificates are verified by authorities of the operator's own. */
function adminCertificatesAreVerified(file: PartialFile): Mistake[] {
  const { tls, certificates = [] } = file.listen?.admin ?? {};
  if (certificates.length === 0 || tls?.cafile !== undefined) return [];
  return [{
    path: ["listen", "admin", "certificates"],
    problem: "needs listen.admin.tls.cafile, by which client certificates are verified",
  }];
}

/** Checks that secrets for a collector do not travel in the clear. */
function collectorHeadersAreEncrypted(file: PartialFile): Mistake[] {
  const { endpoint, headers = {} } = file.observe?.otlp ?? {};
  const url = URL.parse(endpoint ?? "");
  if (url?.protocol !== "http:" || Object.keys(headers).length === 0) return [];
  const host = url.hostname.replace(/^\[|\]$/g, "");
  if (isLoopbackHost(host)) return [];
  return [{
    path: ["observe", "otlp", "endpoint"],
    problem: `expected an https URL, as headers for ${host}, which is not loopback, are secrets`,
  }];
}

/** Checks that the audit log can tell the holders of tokens apart. */
function adminNamesDiffer(file: PartialFile): Mistake[] {
  const { tokens = [], certificates = [] } = file.listen?.admin ?? {};
  const seen = new Set<string>();
  return ([["tokens", tokens], ["certificates", certificates]] as const).flatMap(([list, all]) =>
    all.flatMap((holder, position) => {
      const name = holder?.name?.toLowerCase();
      if (name === undefined) return [];
      if (!seen.has(name)) {
        seen.add(name);
        return [];
      }
      const path = ["listen", "admin", list, position, "name"];
      return [{ path, problem: `"${holder?.name}" is listed twice` }];
    })
  );
}

/**
 * Checks that the cluster address is a single address: the datacenter's other nodes connect to it,
 * and nobody can connect to "every address".
 */
function clusterAddressIsOne(file: PartialFile): Mistake[] {
  const host = file.modules?.mod_global_distrib?.connections?.cluster?.host;
  if (host !== "0.0.0.0" && host !== "::") return [];
  return [{
    path: ["modules", "mod_global_distrib", "connections", "cluster", "host"],
    problem: `expected an address of this node that the other nodes of its datacenter can reach, ` +
      `found "${host}"`,
  }];
}

/** Checks that a fair share, at most a fifth, has room for several of the longest stanzas. */
function stanzasFitShares(file: PartialFile): Mistake[] {
  const { max_stanza_bytes: stanzaBytes, waiting_max_bytes: found } = LIMITS.parse(
    file.limits ?? {},
  );
  const least = 16 * stanzaBytes;
  if (found >= least) return [];
  return [{
    path: ["limits", "waiting_max_bytes"],
    problem: `expected 16 times max_stanza_bytes (${least}) or more, found ${found}`,
  }];
}

/**
 * Checks that the output buffer has room for the most that a peer lets us send at once: its credit,
 * and the frame that exceeds the credit.
 */
function creditFitsOutput(file: PartialFile): Mistake[] {
  const limits = LIMITS.parse(file.limits ?? {});
  const least = limits.link_credit_bytes + limits.link_max_frame_bytes;
  const found = limits.link_max_pending_bytes;
  if (found >= least) return [];
  return [{
    path: ["limits", "link_max_pending_bytes"],
    problem: `expected link_credit_bytes + link_max_frame_bytes (${least}) or more, found ${found}`,
  }];
}

/**
 * Checks that the largest vCard and the largest item that a module allows fit into a stanza. A
 * default that does not is no mistake: `max_stanza_bytes` is the smaller bound then.
 */
function payloadsFitStanzas(file: PartialFile): Mistake[] {
  const { max_stanza_bytes: stanzaBytes } = LIMITS.parse(file.limits ?? {});
  const most = stanzaBytes - REQUEST_OVERHEAD_BYTES;
  const inModules = (path: readonly (string | number)[], modules: PartialFile["modules"]) =>
    ([["mod_vcard", "max_bytes"], ["mod_pubsub", "max_payload_size"]] as const).flatMap(
      ([name, option]) => {
        const module: unknown = modules?.[name];
        if (typeof module !== "object" || module === null) return [];
        const found: unknown = Reflect.get(module, option);
        if (typeof found !== "number" || found <= most) return [];
        return [{
          path: [...path, name, option],
          problem: `expected ${most} or less, so that a request with it fits max_stanza_bytes ` +
            `(${stanzaBytes}), found ${found}`,
        }];
      },
    );
  return [
    ...inModules(["modules"], file.modules),
    ...Object.entries(file.host_config ?? {}).flatMap(([host, config]) =>
      inModules(["host_config", host, "modules"], config?.modules)
    ),
  ];
}

function stanzasFitFrames(file: PartialFile): Mistake[] {
  const {
    max_stanza_bytes: stanzaBytes,
    link_max_frame_bytes: frameBytes,
    lane_max_bytes: laneBytes,
  } = LIMITS.parse(file.limits ?? {});
  const mistakes: Mistake[] = [];
  const leastFrame = stanzaBytes + FRAME_OVERHEAD_BYTES;
  if (frameBytes < leastFrame) {
    mistakes.push({
      path: ["limits", "link_max_frame_bytes"],
      problem: `expected ${leastFrame} or more, so that a stanza of max_stanza_bytes ` +
        `(${stanzaBytes}) fits a frame, found ${frameBytes}`,
    });
  }
  if (laneBytes < frameBytes) {
    mistakes.push({
      path: ["limits", "lane_max_bytes"],
      problem: `expected link_max_frame_bytes (${frameBytes}) or more, found ${laneBytes}`,
    });
  }
  return mistakes;
}
