import { connect, createServer, type Socket } from "node:net";
import { type Listening, listenOn } from "../net/listening.ts";
import { type PipeConditions, StreamPipe } from "./stream_pipe.ts";

/** Direction of bytes. `forward` is from the dialling side to the other. */
export type Direction = "forward" | "backward";

/** An address to dial. */
export interface Target {
  readonly host: string;
  readonly port: number;
}

interface Bridge {
  readonly client: Socket;
  /** Absent while a black hole keeps it from being dialled. */
  server?: Socket;
  readonly pipes: StreamPipe[];
  /** The direction in which one side's end has still to be told. */
  untold?: Direction;
}

const CLEAR: PipeConditions = { delayMs: 0, bytesPerSec: 0, isBlackHole: false };

/**
 * A byte-level TCP proxy in front of one node, for the links of one datacenter: it delays, throttles,
 * cuts, swallows and refuses on request, and counts what it did.
 */
export class LinkProxy implements AsyncDisposable {
  readonly name: string;
  readonly #conditions: Record<Direction, PipeConditions> = { forward: CLEAR, backward: CLEAR };
  readonly #bridges = new Set<Bridge>();
  readonly #bytes: Record<Direction, number> = { forward: 0, backward: 0 };
  #target: Target | undefined;
  #listening: Listening | undefined;
  #isRefusing = false;
  #accepted = 0;
  #cuts = 0;
  #partings = 0;
  #refusals = 0;
  #cutAfterBytes: number | undefined;

  /** `name` is for messages: `dc1→dc2-node1`. */
  constructor(name: string) {
    this.name = name;
  }

  get address(): Target {
    if (this.#listening === undefined) throw new Error(`The proxy ${this.name} was never started`);
    return { host: "127.0.0.1", port: this.#listening.port };
  }

  /** Connections open now. */
  get connections(): number {
    return this.#bridges.size;
  }

  /**
   * Connections accepted, cut (`partings`: in the middle of what came in one piece) and refused, and
   * bytes passed, since the beginning.
   */
  get counts(): Readonly<{
    accepted: number;
    cuts: number;
    partings: number;
    refusals: number;
    forwardBytes: number;
    backwardBytes: number;
  }> {
    return {
      accepted: this.#accepted,
      cuts: this.#cuts,
      partings: this.#partings,
      refusals: this.#refusals,
      forwardBytes: this.#bytes.forward,
      backwardBytes: this.#bytes.backward,
    };
  }

  async start(): Promise<void> {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      this.#accept(socket);
    });
    this.#listening = await listenOn(server);
  }

  /** Target of new connections. Without one they are refused. */
  setTarget(target: Target | undefined): void {
    this.#target = target;
  }

  /** Holds bytes for `delayMs`, in one direction or both. */
  delay(delayMs: number, direction?: Direction): void {
    this.#change({ delayMs }, direction);
  }

  /** Lets `bytesPerSec` pass, in one direction or both; 0: no limit. */
  throttle(bytesPerSec: number, direction?: Direction): void {
    this.#change({ bytesPerSec }, direction);
  }

  /**
   * Lets nothing pass and tells nobody, in one direction or both, until `heal`: connections stay open,
   * new ones are accepted and hang.
   */
  blackHole(direction?: Direction): void {
    this.#change({ isBlackHole: true }, direction);
  }

  /** Cuts every connection at once, with a reset where the system allows it. */
  cut(): void {
    for (const bridge of [...this.#bridges]) this.#cut(bridge);
  }

  /** Cuts the connection on which exactly `byteLength` more forward bytes have passed: mid-frame, if need be. */
  cutAfter(byteLength: number): void {
    this.#cutAfterBytes = byteLength;
  }

  /** Refuses new connections until `heal`; those that are open stay. */
  refuse(): void {
    this.#isRefusing = true;
  }

  /** Undoes delay, throttle, black hole and refusal. What was held goes on. */
  heal(): void {
    this.#isRefusing = false;
    this.#cutAfterBytes = undefined;
    this.#change(CLEAR, undefined);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const listening = this.#listening;
    this.#listening = undefined;
    for (const bridge of [...this.#bridges]) this.#end(bridge);
    await listening?.close();
  }

  #change(change: Partial<PipeConditions>, direction: Direction | undefined): void {
    for (const each of ["forward", "backward"] as const) {
      if (direction !== undefined && direction !== each) continue;
      this.#conditions[each] = { ...this.#conditions[each], ...change };
    }
    for (const bridge of [...this.#bridges]) {
      if (bridge.untold !== undefined) this.#sideEnded(bridge, bridge.untold);
      else if (bridge.server === undefined) this.#dial(bridge);
      for (const pipe of bridge.pipes) pipe.pump();
    }
  }

  #accept(client: Socket): void {
    client.setNoDelay(); // not every runtime heeds the option of the same name
    client.on("error", () => {}); // `close` follows
    if (this.#isRefusing || this.#target === undefined) {
      this.#refusals++;
      client.resetAndDestroy();
      return;
    }
    this.#accepted++;
    const bridge: Bridge = { client, pipes: [] };
    this.#bridges.add(bridge);
    client.on("close", () => this.#sideEnded(bridge, "forward"));
    client.pause();
    this.#dial(bridge);
  }

  /** Connects the far side, unless a black hole swallows the attempt. */
  #dial(bridge: Bridge): void {
    const { forward, backward } = this.#conditions;
    if (forward.isBlackHole || backward.isBlackHole || this.#target === undefined) return;
    const server = connect({ ...this.#target, allowHalfOpen: true });
    server.setNoDelay();
    bridge.server = server;
    server.on("error", () => {}); // `close` follows
    server.on("close", () => this.#sideEnded(bridge, "backward"));
    bridge.pipes.push(
      this.#pipe(bridge, bridge.client, server, "forward"),
      this.#pipe(bridge, server, bridge.client, "backward"),
    );
    bridge.client.resume();
  }

  #pipe(bridge: Bridge, source: Socket, sink: Socket, direction: Direction): StreamPipe {
    return new StreamPipe(source, sink, {
      conditions: () =>
        direction === "forward" && this.#cutAfterBytes !== undefined
          ? { ...this.#conditions[direction], maxBytes: this.#cutAfterBytes }
          : this.#conditions[direction],
      passed: (byteLength, isPart) => {
        this.#bytes[direction] += byteLength;
        if (direction === "forward") this.#countDown(bridge, { byteLength, isPart });
      },
    });
  }

  #countDown(
    bridge: Bridge,
    { byteLength, isPart }: { readonly byteLength: number; readonly isPart: boolean },
  ): void {
    if (this.#cutAfterBytes === undefined) return;
    this.#cutAfterBytes -= byteLength;
    if (this.#cutAfterBytes > 0) return;
    this.#cutAfterBytes = undefined;
    if (isPart) this.#partings++;
    this.#cut(bridge);
  }

  #cut(bridge: Bridge): void {
    this.#cuts++;
    bridge.client.resetAndDestroy();
    bridge.server?.resetAndDestroy();
    this.#end(bridge);
  }

  /** One side has gone; the other hears of it unless a black hole swallows even that. */
  #sideEnded(bridge: Bridge, direction: Direction): void {
    const isDeserted = bridge.client.destroyed && (bridge.server?.destroyed ?? true);
    if (this.#conditions[direction].isBlackHole && !isDeserted) bridge.untold = direction;
    else this.#end(bridge);
  }

  #end(bridge: Bridge): void {
    if (!this.#bridges.delete(bridge)) return;
    for (const pipe of bridge.pipes) pipe.close();
    bridge.client.destroy();
    bridge.server?.destroy();
  }
}
