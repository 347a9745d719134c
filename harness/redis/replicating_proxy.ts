import { connect, createServer, type Socket } from "node:net";
import { type Listening, listenOn } from "../net/listening.ts";
import { type Command, isReplicated, isScattered, isTaken } from "./dynomite_commands.ts";
import type { RedisAddress } from "./redis_client.ts";
import { ReplicationLane } from "./replication_lane.ts";
import { encodeError, RespDecoder } from "./resp.ts";

/** A command that waits for its turn to be answered: by Redis, or with this error. */
type Pending = "forwarded" | { readonly error: string };

/**
 * Stands in front of one datacenter's Redis as Dynomite would: commands go to that Redis, and every
 * write goes on to the others' as it came, a little later. A command that Dynomite does not know ends
 * the connection without a word, and with it the answers to all that was sent before it and has not
 * been answered yet.
 */
export class ReplicatingProxy implements AsyncDisposable {
  readonly #upstream: () => RedisAddress;
  readonly #lanes = new Map<string, ReplicationLane>();
  readonly #servers = new Set<Socket>();
  #listening: Listening | undefined;
  #refused = new Set<string>();
  #unknownCommands = 0;
  #connections = 0;

  /** `upstream` is asked at each connection, so that its Redis may come and go. */
  constructor(upstream: () => RedisAddress) {
    this.#upstream = upstream;
  }

  /** Address to connect to instead of the Redis itself. */
  get address(): RedisAddress {
    if (this.#listening === undefined) throw new Error("The replicating proxy was never started");
    return { host: "127.0.0.1", port: this.#listening.port, password: "" }; // Dynomite knows none
  }

  /** Commands that ended a connection, or were answered wrongly by a rack of several nodes. */
  get unknownCommands(): number {
    return this.#unknownCommands;
  }

  /** Connections that were made to it, since the beginning. */
  get connections(): number {
    return this.#connections;
  }

  /** Commands to answer with an error from now on, on existing connections too. */
  refuse(names: readonly string[]): void {
    this.#refused = new Set(names.map((name) => name.toUpperCase()));
  }

  async start(): Promise<void> {
    this.#listening = await listenOn(createServer({ noDelay: true }, (client) => {
      this.#accept(client);
    }));
  }

  /** Copies writes to the Redis at `address` from now on, under the name of its datacenter. */
  replicateTo(name: string, address: () => RedisAddress, lagMs = 0): ReplicationLane {
    const lane = new ReplicationLane(address, lagMs);
    this.#lanes.set(name, lane);
    return lane;
  }

  /** The lane to the datacenter `name`. @throws {RangeError} when there is none */
  towards(name: string): ReplicationLane {
    const lane = this.#lanes.get(name);
    if (lane === undefined) throw new RangeError(`Nothing is replicated to ${name}`);
    return lane;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const listening = this.#listening;
    this.#listening = undefined;
    for (const server of this.#servers) server.destroy();
    await listening?.close();
    await Promise.all([...this.#lanes.values()].map((lane) => lane[Symbol.asyncDispose]()));
  }

  #accept(client: Socket): void {
    const { host, port } = this.#upstream();
    const server = connect({ host, port, noDelay: true });
    const commands = new RespDecoder();
    const replies = new RespDecoder();
    const pending: Pending[] = [];
    let isOver = false;
    this.#connections++;
    this.#servers.add(server);
    const answerRefused = () => {
      for (let next = pending[0]; typeof next === "object"; next = pending[0]) {
        client.write(encodeError(next.error));
        pending.shift();
      }
    };
    client.on("data", (chunk: Uint8Array) => {
      decodeInto(client, () => {
        for (const { value, bytes } of commands.push(chunk)) {
          if (isOver) return;
          if (!Array.isArray(value) || value.length === 0) continue;
          const command = value.map(String);
          const error = this.#refusal(command);
          if (error !== undefined) pending.push({ error });
          else if (isTaken(command)) {
            pending.push("forwarded");
            server.write(bytes);
            this.#replicate(command);
          } else {
            // Commands before it are still carried out.
            this.#unknownCommands++;
            isOver = true;
            server.end();
            client.destroy();
            return;
          }
        }
        answerRefused();
      });
    });
    server.on("data", (chunk: Uint8Array) => {
      if (isOver) return;
      decodeInto(client, () => {
        for (const { bytes } of replies.push(chunk)) {
          client.write(bytes);
          pending.shift();
          answerRefused();
        }
      });
    });
    for (const one of [client, server]) one.on("error", () => {}); // `close` follows, and tells
    server.on("close", () => {
      this.#servers.delete(server);
      client.destroy();
    });
    client.on("close", () => {
      if (!isOver) server.destroy();
    });
  }

  #refusal(command: Command): string | undefined {
    const name = command[0]!.toUpperCase();
    if (this.#refused.has(name)) return `ERR unknown command '${name}'`;
    if (!isScattered(command)) return undefined;
    this.#unknownCommands++;
    return "ERR a rack of several nodes cannot answer SUNION of keys without one tag";
  }

  #replicate(command: Command): void {
    if (!isReplicated(command)) return;
    for (const lane of this.#lanes.values()) lane.push(command);
  }
}

/** Runs `decode`. Bytes that are not the protocol end the connection with an error reply. */
function decodeInto(client: Socket, decode: () => void): void {
  try {
    decode();
  } catch (thrown) {
    client.end(encodeError(thrown instanceof Error ? thrown.message : String(thrown)));
  }
}
