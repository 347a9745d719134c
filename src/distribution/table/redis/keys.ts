/** All keys of the session table are built here; `docs/redis.md` lists them. */

/** Local hosts of the mesh. */
export const HOSTS_KEY = "hosts";

/** Node names of one datacenter. */
export function nodesKey(localHost: string): string {
  return `${localHost}#{nodes}`;
}

/** Domains of the components connected to one node. */
export function domainsKey(localHost: string, nodeName: string): string {
  return `${localHost}#${nodeName}#{domains}`;
}

/** Domains of those components that are not hidden. */
export function publicDomainsKey(localHost: string, nodeName: string): string {
  return `${localHost}#${nodeName}#{public_domains}`;
}

/** Endpoints of one node, `<host_or_ip>#<port>`. */
export function endpointsKey(localHost: string, nodeName: string): string {
  return `${localHost}#${nodeName}#{endpoints}`;
}

const CLAIMS_PREFIX = "causeway:claims:";

/** Hash of the claims on an account (bare JID) or a component's domain; field: session id. */
export function claimsKey(account: string): string {
  return CLAIMS_PREFIX + account;
}

/** Lease of a node: its incarnation and start time. */
export function leaseKey(localHost: string, nodeName: string): string {
  return `causeway:node:${localHost}#${nodeName}`;
}

/** Id of a datacenter. */
export function datacenterKey(localHost: string): string {
  return `causeway:dc:${localHost}`;
}

/** Number of the layout in which the table is written, see `REDIS_LAYOUT`. */
export const LAYOUT_KEY = "causeway:layout";

/** Nodes of other datacenters whose entries lie here, `<local_host>#<node_name>`. */
export const AUTHORS_KEY = "causeway:authors";

/** Hash: last known endpoints of each other datacenter. */
export const PEERS_KEY = "causeway:peers";

/** Number of the last change applied here of a node of another datacenter. */
export function appliedKey(localHost: string, nodeName: string): string {
  return `causeway:applied:${localHost}#${nodeName}`;
}

const REPLICA_PREFIX = "causeway:replica:";

/** One of the sets of claims that lie here for a node of another datacenter. */
export function replicaKey(localHost: string, nodeName: string, shard: number): string {
  return `${REPLICA_PREFIX}${localHost}#${nodeName}#${shard}`;
}

/** Returns the number of the set that `replicaKey` names; undefined for another key. */
export function shardOfKey(key: string): number | undefined {
  return key.startsWith(REPLICA_PREFIX) ? Number(key.slice(key.lastIndexOf("#") + 1)) : undefined;
}

/**
 * Hash of the addresses where each node of a datacenter accepts links from the others,
 * `<host_or_ip>#<port>`.
 */
export function clusterKey(localHost: string): string {
  return `causeway:cluster:${localHost}`;
}

/**
 * True for a domain whose key would be one of our own (`hosts`), or could be a part of one. A JID
 * with a localpart is safe: `@` stands in front of its domain, which contains neither `#` nor `{`.
 */
export function isReservedDomain(domain: string): boolean {
  return domain === HOSTS_KEY || domain.startsWith("causeway:") || /[#{}]/.test(domain);
}

/** Full JID of `account` with `resourcepart`. */
export function fullJidKey(account: string, resourcepart: string): string {
  return `${account}/${resourcepart}`;
}

/**
 * Returns the part of a key that decides on its connection. All keys of one account share one
 * connection, so that no write overtakes the claim that it follows from.
 */
export function orderingPart(key: string): string {
  const account = key.startsWith(CLAIMS_PREFIX) ? key.slice(CLAIMS_PREFIX.length) : key;
  const slash = account.indexOf("/");
  return slash === -1 ? account : account.slice(0, slash);
}
