import { FullJid, isSubdomain } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";

/** The domains that the decision turns on (`design.md` §1, §3). */
export interface Domains {
  readonly globalHost: string;
  readonly localHost: string;
  /** Every domain in the configuration's `hosts`, the two above among them. */
  readonly hosts: ReadonlySet<string>;
  /** True for a domain that names another datacenter of the mesh. */
  isOtherLocalHost(domain: string): boolean;
}

/**
 * Where a stanza goes before anybody is asked, one name for each row of `design.md` §5:
 *
 * | decision | what follows |
 * | --- | --- |
 * | `local` | delivered here, no table |
 * | `own-resource` | one of the sender's own resources: here, unless the table places it in another DC |
 * | `other-datacenter` | sent to the datacenter that the recipient's domain names |
 * | `user` | session table, by JID |
 * | `component` | session table, by domain |
 * | `outside` | session table, by domain; without an entry `remote-server-not-found`, never bounced |
 */
export type Decision =
  | "local"
  | "own-resource"
  | "other-datacenter"
  | "user"
  | "component"
  | "outside";

/** Applies the first row that fits. Pure. */
export function decide(from: Jid, to: Jid, domains: Domains): Decision {
  const domain = to.domainpart;
  if (from.domainpart === domain && from.bare.text === to.bare.text) {
    return to instanceof FullJid && domain === domains.globalHost ? "own-resource" : "local";
  }
  if (domain === domains.globalHost) return to.localpart === "" ? "local" : "user";
  if (domains.hosts.has(domain)) return "local";
  if (domains.isOtherLocalHost(domain)) return "other-datacenter";
  return isSubdomain(domain, domains.globalHost) ? "component" : "outside";
}
