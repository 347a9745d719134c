import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import type { Socket } from "node:net";
import { connect, createSecureContext, TLSSocket } from "node:tls";
import { toNetError } from "./net_error.ts";
import type { TlsContext } from "./tls_context.ts";

/** Reasons to refuse a certificate that say nothing about its chain. Others look at its time. */
const OUT_OF_TIME: ReadonlySet<string> = new Set(["CERT_HAS_EXPIRED", "CERT_NOT_YET_VALID"]);

/**
 * Returns whether the chain of a certificate leads to an authority that this system trusts, as a client
 * sees it: by a handshake on loopback, since the runtime lists those authorities only to a program that
 * may read all facts about the system. True for one that is refused for its time alone.
 * @throws {CausewayError} if the handshake fails, as for a key of a kind that no client takes
 */
export async function isTrustedBySystem({ names, secure }: TlsContext): Promise<boolean> {
  const secureContext = createSecureContext({ cert: secure.cert!, key: secure.key! });
  const accepted: Socket[] = [];
  const server = createServer((socket) => {
    const secured = new TLSSocket(socket, { isServer: true, secureContext });
    secured.on("error", () => {}); // the client tells
    accepted.push(socket, secured);
  });
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const fail = (error: Error) => reject(toNetError("Cannot judge the certificate", error));
  server.on("error", fail);
  server.listen(0, "127.0.0.1", () => {
    const client = connect({
      ...{ host: "127.0.0.1", port: (server.address() as AddressInfo).port },
      ...(names[0] === undefined ? {} : { servername: names[0] }),
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    });
    accepted.push(client);
    client.on("error", fail);
    client.once("close", () => fail(new Error("the handshake was cut off")));
    client.once("secureConnect", () => {
      resolve(client.authorized || OUT_OF_TIME.has(String(client.authorizationError)));
    });
  });
  try {
    return await promise;
  } finally {
    for (const socket of accepted) socket.destroy();
    await new Promise((closed) => server.close(closed));
  }
}
