import { Buffer } from "node:buffer";
import { connect, type TLSSocket } from "node:tls";
import type { Goodbye, Hello } from "../../src/distribution/wire/mod.ts";
import {
  decodeGoodbye,
  FRAME_TYPE,
  FrameDecoder,
  helloFrame,
  OUR_VERSIONS,
} from "../../src/distribution/wire/mod.ts";
import type { Certificate } from "../certificates.ts";
import type { Target } from "../faults/mod.ts";
import { until } from "../until.ts";

/** Options of a peer played by hand. */
export interface LinkPeerOptions {
  readonly target: Target;
  /** Certificate that it presents; none when absent. */
  readonly certificate?: Certificate;
  /** Told of each frame that comes; the bytes are its until it returns. */
  readonly heard?: (type: number, buffer: Uint8Array, start: number, end: number) => void;
}

const MAX_FRAME_BYTES = 1_000_000;
let processes = 1_000_000;

/** A HELLO as `localHost` would say it, with what `changes` has changed. */
export function helloOf(localHost: string, changes: Partial<Hello> = {}): Uint8Array {
  return helloFrame({
    ...OUR_VERSIONS,
    process: ++processes,
    lane: 1,
    lastNumber: 0,
    datacenterId: "0123456789abcdef",
    localHost,
    nodeName: `node9@${localHost}`,
    ...changes,
  });
}

/** The dialling end of a link, played by hand: every byte that it sends is its owner's. */
export class LinkPeer implements Disposable {
  readonly #socket: TLSSocket;
  readonly #decoder: FrameDecoder;
  readonly #frames: number[] = [];
  #goodbye: Goodbye | undefined;
  #isSecured = false;
  #hasEnded = false;

  constructor({ target, certificate, heard }: LinkPeerOptions) {
    this.#decoder = new FrameDecoder({ maxFrameBytes: MAX_FRAME_BYTES }, {
      frame: (type, buffer, start, end) => {
        this.#frames.push(type);
        if (type === FRAME_TYPE.goodbye) this.#goodbye = decodeGoodbye(buffer, start, end);
        heard?.(type, buffer, start, end);
      },
    });
    this.#socket = connect({
      host: target.host,
      port: target.port,
      rejectUnauthorized: false, // it is the node's checks that are looked at, not ours
      ...(certificate && { cert: certificate.certificatePem, key: certificate.privateKeyPem }),
    });
    this.#socket.on("secureConnect", () => this.#isSecured = true);
    this.#socket.on("data", (chunk: Buffer) => this.#decoder.push(new Uint8Array(chunk)));
    this.#socket.on("error", () => {}); // `close` follows
    this.#socket.on("close", () => this.#hasEnded = true);
  }

  /** Reason in the node's GOODBYE; undefined when there was none. */
  get goodbye(): Goodbye | undefined {
    return this.#goodbye;
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** True once the node has said HELLO, which is when it has let this peer in. */
  get isLetIn(): boolean {
    return this.#frames.includes(FRAME_TYPE.hello);
  }

  /** Resolves when TLS stands, as far as this side can know, or the connection has ended. */
  async secured(): Promise<void> {
    await until(() => this.#isSecured || this.#hasEnded, { what: "a peer has shaken hands" });
  }

  /** Hands bytes to the connection; what cannot be sent any more is lost. */
  send(bytes: Uint8Array): void {
    this.#socket.write(bytes);
  }

  /** Resolves when the node has ended the connection; gives the reason that it said, if any. */
  async refused(): Promise<string | undefined> {
    await until(() => this.#hasEnded, { what: "the node has hung up" });
    return this.#goodbye?.reason;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}
