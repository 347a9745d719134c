import { Buffer } from "node:buffer";
import { createServer, type TLSSocket } from "node:tls";
import {
  ackFrame,
  decodeHello,
  decodeSurvey,
  decodeToken,
  FRAME_TYPE,
  FrameDecoder,
  pongFrame,
  surveyedFrame,
} from "../../src/distribution/wire/mod.ts";
import type { Certificate } from "../certificates.ts";
import type { Target } from "../faults/mod.ts";
import { type Listening, listenOn } from "../net/listening.ts";
import { helloOf } from "./link_peer.ts";

const MAX_FRAME_BYTES = 1_000_000;
/** Once it is generous: more than it will ever be sent. */
const ALL_CREDIT = 1_000_000_000;

/**
 * A datacenter played by hand: it accepts links, says HELLO and answers PING as it should, and every
 * SURVEY. It lets nobody send a stanza until it is told to. From then on it takes and settles all of
 * them.
 */
export class MiserlyPeer implements AsyncDisposable {
  readonly #sockets = new Set<TLSSocket>();
  readonly #localHost: string;
  #listening: Listening | undefined;
  #isGenerous = false;
  #received = 0;
  #pings = 0;

  private constructor(localHost: string) {
    this.#localHost = localHost;
  }

  static async listen(localHost: string, certificate: Certificate): Promise<MiserlyPeer> {
    const peer = new MiserlyPeer(localHost);
    const server = createServer({
      cert: certificate.certificatePem,
      key: certificate.privateKeyPem,
      requestCert: true,
      rejectUnauthorized: false, // it trusts anybody: it is the other side that is looked at
    }, (socket) => peer.#accept(socket));
    peer.#listening = await listenOn(server);
    return peer;
  }

  get address(): Target {
    return { host: "127.0.0.1", port: this.#listening!.port }; // `listen` has set it
  }

  /** Links that stand. */
  get links(): number {
    return this.#sockets.size;
  }

  /** Stanzas that came. */
  get received(): number {
    return this.#received;
  }

  /** Questions that were answered. */
  get pings(): number {
    return this.#pings;
  }

  /** From now on everything may be sent. */
  grant(): void {
    this.#isGenerous = true;
    for (const socket of this.#sockets) this.#acknowledge(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening?.close();
  }

  #accept(socket: TLSSocket): void {
    this.#sockets.add(socket);
    const decoder = new FrameDecoder({ maxFrameBytes: MAX_FRAME_BYTES }, {
      frame: (type, buffer, start, end) => {
        if (type === FRAME_TYPE.hello) {
          const { lane } = decodeHello(buffer, start, end);
          socket.write(helloOf(this.#localHost, { lane }));
          if (this.#isGenerous) this.#acknowledge(socket);
        } else if (type === FRAME_TYPE.ping) {
          this.#pings++;
          socket.write(pongFrame(decodeToken(buffer, start, end)));
        } else if (type === FRAME_TYPE.survey) {
          const survey = decodeSurvey(buffer, start, end);
          socket.write(surveyedFrame({ survey, atMs: 0, hosts: [] }));
        } else if (type === FRAME_TYPE.stanza) this.#received++;
      },
    });
    socket.on("data", (chunk: Buffer) => {
      const before = this.#received;
      decoder.push(new Uint8Array(chunk));
      if (this.#received > before) this.#acknowledge(socket);
    });
    socket.on("error", () => {}); // `close` follows
    socket.on("close", () => this.#sockets.delete(socket));
  }

  /** There is one link, so what was received is what came over it. */
  #acknowledge(socket: TLSSocket): void {
    const received = this.#received;
    socket.write(ackFrame({ received, settled: received, creditBytes: ALL_CREDIT, ranges: [] }));
  }
}
