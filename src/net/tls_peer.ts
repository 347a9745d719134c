import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";

/** True for a socket that encrypts. */
export function isTlsSocket(socket: Socket): socket is TLSSocket {
  return socket instanceof TLSSocket;
}

/**
 * DNS names of the peer's certificate in lower case; none unless the certificate was verified.
 * A name that `node:tls` had to quote (it holds a comma or control character) is left out.
 */
export function peerCertificateNames(socket: TLSSocket): readonly string[] {
  if (!socket.authorized) return [];
  const alternatives = socket.getPeerCertificate()?.subjectaltname;
  if (alternatives === undefined) return [];
  return alternatives.split(", ")
    .filter((entry) => entry.startsWith("DNS:") && !entry.includes('"'))
    .map((entry) => entry.slice("DNS:".length).toLowerCase());
}

/**
 * Stops or starts the reading of the plain socket beneath a TLS socket. The runtime's TLS socket
 * goes on reading while it is paused, without bound (200 MB were seen); only the handle obeys.
 */
export function holdCarrier(carrier: Socket, isHeld: boolean): void {
  // The handle has no public name; it is null once the socket is closed.
  const { _handle: handle } = carrier as unknown as {
    readonly _handle?: { readStart(): unknown; readStop(): unknown } | null;
  };
  if (isHeld) handle?.readStop();
  else handle?.readStart();
}
