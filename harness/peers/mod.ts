export type { LinkPeerOptions } from "./link_peer.ts";
export { helloOf, LinkPeer } from "./link_peer.ts";
export { type Act, ACTS } from "./malicious_acts.ts";
export {
  DEFAULT_ACTS_PER_SECOND,
  MALICIOUS_HOST,
  MaliciousPeer,
  type MaliciousPeerOptions,
} from "./malicious_peer.ts";
export { MiserlyPeer } from "./miserly_peer.ts";
