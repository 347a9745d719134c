import type { SessionReturn } from "../xmpp/mod.ts";

/**
 * Reason why a stanza comes back to the router.
 *
 * | reason | who gives it back |
 * | --- | --- |
 * | `full` | a lane that has no room |
 * | `peer-restarted` | a lane whose peer's process is gone, while its datacenter is there |
 * | `peer-gone` | a lane whose endpoint refuses connections: the recipient may be elsewhere by now |
 * | `expired` | a lane whose datacenter was unreachable for long |
 * | `leaving` | a lane of this process, which stops |
 * | `node-gone` | a lane to another node of this datacenter, whose process is gone |
 * | `waited` | `HandoverOrder` or `CopyOrder`, where the stanza waited for earlier ones |
 * | `unacknowledged` | a session that ended before its client had acknowledged it |
 * | `passed-on` | such a session that had moved to another node, which had the stanza and is gone |
 * | `perhaps-delivered` | such a session that had moved to another node, which may still deliver it |
 * | `unreadable` | a session whose client's streams ended each time it was sent |
 */
export type ReturnReason =
  | "full"
  | "peer-restarted"
  | "peer-gone"
  | "expired"
  | "leaving"
  | "node-gone"
  | "waited"
  | SessionReturn;
