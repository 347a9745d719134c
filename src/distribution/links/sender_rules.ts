import { isAsItSays, isSubdomain } from "../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";

/** What is known of the mesh when a stanza comes over a link. */
export interface MeshFacts {
  readonly globalHost: string;
  /** Ours. */
  readonly localHost: string;
  /** True for the local host of any datacenter, ours included. */
  isLocalHost(domain: string): boolean;
  /** True for the incarnation of a node of our datacenter, one that has ended as well. */
  isOwnProcess(process: number): boolean;
  /** True for a component's domain that the session table knows. */
  isComponentDomain(domain: string): boolean;
}

/** Why a stanza from a link is refused. */
export type SenderRefusal = "sender-foreign" | "sender-host-forged";

/** `stanza-differs` from what its frame says of it. */
export type StanzaRefusal = SenderRefusal | "stanza-differs";

/** Where a stanza entered the mesh, as its frame says. */
export interface StanzaOrigin {
  /** Local host. */
  readonly origin: string;
  /** Incarnation. */
  readonly process: number;
}

/**
 * Checks the sender of a stanza that came over a link (docs/security.md): within the global
 * host any datacenter speaks for any user and component, a local host's name only its own. Where a
 * stanza entered is the peer's word too, as whoever passes it on is not who sent it; but what has
 * gone out from here and comes back names a process that was ours.
 */
export function checkSender(
  sender: Jid,
  { origin, process }: StanzaOrigin,
  mesh: MeshFacts,
): SenderRefusal | undefined {
  const domain = sender.domainpart;
  if (domain === mesh.globalHost) return undefined;
  const isCredible = origin !== mesh.localHost || mesh.isOwnProcess(process);
  if (mesh.isLocalHost(domain)) {
    return domain === origin && isCredible ? undefined : "sender-host-forged";
  }
  if (isSubdomain(domain, mesh.globalHost)) return undefined;
  if (isSubdomain(domain, origin) && mesh.isLocalHost(origin) && isCredible) return undefined;
  return mesh.isComponentDomain(domain) ? undefined : "sender-foreign";
}

/**
 * Checks a stanza that came over a link: its sender, and that its bytes say what the frame says of it.
 * Those are what its recipient reads.
 */
export function checkStanza(
  arrived: StanzaOrigin & { readonly stanza: Stanza },
  mesh: MeshFacts,
): StanzaRefusal | undefined {
  const refusal = checkSender(arrived.stanza.from, arrived, mesh);
  return refusal ?? (isAsItSays(arrived.stanza) ? undefined : "stanza-differs");
}
