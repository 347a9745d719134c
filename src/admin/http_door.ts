import type { IncomingMessage, Server as HttpServer, ServerResponse } from "node:http";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import type { CancelTimer, Clock } from "../base/mod.ts";
import type { AdminLimits } from "./admin_deps.ts";

/**
 * Why a connection was ended without an answer to a request; `body-too-large` and `wrong-tokens` answer,
 * but without a look at what was asked.
 */
export type HttpRefusal =
  | "too-many-connections"
  | "request-timeout"
  | "head-too-large"
  | "body-too-large"
  | "wrong-tokens";

/** What a door is given. */
export interface HttpDoorOptions {
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  /** One connection more than there may be ends the oldest that is owed nothing, or is refused. */
  readonly limits: Required<AdminLimits>;
  /** Told of each connection that is ended because of a bound. */
  refused(reason: HttpRefusal): void;
  /** @param remoteAddress who asks, with the port */
  handle(request: Request, remoteAddress: string): Response | Promise<Response>;
}

/**
 * Milliseconds that a peer which has its answer may take to hang up: it costs its place among
 * `maxConnections` alone, and goes first when that is wanted.
 */
const LINGER_MS = 1000;

/**
 * Takes HTTP requests, one from each connection: `Deno.serve` bounds neither how many connections
 * there are nor how long each may say nothing, and whoever can connect could use up the process'
 * file descriptors.
 */
export class HttpDoor {
  readonly #options: HttpDoorOptions;
  readonly #http: HttpServer;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /** Those whose request is not there yet, or that have their answer; longest so first. */
  readonly #waiting = new Map<Socket, CancelTimer>();

  constructor(options: HttpDoorOptions) {
    this.#options = options;
    // It never listens itself: sockets come to it past the bounds.
    this.#http = createHttpServer({ maxHeaderSize: options.limits.maxHeadBytes });
    this.#http.on("request", (request, response) => {
      this.#answer(request, response).catch(() => response.destroy()); // the peer has gone
    });
    this.#http.on("clientError", (error: NodeJS.ErrnoException, socket) => {
      if (error.code === "HPE_HEADER_OVERFLOW") options.refused("head-too-large");
      socket.destroy();
    });
    this.#server = createServer((socket) => this.#enter(socket));
  }

  /** Address and port, once it listens. */
  get address(): AddressInfo | undefined {
    return this.#server.address() as AddressInfo | undefined ?? undefined;
  }

  get connectionCount(): number {
    return this.#sockets.size;
  }

  /** Begins to listen; rejects with what the system says. */
  async open(): Promise<void> {
    const { host, port } = this.#options;
    // The runtime throws a missing permission from a place where nobody can catch it.
    const { state } = await Deno.permissions.query({ name: "net", host: netHost(host, port) });
    if (state !== "granted") {
      throw new Deno.errors.NotCapable("the process may not, see --allow-net");
    }
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port, backlog: 128 }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", () => {}); // what cannot be accepted is not there
        resolve();
      });
    });
  }

  /** Stops listening, and waits until what was asked is answered. */
  async shutdown(): Promise<void> {
    const isClosed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of [...this.#waiting.keys()]) socket.destroy();
    await isClosed;
  }

  /** Ends every connection. */
  abort(): void {
    for (const socket of [...this.#sockets]) socket.destroy();
  }

  #enter(socket: Socket): void {
    socket.on("error", () => {}); // `close` follows
    if (this.#sockets.size >= this.#options.limits.maxConnections) {
      this.#options.refused("too-many-connections");
      const [oldest] = this.#waiting.keys();
      if (oldest === undefined) {
        socket.destroy();
        return;
      }
      this.#forget(oldest);
      oldest.destroy();
    }
    this.#sockets.add(socket);
    this.#wait(socket, this.#options.limits.requestTimeoutMs, "request-timeout");
    socket.once("close", () => this.#forget(socket));
    this.#http.emit("connection", socket);
  }

  #forget(socket: Socket): void {
    this.#sockets.delete(socket);
    this.#asked(socket);
  }

  #wait(socket: Socket, forMs: number, reason?: HttpRefusal): void {
    const { clock, refused } = this.#options;
    const cancelTimer = clock.after(forMs, () => {
      if (reason !== undefined) refused(reason);
      socket.destroy();
    });
    this.#waiting.set(socket, cancelTimer);
  }

  #asked(socket: Socket): void {
    this.#waiting.get(socket)?.();
    this.#waiting.delete(socket);
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    outgoing.setHeader("connection", "close");
    const body = await readBody(incoming, this.#options.limits.maxBodyBytes);
    if (body === undefined) this.#options.refused("body-too-large");
    const { socket } = incoming;
    this.#asked(socket);
    outgoing.once("finish", () => {
      if (this.#sockets.has(socket)) this.#wait(socket, LINGER_MS);
    });
    const request = body === undefined ? 413 : tryRequest(incoming, body);
    if (typeof request === "number") {
      outgoing.writeHead(request).end();
      return;
    }
    const response = await this.#options.handle(request, remoteOf(socket));
    outgoing.writeHead(response.status, [...response.headers].flat());
    if (response.body === null || incoming.method === "HEAD") outgoing.end();
    // Two declarations of one type: the platform's, and Node's.
    else await pipeline(Readable.fromWeb(response.body as NodeReadableStream), outgoing);
  }
}

/** All of it; undefined when it is longer than the bound. */
async function readBody(
  incoming: IncomingMessage,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer>[] | undefined> {
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  for await (const chunk of incoming) {
    bytes += chunk.length;
    if (bytes > maxBytes) return undefined;
    chunks.push(new Uint8Array(chunk));
  }
  return chunks;
}

/** The request as the platform knows it; the status that answers one that it cannot know. */
function tryRequest(incoming: IncomingMessage, body: Uint8Array<ArrayBuffer>[]): Request | number {
  const { method = "GET", url = "/" } = incoming;
  const headers = Object.entries(incoming.headersDistinct).flatMap(([name, values = []]) =>
    values.map((value): [string, string] => [name, value])
  );
  const hosts = incoming.headersDistinct["host"] ?? [];
  if (hosts.length !== 1 || !url.startsWith("/")) return 400;
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  try {
    return new Request(new URL(`http://${hosts[0]}${url}`), {
      method,
      headers,
      ...(hasBody && { body: new Blob(body) }),
    });
  } catch {
    return 400; // a host, method or header that is none
  }
}

/** IPv4 addresses as such, also where they came to a port for both. */
function remoteOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return netHost(remoteAddress.replace(/^::ffff:(?=\d+\.)/i, ""), remotePort);
}

function netHost(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
