import type { NodeIdentity } from "./ports.ts";

/**
 * Which nodes a `LinkLayer` links to: those of other datacenters (`mesh`), where a destination is a
 * local host with any number of nodes, or the other nodes of this datacenter (`datacenter`), where a
 * destination is one node.
 */
export type LinkScope = "mesh" | "datacenter";

/** The destination that a peer belongs to. */
export function destinationOf(
  scope: LinkScope,
  peer: { readonly localHost: string; readonly nodeName: string },
): string {
  return scope === "mesh" ? peer.localHost : peer.nodeName;
}

/** Whom the dialler of a link to `destination` demands at the other end. */
export function expectedPeer(
  scope: LinkScope,
  destination: string,
  identity: NodeIdentity,
): { readonly host: string; readonly node: string | undefined } {
  return scope === "mesh"
    ? { host: destination, node: undefined }
    : { host: identity.localHost, node: destination };
}

/** True when a peer of our own datacenter names another id for it than we do: one of us is wrong. */
export function doubtsIdentity(
  { scope, identity }: { readonly scope: LinkScope; readonly identity: NodeIdentity },
  peer: { readonly datacenterId: string },
): boolean {
  const ours = identity.datacenterId();
  const theirs = peer.datacenterId;
  return scope === "datacenter" && ours !== "" && theirs !== "" && ours !== theirs;
}
