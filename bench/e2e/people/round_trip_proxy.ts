import { connect, createServer, type Socket } from "node:net";
import { type Listening, listenOn } from "../../../harness/net/listening.ts";

/** Address of a server on loopback. */
export interface Upstream {
  readonly host: string;
  readonly port: number;
}

/**
 * Stands between nodes and a database or a Redis, passes all bytes on, and counts round trips: a
 * round trip begins with what a node sends after it has been answered. All that is sent before the
 * answer comes is part of it, as in a pipeline.
 */
export class RoundTripProxy implements AsyncDisposable {
  readonly #sockets = new Set<Socket>();
  #listening: Listening | undefined;
  #upstream: Upstream | undefined;
  #roundTrips = 0;

  /** Round trips on all connections since the beginning. */
  get roundTrips(): number {
    return this.#roundTrips;
  }

  /** Starts to listen. Returns the port to connect to in the place of the server's. */
  async start(): Promise<number> {
    this.#listening = await listenOn(createServer({ noDelay: true }, (client) => {
      this.#accept(client);
    }));
    return this.#listening.port;
  }

  /** Names the server behind the proxy, before the first connection comes. */
  leadTo(upstream: Upstream): void {
    this.#upstream = upstream;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await this.#listening?.close();
  }

  #accept(client: Socket): void {
    const server = connect({ ...this.#upstream!, noDelay: true });
    this.#sockets.add(server);
    let isAnswered = true;
    client.on("data", (chunk) => {
      if (isAnswered) this.#roundTrips++;
      isAnswered = false;
      server.write(chunk);
    });
    server.on("data", (chunk) => {
      isAnswered = true;
      client.write(chunk);
    });
    for (const one of [client, server]) one.on("error", () => {}); // `close` follows
    client.on("close", () => server.destroy());
    server.on("close", () => {
      this.#sockets.delete(server);
      client.destroy();
    });
  }
}
