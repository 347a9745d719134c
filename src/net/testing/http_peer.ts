import { Buffer } from "node:buffer";
import type { Socket } from "node:net";
import { connect } from "node:net";
import { connect as connectTls } from "node:tls";

/** Target of a peer, and the authority it trusts; plain TCP without `ca`. */
export interface HttpPeerTarget {
  readonly port: number;
  readonly ca?: string;
  readonly servername?: string;
}

const PATIENCE_MS = 60_000;

/** A client that speaks HTTP and WebSocket byte by byte, rightly or wrongly. */
export class HttpPeer implements Disposable {
  readonly socket: Socket;
  #unread = Buffer.alloc(0);
  #isClosed = false;
  #wake: () => void = () => {};
  /** True throws away incoming data. */
  isDeaf = false;
  /** Number of pieces in which data came in. */
  chunks = 0;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {}); // `closed` reports the end
    socket.on("data", (chunk: Uint8Array) => {
      this.chunks++;
      if (this.isDeaf) return;
      this.#unread = Buffer.concat([this.#unread, chunk]);
      this.#wake();
    });
    socket.on("close", () => {
      this.#isClosed = true;
      this.#wake();
    });
  }

  static async connect({ port, ca, servername }: HttpPeerTarget): Promise<HttpPeer> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = ca === undefined
      ? connect({ port, host: "127.0.0.1" }, resolve)
      : connectTls({ port, host: "127.0.0.1", ca, servername: servername ?? "localhost" }, resolve);
    socket.once("error", reject);
    await promise;
    return new HttpPeer(socket);
  }

  /** Opens a WebSocket and returns its peer. */
  static async open(
    target: HttpPeerTarget,
    path = "/xmpp-websocket",
    protocol = "xmpp",
  ): Promise<HttpPeer> {
    const peer = await HttpPeer.connect(target);
    peer.write(upgradeRequest(path, protocol));
    await peer.read(/^HTTP\/1\.1 101 .*\r\n\r\n/s);
    return peer;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  write(data: string | Uint8Array): void {
    this.socket.write(data);
  }

  /** Reads up to the end of the first match, from the start of the unread data. */
  async read(pattern: RegExp): Promise<string> {
    const match = await this.#until(
      () => pattern.exec(this.#unread.toString("latin1")),
      `to read ${pattern}`,
    );
    this.#unread = this.#unread.subarray(match.index + match[0].length);
    return match[0];
  }

  /** Reads one frame from the server. */
  async frame(): Promise<{ readonly opcode: number; readonly payload: Uint8Array }> {
    return await this.#until(() => {
      const bytes = this.#unread;
      if (bytes.length < 2) return undefined;
      const short = bytes[1]! & 0x7f;
      const headLength = short === 126 ? 4 : short === 127 ? 10 : 2;
      if (bytes.length < headLength) return undefined;
      const length = short === 126
        ? bytes.readUInt16BE(2)
        : short === 127
        ? Number(bytes.readBigUInt64BE(2))
        : short;
      if (bytes.length < headLength + length) return undefined;
      this.#unread = bytes.subarray(headLength + length);
      return {
        opcode: bytes[0]! & 0x0f,
        payload: bytes.subarray(headLength, headLength + length),
      };
    }, "for a frame");
  }

  /** Returns the code of the next close frame, and skips the frames before it. */
  async closeCode(): Promise<number> {
    for (;;) {
      const { opcode, payload } = await this.frame();
      if (opcode === 8) return Buffer.from(payload).readUInt16BE(0);
    }
  }

  /** Waits until the other side has closed, and returns the unread data. */
  async closed(): Promise<string> {
    await this.#until(() => this.#isClosed || undefined, "to be closed");
    return this.#unread.toString("latin1");
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }

  async #until<T>(look: () => T | null | undefined, what: string): Promise<T> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      for (;;) {
        const found = look();
        if (found !== undefined && found !== null) return found;
        const { promise, resolve, reject } = Promise.withResolvers<void>();
        if (this.#isClosed) throw new Error(`Closed while waiting ${what}`);
        this.#wake = resolve;
        timer ??= setTimeout(
          () => reject(new Error(`Waited ${PATIENCE_MS} ms ${what}; unread: ${this.#unread}`)),
          PATIENCE_MS,
        );
        await promise;
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A request to open a WebSocket; `extra` are header lines. */
export function upgradeRequest(path: string, protocol: string | undefined, extra = ""): string {
  const asked = protocol === undefined ? "" : `Sec-WebSocket-Protocol: ${protocol}\r\n`;
  return `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${asked}${extra}\r\n`;
}

/** Properties of a client's frame besides its payload. */
export interface FrameKind {
  /** 0 continuation, 1 text, 2 binary, 8 close, 9 ping. @default 1 */
  readonly opcode?: number;
  /** @default true */
  readonly isFinal?: boolean;
  /** Claims another length than the payload has. */
  readonly length?: number;
}

/** A frame as a client sends it: masked, here by zeros (RFC 6455 §5.2). */
export function frameOf(payload: string | Uint8Array, kind: FrameKind = {}): Uint8Array {
  const bytes = Buffer.from(payload);
  const length = kind.length ?? bytes.length;
  const first = (kind.isFinal === false ? 0 : 0x80) | (kind.opcode ?? 1);
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = first;
  head[1] = 0x80 | (head.length === 2 ? length : head.length === 4 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2);
  return Buffer.concat([head, Buffer.alloc(4), bytes]);
}
