export type { LinkPeerOptions } from "./link_peer.ts";
export { helloOf, LinkPeer } from "./link_peer.ts";
export { MiserlyPeer } from "./miserly_peer.ts";
