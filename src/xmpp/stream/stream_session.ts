import type { CancelTimer } from "../../base/mod.ts";
import type { Jid } from "../jid/jid.ts";
import type { Stanza } from "../stanza/stanza.ts";
import type { StreamErrorCondition } from "./stream_error.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { LateStanzas } from "./late_stanzas.ts";
import { StanzaOutput } from "./stanza_output.ts";
import type { StanzaSource } from "./stanza_sink.ts";
import type { StreamDeps } from "./stream_deps.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** Objects that a stream gives its session. */
export interface StreamSessionDeps<Shared extends StreamDeps> {
  /** Dependencies of all sessions of the listener. */
  readonly shared: Shared;
  /** Called when stanzas may be delivered. */
  opened(): void;
  /** Ends the stream; `content` is the error's content besides its condition. */
  fail(condition: StreamErrorCondition, content?: string): void;
}

/** An authenticated peer: it reads with `accept`, and stanzas for it are delivered to `send`. */
export abstract class StreamSession<Deps extends StreamDeps> implements StanzaSource {
  abstract readonly jid: Jid;
  protected readonly deps: Deps;
  #transport: StreamTransport;
  /** The stream that carries the session now. */
  #stream: StreamSessionDeps<Deps>;
  #output: StanzaOutput;
  #isOpen = true;
  /** True while the peer's stanzas are taken, which after a dismissal lasts beyond the end. */
  #isRead = true;
  #isPaused = false;
  /** True while nothing is read, because answers would find no room. */
  #isClogged = false;
  /** Time until which nothing is read, because the peer exceeded its rate. */
  #slowedUntilMs = 0;
  #cancelSlow: CancelTimer | undefined;
  /** Monotonic time since which nothing is read, and the total time without reading before that. */
  #unreadSinceMs: number | undefined;
  #unreadMs = 0;
  /** Set while a dismissed peer is still read. */
  #late: LateStanzas | undefined;

  constructor(transport: StreamTransport, deps: StreamSessionDeps<Deps>) {
    this.deps = deps.shared;
    this.#transport = transport;
    this.#stream = deps;
    this.#output = new StanzaOutput(transport, deps.shared);
  }

  /** Takes an element from the peer; called for every top-level element. */
  abstract accept(element: ScannedElement): void;

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** True when it keeps stanzas that its peer may not have got. */
  get keepsStanzas(): boolean {
    return false;
  }

  opened(): void {
    this.#stream.opened();
  }

  send(stanza: Stanza, delivery?: { readonly isOwed: boolean }): boolean {
    // A stanza from the session itself answers its peer.
    return this.write(stanza, delivery?.isOwed ?? stanza.type === "error");
  }

  /**
   * Queues `stanza`; false when there is no room.
   * @param isOwed true for an error that answers the peer, which has extra room
   */
  protected write(stanza: Stanza, isOwed: boolean): boolean {
    if (this.#late !== undefined) return false; // nothing is written after the end
    const isTaken = this.#output.send(stanza, isOwed);
    this.#lookWhetherClogged();
    return isTaken;
  }

  /** Writes a nonza. No bound refuses it, but a peer that does not read is not read either. */
  protected sendNonza(xml: string): void {
    this.#transport.sendNonza(xml);
    this.#lookWhetherClogged();
  }

  end(condition: StreamErrorCondition, content?: string): void {
    this.#stream.fail(condition, content);
  }

  pause(): void {
    this.#isPaused = true;
    if (this.#isRead) this.#stopReading();
  }

  resume(): void {
    this.#isPaused = false;
    this.#readOn();
  }

  /** The peer has read everything. */
  drained(): void {
    this.#output.drained();
    if (!this.#isClogged) return;
    this.#isClogged = false;
    this.#readOn();
  }

  /** Monotonic milliseconds, without the times in which the peer's answers stayed unread. */
  protected get readingMs(): number {
    const nowMs = this.deps.clock.monotonicMs();
    return (this.#unreadSinceMs ?? nowMs) - this.#unreadMs;
  }

  /** Gives a stanza of the peer's to the router. */
  protected route(stanza: Stanza): void {
    const late = this.#late;
    if (late === undefined) this.deps.sink.accept(stanza, this);
    else this.deps.sink.accept(stanza, this, late, late.next());
  }

  /** The stream's transport, which carries the session now. */
  protected get transport(): StreamTransport {
    return this.#transport;
  }

  /** Stops reading for `forMs`; what was already read, one chunk at most, still arrives. */
  protected slow(forMs: number): void {
    this.#slowedUntilMs = this.deps.clock.monotonicMs() + forMs;
    if (this.#cancelSlow !== undefined || !this.#isRead) return;
    this.deps.metrics.limitHit("stanza-rate");
    this.#stopReading();
    this.#goOnIn(forMs);
  }

  /** Detaches the session from its lost connection: nothing is written until `carryOn`. */
  protected unplug(): void {
    this.#endSlowness();
    this.#output.close();
  }

  /** Attaches the session to another stream. */
  protected carryOn(transport: StreamTransport, deps: StreamSessionDeps<Deps>): void {
    this.#endSlowness();
    this.#output.close();
    this.#transport = transport;
    this.#stream = deps;
    this.#output = new StanzaOutput(transport, deps.shared);
    this.#isClogged = false;
    if (this.#isPaused) transport.pause();
    else this.#countReading();
  }

  /** Ends the session with its stream. A second call does nothing. */
  close(): void {
    this.#isOpen = this.#isRead = false;
    this.#endSlowness();
    this.#output.close();
  }

  /** Makes a closed session take what its peer wrote before it learned of the end, until `close`. */
  readOn(): LateStanzas {
    const late = this.#late = new LateStanzas();
    this.#isRead = true;
    this.#isClogged = false;
    this.#readOn();
    return late;
  }

  #goOnIn(delayMs: number): void {
    const { clock } = this.deps;
    this.#cancelSlow = clock.after(delayMs, () => {
      const leftMs = this.#slowedUntilMs - clock.monotonicMs();
      if (leftMs > 0) return this.#goOnIn(leftMs);
      this.#cancelSlow = undefined;
      this.#readOn();
    });
  }

  /** Reads, unless something prevents it. */
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
    this.#unreadSinceMs ??= this.deps.clock.monotonicMs();
    this.#transport.pause();
  }

  #countReading(): void {
    if (this.#unreadSinceMs === undefined) return;
    this.#unreadMs += this.deps.clock.monotonicMs() - this.#unreadSinceMs;
    this.#unreadSinceMs = undefined;
  }

  #endSlowness(): void {
    this.#cancelSlow?.();
    this.#cancelSlow = undefined;
  }
}
