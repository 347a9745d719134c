import { connect, createServer, type Socket } from "node:net";
import { type Listening, listenOn } from "../net/listening.ts";
import type { RedisAddress } from "./redis_client.ts";
import { type Command, effectOf, refusal } from "./replicated_write.ts";
import { ReplicationLane } from "./replication_lane.ts";
import { encodeError, RespDecoder, type RespValue } from "./resp.ts";

/** Commands that proxies such as Dynomite answer with an error. */
export const DYNOMITE_REFUSES: readonly string[] = ["CLIENT", "INFO", "SELECT", "HELLO"];

/** A command that waits for its turn to be answered. */
type Pending =
  | { readonly kind: "forwarded"; readonly command: Command }
  | { readonly kind: "refused"; readonly error: string };

/**
 * Stands in front of one datacenter's Redis as an external replicator would: commands go to that
 * Redis and nowhere else, and what they changed is copied to the others' a little later.
 */
export class ReplicatingProxy implements AsyncDisposable {
  readonly #upstream: () => RedisAddress;
  readonly #lanes = new Map<string, ReplicationLane>();
  #listening: Listening | undefined;
  #refused = new Set<string>();
  #refusedCommands = 0;

  /** `upstream` is asked at each connection, so that its Redis may come and go. */
  constructor(upstream: () => RedisAddress) {
    this.#upstream = upstream;
  }

  /** Where to connect instead of to the Redis itself. */
  get address(): RedisAddress {
    if (this.#listening === undefined) throw new Error("The replicating proxy was never started");
    return { host: "127.0.0.1", port: this.#listening.port, password: this.#upstream().password };
  }

  /** Commands answered with an error here, since the beginning. */
  get refusedCommands(): number {
    return this.#refusedCommands;
  }

  /** Commands to refuse besides what no replicator takes; for new and existing connections. */
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
    await listening?.close();
    await Promise.all([...this.#lanes.values()].map((lane) => lane[Symbol.asyncDispose]()));
  }

  #accept(client: Socket): void {
    const { host, port } = this.#upstream();
    const server = connect({ host, port, noDelay: true });
    const commands = new RespDecoder();
    const replies = new RespDecoder();
    const pending: Pending[] = [];
    const answerRefused = () => {
      while (pending[0]?.kind === "refused") {
        client.write(encodeError(pending[0].error));
        pending.shift();
      }
    };
    client.on("data", (chunk: Uint8Array) => {
      decodeInto(client, () => {
        for (const { value, bytes } of commands.push(chunk)) {
          if (!Array.isArray(value) || value.length === 0) continue;
          const command = value.map(String);
          const error = this.#refusal(command);
          if (error === undefined) {
            pending.push({ kind: "forwarded", command });
            server.write(bytes);
          } else {
            this.#refusedCommands++;
            pending.push({ kind: "refused", error });
          }
        }
        answerRefused();
      });
    });
    server.on("data", (chunk: Uint8Array) => {
      decodeInto(client, () => {
        for (const { value, bytes } of replies.push(chunk)) {
          client.write(bytes);
          const answered = pending.shift();
          if (answered?.kind === "forwarded") this.#replicate(answered.command, value);
          answerRefused();
        }
      });
    });
    for (const [one, other] of [[client, server], [server, client]] as const) {
      one.on("error", () => {}); // `close` follows, and the other side learns it from there
      one.on("close", () => other.destroy());
    }
  }

  #refusal(command: Command): string | undefined {
    const name = command[0]!.toUpperCase();
    if (this.#refused.has(name)) return `ERR unknown command '${name}'`;
    return refusal(command);
  }

  #replicate(command: Command, reply: RespValue): void {
    const effect = effectOf(command, reply);
    if (effect === undefined) return;
    for (const lane of this.#lanes.values()) lane.push(effect);
  }
}

/** Runs what decodes; bytes that are not the protocol end the connection with a word. */
function decodeInto(client: Socket, decode: () => void): void {
  try {
    decode();
  } catch (thrown) {
    client.end(encodeError(thrown instanceof Error ? thrown.message : String(thrown)));
  }
}
