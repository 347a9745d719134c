import type { Envelope, StanzaTrace, StanzaTracer, TraceDetails, TraceStep } from "../mod.ts";

/** Two tracers as one: traces for operators, and distributed traces. */
export class Tracers implements StanzaTracer {
  isOn = false;
  readonly #first: StanzaTracer;
  readonly #second: StanzaTracer;

  constructor(first: StanzaTracer, second: StanzaTracer) {
    this.#first = first;
    this.#second = second;
    this.update();
  }

  /** Notes that one of them may be on now, or off. */
  update(): void {
    this.isOn = this.#first.isOn || this.#second.isOn;
  }

  follow(envelope: Envelope, cause?: StanzaTrace): StanzaTrace | undefined {
    const first = this.#first.isOn ? this.#first.follow(envelope, cause) : undefined;
    const second = this.#second.isOn ? this.#second.follow(envelope, cause) : undefined;
    if (first === undefined || second === undefined) return first ?? second;
    return new TwoTraces(first, second);
  }
}

class TwoTraces implements StanzaTrace {
  readonly context: StanzaTrace["context"];
  readonly carried: StanzaTrace["carried"];
  readonly #first: StanzaTrace;
  readonly #second: StanzaTrace;

  constructor(first: StanzaTrace, second: StanzaTrace) {
    this.#first = first;
    this.#second = second;
    this.context = first.context ?? second.context;
    this.carried = first.carried ?? second.carried;
  }

  note(step: TraceStep, details?: TraceDetails): void {
    this.#first.note(step, details);
    this.#second.note(step, details);
  }

  settled(): void {
    this.#first.settled();
    this.#second.settled();
  }
}
