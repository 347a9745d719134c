import type { CancelTimer } from "../../base/mod.ts";
import type { Jid } from "../jid.ts";
import type { Stanza } from "../stanza.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { LateStanzas } from "./late_stanzas.ts";
import { StanzaOutput } from "./stanza_output.ts";
import type { StanzaSource } from "./stanza_sink.ts";
import type { StreamContext } from "./stream_context.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** What a session is given by its stream. */
export interface SessionWiring<Context extends StreamContext> {
  readonly context: Context;
  /** Stanzas may be delivered from now on. */
  opened(): void;
  /** Ends the stream; `content` is what the error holds, where it is more than its condition. */
  fail(condition: StreamErrorCondition, content?: string): void;
}

/** A peer that has proven who it is: what is read goes to `accept`, what is delivered to `send`. */
export abstract class StreamSession<Context extends StreamContext> implements StanzaSource {
  abstract readonly jid: Jid;
  protected readonly context: Context;
  #transport: StreamTransport;
  #wiring: SessionWiring<Context>;
  #output: StanzaOutput;
  #isOpen = true;
  /** True while what the peer sends is taken: after the end too, when it is heard out. */
  #isRead = true;
  #isPaused = false;
  /** True while nothing is read, as answers to what was read would find no room. */
  #isClogged = false;
  /** Until then nothing is read, as the peer has sent more than it may. */
  #slowedUntilMs = 0;
  #cancelSlow: CancelTimer | undefined;
  /** Since when nothing is read, monotonic, and for how long nothing was before that. */
  #unreadSinceMs: number | undefined;
  #unreadMs = 0;
  /** While it is heard out. */
  #late: LateStanzas | undefined;

  constructor(transport: StreamTransport, wiring: SessionWiring<Context>) {
    this.context = wiring.context;
    this.#transport = transport;
    this.#wiring = wiring;
    this.#output = new StanzaOutput(transport, wiring.context);
  }

  /** Takes what the peer sent; called for every top-level element. */
  abstract accept(element: ScannedElement): void;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  opened(): void {
    this.#wiring.opened();
  }

  send(stanza: Stanza, delivery?: { readonly isOwed: boolean }): boolean {
    // What a session has to say itself answers its peer.
    return this.write(stanza, delivery?.isOwed ?? stanza.type === "error");
  }

  /**
   * Queues `stanza`; false when there is no room.
   * @param isOwed it is an error that answers the peer, and has room of its own
   */
  protected write(stanza: Stanza, isOwed: boolean): boolean {
    if (this.#late !== undefined) return false; // nothing is written behind the end
    const isTaken = this.#output.send(stanza, isOwed);
    this.#lookWhetherClogged();
    return isTaken;
  }

  /** Writes a nonza. No bound refuses it, but who does not read is asked for no more of them. */
  protected sendNonza(xml: string): void {
    this.#transport.sendNonza(xml);
    this.#lookWhetherClogged();
  }

  end(condition: StreamErrorCondition, content?: string): void {
    this.#wiring.fail(condition, content);
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#isRead) this.#stopReading();
  }

  resume(): void {
    this.#isPaused = false;
    this.#readOn();
  }

  /** The peer has read all that there was. */
  drained(): void {
    this.#output.drained();
    if (!this.#isClogged) return;
    this.#isClogged = false;
    this.#readOn();
  }

  /** Monotonic milliseconds without the times in which nothing was read: the peer's answers lay unread. */
  protected get readingMs(): number {
    const nowMs = this.context.clock.monotonicMs();
    return (this.#unreadSinceMs ?? nowMs) - this.#unreadMs;
  }

  /** Gives a stanza of the peer's to whoever routes it. */
  protected route(stanza: Stanza): void {
    const late = this.#late;
    if (late === undefined) this.context.sink.accept(stanza, this);
    else this.context.sink.accept(stanza, this, late, late.next());
  }

  /** What carries the session now. */
  protected get transport(): StreamTransport {
    return this.#transport;
  }

  /** Reads nothing more for `forMs`; what was already read, one chunk at most, still arrives. */
  protected slow(forMs: number): void {
    this.#slowedUntilMs = this.context.clock.monotonicMs() + forMs;
    if (this.#cancelSlow !== undefined || !this.#isRead) return;
    this.context.metrics.limitHit("stanza-rate");
    this.#stopReading();
    this.#goOnIn(forMs);
  }

  /** The connection is gone, and the session is not: nothing is written until `carryOn`. */
  protected unplug(): void {
    this.#endSlowness();
    this.#output.close();
  }

  /** Another stream carries the session from now on. */
  protected carryOn(transport: StreamTransport, wiring: SessionWiring<Context>): void {
    this.#endSlowness();
    this.#output.close();
    this.#transport = transport;
    this.#wiring = wiring;
    this.#output = new StanzaOutput(transport, wiring.context);
    this.#isClogged = false;
    if (this.#isPaused) transport.pause();
    else this.#countReading();
  }

  /** The stream is over. Called again, it does nothing. */
  close(): void {
    this.#isOpen = this.#isRead = false;
    this.#endSlowness();
    this.#output.close();
  }

  /** Closed, it still takes what its peer had written before it learned of that, until `close`. */
  readOn(): LateStanzas {
    const late = this.#late = new LateStanzas();
    this.#isRead = true;
    this.#isClogged = false;
    this.#readOn();
    return late;
  }

  #goOnIn(delayMs: number): void {
    const { clock } = this.context;
    this.#cancelSlow = clock.after(delayMs, () => {
      const leftMs = this.#slowedUntilMs - clock.monotonicMs();
      if (leftMs > 0) return this.#goOnIn(leftMs);
      this.#cancelSlow = undefined;
      this.#readOn();
    });
  }

  /** Reads, if nothing keeps it from that. */
  #readOn(): void {
    if (!this.#isRead || this.#isPaused || this.#isClogged) return;
    if (this.#cancelSlow !== undefined) return;
    this.#countReading();
    this.#transport.resume();
  }

  #lookWhetherClogged(): void {
    if (this.#isClogged || !this.#isOpen || !this.#output.isClogged) return;
    this.#isClogged = true;
    this.#output.watch();
    this.#stopReading();
  }

  #stopReading(): void {
    this.#unreadSinceMs ??= this.context.clock.monotonicMs();
    this.#transport.pause();
  }

  #countReading(): void {
    if (this.#unreadSinceMs === undefined) return;
    this.#unreadMs += this.context.clock.monotonicMs() - this.#unreadSinceMs;
    this.#unreadSinceMs = undefined;
  }

  #endSlowness(): void {
    this.#cancelSlow?.();
    this.#cancelSlow = undefined;
  }
}
