import type { SocketShell, TrustedEntity } from "./xmpp_js_trust.ts";
import { derive, findTransport } from "./xmpp_js_trust.ts";

/** The runtime's constructor, which the declarations for browsers in `src/admin/dashboard` hide. */
type TrustingWebSocket = new (
  url: string,
  options: { readonly protocols: string[]; readonly client?: Deno.HttpClient },
) => WebSocket;

/** Further members of the package's own wrapper around a `WebSocket`. */
interface WebSocketShell extends SocketShell {
  url: string | null;
  secure: boolean;
  _attachSocket(socket: WebSocket): void;
}

/**
 * Makes a client over WebSocket check its server against `ca`, PEM certificates, in place of the
 * system's; undefined for `ws`. Cutting the connection is a WebSocket's own end without a `<close/>`:
 * nothing else can be asked of one.
 */
export function trustWebSocket(entity: TrustedEntity, ca: string | undefined): void {
  const base = findTransport(entity, "ws://localhost:1");
  // The package calls `new WebSocket` without a place for options.
  const BaseShell = base.prototype.Socket as new () => WebSocketShell;

  class TrustingShell extends BaseShell {
    #webSocket: WebSocket | undefined;

    override connect(url: string): void {
      this.url = url;
      // The package decides by the URL alone whether PLAIN may be used.
      this.secure = true;
      const client = ca === undefined ? undefined : Deno.createHttpClient({ caCerts: [ca] });
      const socket = new (WebSocket as unknown as TrustingWebSocket)(url, {
        protocols: ["xmpp"],
        ...(client === undefined ? {} : { client }),
      });
      socket.addEventListener("close", () => client?.close());
      this.#webSocket = socket;
      this._attachSocket(socket);
    }

    override destroy(): void {
      this.#webSocket?.close();
    }
  }

  entity.transports.unshift(derive(base, { Socket: TrustingShell }));
}
