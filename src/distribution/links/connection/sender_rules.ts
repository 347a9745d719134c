import { isAsItSays, isSubdomain } from "../../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../../xmpp/mod.ts";

/** Facts about the mesh by which a stanza from a link is checked. */
export interface MeshFacts {
  readonly globalHost: string;
  /** Local host of this datacenter. */
  readonly localHost: string;
  /** True for the local host of any datacenter, ours included. */
  isLocalHost(domain: string): boolean;
  /** True for the incarnation of a node of our datacenter, including one that has ended. */
  isOwnProcess(process: number): boolean;
  /** True for a component's domain that the session table knows. */
  isComponentDomain(domain: string): boolean;
}

/** Reason why a sender is refused. */
export type SenderRefusal = "sender-foreign" | "sender-host-forged";

/** Reason why a stanza is refused; `stanza-differs` when its bytes contradict its frame. */
export type StanzaRefusal = SenderRefusal | "stanza-differs";

/** The place where a stanza entered the mesh, as its frame says. */
export interface StanzaOrigin {
  /** Local host. */
  readonly origin: string;
  /** Incarnation. */
  readonly process: number;
}

/**
 * Checks the sender of a stanza that came over a link (docs/security.md). Any datacenter may speak
 * for any user or component of the global host, but only for its own local host. The origin is the
 * peer's claim too, as the peer may only pass the stanza on. But a stanza that left this datacenter
 * and comes back names one of our processes.
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
 * Checks a stanza that came over a link: its sender, and that its bytes, which the recipient reads,
 * agree with the frame.
 */
export function checkStanza(
  arrived: StanzaOrigin & { readonly stanza: Stanza },
  mesh: MeshFacts,
): StanzaRefusal | undefined {
  const refusal = checkSender(arrived.stanza.from, arrived, mesh);
  return refusal ?? (isAsItSays(arrived.stanza) ? undefined : "stanza-differs");
}
