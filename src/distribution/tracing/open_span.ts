import type { Clock } from "../../base/mod.ts";
import type { AttributeValue, FinishedSpan, SpanEvent } from "../../observe/mod.ts";
import type { StanzaTrace, TraceContext, TraceDetails, TraceStep } from "../mod.ts";
import { MAX_STEPS_OF_STANZA } from "./tracing_options.ts";

/** Steps by which a stanza fails at this node. */
const FAILURES: ReadonlySet<TraceStep> = new Set(["refused", "answered", "dropped"]);

const DETAILS = {
  place: "causeway.place",
  source: "causeway.source",
  reason: "causeway.reason",
  lane: "causeway.lane",
  number: "causeway.number",
  retry: "causeway.retry",
  waitMs: "causeway.wait_ms",
} as const satisfies Record<keyof TraceDetails, string>;

/** Fields of a span that are known when it begins. */
export type SpanHead = Pick<
  FinishedSpan,
  "name" | "kind" | "parentSpanId" | "hasRemoteParent" | "attributes"
>;

/** Way of one stanza through this node, as a span. It keeps none of the stanza's own bytes. */
export class OpenSpan implements StanzaTrace {
  readonly context: TraceContext;
  readonly carried: Uint8Array;
  /** Monotonic milliseconds of the last step. */
  lastMs: number;
  /** True once its fate is final: no step is awaited any more. */
  isOver = false;
  readonly #head: SpanHead;
  readonly #clock: Clock;
  readonly #startUs: number;
  readonly #events: SpanEvent[] = [];
  #lastUs: number;
  #droppedEvents = 0;
  #error: string | undefined;

  /** @param carried CONTEXT frame for the next node */
  constructor(head: SpanHead, context: TraceContext, carried: Uint8Array, clock: Clock) {
    this.#head = head;
    this.context = context;
    this.carried = carried;
    this.#clock = clock;
    this.#startUs = this.#lastUs = clock.wallUs();
    this.lastMs = clock.monotonicMs();
  }

  note(step: TraceStep, details: TraceDetails = {}): void {
    this.#touch();
    if (FAILURES.has(step)) {
      this.#error = [step, details.reason].filter((word) => word !== undefined).join(": ");
      this.isOver = true;
    }
    if (this.#events.length === MAX_STEPS_OF_STANZA) return void this.#droppedEvents++;
    this.#events.push({ name: step, atUs: this.#lastUs, attributes: attributesOf(details) });
  }

  settled(): void {
    this.#touch();
    this.isOver = true;
  }

  /** Ends the span at its last step. */
  finish(): FinishedSpan {
    const { traceId, spanId } = this.context;
    const { attributes, ...head } = this.#head;
    return {
      ...head,
      traceId,
      spanId,
      attributes: this.isOver ? attributes : { ...attributes, "causeway.is_open": true },
      startUs: this.#startUs,
      endUs: this.#lastUs,
      events: this.#events,
      droppedEvents: this.#droppedEvents,
      error: this.#error,
    };
  }

  #touch(): void {
    this.#lastUs = Math.max(this.#lastUs, this.#clock.wallUs());
    this.lastMs = this.#clock.monotonicMs();
  }
}

function attributesOf(details: TraceDetails): Record<string, AttributeValue> {
  const attributes: Record<string, AttributeValue> = {};
  for (const name of Object.keys(details) as (keyof TraceDetails)[]) {
    const value = details[name];
    if (value !== undefined) attributes[DETAILS[name]] = value;
  }
  return attributes;
}
