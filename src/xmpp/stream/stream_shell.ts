import type { CancelTimer, CausewayError } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import { streamErrorContent } from "../stream_error.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";
import type { LateStanzas } from "./late_stanzas.ts";
import type { StreamContext } from "./stream_context.ts";
import type { StreamEdge } from "./stream_metrics.ts";
import type { StreamSession } from "./stream_session.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** What a stream tells the listener it belongs to. */
export interface StreamOwner {
  /** The peer has said a whole stream header. */
  greeted(): void;
  /** The peer has proven who it is. */
  authenticated(): void;
  /** The connection is gone; the last call. */
  closed(): void;
}

/**
 * What the streams of clients and of components have in common: the time to come to a session, what
 * ends them and how that is counted, and that what is read goes to the session once there is one.
 */
export abstract class StreamShell<
  Context extends StreamContext,
  Session extends StreamSession<Context>,
> {
  protected readonly transport: StreamTransport;
  protected readonly context: Context;
  protected readonly owner: StreamOwner;
  readonly #edge: StreamEdge;
  /** From the moment on at which a place is asked for it. */
  #session: Session | undefined;
  /** The session, once what is read belongs to it. */
  #receiver: Session | undefined;
  #cancelDeadline: CancelTimer | undefined;
  #reason: string = "none";
  #isOver = false;
  #isSilent = false;
  /** What comes behind our end, while the peer is heard out. */
  #late: LateStanzas | undefined;
  /** Called when nothing more is read. */
  #onHeardOut: (() => void) | undefined;

  constructor(edge: StreamEdge, transport: StreamTransport, context: Context, owner: StreamOwner) {
    this.#edge = edge;
    this.transport = transport;
    this.context = context;
    this.owner = owner;
  }

  protected abstract opened(header: StreamHeader): void;
  /** Takes an element from before there is a session. */
  protected abstract negotiate(element: ScannedElement): void;
  protected abstract footer(): void;
  protected abstract secured(): void;
  /** Tells the registry that a session which it had accepted is gone. */
  protected abstract forget(session: Session): Promise<void>;
  /** Ends the stream with an error. */
  abstract fail(condition: StreamErrorCondition): void;
  /** As `fail`, but takes what a peer that would not send it again had written by then. */
  protected abstract endInOrder(condition: StreamErrorCondition): void;

  /** Begins to listen to the peer. */
  start(): void {
    const { clock, limits, metrics } = this.context;
    metrics.opened.inc();
    this.#cancelDeadline = clock.after(limits.negotiationTimeoutMs, () => {
      metrics.limitHit("negotiation-time");
      this.fail("connection-timeout");
    });
    this.transport.start({
      header: (header) => {
        this.#isSilent = false;
        this.owner.greeted();
        this.opened(header);
      },
      element: (element) => {
        this.#isSilent = false;
        if (this.#receiver !== undefined) this.#receiver.accept(element);
        else this.negotiate(element);
      },
      footer: () => {
        // Whoever comes back once the connection is over must not overtake what came last.
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
        const peer = this.transport.remoteAddress;
        this.#log("debug", "stream.closed", { peer, reason: this.#reason });
        this.owner.closed();
      },
    });
  }

  /**
   * Ends the stream with an error. A peer that would not send again what it had written before it learns
   * of that is heard out: until its own end, or until `fail`.
   * @param heardOut called once nothing more is read, perhaps at once
   */
  dismiss(condition: StreamErrorCondition, heardOut: () => void): void {
    this.#onHeardOut = heardOut;
    this.endInOrder(condition);
    if (this.#receiver === undefined) this.#heardOut();
  }

  /** Sends whitespace to a session of which nothing was read since the last call. */
  keepAlive(): void {
    if (this.#isSilent && this.#receiver !== undefined) this.transport.sendKeepalive();
    this.#isSilent = true;
  }

  /** A place is being asked for `session`. */
  protected registering(session: Session): void {
    this.#session = session;
  }

  /** `session` got no place. */
  protected refused(session: Session): void {
    session.close();
    if (this.#session === session) this.#session = undefined;
  }

  /** `session` has its place: what is read from now on is the session's. */
  protected bound(session: Session): void {
    this.#endDeadline();
    this.#receiver = session;
    const peer = this.transport.remoteAddress;
    this.#log("info", "session.opened", { jid: session.jid.text, peer });
  }

  /** The connection went without a word, or by `error`: true when `session` goes on without it. */
  protected outlives(_session: Session, _error: CausewayError | undefined): boolean {
    return false;
  }

  /** The session, once what is read belongs to it. */
  protected get receiver(): Session | undefined {
    return this.#receiver;
  }

  /** The session is not this stream's any more. */
  protected letGo(): void {
    this.#session = undefined;
    this.#receiver = undefined;
  }

  /**
   * Sends a stream error, which is what the stream's end will be counted as.
   * @param content what the error holds, where it is more than its condition
   */
  protected sendError(condition: StreamErrorCondition, content?: string): void {
    this.#reason = condition;
    this.transport.sendStreamElement("error", content ?? streamErrorContent(condition));
  }

  /** Sends the end of the stream, after which nothing is delivered; what comes is taken until `end`. */
  protected endOutput(): void {
    this.#isOver = true;
    this.transport.endOutput(this.context.limits.maxLateBytes);
    this.#endSession();
    this.#late = this.#receiver?.readOn();
  }

  /** Sends the end of the stream, after which nothing is read or delivered. */
  protected end(): void {
    this.finish();
    this.transport.end();
  }

  /** Lets go of everything but the connection. */
  protected finish(): void {
    this.#isOver = true;
    this.#endDeadline();
    const receiver = this.#receiver;
    this.#endSession();
    this.#receiver = undefined;
    receiver?.close(); // once more: it may have been read on
    this.#heardOut();
  }

  /** The session is over, for everyone but its peer. */
  #endSession(): void {
    const session = this.#session;
    this.#session = undefined;
    session?.close();
    if (session === undefined || this.#receiver === undefined) return;
    this.#log("info", "session.closed", { jid: session.jid.text, reason: this.#reason });
    this.forget(session).catch((thrown) => this.broke("close", thrown));
  }

  /** Reports a bug of ours, or of a hook that must not reject. */
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
    this.context.log[level](`${this.#edge}.${event}`, fields);
  }
}
