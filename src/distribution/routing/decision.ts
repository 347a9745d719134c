import { FullJid, isSubdomain } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { isRoomDomain } from "../mod.ts";
import type { UserHosts } from "../mod.ts";

/** The domains that a decision depends on (docs/glossary.md). */
export interface Domains extends UserHosts {
  readonly localHost: string;
  /** True for a domain that names another datacenter of the mesh. */
  isOtherLocalHost(domain: string): boolean;
}

/**
 * Decision on a stanza before any lookup, one name for each row of docs/promises.md, "Routing":
 *
 * | decision | what follows |
 * | --- | --- |
 * | `local` | delivered here, without the table |
 * | `local-user` | a user of the local host or another of `hosts`: delivered at this datacenter alone |
 * | `own-resource` | one of the sender's own resources: here, unless the table places it in another DC |
 * | `other-datacenter` | sent to the datacenter that the recipient's domain names |
 * | `user` | session table, by JID |
 * | `component` | session table, by domain |
 * | `outside` | session table, by domain; without an entry `remote-server-not-found`, never bounced |
 */
export type Decision =
  | "local"
  | "local-user"
  | "own-resource"
  | "other-datacenter"
  | "user"
  | "component"
  | "outside";

/** Returns the decision of the first row that fits. Pure. */
export function decide(from: Jid, to: Jid, domains: Domains): Decision {
  const domain = to.domainpart;
  if (from.domainpart === domain && from.bare.text === to.bare.text) {
    return to instanceof FullJid && domain === domains.globalHost ? "own-resource" : "local";
  }
  if (domain === domains.globalHost) return to.localpart === "" ? "local" : "user";
  if (domains.hosts.has(domain)) return to.localpart === "" ? "local" : "local-user";
  if (isRoomDomain(domain, domains)) return "local";
  if (domains.isOtherLocalHost(domain)) return "other-datacenter";
  return isSubdomain(domain, domains.globalHost) ? "component" : "outside";
}
