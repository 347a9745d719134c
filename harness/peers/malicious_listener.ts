import { Buffer } from "node:buffer";
import { createServer, type TLSSocket } from "node:tls";
import type { SeededRandom } from "../../src/base/mod.ts";
import type { Hello } from "../../src/distribution/wire/mod.ts";
import {
  ackFrame,
  decodeHello,
  decodeToken,
  FRAME_TYPE,
  FrameDecoder,
  goodbyeFrame,
  meshFrame,
  pongFrame,
  positionFrame,
  slowFrame,
  surveyedFrame,
  surveyFrame,
} from "../../src/distribution/wire/mod.ts";
import type { Certificate } from "../certificates.ts";
import { type Listening, listenOn } from "../net/listening.ts";
import { helloOf } from "./link_peer.ts";

const MAX_FRAME_BYTES = 1_000_000;
/** Frames of one kind that one link is flooded with. */
const FLOOD = 500;

/** Misbehaviour of the accepting side of one link after HELLO. */
type Manner = (hello: Hello, localHost: string) => readonly Uint8Array[];

const silent: Manner = (hello, localHost) => [helloOf(localHost, { lane: hello.lane })];

/** In turn, one for each link that a node makes. */
const MANNERS: readonly Manner[] = [
  silent, // it grants nothing, and answers whether it lives
  (hello, localHost) => [...silent(hello, localHost), ack(9, 9)], // nothing was sent yet
  (hello, localHost) => [
    ...silent(hello, localHost),
    ack(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    ackFrame({
      received: 5_000,
      settled: 0,
      creditBytes: Number.MAX_SAFE_INTEGER,
      ranges: Array.from({ length: 1024 }, (_, i) => ({ first: 2 * i + 2, count: 1 })),
    }),
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    ...Array.from({ length: FLOOD }, () => ack(0, 0)),
  ],
  (hello, localHost) => [helloOf(localHost, { lane: (hello.lane + 1) % 0xffff_ffff })],
  (hello) => [helloOf(hello.localHost, { lane: hello.lane })],
  (hello, localHost) => [
    ...silent(hello, localHost),
    ...Array.from({ length: FLOOD }, (_, round) => position(hello, round, 0)),
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    position(hello, 1, Number.MAX_SAFE_INTEGER),
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    meshFrame([{ host: hello.localHost, endpoints: ["127.66.0.1#9"] }]),
    pongFrame(Number.MAX_SAFE_INTEGER),
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    slowFrame({ number: Number.MAX_SAFE_INTEGER, isOver: false }), // it was never sent
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    ...Array.from({ length: FLOOD }, () => slowFrame({ number: 1, isOver: true })),
  ],
  (hello, localHost) => [
    ...silent(hello, localHost),
    ...Array.from({ length: FLOOD }, (_, survey) => surveyFrame(survey + 1)),
    ...Array.from({ length: FLOOD }, (_, survey) => unasked(survey + 1)),
  ],
  () => [], // no HELLO ever
  (hello, localHost) => [
    ...silent(hello, localHost),
    goodbyeFrame({ reason: "leaving", detail: "x".repeat(150) }),
  ],
  () => [new TextEncoder().encode("HTTP/1.1 200 OK\r\n\r\n")],
];

/** Listener of a malicious datacenter. Each link that a node makes gets another misbehaviour. */
export class MaliciousListener implements AsyncDisposable {
  readonly #localHost: string;
  /** Index of the first misbehaviour. */
  readonly #first: number;
  #listening: Listening | undefined;
  #links = 0;

  private constructor(localHost: string, random: SeededRandom) {
    this.#localHost = localHost;
    this.#first = Math.floor(random.unit() * MANNERS.length);
  }

  static async listen(
    localHost: string,
    certificate: Certificate,
    random: SeededRandom,
  ): Promise<MaliciousListener> {
    const listener = new MaliciousListener(localHost, random);
    const server = createServer({
      cert: certificate.certificatePem,
      key: certificate.privateKeyPem,
      requestCert: true,
      rejectUnauthorized: false, // it takes anybody
    }, (socket) => listener.#accept(socket));
    listener.#listening = await listenOn(server);
    return listener;
  }

  /** As a LEASE tells it. */
  get endpoint(): string {
    return `127.0.0.1#${this.#listening!.port}`; // `listen` has set it
  }

  /** Links that nodes have made. */
  get links(): number {
    return this.#links;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening?.close();
  }

  #accept(socket: TLSSocket): void {
    const manner = MANNERS[(this.#first + this.#links++) % MANNERS.length]!;
    const decoder = new FrameDecoder({ maxFrameBytes: MAX_FRAME_BYTES }, {
      frame: (type, buffer, start, end) => {
        if (type === FRAME_TYPE.hello) {
          const hello = decodeHello(buffer, start, end);
          for (const frame of manner(hello, this.#localHost)) socket.write(frame);
        } else if (type === FRAME_TYPE.ping) {
          socket.write(pongFrame(decodeToken(buffer, start, end)));
        }
      },
    });
    socket.on("data", (chunk: Buffer) => decoder.push(new Uint8Array(chunk)));
    socket.on("error", () => {}); // it ends with its connection
  }
}

function ack(received: number, settled: number): Uint8Array {
  return ackFrame({ received, settled, creditBytes: 1_000, ranges: [] });
}

function unasked(survey: number): Uint8Array {
  return surveyedFrame({ survey, atMs: 1, hosts: [] });
}

function position({ process }: Hello, round: number, applied: number): Uint8Array {
  return positionFrame({ process, round, applied, chunk: 0, isRestart: true, wantsSnapshot: true });
}
