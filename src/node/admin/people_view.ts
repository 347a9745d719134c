import type { Bounce, Component, Page, PageRange, Session, Where } from "../../admin/mod.ts";
import type { BouncingAddress, Domains, Router } from "../../distribution/routing/mod.ts";
import { decide } from "../../distribution/routing/mod.ts";
import type { SessionTable } from "../../distribution/table/mod.ts";
import type { ComponentRegistry, Jid, LocalSession, SessionRegistry } from "../../xmpp/mod.ts";
import { FullJid, parseJid, tryParseJid } from "../../xmpp/mod.ts";

/** Parts that know who is connected, and where. */
export interface PeopleParts {
  readonly sessions: SessionRegistry;
  readonly components: ComponentRegistry;
  readonly router: Router;
  readonly table: SessionTable;
  readonly domains: Domains;
}

/** Returns a page of the sessions of this node. */
export function sessionsOf(
  { sessions }: Pick<PeopleParts, "sessions">,
  { limit, offset }: PageRange,
  account?: string,
): Page<Session> {
  if (account !== undefined) {
    const own = sessions.ofAccount(tryParseJid(account)?.bare.text ?? account);
    return { items: own.slice(offset, offset + limit).map(sessionOf), total: own.length };
  }
  const page = Iterator.from(sessions.sessions()).drop(offset).take(limit).map(sessionOf);
  return { items: page.toArray(), total: sessions.count };
}

/** Returns the components of all datacenters, those of this node first. */
export async function componentsOf(
  { components, table }: Pick<PeopleParts, "components" | "table">,
  localHost: string,
): Promise<readonly Component[]> {
  const here = Array.from(components.components(), ({ domain, isHidden }): Component => ({
    domain,
    datacenter: localHost,
    isHere: true,
    isHidden,
  }));
  const [all, shown] = await Promise.all([table.allDomains(), table.publicDomains()]);
  const isShown = new Set(shown.map(({ domain, host }) => `${domain} ${host}`));
  const isOurs = new Set(here.map(({ domain }) => domain));
  const others = all
    .filter(({ domain, host }) => host !== localHost || !isOurs.has(domain))
    .map(({ domain, host }): Component => ({
      domain,
      datacenter: host,
      isHere: false,
      isHidden: !isShown.has(`${domain} ${host}`),
    }));
  return [...here, ...others];
}

/** Returns a page of the addresses that stanzas wait for. */
export function bouncesOf(
  { router }: Pick<PeopleParts, "router">,
  { limit, offset }: PageRange,
): Page<Bounce> & { readonly stanzas: number } {
  const items = router.inspectBounce(offset, limit).map(bounceOf);
  return { items, total: router.bouncingAddresses, stanzas: router.bouncing };
}

/** Returns what each place says of an address; undefined when it is no JID. */
export async function whereIs(
  address: string,
  parts: PeopleParts,
  { nodeName, nowMs }: {
    readonly nodeName: string;
    /** Wall time. */
    readonly nowMs: number;
  },
): Promise<Where | undefined> {
  const jid = tryParseJid(address);
  if (jid === undefined) return undefined;
  const { sessions, components, router, table, domains } = parts;
  const place = placedBy(jid, domains);
  const isDomain = place.localpart === "";
  const own = isDomain ? [] : sessions.ofAccount(place.bare.text).map(sessionOf);
  const isComponentHere = isDomain && components.find(place.domainpart) !== undefined;
  const { cache, redis } = await table.inspect(place);
  const claims = redis.isReachable
    ? redis.claims.map(({ host, node, resourcepart, priority, ageMs, isLive }) => ({
      datacenter: host,
      node,
      resource: resourcepart,
      ...(priority !== undefined && { priority }),
      since: new Date(nowMs - ageMs).toISOString(),
      ageMs,
      isLive,
    }))
    : [];
  const found: Omit<Where, "verdict"> = {
    jid: jid.text,
    ...(!isDomain && { account: jid.bare.text }),
    local: { sessions: own, isComponentHere, bouncingStanzas: router.bouncingFor(jid) },
    cache: cache.map(({ address, host, ageMs, expiresInMs }) => ({
      address,
      datacenter: host,
      ageMs,
      expiresInMs,
    })),
    redis: redis.isReachable
      ? {
        isReachable: true,
        tookMs: redis.tookMs,
        keys: redis.keys.map(({ key, host, expiresInMs }) => ({
          key,
          datacenter: host,
          ...(expiresInMs !== undefined && { expiresInMs }),
        })),
        claims,
      }
      : { isReachable: false, reason: redis.reason, keys: [], claims },
  };
  return { ...found, verdict: verdictOf(place, found, { domains, nodeName }) };
}

/** Returns the address that decides where stanzas go: that of a component has all of its domain. */
function placedBy(jid: Jid, domains: Domains): Jid {
  const decision = decide(parseJid(domains.localHost), jid, domains);
  return decision === "component" || decision === "outside" ? parseJid(jid.domainpart) : jid;
}

/**
 * Says where stanzas for the address go: this node's sessions first, then what the domain alone decides,
 * then Redis, then the cache.
 */
function verdictOf(
  jid: Jid,
  { local, cache, redis }: Omit<Where, "verdict">,
  { domains, nodeName }: { readonly domains: Domains; readonly nodeName: string },
): Where["verdict"] {
  const { localHost } = domains;
  const isHere = jid instanceof FullJid
    ? local.sessions.some((session) => session.jid === jid.text)
    : local.sessions.length > 0 || local.isComponentHere;
  if (isHere) {
    return {
      place: "here",
      datacenter: localHost,
      nodes: [nodeName],
      source: "local",
      text: `${jid.text} is connected to this node`,
    };
  }
  const decision = decide(parseJid(localHost), jid, domains);
  if (decision === "other-datacenter") {
    const place = jid.domainpart;
    return {
      place: "datacenter",
      datacenter: place,
      nodes: [],
      source: "domain",
      text: jid.localpart === ""
        ? `${jid.text} is another datacenter`
        : `Stanzas for ${jid.text} go to ${place}; its nodes alone know who is connected there`,
    };
  }
  if (decision === "local") {
    return {
      place: "here",
      datacenter: localHost,
      nodes: [nodeName],
      source: "domain",
      text: `${jid.text} is served by each node itself`,
    };
  }
  const live = redis.claims.filter(({ isLive, resource }) =>
    isLive && (!(jid instanceof FullJid) || resource === jid.resourcepart)
  );
  const newest = live.toSorted((one, other) => one.ageMs - other.ageMs)[0];
  const keyed = redis.keys.find(({ datacenter }) => datacenter !== null)?.datacenter;
  const datacenter = newest?.datacenter ?? keyed;
  if (datacenter !== undefined && datacenter !== null) {
    const nodes = [
      ...new Set(live.flatMap((claim) => claim.datacenter === datacenter ? [claim.node] : [])),
    ];
    const at = nodes.length === 0 ? "" : ` (${nodes.join(", ")})`;
    return {
      place: "datacenter",
      datacenter,
      nodes,
      source: "redis",
      text: `${jid.text} is at ${datacenter}${at}, as Redis says`,
    };
  }
  if (redis.isReachable) {
    const text = jid.localpart === ""
      ? `No datacenter serves ${jid.text}: it is none of hosts, and no such component is connected`
      : `${jid.text} is not connected`;
    return { place: "nowhere", nodes: [], source: "redis", text };
  }
  const cached = cache.find((answer) => answer.datacenter !== null)?.datacenter;
  if (cached !== undefined && cached !== null) {
    return {
      place: "datacenter",
      datacenter: cached,
      nodes: [],
      source: "cache",
      text: `${jid.text} was at ${cached} when Redis could last be asked`,
    };
  }
  const text = `Redis cannot be asked, and nothing of ${jid.text} is cached`;
  return { place: "unknown", nodes: [], source: "none", text };
}

function sessionOf(session: LocalSession): Session {
  const { jid, isOpen, isHibernating, priority, isManaged, hasCarbons, isConfidential } = session;
  return {
    jid: jid.text,
    state: isHibernating ? "hibernating" : isOpen ? "open" : "ending",
    isAvailable: priority !== undefined,
    ...(priority !== undefined && { priority }),
    isManaged,
    hasCarbons,
    isConfidential,
  };
}

function bounceOf({ nextRetryInMs, ...bounce }: BouncingAddress): Bounce {
  return { ...bounce, ...(nextRetryInMs !== undefined && { nextRetryInMs }) };
}
