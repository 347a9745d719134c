import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import { connect as connectTcp, isIP } from "node:net";
import type { Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { TlsMaterial } from "../sql/sql_server.ts";
import { FramingError, MessageFraming } from "./message_framing.ts";

/** Encryption of the connections to a directory. */
export type LdapEncryption = "none" | "tls" | "starttls";

/** Place of one server of a directory. */
export interface LdapServer {
  readonly host: string;
  readonly port: number;
  readonly encryption: LdapEncryption;
  /** Contents of the files for TLS. The server's certificate must name `host`. */
  readonly tls: TlsMaterial;
}

/** Bounds on the answers of a server. */
export interface AnswerBounds {
  /** Bytes of one message. */
  readonly maxMessageBytes: number;
  /** Bytes of all messages since `expect` was called. */
  readonly maxAnswerBytes: number;
}

/** A server that does not begin TLS when it is asked to. */
export class NoTlsError extends Error {}

/** An ExtendedRequest for StartTLS (RFC 4511 §4.14.1), as message 1. */
const START_TLS = Buffer.concat([
  Buffer.from([0x30, 0x1d, 0x02, 0x01, 0x01, 0x77, 0x18, 0x80, 0x16]),
  Buffer.from("1.3.6.1.4.1.1466.20037", "ascii"),
]);

/**
 * A connection to a server that gives whole messages to the driver, and no more of them than the
 * bounds allow. It has those methods and events of a socket that the driver uses.
 */
export class LdapSocket extends EventEmitter {
  readonly connecting = false;
  readonly readyState = "open";
  readonly #socket: Socket;
  readonly #bounds: AnswerBounds;
  #answerBytes = 0;
  #violation: FramingError | undefined;
  #isOpen = true;

  constructor(socket: Socket, bounds: AnswerBounds) {
    super();
    this.#socket = socket;
    this.#bounds = bounds;
    const framing = new MessageFraming(bounds.maxMessageBytes);
    socket.on("data", (chunk: Uint8Array) => this.#take(framing, chunk));
    socket.on("end", () => this.emit("end"));
    socket.on("error", (error: Error) => this.#fail(error));
    socket.on("close", () => {
      this.#isOpen = false;
      this.emit("close");
    });
  }

  get isOpen(): boolean {
    return this.#isOpen && this.#violation === undefined && !this.#socket.destroyed;
  }

  /** Fault in what the server has sent; undefined while all is well. */
  get violation(): FramingError | undefined {
    return this.#violation;
  }

  /** Begins to count the bytes of an answer. */
  expect(): void {
    this.#answerBytes = 0;
  }

  write(bytes: Uint8Array, done?: () => void): boolean {
    return this.#socket.write(bytes, done);
  }

  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#isOpen = false;
    this.#socket.destroy();
  }

  #take(framing: MessageFraming, chunk: Uint8Array): void {
    if (!this.isOpen) return;
    try {
      this.#answerBytes += chunk.length;
      const { maxAnswerBytes } = this.#bounds;
      if (this.#answerBytes > maxAnswerBytes) {
        throw new FramingError("too-large", `an answer above ${maxAnswerBytes} bytes`);
      }
      for (const message of framing.push(chunk)) this.emit("data", message);
    } catch (thrown) {
      const text = thrown instanceof Error ? thrown.message : String(thrown);
      this.#violation = thrown instanceof FramingError ? thrown : new FramingError("garbled", text);
      this.#fail(this.#violation);
    }
  }

  #fail(error: Error): void {
    if (this.listenerCount("error") > 0) this.emit("error", error);
    this.destroy();
  }
}

/**
 * Connects to a server, and begins TLS.
 *
 * @throws what the runtime's sockets throw, `NoTlsError` or `FramingError`
 */
export async function openLdapSocket(
  server: LdapServer,
  { timeoutMs, bounds }: { readonly timeoutMs: number; readonly bounds: AnswerBounds },
): Promise<LdapSocket> {
  const { host, port, encryption, tls } = server;
  const names = isIP(host) === 0 ? { servername: host } : {};
  let socket: Socket = encryption === "tls"
    ? connectTls({ host, port, ...names, ...tls })
    : connectTcp({ host, port });
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error("it did not answer in time")), timeoutMs);
  try {
    await Promise.race([opened(socket, encryption === "tls" ? "secureConnect" : "connect"), late]);
    if (encryption === "starttls") {
      await Promise.race([startTls(socket, bounds), late]);
      socket = connectTls({ socket, host, ...names, ...tls });
      await Promise.race([opened(socket, "secureConnect"), late]);
    }
    return new LdapSocket(socket, bounds);
  } catch (thrown) {
    socket.on("error", () => {}); // it has failed already
    socket.destroy();
    throw thrown;
  } finally {
    clearTimeout(timer);
    late.catch(() => {}); // nobody waits for it any more
  }
}

function opened(socket: Socket, event: "connect" | "secureConnect"): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error?: Error) => reject(error ?? new Error("the connection was closed"));
    const close = () => fail();
    socket.once("error", fail);
    socket.once("close", close);
    socket.once(event, () => {
      socket.removeListener("error", fail);
      socket.removeListener("close", close);
      resolve();
    });
  });
}

async function startTls(socket: Socket, bounds: AnswerBounds): Promise<void> {
  const framing = new MessageFraming(bounds.maxMessageBytes);
  const answer = await new Promise<Buffer>((resolve, reject) => {
    const end = (settle: () => void) => {
      for (const event of ["data", "error", "close"]) socket.removeAllListeners(event);
      settle();
    };
    socket.on("error", (error: Error) => end(() => reject(error)));
    socket.on("close", () => end(() => reject(new Error("the connection was closed"))));
    socket.on("data", (chunk: Uint8Array) => {
      try {
        const [message, more] = framing.push(chunk);
        if (more !== undefined) throw new FramingError("garbled", "it answers too much");
        if (message !== undefined) end(() => resolve(message));
      } catch (thrown) {
        end(() => reject(thrown));
      }
    });
    socket.write(START_TLS);
  });
  // ExtendedResponse: 0x78, its length, and an enumeration of one byte, which is 0 for success.
  const at = answer.indexOf(Buffer.from([0x02, 0x01, 0x01, 0x78]));
  const result = at < 0 ? -1 : answer.indexOf(Buffer.from([0x0a, 0x01]), at);
  if (result < 0 || answer[result + 2] !== 0) throw new NoTlsError("it refuses StartTLS");
}
