import type { AdminEvent, Overview } from "../api/event_schemas.ts";

/** Events that wait for a client that reads slowly. */
const MAX_WAITING = 256;

const UTF8 = new TextEncoder();

/** Callbacks of a stream to the hub that made it. */
export interface EventStreamEvents {
  /** Called at the first read; false when there are too many streams. */
  began(stream: EventStream): boolean;
  /** Called when the client is gone, or the stream was ended. */
  ended(stream: EventStream): void;
}

/**
 * Server-sent events for one client. What it has not read yet is bounded: of overviews the latest
 * one waits, and of events the last 256. The client is told how many it has missed.
 */
export class EventStream {
  readonly body: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #events: AdminEvent[] = [];
  readonly #hub: EventStreamEvents;
  #overview: Overview | undefined;
  #missed = 0;
  #isEnded = false;
  #isCancelled = false;
  #wake: (() => void) | undefined;

  /** @param earlier events that the client asks for before all others */
  constructor(hub: EventStreamEvents, earlier: readonly AdminEvent[]) {
    this.#hub = hub;
    this.#events.push(...earlier.slice(-MAX_WAITING));
    this.#missed = earlier.length - this.#events.length;
    let hasBegun = false;
    this.body = new ReadableStream({
      // A stream that nobody reads, as the answer to HEAD, must cost nothing: it begins here.
      pull: async (controller) => {
        if (!hasBegun) {
          hasBegun = true;
          if (!hub.began(this)) {
            controller.enqueue(UTF8.encode("event: full\ndata: {}\n\n"));
            this.end();
          }
        }
        while (!this.#isEnded && this.#isEmpty) {
          await new Promise<void>((resolve) => this.#wake = resolve);
        }
        const text = this.#take();
        if (text !== "" && !this.#isCancelled) controller.enqueue(UTF8.encode(text));
        if (this.#isEnded && !this.#isCancelled) controller.close();
      },
      cancel: () => {
        this.#isCancelled = true;
        this.end();
      },
    }, { highWaterMark: 0 });
  }

  /** Hands over the newest overview, in place of one that was not read. */
  showOverview(overview: Overview): void {
    this.#overview = overview;
    this.#wakeUp();
  }

  /** Hands over an event. The oldest one that was not read makes room. */
  tell(event: AdminEvent): void {
    this.#events.push(event);
    if (this.#events.length > MAX_WAITING) {
      this.#events.shift();
      this.#missed++;
    }
    this.#wakeUp();
  }

  /** Ends the stream; what waits is still read. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#hub.ended(this);
    this.#wakeUp();
  }

  get #isEmpty(): boolean {
    return this.#events.length === 0 && this.#overview === undefined;
  }

  #wakeUp(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Takes all that waits, as text. */
  #take(): string {
    const parts: string[] = [];
    if (this.#missed > 0) {
      parts.push(`event: missed\ndata: ${JSON.stringify({ events: this.#missed })}\n\n`);
      this.#missed = 0;
    }
    for (const event of this.#events.splice(0)) {
      parts.push(`id: ${event.id}\nevent: event\ndata: ${JSON.stringify(event)}\n\n`);
    }
    if (this.#overview !== undefined) {
      parts.push(`event: overview\ndata: ${JSON.stringify(this.#overview)}\n\n`);
      this.#overview = undefined;
    }
    return parts.join("");
  }
}
