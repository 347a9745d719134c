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
