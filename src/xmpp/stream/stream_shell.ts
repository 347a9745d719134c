import type { CancelTimer, CausewayError } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { StreamErrorCondition } from "./stream_error.ts";
import { streamErrorContent } from "./stream_error.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";
import type { LateStanzas } from "./late_stanzas.ts";
import type { StreamDeps } from "./stream_deps.ts";
import type { StreamEdge } from "./stream_metrics.ts";
import type { StreamSession } from "./stream_session.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** Callbacks of a stream to its listener. */
export interface StreamEvents {
  /** The peer has sent a whole stream header. */
  greeted(): void;
  /** The peer has authenticated. */
  authenticated(): void;
  /** The connection is gone; the last call. */
  closed(): void;
}

/**
 * The common part of clients' and components' streams. It limits the time until there is a session, ends
 * the stream and counts the reason, and passes input to the session once there is one.
 */
export abstract class StreamShell<
  Deps extends StreamDeps,
  Session extends StreamSession<StreamDeps>,
> {
  protected readonly transport: StreamTransport;
  protected readonly deps: Deps;
  protected readonly events: StreamEvents;
  readonly #edge: StreamEdge;
  /** The session, from the request for its place on. */
  #session: Session | undefined;
  /** The session, once it receives the input. */
  #receiver: Session | undefined;
  #cancelDeadline: CancelTimer | undefined;
  #reason: string = "none";
  #isOver = false;
  #isSilent = false;
  /** True once stanzas were sent to a session that keeps none of them. */
  #losesStanzas = false;
  /** Stanzas that arrive after our end, while a dismissed peer is still read. */
  #late: LateStanzas | undefined;
  /** Called when nothing more is read. */
  #onHeardOut: (() => void) | undefined;

  constructor(edge: StreamEdge, transport: StreamTransport, deps: Deps, events: StreamEvents) {
    this.#edge = edge;
    this.transport = transport;
    this.deps = deps;
    this.events = events;
  }

  protected abstract opened(header: StreamHeader): void;
  /** Handles an element from before there is a session. */
  protected abstract negotiate(element: ScannedElement): void;
  protected abstract footer(): void;
  protected abstract secured(): void;
  /** Reports to the registry that a session which it had accepted is gone. */
  protected abstract forget(session: Session): Promise<void>;
  /** Ends the stream with an error. */
  abstract fail(condition: StreamErrorCondition): void;
  /** Ends the stream like `fail`, but takes what a peer wrote by then, if the peer would not resend it. */
  protected abstract endInOrder(condition: StreamErrorCondition): void;

  /** Starts listening to the peer. */
  start(): void {
    const { clock, limits, metrics } = this.deps;
    metrics.opened.inc();
    this.#cancelDeadline = clock.after(limits.negotiationTimeoutMs, () => {
      metrics.limitHit("negotiation-time");
      this.fail("connection-timeout");
    });
    this.transport.start({
      header: (header) => {
        this.#isSilent = false;
        this.events.greeted();
        this.opened(header);
      },
      element: (element) => {
        this.#isSilent = false;
        if (this.#receiver !== undefined) this.#receiver.accept(element);
        else this.negotiate(element);
      },
      footer: () => {
        // A peer that reconnects after the end must not overtake its last stanzas.
        if (this.#late === undefined) this.footer();
        else this.#late.whenSeenTo(() => this.footer());
      },
      failed: (condition, limit) => {
        if (limit !== undefined) metrics.limitHit(limit);
        this.fail(condition);
      },
      broken: (thrown) => {
        this.broke("stream", thrown);
        this.fail("internal-server-error");
      },
      secured: () => this.secured(),
      drained: () => this.#session?.drained(),
      closed: (error) => {
        if (error !== undefined && !this.#isOver) this.#reason = error.code;
        const receiver = this.#receiver;
        if (receiver !== undefined && !this.#isOver && this.outlives(receiver, error)) this.letGo();
        this.finish();
        metrics.closed(this.#reason);
        if (this.#losesStanzas) metrics.unwritten.inc(this.transport.unwrittenStanzas);
        const peer = this.transport.remoteAddress;
        this.#log("debug", "stream.closed", { peer, reason: this.#reason });
        this.events.closed();
      },
    });
  }

  /**
   * Ends the stream with an error. A peer that would not resend what it wrote before it learns of the
   * end is still read: until its own end, or until `fail`.
   * @param heardOut called once nothing more is read, perhaps at once
   */
  dismiss(condition: StreamErrorCondition, heardOut: () => void): void {
    this.#onHeardOut = heardOut;
    this.endInOrder(condition);
    if (this.#receiver === undefined) this.#heardOut();
  }

  /** Sends whitespace to a session from which nothing was read since the last call. */
  keepAlive(): void {
    if (this.#isSilent && this.#receiver !== undefined) this.transport.sendKeepalive();
    this.#isSilent = true;
  }

  /** Records that a place for `session` has been requested. */
  protected registering(session: Session): void {
    this.#session = session;
  }

  /** Forgets `session`, because it got no place. */
  protected refused(session: Session): void {
    session.close();
    if (this.#session === session) this.#session = undefined;
  }

  /** Passes all further input to `session`, because it has its place. */
  protected bound(session: Session): void {
    this.#endDeadline();
    this.#receiver = session;
    const peer = this.transport.remoteAddress;
    this.#log("info", "session.opened", { jid: session.jid.text, peer });
  }

  /** Handles a connection lost without a word, or by `error`; true when `session` survives it. */
  protected outlives(_session: Session, _error: CausewayError | undefined): boolean {
    return false;
  }

  /** The session, once it receives the input. */
  protected get receiver(): Session | undefined {
    return this.#receiver;
  }

  /** Gives the session up, because another stream carries it. */
  protected letGo(): void {
    this.#session = undefined;
    this.#receiver = undefined;
  }

  /**
   * Sends a stream error, under which the end of the stream is counted.
   * @param content the error's content besides its condition
   */
  protected sendError(condition: StreamErrorCondition, content?: string): void {
    this.#reason = condition;
    this.transport.sendStreamElement("error", content ?? streamErrorContent(condition));
  }

  /** Sends the end of the stream, after which nothing is delivered; input is taken until `end`. */
  protected endOutput(): void {
    this.#isOver = true;
    this.transport.endOutput(this.deps.limits.maxLateBytes);
    this.#endSession();
    this.#late = this.#receiver?.readOn();
  }

  /** Sends the end of the stream, after which nothing is read or delivered. */
  protected end(): void {
    this.finish();
    this.transport.end();
  }

  /** Releases everything but the connection. */
  protected finish(): void {
    this.#isOver = true;
    this.#endDeadline();
    const receiver = this.#receiver;
    this.#endSession();
    this.#receiver = undefined;
    receiver?.close(); // once more: it may still have been reading
    this.#heardOut();
  }

  /** Ends the session for everyone but its peer. */
  #endSession(): void {
    const session = this.#session;
    this.#session = undefined;
    session?.close();
    if (session === undefined || this.#receiver === undefined) return;
    this.#losesStanzas = !session.keepsStanzas;
    this.#log("info", "session.closed", { jid: session.jid.text, reason: this.#reason });
    this.forget(session).catch((thrown) => this.broke("close", thrown));
  }

  /** Reports a bug of ours, or of a callback that must not reject. */
  protected broke(what: "stream" | "auth" | "open" | "close", thrown: unknown): void {
    this.#log("error", `${what}.broken`, { error: describeError(thrown) });
  }

  #heardOut(): void {
    this.#onHeardOut?.();
    this.#onHeardOut = undefined;
  }

  #endDeadline(): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
  }

  #log(
    level: "debug" | "info" | "error",
    event: string,
    fields: Readonly<Record<string, unknown>>,
  ): void {
    this.deps.log[level](`${this.#edge}.${event}`, fields);
  }
}
