import type { NodeIdentity } from "../ports.ts";

/**
 * Set of nodes that a `LinkLayer` links to. `mesh`: nodes of other datacenters, where a destination
 * is a local host with any number of nodes. `datacenter`: the other nodes of this datacenter, where
 * a destination is one node.
 */
export type LinkScope = "mesh" | "datacenter";

/** Returns the destination that a peer belongs to. */
export function destinationOf(
  scope: LinkScope,
  peer: { readonly localHost: string; readonly nodeName: string },
): string {
  return scope === "mesh" ? peer.localHost : peer.nodeName;
}

/** Returns the identity that the dialler of a link to `destination` demands of the peer. */
export function expectedPeer(
  scope: LinkScope,
  destination: string,
  identity: NodeIdentity,
): { readonly host: string; readonly node: string | undefined } {
  return scope === "mesh"
    ? { host: destination, node: undefined }
    : { host: identity.localHost, node: destination };
}

/** True when a peer of our own datacenter claims another datacenter id: one of the two is wrong. */
export function doubtsIdentity(
  { scope, identity }: { readonly scope: LinkScope; readonly identity: NodeIdentity },
  peer: { readonly datacenterId: string },
): boolean {
  const ours = identity.datacenterId();
  const theirs = peer.datacenterId;
  return scope === "datacenter" && ours !== "" && theirs !== "" && ours !== theirs;
}
