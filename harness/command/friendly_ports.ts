import { FREE_PORTS } from "../cluster/mod.ts";
import type { NodePlace, NodePorts } from "../cluster/mod.ts";

/**
 * Ports that people can guess (5222 is XMPP's own) for each datacenter's first node, spread by
 * datacenter; 0 for other nodes and where one is taken, so that something else is found. Only for
 * people: whoever takes a port between this look and the node's start makes that start fail, which a
 * test must not risk.
 */
export function friendlyPorts(place: Pick<NodePlace, "datacenter" | "node">): NodePorts {
  if (place.node > 0) return FREE_PORTS;
  const block = 10 * place.datacenter;
  return {
    starttls: ifFree(5222 + block),
    direct: ifFree(5223 + block),
    none: ifFree(5224 + block),
    ws: ifFree(5280 + block),
    wss: ifFree(5281 + block),
    component: ifFree(5347 + place.datacenter),
    links: 0, // nobody types these
    admin: ifFree(8088 + place.datacenter),
  };
}

function ifFree(port: number): number {
  try {
    Deno.listen({ hostname: "127.0.0.1", port }).close();
    return port;
  } catch (thrown) {
    if (thrown instanceof Deno.errors.AddrInUse || thrown instanceof Deno.errors.PermissionDenied) {
      return 0;
    }
    throw thrown;
  }
}
