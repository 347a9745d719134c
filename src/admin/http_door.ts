import type { IncomingMessage, Server as HttpServer, ServerResponse } from "node:http";
import { createServer as createHttpServer, STATUS_CODES } from "node:http";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import type { CancelTimer, Clock } from "../base/mod.ts";
import { addressKey } from "../base/mod.ts";
import type { AdminLimits } from "./admin_deps.ts";
import type { Failure } from "./api/answers.ts";
import { LocalSocket } from "./local_socket.ts";
import { SlowReaders } from "./slow_readers.ts";

/**
 * Reason why a connection was ended without an answer to its request. `head-too-large`,
 * `body-too-large`, `wrong-tokens` and `too-many-listeners` do answer, but with a refusal.
 */
export type HttpRefusal =
  | "too-many-connections"
  | "request-timeout"
  | "answer-timeout"
  | "head-too-large"
  | "body-too-large"
  | "wrong-tokens"
  | "too-many-listeners";

/** A connection after its TLS handshake. */
export interface SecuredConnection {
  readonly socket: Socket;
  /** Names in the verified certificate that the caller presented; none without one. */
  readonly names: readonly string[];
}

/** TLS for sockets that were accepted elsewhere. */
export interface TlsDoor {
  /**
   * Begins the handshake on `plain`. The caller sets the time limit; `done` is called once, with
   * undefined when the handshake has failed.
   */
  secure(plain: Socket, done: (secured: SecuredConnection | undefined) => void): void;
}

/** Facts about a caller that its request does not contain. */
export interface HttpCaller {
  /** Address and port. */
  readonly remoteAddress: string;
  /** Names in its certificate. */
  readonly certificateNames: readonly string[];
  /** True for a connection to the Unix socket. */
  readonly isLocal: boolean;
}

/** Dependencies of `HttpDoor`: its address, its limits and its callbacks. */
export interface HttpDoorDeps {
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket to listen on besides. */
  readonly socket?: string | undefined;
  readonly clock: Clock;
  /**
   * Limits. One connection above `maxConnections` ends the oldest one without a pending answer, or
   * else one whose reader is too slow (`SlowReaders`), or is refused.
   */
  readonly limits: Required<AdminLimits>;
  /** Called for each connection that is ended because of a limit. */
  refused(reason: HttpRefusal): void;
  handle(request: Request, caller: HttpCaller): Response | Promise<Response>;
}

interface Carrier {
  readonly plain: Socket;
  readonly names: readonly string[];
}

/**
 * Milliseconds that a peer may take to hang up after its answer. It costs only a place among
 * `maxConnections`, and its connection ends first when a place is needed.
 */
const LINGER_MS = 1000;

/** Milliseconds that a peer may take to read one piece of its answer. */
const PIECE_TIMEOUT_MS = 30_000;

/** Answers to requests that the application does not get, by status. */
const REFUSALS: Readonly<Record<400 | 413 | 431, Failure>> = {
  400: { error: "bad-request", message: "The request is malformed" },
  413: { error: "content-too-large", message: "The body is too long" },
  431: { error: "head-too-large", message: "The address and the headers are too long" },
};

/** Bytes of a piece. */
const PIECE_BYTES = 16_384;

/**
 * Accepts HTTP requests, one per connection. `Deno.serve` limits neither the number of connections
 * nor their idle time, so anybody who can connect could use up the process' file descriptors.
 */
export class HttpDoor {
  readonly #deps: HttpDoorDeps;
  readonly #http: HttpServer;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  /**
   * Connections without a complete request, or with their answer sent. The longest waiting comes
   * first.
   */
  readonly #waiting = new Map<Socket, CancelTimer>();
  /** Connections whose peers have yet to read a piece of their answer. */
  readonly #unread = new Map<Socket, CancelTimer>();
  readonly #slowReaders: SlowReaders<Socket>;
  /** Plain sockets beneath TLS, with the names of the caller's certificate. */
  readonly #secured = new WeakMap<Socket, Carrier>();
  #tls: TlsDoor | undefined;
  readonly #local: LocalSocket | undefined;
  /** Connections whose request has arrived, or was refused before it was complete. */
  readonly #heard = new WeakSet<Socket>();
  /** Connections to the Unix socket. */
  readonly #locals = new WeakSet<Socket>();

  constructor(deps: HttpDoorDeps) {
    this.#deps = deps;
    this.#slowReaders = new SlowReaders(deps.limits.maxConnections, deps.clock);
    // This server never listens itself: it gets its sockets after the limits were checked.
    this.#http = createHttpServer({ maxHeaderSize: deps.limits.maxHeadBytes });
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      this.#answer(request, response).catch(() => response.destroy()); // the peer has hung up
    };
    this.#http.on("request", answer);
    this.#http.on("checkExpectation", answer); // RFC 9110 §10.1.1 lets a server ignore it
    this.#http.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
      const isTooLarge = error.code === "HPE_HEADER_OVERFLOW";
      if (isTooLarge) deps.refused("head-too-large");
      this.#refuse(socket, isTooLarge ? 431 : 400);
    });
    this.#server = createServer((socket) => this.#enter(socket));
    this.#local = deps.socket === undefined ? undefined : new LocalSocket(deps.socket, (socket) => {
      this.#locals.add(socket);
      this.#enter(socket);
    });
  }

  /** Address and port while the door listens. */
  get address(): AddressInfo | undefined {
    return this.#server.address() as AddressInfo | undefined ?? undefined;
  }

  get connectionCount(): number {
    return this.#sockets.size;
  }

  /**
   * Begins to listen. Rejects with the system's error.
   * @param tls default: plain HTTP
   */
  async open(tls?: TlsDoor): Promise<void> {
    this.#tls = tls;
    const { host, port } = this.#deps;
    // Check the permission first: the runtime throws that error where nobody can catch it.
    const { state } = await Deno.permissions.query({ name: "net", host: netHost(host, port) });
    if (state !== "granted") {
      throw new Deno.errors.NotCapable("the process may not, see --allow-net");
    }
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen({ host, port, backlog: 128 }, () => {
        this.#server.off("error", reject);
        this.#server.on("error", () => {}); // a connection that cannot be accepted needs no answer
        resolve();
      });
    });
    try {
      await this.#local?.open();
    } catch (error) {
      this.#server.close();
      throw error;
    }
  }

  /** Stops listening, and waits until every request is answered. */
  async shutdown(): Promise<void> {
    const isClosed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of [...this.#waiting.keys()]) socket.destroy();
    await this.#local?.close();
    await isClosed;
  }

  /** Ends every connection. */
  abort(): void {
    for (const socket of [...this.#sockets]) socket.destroy();
  }

  #enter(socket: Socket): void {
    socket.on("error", () => {}); // `close` follows
    const address = this.#addressOf(socket);
    if (this.#sockets.size >= this.#deps.limits.maxConnections) {
      this.#deps.refused("too-many-connections");
      const [oldest] = this.#waiting.keys();
      const leaving = oldest ?? this.#slowReaders.yielding(address);
      if (leaving === undefined) {
        socket.destroy();
        return;
      }
      this.#forget(leaving);
      leaving.destroy();
    }
    this.#sockets.add(socket);
    this.#slowReaders.enter(socket, address);
    this.#wait(socket, this.#deps.limits.requestTimeoutMs, "request-timeout");
    socket.once("close", () => this.#forget(socket));
    if (this.#tls === undefined || this.#locals.has(socket)) {
      this.#http.emit("connection", socket);
      return;
    }
    this.#tls.secure(socket, (secured) => {
      if (secured === undefined) {
        socket.destroy();
        return;
      }
      secured.socket.on("error", () => {}); // `close` follows
      this.#secured.set(secured.socket, { plain: socket, names: secured.names });
      this.#http.emit("connection", secured.socket);
    });
  }

  /** Returns the address that connections are counted by. */
  #addressOf(socket: Socket): string {
    if (this.#locals.has(socket)) return "socket";
    return addressKey({ remoteAddress: remoteOf(socket), isLoopback: false });
  }

  #forget(socket: Socket): void {
    this.#sockets.delete(socket);
    this.#asked(socket);
    this.#hasRead(socket);
    this.#slowReaders.leave(socket);
  }

  #wait(socket: Socket, forMs: number, reason?: HttpRefusal): void {
    const { clock, refused } = this.#deps;
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

  /** Sends the body of an answer, until the peer hangs up. Rejects when the body fails. */
  async #send(
    body: ReadableStream<Uint8Array>,
    { socket, outgoing }: { readonly socket: Socket; readonly outgoing: ServerResponse },
  ): Promise<void> {
    const reader = body.getReader();
    outgoing.once("close", () => reader.cancel().catch(() => {})); // a body that failed says so below
    for (;;) {
      const { value, done } = await reader.read();
      if (outgoing.destroyed) return;
      if (done) break;
      for (let start = 0; start < value.length; start += PIECE_BYTES) {
        if (outgoing.write(value.subarray(start, start + PIECE_BYTES))) continue;
        this.#waitForReader(socket);
        await untilDrained(outgoing);
        this.#hasRead(socket);
        if (outgoing.destroyed) return;
      }
    }
    this.#waitForReader(socket);
    outgoing.end();
  }

  #waitForReader(socket: Socket): void {
    if (!this.#sockets.has(socket)) return;
    const { clock, refused } = this.#deps;
    const cancelTimer = clock.after(PIECE_TIMEOUT_MS, () => {
      refused("answer-timeout");
      socket.destroy();
    });
    this.#unread.set(socket, cancelTimer);
    this.#slowReaders.waitFor(socket);
  }

  #hasRead(socket: Socket): void {
    this.#unread.get(socket)?.();
    this.#unread.delete(socket);
    this.#slowReaders.hasRead(socket);
  }

  /** Answers bytes that are no request, unless the connection already has an answer. */
  #refuse(socket: Socket, status: keyof typeof REFUSALS): void {
    const { plain } = this.#secured.get(socket) ?? { plain: socket };
    if (this.#heard.has(socket) || !socket.writable || !this.#sockets.has(plain)) {
      socket.destroy();
      return;
    }
    this.#heard.add(socket);
    const { headers, text } = refusalOf(status);
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    this.#asked(plain);
    this.#wait(plain, LINGER_MS);
    socket.end(
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${
        lines.join("")
      }connection: close\r\n\r\n${text}`,
    );
  }

  async #answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    this.#heard.add(incoming.socket);
    outgoing.setHeader("connection", "close");
    const body = await readBody(incoming, this.#deps.limits.maxBodyBytes);
    if (body === undefined) this.#deps.refused("body-too-large");
    const { plain: socket, names } = this.#secured.get(incoming.socket) ??
      { plain: incoming.socket, names: [] };
    this.#asked(socket);
    outgoing.once("finish", () => {
      this.#hasRead(socket);
      if (this.#sockets.has(socket)) this.#wait(socket, LINGER_MS);
    });
    const request = body === undefined ? 413 : tryRequest(incoming, body);
    if (typeof request === "number") {
      const { headers, text } = refusalOf(request);
      outgoing.writeHead(request, headers);
      outgoing.end(incoming.method === "HEAD" ? undefined : text);
      return;
    }
    const response = await this.#deps.handle(request, {
      remoteAddress: this.#locals.has(socket) ? "" : remoteOf(socket),
      certificateNames: names,
      isLocal: this.#locals.has(socket),
    });
    outgoing.writeHead(response.status, [...response.headers].flat());
    if (response.body === null || incoming.method === "HEAD") outgoing.end();
    else await this.#send(response.body, { socket, outgoing });
  }
}

function refusalOf(status: keyof typeof REFUSALS) {
  const text = JSON.stringify(REFUSALS[status]);
  const headers = {
    "content-type": "application/json",
    "content-length": text.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  };
  return { headers, text };
}

/** Resolves when more can be written, or the peer has hung up. */
function untilDrained(outgoing: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      outgoing.off("drain", go).off("close", go);
      resolve();
    };
    outgoing.once("drain", go).once("close", go);
  });
}

/** Reads the whole body. Returns undefined when it is longer than the limit. */
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

/**
 * Converts to a platform `Request`. Returns the HTTP status that answers a request without a valid
 * form.
 */
function tryRequest(
  incoming: IncomingMessage,
  body: Uint8Array<ArrayBuffer>[],
): Request | 400 {
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
    return 400; // an invalid host, method or header
  }
}

/** Formats the remote address. An IPv4 address at a dual-stack port is shown as IPv4. */
function remoteOf({ remoteAddress = "", remotePort = 0 }: Socket): string {
  return netHost(remoteAddress.replace(/^::ffff:(?=\d+\.)/i, ""), remotePort);
}

function netHost(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
