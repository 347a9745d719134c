import { connect, type Socket } from "node:net";
import {
  encodeValue,
  fromBinary,
  RespDecoder,
  RespError,
  type RespValue,
  toBinary,
} from "./resp.ts";

/** Address and password of a Redis. */
export interface RedisAddress {
  readonly host: string;
  readonly port: number;
  /** Empty for none. */
  readonly password: string;
}

interface Waiting {
  resolve(value: RespValue): void;
  reject(error: Error): void;
}

/**
 * A plain client for looking into a Redis and for replicating into it. Connects at the first call, and
 * again at the next one after a failure; calls made together travel together.
 */
export class RedisClient implements AsyncDisposable {
  readonly #address: () => RedisAddress;
  readonly #waiting: Waiting[] = [];
  #socket: Socket | undefined;
  #isClosed = false;

  /** @param address where to connect to; a function is asked each time */
  constructor(address: RedisAddress | (() => RedisAddress)) {
    this.#address = typeof address === "function" ? address : () => address;
  }

  /**
   * Sends one command of text and gives its reply, strings as text.
   * @throws {RespError} what the server answered
   * @throws {Error} when it could not be asked
   */
  async call(...command: readonly (string | number)[]): Promise<RespValue> {
    return decodeText(await this.callBinary(command.map((word) => toBinary(String(word)))));
  }

  /** As `call`, with binary strings both ways. */
  callBinary(command: readonly string[]): Promise<RespValue> {
    if (this.#isClosed) return Promise.reject(new Error("Cannot ask Redis: the client is closed"));
    const { promise, resolve, reject } = Promise.withResolvers<RespValue>();
    const socket = this.#socket ?? this.#connect();
    this.#waiting.push({ resolve, reject });
    socket.write(encodeValue(command));
    return promise;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    const socket = this.#socket;
    if (socket === undefined || socket.closed) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    socket.once("close", () => resolve());
    socket.destroy();
    await promise;
  }

  #connect(): Socket {
    const { host, port, password } = this.#address();
    const socket = connect({ host, port, noDelay: true });
    this.#socket = socket;
    const decoder = new RespDecoder();
    let cause: unknown;
    socket.on("data", (chunk: Uint8Array) => {
      for (const { value } of decoder.push(chunk)) {
        if (socket.destroyed) return; // a refused password makes all that follows meaningless
        const waiting = this.#waiting.shift();
        if (value instanceof RespError) waiting?.reject(value);
        else waiting?.resolve(value);
      }
    });
    socket.on("error", (error) => cause = error);
    socket.on("close", () => {
      if (this.#socket === socket) this.#socket = undefined;
      const error = new Error(`Lost the connection to Redis at ${host}:${port}`, { cause });
      for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
    });
    if (password !== "") {
      this.#waiting.push({ resolve() {}, reject: (error) => socket.destroy(error) });
      socket.write(encodeValue(["AUTH", toBinary(password)]));
    }
    return socket;
  }
}

function decodeText(value: RespValue): RespValue {
  if (typeof value === "string") return fromBinary(value);
  return Array.isArray(value) ? value.map(decodeText) : value;
}
