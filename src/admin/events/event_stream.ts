import type { AdminEvent, Overview } from "../api/event_schemas.ts";
import { sentEvent, ToldBody } from "./told_body.ts";

/** Events that wait for a client that reads slowly. */
const MAX_WAITING = 256;

/** Callbacks of a stream to the hub that made it. */
export interface EventStreamEvents {
  /** Called at the first read; false when there are too many streams. */
  began(stream: EventStream): boolean;
  /** False for events that the client may not see. */
  mayShow(event: AdminEvent): boolean;
  /** Called when the client is gone, or the stream was ended. */
  ended(stream: EventStream): void;
}

/**
 * Server-sent events for one client. What it has not read yet is bounded: of overviews the latest
 * one waits, and of events the last 256. The client is told how many it has missed.
 */
export class EventStream {
  readonly #body: ToldBody;
  readonly #hub: EventStreamEvents;
  readonly #events: AdminEvent[] = [];
  #overview: Overview | undefined;
  #missed = 0;

  /** @param earlier events that the client asks for before all others */
  constructor(hub: EventStreamEvents, earlier: readonly AdminEvent[]) {
    this.#hub = hub;
    this.#events.push(...earlier.slice(-MAX_WAITING));
    this.#missed = earlier.length - this.#events.length;
    this.#body = new ToldBody({
      begin: () => hub.began(this),
      isEmpty: () => this.#events.length === 0 && this.#overview === undefined,
      take: () => this.#take(),
      ended: () => hub.ended(this),
    });
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return this.#body.stream;
  }

  /** Hands over the newest overview, in place of one that was not read. */
  showOverview(overview: Overview): void {
    this.#overview = overview;
    this.#body.wake();
  }

  /** Hands over an event. The oldest one that was not read makes room. */
  tell(event: AdminEvent): void {
    if (!this.#hub.mayShow(event)) return;
    this.#events.push(event);
    if (this.#events.length > MAX_WAITING) {
      this.#events.shift();
      this.#missed++;
    }
    this.#body.wake();
  }

  /** Ends the stream; what waits is still read. */
  end(): void {
    this.#body.end();
  }

  /** Takes all that waits, as text. */
  #take(): string {
    const parts: string[] = [];
    if (this.#missed > 0) {
      parts.push(sentEvent("missed", { events: this.#missed }));
      this.#missed = 0;
    }
    for (const event of this.#events.splice(0)) parts.push(sentEvent("event", event, event.id));
    if (this.#overview !== undefined) {
      parts.push(sentEvent("overview", this.#overview));
      this.#overview = undefined;
    }
    return parts.join("");
  }
}
