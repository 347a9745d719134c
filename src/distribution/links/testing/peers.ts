import { connect, createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import type { Connection, Listener, TlsContextHolder } from "../../../net/mod.ts";
import { dial, listen } from "../../../net/mod.ts";
import type { Goodbye, Hello } from "../../wire/mod.ts";
import {
  decodeGoodbye,
  decodeHello,
  FRAME_TYPE,
  FrameDecoder,
  helloFrame,
  OUR_VERSIONS,
} from "../../wire/mod.ts";
import type { EndpointAddress } from "../ports.ts";

/** A connection between two nodes that the test can cut. */
export class TestProxy {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #isBlocked = false;
  #target: EndpointAddress;

  private constructor(target: EndpointAddress, server: Server) {
    this.#target = target;
    this.#server = server;
    server.on("connection", (socket) => this.#accept(socket));
  }

  static async to(target: EndpointAddress): Promise<TestProxy> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new TestProxy(target, server);
  }

  get address(): EndpointAddress {
    return { host: "127.0.0.1", port: (this.#server.address() as AddressInfo).port };
  }

  /** Number of connections that pass through now. */
  get count(): number {
    return this.#sockets.size / 2;
  }

  /** Sets the target of new connections. */
  retarget(target: EndpointAddress): void {
    this.#target = target;
  }

  /** Resets every connection that passes through. */
  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  /** Resets all, and lets no new connection through. */
  block(): void {
    this.#isBlocked = true;
    this.cut();
  }

  unblock(): void {
    this.#isBlocked = false;
  }

  #accept(near: Socket): void {
    near.on("error", () => {}); // a reset is what the test asked for
    if (this.#isBlocked) {
      near.resetAndDestroy();
      return;
    }
    const far = connect(this.#target.port, this.#target.host);
    far.on("error", () => near.destroy());
    for (const [from, to] of [[near, far], [far, near]] as const) {
      this.#sockets.add(from);
      from.once("close", () => {
        this.#sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.block();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** The other end of a link, played by hand: sends frames as asked and notes those that come. */
export class RawPeer {
  readonly #connection: Connection;
  /** Type bytes of the frames that came, in order. */
  readonly types: number[] = [];
  goodbye: Goodbye | undefined;
  /** Called with the peer's HELLO, when the test plays the accepting side. */
  greeted: ((hello: Hello) => void) | undefined;
  readonly ended: Promise<void>;

  constructor(connection: Connection) {
    this.#connection = connection;
    const decoder = new FrameDecoder({ maxFrameBytes: 1 << 20 }, {
      frame: (type, buffer, start, end) => {
        this.types.push(type);
        if (type === FRAME_TYPE.hello) this.greeted?.(decodeHello(buffer, start, end));
        if (type === FRAME_TYPE.goodbye) this.goodbye = decodeGoodbye(buffer, start, end);
      },
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    connection.start({ data: (chunk) => decoder.push(chunk), closed: () => resolve() });
  }

  static async dial(address: EndpointAddress, tls?: TlsContextHolder): Promise<RawPeer> {
    return new RawPeer(await dial({ ...address, ...(tls === undefined ? {} : { tls }) }));
  }

  send(...frames: readonly Uint8Array[]): void {
    for (const frame of frames) this.#connection.send(frame);
  }

  close(): void {
    this.#connection.close();
  }
}

/** Accepts links that the test plays by hand. */
export async function rawListener(
  tls: TlsContextHolder | undefined,
  accepted: (peer: RawPeer) => void,
): Promise<Listener> {
  return await listen({
    host: "127.0.0.1",
    port: 0,
    ...(tls === undefined ? {} : { tls: { mode: "mutual", context: tls } }),
  }, { accepted: (connection) => accepted(new RawPeer(connection)) });
}

/** Makes a HELLO from a node of dc2, with `changes`. */
export function testHello(changes: Partial<Hello> = {}): Uint8Array {
  return helloFrame({
    ...OUR_VERSIONS,
    process: 4242,
    lane: 1,
    lastNumber: 0,
    datacenterId: "id of dc2.example.com",
    localHost: "dc2.example.com",
    nodeName: "node1@dc2.example.com",
    ...changes,
  });
}
