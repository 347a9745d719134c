import { sentEvent, ToldBody } from "./told_body.ts";

/** Events of a trace that wait for a client that reads slowly. */
const MAX_WAITING = 1_000;

/** Callbacks of a stream to the route that made it. */
export interface TraceStreamEvents {
  /** Called at the first read; false when there are too many traces. */
  began(stream: TraceStream): boolean;
  /** Called when the client is gone, or the trace has ended. @param told steps of stanzas */
  ended(told: number): void;
}

/** A trace as server-sent events for one client, who is told how many steps were missed. */
export class TraceStream {
  readonly #body: ToldBody;
  #waiting: string[] = [];
  #missed = 0;
  #told = 0;

  constructor(events: TraceStreamEvents) {
    this.#body = new ToldBody({
      begin: () => events.began(this),
      isEmpty: () => this.#waiting.length === 0 && this.#missed === 0,
      take: () => this.#take(),
      ended: () => events.ended(this.#told),
    });
  }

  get body(): ReadableStream<Uint8Array<ArrayBuffer>> {
    return this.#body.stream;
  }

  /** Hands over the step of a stanza. It is missed when too much waits. */
  step(data: object): void {
    if (this.#waiting.length >= MAX_WAITING) this.#missed++;
    else {
      this.#told++;
      this.#waiting.push(sentEvent("step", data));
    }
    this.#body.wake();
  }

  /** Hands over the beginning, which comes before all else. */
  begun(data: object): void {
    this.#waiting.unshift(sentEvent("begun", data));
    this.#body.wake();
  }

  /** Hands over something about the trace itself, of which there is little. */
  say(name: "node" | "ended", data: object): void {
    if (name === "node" && this.#waiting.length >= 2 * MAX_WAITING) return;
    this.#waiting.push(sentEvent(name, data));
    this.#body.wake();
  }

  /** Notes steps that were over the rate. */
  missed(steps: number): void {
    this.#missed += steps;
    if (steps > 0) this.#body.wake();
  }

  /** Ends the stream; what waits is still read. */
  end(): void {
    this.#body.end();
  }

  #take(): string {
    const missed = this.#missed === 0 ? "" : sentEvent("missed", { steps: this.#missed });
    this.#missed = 0;
    const waiting = this.#waiting;
    this.#waiting = [];
    return missed + waiting.join("");
  }
}
