import { FREE_PORTS } from "../cluster/mod.ts";
import type { NodePlace, NodePorts } from "../cluster/mod.ts";

/** Whoever listens here, next to XMPP's own port, may have the ports that people can guess. */
const CLAIM_PORT = 5221;

/**
 * Ports that people can guess (5222 is XMPP's own), for one cluster of this machine at a time. Of
 * several that start at once, all but one would find that a port was taken after they had looked.
 */
export class FriendlyPorts implements Disposable {
  readonly #claim: Deno.Listener | undefined;

  /** Others have no such ports until it is disposed of, or this process has ended. */
  constructor() {
    this.#claim = listenOn(CLAIM_PORT);
  }

  /**
   * Ports of a datacenter's first node, spread by datacenter; 0 for other nodes, for other clusters and
   * where one is taken, so that something else is found.
   */
  of({ datacenter, node }: Pick<NodePlace, "datacenter" | "node">): NodePorts {
    if (node > 0 || this.#claim === undefined) return FREE_PORTS;
    const block = 10 * datacenter;
    return {
      starttls: ifFree(5222 + block),
      direct: ifFree(5223 + block),
      none: ifFree(5224 + block),
      ws: ifFree(5280 + block),
      wss: ifFree(5281 + block),
      component: ifFree(5347 + datacenter),
      links: 0, // nobody types these
      admin: ifFree(8088 + datacenter),
    };
  }

  [Symbol.dispose](): void {
    this.#claim?.close();
  }
}

function ifFree(port: number): number {
  const listener = listenOn(port);
  listener?.close();
  return listener === undefined ? 0 : port;
}

/** Returns undefined where the port is taken, or for others only. */
function listenOn(port: number): Deno.Listener | undefined {
  try {
    return Deno.listen({ hostname: "127.0.0.1", port });
  } catch (thrown) {
    if (thrown instanceof Deno.errors.AddrInUse || thrown instanceof Deno.errors.PermissionDenied) {
      return undefined;
    }
    throw thrown;
  }
}
