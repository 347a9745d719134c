import type { CancelTimer } from "../../base/mod.ts";
import type { Fate } from "../stanza/fate.ts";
import { toHandled } from "./counter.ts";
import { HandledCount } from "./handled_count.ts";
import { ackXml } from "./sm_xml.ts";
import type { StreamManagement } from "./stream_management.ts";

/** The part of a stream that tells its client `h`. */
export interface CoverLink {
  sendNonza(xml: string): void;
}

/**
 * The stanzas that a session has received from its client, until they are covered (XEP-0198 §4), over
 * all the streams that carry the session. Tells the client `h`. It has at most one timer, and none while
 * no stanza is open.
 */
export class CoveredStanzas implements Fate {
  readonly #management: StreamManagement;
  readonly #handled: HandledCount;
  #link: CoverLink | undefined;
  #cancelHold: CancelTimer | undefined;
  /** Client's stanzas at its last `<r/>`, and at our last `<a/>`. */
  #asked: number;
  #told: number;
  #isOver = false;
  #onCovered: (() => void) | undefined;

  /** @param received stanzas that the session had received, and covered, at another node */
  constructor(link: CoverLink | undefined, management: StreamManagement, received = 0) {
    this.#link = link;
    this.#management = management;
    this.#handled = new HandledCount(management.options.ackHoldMs, received);
    this.#asked = this.#told = received;
  }

  /** Received stanzas, as written in `h`. */
  get receivedH(): number {
    return toHandled(this.#handled.received);
  }

  /** Received stanzas that the client may forget even if this process dies, as written in `h`. */
  get coveredH(): number {
    return this.#handled.h;
  }

  /** True when every received stanza is covered. */
  get isComplete(): boolean {
    return this.#handled.covered === this.#handled.received;
  }

  /** Counts one stanza of the client and returns its number, by which its fate is reported. */
  receive(): number {
    return this.#handled.receive();
  }

  /** Reports that the last stanza received was passed on. If its fate is open, its hold begins. */
  passedOn(): void {
    if (this.isComplete) return;
    this.#handled.hold(this.#management.clock.monotonicMs());
    this.#armHold();
  }

  settle(number: number): void {
    this.#handled.cover(number);
    this.#tellMore();
  }

  held(number: number): void {
    this.settle(number);
  }

  /** Covers everything that the client has sent. This process still handles open stanzas while it lives. */
  coverAll(): void {
    this.#management.metrics.unprotected.inc(this.#handled.coverAll());
  }

  /** Calls `told` when everything that the client sent is covered; undefined stops watching. */
  watch(told: (() => void) | undefined): void {
    this.#onCovered = told;
  }

  /** Handles the client's `<r/>`. */
  requested(): void {
    this.#asked = this.#handled.received;
    this.tell();
  }

  /** Sends the client `h`. */
  tell(): void {
    this.#told = this.#handled.covered;
    this.#link?.sendNonza(ackXml(this.#handled.h));
  }

  /** Handles the loss of the connection. */
  unlink(): void {
    this.#link = undefined;
  }

  /** Continues on another stream, whose client is told `h` as it resumes. */
  resume(link: CoverLink): void {
    this.#link = link;
    // The client resends every stanza that `h` does not include. All that it sent is here, so `h` must
    // include all.
    this.coverAll();
    this.#asked = this.#told = this.#handled.received;
  }

  /** Ends the session: stanzas that are open are still counted, and nobody is told. */
  end(): void {
    this.#isOver = true;
    this.#link = undefined;
    this.#onCovered = undefined;
    this.#cancelHold?.();
    this.#cancelHold = undefined;
  }

  /** Answers the last `<r/>` once more, as soon as everything it asked about is covered. */
  #tellMore(): void {
    if (this.#asked > this.#told && this.#handled.covered >= this.#asked) this.tell();
    if (this.#onCovered !== undefined && this.isComplete) this.#onCovered();
  }

  #armHold(): void {
    if (this.#cancelHold !== undefined || this.#isOver) return;
    const { clock, metrics } = this.#management;
    const dueMs = this.#handled.dueMs;
    if (dueMs === undefined) return;
    this.#cancelHold = clock.after(Math.max(0, dueMs - clock.monotonicMs()), () => {
      this.#cancelHold = undefined;
      metrics.unprotected.inc(this.#handled.expire(clock.monotonicMs()));
      this.#tellMore();
      this.#armHold();
    });
  }
}
