import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { certificateNames } from "./certificate_names.ts";

/** True for a socket that encrypts. */
export function isTlsSocket(socket: Socket): socket is TLSSocket {
  return socket instanceof TLSSocket;
}

/** Returns the DNS names in the peer's certificate; none unless the certificate was verified. */
export function peerCertificateNames(socket: TLSSocket): readonly string[] {
  if (!socket.authorized) return [];
  // Without a certificate this is undefined or an empty object, whatever its type says.
  const { raw } = (socket.getPeerCertificate() ?? {}) as { readonly raw?: Uint8Array };
  return raw === undefined ? [] : certificateNames(raw);
}

/**
 * Stops or starts the reading of the plain socket beneath a TLS socket. While paused, the runtime's TLS
 * socket goes on reading without bound (200 MB were seen). Only the handle of the plain socket obeys.
 */
export function holdCarrier(carrier: Socket, isHeld: boolean): void {
  // The handle has no public name; it is null once the socket is closed.
  const { _handle: handle } = carrier as unknown as {
    readonly _handle?: { readStart(): unknown; readStop(): unknown } | null;
  };
  if (isHeld) handle?.readStop();
  else handle?.readStart();
}
