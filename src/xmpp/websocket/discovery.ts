import type { WebPage } from "../../net/mod.ts";
import { escapeValue } from "../xml/escape.ts";

/** Path at which clients open their WebSockets. */
export const WEBSOCKET_PATH = "/xmpp-websocket";

/** XEP-0156 §3. */
const RELATION = "urn:xmpp:alt-connections:websocket";
/** RFC 6415 §2. */
const XRD_NAMESPACE = "http://docs.oasis-open.org/ns/xri/xrd-1.0";

/** Facts from which clients learn the WebSocket's URL. */
export interface DiscoveryFacts {
  /** URL that the operator configured; undefined for the host that the request went to. */
  readonly url: string | undefined;
  readonly isEncrypted: boolean;
}

/**
 * Returns the page at `path` by which a client finds the WebSocket (XEP-0156 §3): RFC 6415's host-meta,
 * as XRD or JSON; undefined where there is none. `host` is the checked Host header of the request.
 */
export function discoveryPage(
  path: string,
  host: string,
  { url, isEncrypted }: DiscoveryFacts,
): WebPage | undefined {
  const href = url ?? `${isEncrypted ? "wss" : "ws"}://${host}${WEBSOCKET_PATH}`;
  switch (path) {
    case "/.well-known/host-meta":
      return {
        contentType: "application/xrd+xml; charset=utf-8",
        body: `<?xml version='1.0' encoding='utf-8'?>\n<XRD xmlns='${XRD_NAMESPACE}'>\n` +
          `  <Link rel='${RELATION}' href='${escapeValue(href)}'/>\n</XRD>\n`,
      };
    case "/.well-known/host-meta.json":
      return {
        contentType: "application/json; charset=utf-8",
        body: `${JSON.stringify({ links: [{ rel: RELATION, href }] })}\n`,
      };
    default:
      return undefined;
  }
}
