import { CausewayError, describeError } from "../../../base/mod.ts";
import type { Connection } from "../../../net/mod.ts";
import type { OpenLink } from "../../mod.ts";
import type { FrameSink, GoodbyeReason } from "../../wire/mod.ts";
import {
  decodeGoodbye,
  decodeHello,
  decodeToken,
  FRAME_TYPE,
  FrameDecoder,
  FrameError,
  goodbyeFrame,
  malformed,
  pingFrame,
  pongFrame,
} from "../../wire/mod.ts";
import { expectedPeer } from "./link_scope.ts";
import type { LinkDeps } from "./link_deps.ts";
import type {
  CloseReason,
  LinkEvent,
  LinkExpectations,
  LinkPeer,
  LinkState,
} from "./link_state.ts";
import { stepLink } from "./link_state.ts";

/** Callbacks on one connection, for the side of the link that it belongs to. */
export interface LinkConnectionEvents {
  /** Called when the peer's identity is proven; only its HELLO has been read. */
  opened(peer: LinkPeer): void;
  /** Called with a frame for this side; an error that it throws ends the link. */
  frame(type: number, buffer: Uint8Array, start: number, end: number): void;
  /** Called once, last. `detail` says more for the log. */
  ended(reason: CloseReason, detail: string): void;
}

/**
 * One connection that carries frames. It runs `stepLink` on each event and carries out its actions.
 * The two kinds of link build on it.
 */
export class LinkConnection implements FrameSink {
  readonly #connection: Connection;
  readonly #shared: LinkDeps;
  readonly #events: LinkConnectionEvents;
  readonly #expect: LinkExpectations;
  readonly #decoder: FrameDecoder;
  #state: LinkState;
  #heardMs: number;
  #spokeMs: number;
  /** True when something was sent since the last tick; spares reading the clock for each write. */
  #hasSpoken = false;
  #detail = "";
  #pings = 0;
  /** Monotonic milliseconds at which the last PING was sent. */
  #askedMs = 0;
  #roundTripMs: number | undefined;

  constructor(
    connection: Connection,
    events: LinkConnectionEvents,
    options: {
      readonly shared: LinkDeps;
      readonly role: "dialler" | "acceptor";
      /** The destination that the dialler means to reach. */
      readonly destination?: string;
      readonly lane?: number;
    },
  ) {
    const { shared, destination } = options;
    const { scope, identity } = shared;
    const expected = destination === undefined
      ? { host: undefined, node: undefined }
      : expectedPeer(scope, destination, identity);
    this.#connection = connection;
    this.#events = events;
    this.#shared = shared;
    this.#expect = {
      role: options.role,
      scope,
      ...expected,
      lane: options.lane,
      peerNames: shared.tls === undefined ? undefined : connection.peerNames,
      ourHost: identity.localHost,
      ourHosts: identity.hosts,
      ourNode: identity.nodeName,
      silenceTimeoutMs: shared.options.silenceTimeoutMs,
      pingIntervalMs: shared.options.pingIntervalMs,
    };
    this.#decoder = new FrameDecoder(shared.options, this);
    this.#heardMs = this.#spokeMs = shared.clock.monotonicMs();
    this.#state = {
      kind: "greeting",
      deadlineMs: this.#heardMs + shared.options.helloTimeoutMs,
    };
  }

  get state(): LinkState["kind"] {
    return this.#state.kind;
  }

  get remoteAddress(): string {
    return this.#connection.remoteAddress;
  }

  /** Monotonic time of the last chunk. */
  get heardMs(): number {
    return this.#heardMs;
  }

  /** Milliseconds from the last answered PING to its PONG; undefined before the first one. */
  get roundTripMs(): number | undefined {
    return this.#roundTripMs;
  }

  /** The names in the peer's certificate, as one text; empty without TLS. */
  get certificate(): string {
    return this.#connection.peerNames.join(" ");
  }

  get pendingBytes(): number {
    return this.#connection.pendingBytes;
  }

  /** Returns this link as `LinkTraffic` uses it, to send frames of its own. */
  toOpenLink(peer: LinkPeer): OpenLink {
    return {
      host: peer.localHost,
      nodeName: peer.nodeName,
      process: peer.process,
      send: (frame) => {
        if (this.#state.kind === "open") this.send(frame);
      },
      refuse: (detail) => this.leave("malformed", detail),
    };
  }

  /** Begins to read. */
  start(): void {
    this.#connection.start({
      data: (chunk) => this.#data(chunk),
      closed: (error) => this.#closed(error),
    });
  }

  /** Queues a copy of whole frames. */
  send(bytes: Uint8Array): void {
    this.#hasSpoken = true;
    this.#connection.send(bytes);
  }

  tick(nowMs: number): void {
    if (this.#hasSpoken) this.#spokeMs = nowMs;
    this.#hasSpoken = false;
    this.#step({ kind: "tick", nowMs, heardMs: this.#heardMs, spokeMs: this.#spokeMs });
  }

  /** Says GOODBYE and ends in order. */
  leave(reason: GoodbyeReason, detail: string): void {
    this.#step({ kind: "leave", reason, detail });
  }

  /** Ends at once; unread bytes are dropped. */
  cut(reason: GoodbyeReason, detail: string): void {
    this.leave(reason, detail);
    this.#drop();
  }

  frame(type: number, buffer: Uint8Array, start: number, end: number): void {
    switch (type) {
      case FRAME_TYPE.hello: {
        const hello = decodeHello(buffer, start, end);
        this.#step({
          kind: "hello",
          hello,
          nowMs: this.#heardMs,
          knownDatacenterId: this.#shared.mesh.datacenterId(hello.localHost),
        });
        return;
      }
      case FRAME_TYPE.ping:
        if (this.#expect.role !== "acceptor") throw malformed("PING", "only the dialler asks");
        this.#connection.send(pongFrame(decodeToken(buffer, start, end)));
        return;
      case FRAME_TYPE.pong:
        this.#answered(decodeToken(buffer, start, end));
        return;
      case FRAME_TYPE.goodbye: {
        const { reason, detail } = decodeGoodbye(buffer, start, end);
        this.#detail = detail;
        this.#step({ kind: "goodbye", reason });
        return;
      }
      default:
        this.#events.frame(type, buffer, start, end);
    }
  }

  #answered(token: number): void {
    if (token > this.#pings) throw malformed("PONG", "it answers no PING");
    // A late answer to an earlier PING says nothing: only the last one was timed.
    if (token === this.#pings) this.#roundTripMs = this.#heardMs - this.#askedMs;
  }

  #data(chunk: Uint8Array): void {
    const nowMs = this.#shared.clock.monotonicMs();
    // A process that was suspended may read before its timers run. What it finds is as old as the
    // silence: the peer has given up the link, and sent elsewhere what it had not seen received. A
    // process that runs has looked at the silence by then.
    const latestMs = this.#heardMs + this.#expect.silenceTimeoutMs + this.#shared.options.tickMs;
    if (nowMs >= latestMs) this.tick(nowMs);
    this.#heardMs = nowMs;
    try {
      this.#decoder.push(chunk);
    } catch (error) {
      if (error instanceof FrameError) {
        const reason = error.code === "link/frame-too-large" ? "too-large" : "malformed";
        this.#step({ kind: "broken", reason, detail: error.message });
        return;
      }
      // A bug of ours must cost one link, not the process: received stanzas stay unsettled.
      this.#shared.log.error("link.failed", { error: describeError(error) });
      this.#step({ kind: "broken", reason: "other", detail: "internal error" });
    }
  }

  #closed(error: CausewayError | undefined): void {
    if (this.#detail === "") {
      this.#detail = error === undefined
        ? whyLost(this.#state.kind, this.#expect.role)
        : `${error.code}: ${error.message}`;
    }
    this.#decoder.stop();
    this.#step({ kind: "lost" });
  }

  #step(event: LinkEvent): void {
    const before = this.#state.kind;
    const { state, actions } = stepLink(this.#state, event, this.#expect);
    this.#state = state;
    for (const action of actions) {
      switch (action.kind) {
        case "open":
          this.#events.opened(action.peer);
          break;
        case "ping":
          this.#askedMs = this.#shared.clock.monotonicMs();
          this.#connection.send(pingFrame(++this.#pings));
          break;
        case "goodbye":
          this.#detail = action.detail;
          this.#connection.send(goodbyeFrame(action));
          break;
        case "hang-up":
          this.#decoder.stop();
          this.#connection.close();
          break;
        case "drop":
          this.#drop();
          break;
      }
    }
    // Only `lost` leads to `closed`, and that step has no actions: `state` is still current here.
    if (before !== "closed" && state.kind === "closed") {
      this.#events.ended(state.reason, this.#detail);
    }
  }

  #drop(): void {
    this.#decoder.stop();
    this.#connection.destroy(
      new CausewayError("link/ended", `Ended link: ${this.#detail || this.#state.kind}`),
    );
  }
}

/** Says for the log what the end of a connection, for which nobody gave a reason, looks like. */
function whyLost(state: LinkState["kind"], role: LinkExpectations["role"]): string {
  switch (state) {
    case "greeting":
      // In TLS 1.3 our handshake is done before the peer judges our certificate.
      return role === "dialler"
        ? "the peer hung up without HELLO, as one that does not accept our certificate does; its log says why"
        : "the peer hung up without HELLO, as a probe does";
    case "open":
      return "the peer hung up without GOODBYE";
    case "closing":
    case "closed":
      return ""; // the reason of the GOODBYE says it
    default:
      return state satisfies never;
  }
}
