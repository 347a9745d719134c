import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";

/** A TCP server that listens on loopback, and every connection it has accepted. */
export interface Listening {
  readonly port: number;
  /** Stops listening, ends all connections at once, and waits until they are gone. */
  close(): Promise<void>;
}

/** Has `server` listen on 127.0.0.1; port 0 takes a free one. @throws when the port is taken */
export async function listenOn(server: Server, port = 0): Promise<Listening> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening"); // rejects with what `error` brings
  return {
    port: (server.address() as AddressInfo).port,
    async close(): Promise<void> {
      const closed = once(server, "close");
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}
