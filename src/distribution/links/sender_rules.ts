import { isSubdomain } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";

/** What is known of the mesh when a stanza comes over a link. */
export interface MeshFacts {
  readonly globalHost: string;
  /** True for the local host of any datacenter, ours included. */
  isLocalHost(domain: string): boolean;
  /** True for a component's domain that the session table knows. */
  isComponentDomain(domain: string): boolean;
}

/** Why a stanza from a link is refused. */
export type SenderRefusal = "sender-foreign" | "sender-host-forged";

/**
 * Checks the sender of a stanza that came over a link (`design.md` §6, trust): within the global
 * host any datacenter speaks for any user and component, a local host's name only its own.
 * @param origin local host where the stanza entered the mesh
 */
export function checkSender(
  sender: Jid,
  origin: string,
  mesh: MeshFacts,
): SenderRefusal | undefined {
  const domain = sender.domainpart;
  if (domain === mesh.globalHost) return undefined;
  if (mesh.isLocalHost(domain)) return domain === origin ? undefined : "sender-host-forged";
  if (isSubdomain(domain, mesh.globalHost)) return undefined;
  if (isSubdomain(domain, origin) && mesh.isLocalHost(origin)) return undefined;
  return mesh.isComponentDomain(domain) ? undefined : "sender-foreign";
}

/** True when the stanza may pass. */
export function isSenderAllowed(sender: Jid, origin: string, mesh: MeshFacts): boolean {
  return checkSender(sender, origin, mesh) === undefined;
}

/**
 * The sender that a stanza counts for: its full JID at the global host, its domain elsewhere.
 */
export function senderKey(from: Jid, globalHost: string): string {
  return from.domainpart === globalHost ? from.text : from.domainpart;
}
