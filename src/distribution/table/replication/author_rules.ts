import { tryParseJid } from "../../../xmpp/mod.ts";
import type { OpenLink } from "../../mod.ts";
import type { LeaseFields, TableRecord } from "../../wire/mod.ts";
import { isHost, isNodeName } from "../claims/claims.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import { formatEndpoint, tryParseEndpoint } from "../mesh/directory.ts";
import type { ResolvedTable } from "../options.ts";
import { fullJidKey, isReservedDomain } from "../redis/keys.ts";
import type { PeerFaults } from "./peer_faults.ts";
import type { Author } from "./replica_writer.ts";

/** The parts that `AuthorRules` works with. */
export interface AuthorRulesDeps {
  readonly options: ResolvedTable;
  readonly epochs: HybridClock;
  readonly faults: PeerFaults;
  /** True for the local host of another datacenter that has sent its own endpoints. */
  isLocalHost(domain: string): boolean;
}

/** Decides for whom an author may speak, and what it may claim. */
export class AuthorRules {
  readonly #deps: AuthorRulesDeps;

  constructor(deps: AuthorRulesDeps) {
    this.#deps = deps;
  }

  /** Checks that an author speaks only for itself, on its own links. */
  isItself(
    link: OpenLink,
    fields: { readonly process: number; readonly localHost?: string; readonly nodeName?: string },
  ): boolean {
    const { process, localHost = link.host, nodeName = link.nodeName } = fields;
    const isOwn = process === link.process && localHost === link.host &&
      nodeName === link.nodeName;
    if (isOwn && isHost(localHost) && isNodeName(nodeName)) return true;
    const what = isOwn ? "it has a name that cannot be" : "it tells of another node";
    const detail = `${what}: ${nodeName.slice(0, 100)} at ${localHost}`;
    this.#deps.faults.refused({ host: link.host, node: link.nodeName }, detail);
    return false;
  }

  /**
   * True for a user of the global host, or a component that is no host of ours and no local host.
   */
  mayClaim(author: Author, { name, resourcepart }: TableRecord): boolean {
    const { options, faults, isLocalHost } = this.#deps;
    const { globalHost, localHost, hosts } = options;
    // A host that several datacenters list is served in each: ignoring another's claim is no
    // refusal.
    if (hosts.includes(name) && name !== globalHost && name !== localHost) return false;
    const jid = tryParseJid(resourcepart === "" ? name : fullJidKey(name, resourcepart));
    const isWellFormed = jid !== undefined && jid.bare.text === name &&
      jid.text === (resourcepart === "" ? name : fullJidKey(name, resourcepart));
    const isAllowed = isWellFormed &&
      (jid.localpart === ""
        ? resourcepart === "" && !hosts.includes(name) && !isLocalHost(name) &&
          !isReservedDomain(name)
        : jid.domainpart === globalHost && resourcepart !== "");
    if (!isAllowed) faults.refused(author, "it claims what is not its own to claim");
    return isAllowed;
  }

  /**
   * Returns the lease within our bounds: no longer life than allowed, and only endpoints that
   * readers take.
   */
  bounded(lease: LeaseFields): LeaseFields {
    const { options, epochs, faults } = this.#deps;
    const { maxLeaseMs, maxEndpointsPerNode } = options.datacenter;
    const endpoints = lease.endpoints.flatMap((text) => tryParseEndpoint(text) ?? [])
      .map(formatEndpoint);
    if (endpoints.length > maxEndpointsPerNode) {
      const tooMany = endpoints.length - maxEndpointsPerNode;
      faults.limitHit(lease.localHost, "endpoints-per-node", maxEndpointsPerNode, tooMany);
    }
    return {
      ...lease,
      startedUs: epochs.bounded(lease.startedUs),
      lifeMs: Math.min(lease.lifeMs, maxLeaseMs),
      endpoints: endpoints.slice(0, maxEndpointsPerNode),
    };
  }
}
