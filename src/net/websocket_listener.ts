import type { IncomingMessage, Server } from "node:http";
import { createServer, ServerResponse, STATUS_CODES } from "node:http";
import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
// @ts-types="@types/ws"
import { WebSocketServer } from "ws";
import type { CancelTimer } from "../base/mod.ts";
import { CausewayError } from "../base/mod.ts";
import { formatAddress } from "./address.ts";
import type { Listener, ListenerLimits, ListenOptions } from "./listener_options.ts";
import type { MessageConnection } from "./message_connection.ts";
import { lateHandshake } from "./socket_connection.ts";
import type { AcceptedWith } from "./socket_listener.ts";
import { SocketListener, tooMany } from "./socket_listener.ts";
import { WebSocketConnection } from "./websocket_connection.ts";

/** Limits of a port for WebSockets; `maxHandshakes` and `handshakeTimeoutMs` cover HTTP too. */
export interface WebSocketLimits extends ListenerLimits {
  /** Bytes of one message; a longer one ends the connection with 1009. @default 262_144 */
  readonly maxMessageBytes?: number;
  /** Frames of one message; one more ends the connection with 1008. @default 1024 */
  readonly maxFragments?: number;
  /** Bytes of an HTTP request's head; a longer one is answered with 431. @default 16_384 */
  readonly maxHeadBytes?: number;
}

/** A port that accepts WebSockets. */
export interface WebSocketListener extends Listener {
  /** Takes other limits for connections that it accepts from now on. */
  changeLimits(limits: WebSocketLimits): void;
}

/** Address, path and limits of a port for WebSockets. */
export interface WebSocketListenOptions extends ListenOptions {
  /** Path of the WebSocket, `/xmpp-websocket`. */
  readonly path: string;
  /** Subprotocol that a client has to ask for (RFC 6455 §1.9). */
  readonly subprotocol: string;
  readonly limits?: WebSocketLimits;
}

/** An answer to an HTTP request; anyone may read it (CORS). */
export interface WebPage {
  readonly contentType: string;
  readonly body: string;
}

/** Callbacks of a port for WebSockets to its owner. */
export interface WebSocketListenerEvents {
  /** A client has opened a WebSocket; the owner calls `start` on it. */
  accepted(connection: MessageConnection): void;
  /**
   * Called as `ListenerEvents.refused`. Two more codes are `net/http-invalid`, and
   * `net/websocket-refused` for a valid request that asks for no WebSocket that is served here.
   */
  refused?(error: CausewayError, remoteAddress: string): void;
  failed?(error: CausewayError): void;
  /** Returns the page at `path`; undefined where there is none. `host` is the checked Host header. */
  page?(path: string, host: string): WebPage | undefined;
}

/**
 * RFC 9110 §7.2, RFC 3986 §3.2.2: a name or address, and a port; a name has 255 characters at most.
 * Nothing that could end a quote.
 */
const HOST = /^(?:[a-z\d](?:[a-z\d.-]*[a-z\d])?|\[[\da-f:.]{2,45}\])(?::\d{1,5})?$/i;
const MAX_HOST_LENGTH = 261;

/**
 * Listens for WebSockets (RFC 6455), without extensions.
 *
 * One connection carries one request: a page, a refusal, or the WebSocket. All of that has to be over
 * `handshakeTimeoutMs` after the connection was accepted.
 * @throws {CausewayError} as `listen`
 */
export async function listenWebSocket(
  options: WebSocketListenOptions,
  events: WebSocketListenerEvents,
): Promise<WebSocketListener> {
  const port = new WebSocketPort(options, events);
  await port.listener.open();
  return port;
}

/** A connection that is not a WebSocket yet. */
interface Visitor {
  readonly remoteAddress: string;
  readonly carrier: Socket | undefined;
  readonly serverEndPoint: Uint8Array | undefined;
  readonly cancelTimer: CancelTimer;
}

class WebSocketPort implements WebSocketListener {
  readonly listener: SocketListener;
  readonly #options: WebSocketListenOptions;
  readonly #events: WebSocketListenerEvents;
  #http: Server;
  #webSockets: WebSocketServer;
  readonly #visitors = new Map<Socket, Visitor>();

  constructor(options: WebSocketListenOptions, events: WebSocketListenerEvents) {
    if (options.tls !== undefined && options.tls.mode !== "direct") {
      throw new RangeError(`Cannot listen for WebSockets with TLS mode ${options.tls.mode}`);
    }
    this.#options = options;
    this.#events = events;
    const { ofSockets } = splitLimits(options.limits);
    this.listener = new SocketListener({ ...options, limits: ofSockets }, {
      accepted: (socket, accepted) => this.#visit(socket, accepted),
      refused: (error, remoteAddress) => events.refused?.(error, remoteAddress),
      failed: (error) => events.failed?.(error),
    });
    this.#http = this.#httpServer(options.limits);
    this.#webSockets = this.#webSocketServer(options.limits);
  }

  changeLimits(limits: WebSocketLimits): void {
    this.listener.changeLimits(splitLimits(limits).ofSockets);
    // Neither server listens: connections that it has taken go on with it.
    this.#http = this.#httpServer(limits);
    this.#webSockets = this.#webSocketServer(limits);
  }

  /** Makes a server that never listens: sockets reach it after the probe, the limits and TLS. */
  #httpServer(limits: WebSocketLimits | undefined): Server {
    const http = createServer({ maxHeaderSize: splitLimits(limits).maxHeadBytes });
    http.on("request", (request, response) => this.#request(request, response));
    http.on("upgrade", (request, socket, head) => {
      this.#upgrade(request, socket as Socket, head as Uint8Array); // a socket that we injected
    });
    http.on("clientError", (error: Error & { readonly code?: string }, socket) => {
      const status = error.code === "HPE_HEADER_OVERFLOW" ? 431 : 400;
      this.#refuse(socket as Socket, status, "net/http-invalid", error.message);
    });
    return http;
  }

  #webSocketServer(limits: WebSocketLimits | undefined): WebSocketServer {
    const { maxMessageBytes, maxFragments } = splitLimits(limits);
    const options = {
      noServer: true,
      clientTracking: false,
      perMessageDeflate: false,
      // The XML parser looks at every byte anyway.
      skipUTF8Validation: true,
      autoPong: false,
      maxPayload: maxMessageBytes,
      maxFragments,
      closeTimeout: this.listener.limits.lingerMs,
      handleProtocols: () => this.#options.subprotocol,
    };
    return new WebSocketServer(options);
  }

  get address(): string {
    return this.listener.address;
  }

  get host(): string {
    return this.listener.host;
  }

  get port(): number {
    return this.listener.port;
  }

  get connectionCount(): number {
    return this.listener.connectionCount;
  }

  async close(): Promise<void> {
    await this.listener.close();
    for (const socket of [...this.#visitors.keys()]) socket.destroy();
  }

  #visit(socket: Socket, { carrier, serverEndPoint }: AcceptedWith): void {
    const { limits, clock } = this.listener;
    const remoteAddress = formatAddress(socket.remoteAddress ?? "", socket.remotePort ?? 0);
    if (this.#visitors.size >= limits.maxHandshakes) {
      // The oldest makes room, so that silent peers cannot hold all places and keep others out.
      const [first] = this.#visitors;
      const [oldest, visitor] = first!; // there is one, as the bound is at least 1
      this.#leave(oldest);
      oldest.destroy();
      this.#events.refused?.(tooMany("handshakes", limits.maxHandshakes), visitor.remoteAddress);
    }
    const cancelTimer = clock.after(limits.handshakeTimeoutMs, () => {
      socket.destroy();
      this.#events.refused?.(
        lateHandshake(remoteAddress, limits.handshakeTimeoutMs),
        remoteAddress,
      );
    });
    this.#visitors.set(socket, { remoteAddress, carrier, serverEndPoint, cancelTimer });
    socket.once("close", () => this.#leave(socket));
    this.#http.emit("connection", socket);
  }

  #leave(socket: Socket): void {
    this.#visitors.get(socket)?.cancelTimer();
    this.#visitors.delete(socket);
  }

  #request(request: IncomingMessage, response: ServerResponse): void {
    const path = pathOf(request);
    const host = request.headers.host ?? "";
    if (request.method !== "GET" && request.method !== "HEAD") {
      return answer(response, 405, undefined);
    }
    if (path === this.#options.path) return answer(response, 426, undefined);
    if (host.length > MAX_HOST_LENGTH || !HOST.test(host)) return answer(response, 400, undefined);
    const page = this.#events.page?.(path, host);
    answer(response, page === undefined ? 404 : 200, page);
  }

  #upgrade(request: IncomingMessage, socket: Socket, head: Uint8Array): void {
    const visitor = this.#visitors.get(socket);
    if (visitor === undefined) {
      socket.destroy();
      return;
    }
    if (request.headers.upgrade?.toLowerCase() !== "websocket") {
      // RFC 9110 §7.8: a server may ignore other protocols in the offer, mostly HTTP/2.
      const response = new ServerResponse(request);
      response.assignSocket(socket);
      response.once("finish", () => socket.end());
      return this.#request(request, response);
    }
    const { path, subprotocol } = this.#options;
    if (pathOf(request) !== path) {
      return this.#refuse(socket, 404, "net/websocket-refused", `there is none at its path`);
    }
    const offered = (request.headers["sec-websocket-protocol"] ?? "").split(",");
    if (!offered.some((each) => each.trim() === subprotocol)) {
      return this.#refuse(
        socket,
        400,
        "net/websocket-refused",
        `it does not ask for the subprotocol ${subprotocol}`,
      );
    }
    this.#webSockets.handleUpgrade(request, socket, Buffer.from(head), (webSocket) => {
      this.#leave(socket);
      this.#events.accepted(
        new WebSocketConnection(webSocket, {
          socket,
          carrier: visitor.carrier,
          serverEndPoint: visitor.serverEndPoint,
          limits: this.listener.limits,
        }),
      );
    });
  }

  #refuse(socket: Socket, status: number, code: string, why: string): void {
    const visitor = this.#visitors.get(socket);
    if (visitor !== undefined) {
      this.#events.refused?.(
        new CausewayError(
          code,
          `Cannot open a WebSocket with ${visitor.remoteAddress}: ${why}`,
        ),
        visitor.remoteAddress,
      );
    }
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    socket.once("finish", () => socket.destroy());
    socket.end(
      `HTTP/1.1 ${status} ${
        STATUS_CODES[status]
      }\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`,
    );
  }
}

function pathOf(request: IncomingMessage): string {
  return (request.url ?? "").split("?", 1)[0]!; // split gives at least one part
}

function answer(response: ServerResponse, status: number, page: WebPage | undefined): void {
  const body = page?.body ?? `${STATUS_CODES[status]}\n`;
  response.writeHead(status, {
    "Connection": "close",
    "Content-Type": page?.contentType ?? "text/plain; charset=utf-8",
    "Content-Length": new TextEncoder().encode(body).length,
    "X-Content-Type-Options": "nosniff",
    ...(page === undefined ? {} : { "Access-Control-Allow-Origin": "*" }),
    ...(status === 405 ? { "Allow": "GET, HEAD" } : {}),
    ...(status === 426 ? { "Upgrade": "websocket", "Connection": "close, upgrade" } : {}),
  });
  response.end(body); // the runtime leaves the body out for HEAD
}

/** Fills in the defaults, and tells the limits of sockets from those of HTTP and WebSockets. */
function splitLimits(limits: WebSocketLimits = {}) {
  const { maxMessageBytes = 262_144, maxFragments = 1024, maxHeadBytes = 16_384, ...ofSockets } =
    limits;
  return { maxMessageBytes, maxFragments, maxHeadBytes, ofSockets };
}
