import { createServer, type Server, type Socket } from "node:net";
import { EMBEDDED_COMMANDS, type Reply, SimpleReply } from "./embedded_commands.ts";
import { EmbeddedStore } from "./embedded_store.ts";
import type { RedisAddress } from "./redis_client.ts";
import type { RedisServer } from "./redis_server.ts";
import { encodeError, encodeSimple, encodeValue, RespDecoder, RespError } from "./resp.ts";
import { type Listening, listenOn } from "../net/listening.ts";

/** Options of an embedded Redis. */
export interface EmbeddedRedisOptions {
  /** Empty for none. @default "" */
  readonly password?: string;
  /** Wall-clock milliseconds. @default Date.now */
  readonly nowMs?: () => number;
}

interface Session {
  readonly socket: Socket;
  isAuthenticated: boolean;
}

/**
 * A Redis inside this process, for machines that have none: the commands that Causeway uses, over
 * the real protocol. `redis_conformance_test.ts` compares its answers with a real server's.
 */
export class EmbeddedRedis implements RedisServer {
  readonly kind = "embedded";
  readonly #store: EmbeddedStore;
  readonly #password: string;
  readonly #sessions = new Set<Session>();
  #listening: Listening | undefined;
  #port = 0;
  #isPaused = false;

  constructor(options: EmbeddedRedisOptions = {}) {
    this.#store = new EmbeddedStore(options.nowMs);
    this.#password = options.password ?? "";
  }

  get description(): string {
    return `embedded :${this.#port}`;
  }

  get address(): RedisAddress {
    return { host: "127.0.0.1", port: this.#port, password: this.#password };
  }

  get isRunning(): boolean {
    return this.#listening !== undefined;
  }

  async start(): Promise<void> {
    const server: Server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
    this.#listening = await listenOn(server, this.#port);
    this.#port = this.#listening.port;
  }

  async stop(): Promise<void> {
    const listening = this.#listening;
    this.#listening = undefined;
    await listening?.close();
    this.#store.clear();
    this.#isPaused = false;
  }

  pause(): Promise<void> {
    this.#isPaused = true;
    for (const { socket } of this.#sessions) socket.pause();
    return Promise.resolve();
  }

  resume(): Promise<void> {
    this.#isPaused = false;
    for (const { socket } of this.#sessions) socket.resume();
    return Promise.resolve();
  }

  tail(): string {
    return "";
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  #accept(socket: Socket): void {
    const session: Session = { socket, isAuthenticated: this.#password === "" };
    this.#sessions.add(session);
    const decoder = new RespDecoder();
    socket.on("data", (chunk: Uint8Array) => {
      try {
        for (const { value } of decoder.push(chunk)) {
          // A client sends lists of strings; what else it may be is answered as an unknown command.
          const words = Array.isArray(value) ? value.map(String) : [String(value)];
          if (words.length > 0) this.#obey(session, words);
        }
      } catch (thrown) {
        if (!(thrown instanceof RespError)) throw thrown;
        socket.end(encodeError(thrown.message));
      }
    });
    socket.on("error", () => {}); // `close` follows, and nobody needs the reason
    socket.on("close", () => this.#sessions.delete(session));
    if (this.#isPaused) socket.pause();
  }

  #obey(session: Session, [name, ...operands]: readonly string[]): void {
    const reply = this.#reply(session, name!.toUpperCase(), operands);
    session.socket.write(
      reply instanceof SimpleReply ? encodeSimple(reply.text) : encodeValue(reply),
    );
    if (name!.toUpperCase() === "QUIT") session.socket.end();
  }

  #reply(session: Session, name: string, operands: readonly string[]): Reply {
    try {
      if (name === "HELLO") return this.#hello(session, operands);
      if (name === "AUTH") return this.#authenticate(session, operands);
      if (name === "QUIT") return new SimpleReply("OK");
      if (!session.isAuthenticated) throw new RespError("NOAUTH Authentication required.");
      const known = CONNECTION_COMMANDS[name] ?? EMBEDDED_COMMANDS.get(name);
      if (known === undefined) {
        throw new RespError(`ERR unknown command '${name.toLowerCase()}'`);
      }
      const [fewest, most] = known.operands;
      if (operands.length < fewest || operands.length > most) {
        throw new RespError(`ERR wrong number of arguments for '${name.toLowerCase()}' command`);
      }
      return known.run(this.#store, operands);
    } catch (thrown) {
      if (thrown instanceof RespError) return thrown;
      throw thrown;
    }
  }

  #hello(session: Session, [version, ...words]: readonly string[]): Reply {
    if (version !== undefined && version !== "2") {
      return new RespError("NOPROTO unsupported protocol version");
    }
    if (words[0]?.toUpperCase() === "AUTH") {
      const outcome = this.#authenticate(session, words.slice(1, 3));
      if (outcome instanceof RespError) return outcome;
    }
    if (!session.isAuthenticated) {
      return new RespError("NOAUTH HELLO must be called with the client already authenticated");
    }
    return ["server", "redis", "version", "7.0.0", "proto", 2, "mode", "standalone"];
  }

  #authenticate(session: Session, operands: readonly string[]): Reply {
    const [user, password] = operands.length === 1 ? ["default", operands[0]] : operands;
    if (password === undefined) {
      return new RespError("ERR wrong number of arguments for 'auth' command");
    }
    if (this.#password === "" && operands.length === 1) {
      return new RespError(
        "ERR AUTH <password> called without any password configured for the default user. " +
          "Are you sure your configuration is correct?",
      );
    }
    if (user !== "default" || (this.#password !== "" && password !== this.#password)) {
      return new RespError("WRONGPASS invalid username-password pair or user is disabled.");
    }
    session.isAuthenticated = true;
    return new SimpleReply("OK");
  }
}

const MANY = Number.POSITIVE_INFINITY;
type CommandTable = Record<string, NonNullable<ReturnType<typeof EMBEDDED_COMMANDS.get>>>;

/** Commands about the connection or the server, of which clients send some while connecting. */
const CONNECTION_COMMANDS: CommandTable = {
  PING: { operands: [0, 1], run: (_store, [text]) => text ?? new SimpleReply("PONG") },
  ECHO: { operands: [1, 1], run: (_store, [text]) => text! },
  SELECT: {
    operands: [1, 1],
    run: (_store, [index]) =>
      index === "0" ? new SimpleReply("OK") : new RespError("ERR DB index is out of range"),
  },
  CLIENT: {
    operands: [1, MANY],
    run: (_store, [word]) =>
      word!.toUpperCase().startsWith("SET")
        ? new SimpleReply("OK")
        : new RespError(`ERR unknown subcommand '${word}'. Try CLIENT HELP.`),
  },
  INFO: {
    operands: [0, MANY],
    run: () =>
      ["# Server", "redis_version:7.0.0", "redis_mode:standalone", "# Persistence", "loading:0", ""]
        .join("\r\n"),
  },
  TIME: {
    operands: [0, 0],
    run: (store) => {
      const nowMs = store.nowMs();
      return [String(Math.floor(nowMs / 1000)), String((nowMs % 1000) * 1000)];
    },
  },
};
