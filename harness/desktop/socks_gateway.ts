import { Buffer } from "node:buffer";
import { connect, createServer, type Socket } from "node:net";
import { type Listening, listenOn } from "../net/listening.ts";
import type { Address } from "../process/mod.ts";

const VERSION = 5;
const NO_AUTHENTICATION = 0;
const CONNECT = 1;
const DOMAIN_NAME = 3;
const SUCCEEDED = 0;
const REFUSED = 2;
/** Length of the longest request: a name of 255 bytes. */
const MAX_REQUEST_BYTES = 4 + 1 + 255 + 2;

/**
 * A SOCKS5 proxy (RFC 1928) with one way through: whoever asks for the named service gets `target`, and
 * for anything else a refusal. So a program that knows only an account's domain finds a datacenter on
 * loopback, and this machine's names and authorities stay as they are.
 */
export class SocksGateway implements AsyncDisposable {
  readonly #listening: Listening;

  private constructor(listening: Listening) {
    this.#listening = listening;
  }

  /** @param service the address that programs ask for, such as `example.onion:5222` */
  static async start(service: string, target: Address): Promise<SocksGateway> {
    const server = createServer((socket) => void serve(socket, { service, target }));
    return new SocksGateway(await listenOn(server));
  }

  /** URL for the environment of programs. */
  get url(): string {
    return `socks5://127.0.0.1:${this.#listening.port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#listening.close();
  }
}

/** Serves one connection. Never rejects. */
async function serve(
  client: Socket,
  { service, target }: { readonly service: string; readonly target: Address },
): Promise<void> {
  client.on("error", () => client.destroy());
  const isGreeting = (bytes: Buffer) => bytes.length >= 2 && bytes.length >= 2 + bytes[1]!;
  if (await read(client, isGreeting) === undefined) return;
  client.write(Uint8Array.of(VERSION, NO_AUTHENTICATION));
  const request = await read(client, (bytes) => bytes.length >= 5 && bytes.length >= 7 + bytes[4]!);
  if (request === undefined) return;
  if (serviceOf(request) !== service) {
    client.end(reply(REFUSED));
    return;
  }
  const server = connect(target.port, target.host);
  const end = () => {
    client.destroy();
    server.destroy();
  };
  for (const socket of [client, server]) socket.on("error", end).on("close", end);
  server.once("connect", () => {
    client.write(reply(SUCCEEDED));
    client.pipe(server).pipe(client);
  });
}

/** Reads until `isWhole`; undefined when the client sends too much, or leaves. */
function read(
  client: Socket,
  isWhole: (bytes: Buffer) => boolean,
): Promise<Buffer | undefined> {
  const { promise, resolve } = Promise.withResolvers<Buffer | undefined>();
  let bytes = Buffer.alloc(0);
  const take = (chunk: Buffer) => {
    bytes = Buffer.concat([bytes, chunk]);
    if (bytes.length > MAX_REQUEST_BYTES) client.destroy();
    else if (isWhole(bytes)) finish(bytes);
  };
  const leave = () => finish(undefined);
  const finish = (whole: Buffer | undefined) => {
    client.off("data", take).off("close", leave).pause();
    resolve(whole);
  };
  client.on("data", take).on("close", leave).resume();
  return promise;
}

/** Name and port that a request asks for; undefined for one of another kind. */
function serviceOf(request: Buffer): string | undefined {
  const [version, command, , kind, length] = request;
  if (version !== VERSION || command !== CONNECT || kind !== DOMAIN_NAME) return undefined;
  const name = request.toString("latin1", 5, 5 + length!);
  return `${name}:${request.readUInt16BE(5 + length!)}`;
}

/** Reply with the address 0.0.0.0:0, which clients do not use. */
function reply(code: number): Uint8Array {
  return Uint8Array.of(VERSION, code, 0, 1, 0, 0, 0, 0, 0, 0);
}
