import type { Clock } from "../../base/mod.ts";
import type { AttributeValue, FinishedSpan, SpanEvent } from "../../observe/mod.ts";
import type { StanzaTrace, TraceContext, TraceDetails, TraceStep } from "../mod.ts";
import { contextFrame } from "../wire/mod.ts";
import { MAX_STEPS_OF_STANZA } from "./tracing_options.ts";

/** Steps by which a stanza fails at this node. */
const FAILURES: ReadonlySet<TraceStep> = new Set(["refused", "answered", "dropped"]);

/** Fields of a span that are known when it begins. */
export type SpanHead = Pick<
  FinishedSpan,
  "name" | "kind" | "parentSpanId" | "hasRemoteParent" | "attributes"
>;

/** Stanza that a span is about, by the id in its frames. */
interface StanzaId {
  readonly process: number;
  readonly sequence: number;
}

/** Way of one stanza through this node, as a span. It keeps none of the stanza's own bytes. */
export class OpenSpan implements StanzaTrace, TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** True when a step has come since this was set to false. */
  isFresh = true;
  /** Monotonic milliseconds at which this span was last seen to be fresh. */
  lastMs = 0;
  /** True once its fate is final: no step is awaited any more. */
  isOver = false;
  readonly #stanza: StanzaId;
  readonly #head: SpanHead;
  readonly #clock: Clock;
  readonly #startUs: number;
  readonly #events: SpanEvent[] = [];
  #lastUs: number;
  #droppedEvents = 0;
  #error: string | undefined;

  constructor(head: SpanHead, context: TraceContext, stanza: StanzaId, clock: Clock) {
    this.traceId = context.traceId;
    this.spanId = context.spanId;
    this.#head = head;
    this.#stanza = stanza;
    this.#clock = clock;
    this.#startUs = this.#lastUs = clock.wallUs();
  }

  get context(): TraceContext {
    return this;
  }

  /** CONTEXT frame for the next node: made when a lane writes it, as most spans end at this node. */
  get carried(): Uint8Array {
    const { process, sequence } = this.#stanza;
    const { traceId, spanId } = this;
    return contextFrame({ process, sequence, isSampled: true, traceId, spanId });
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
    const { traceId, spanId } = this;
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
    this.isFresh = true;
  }
}

/** Each name is spelt out, so that the engine knows the few forms that these objects have. */
function attributesOf(
  { place, source, reason, lane, number, retry, waitMs }: TraceDetails,
): Record<string, AttributeValue> {
  const attributes: Record<string, AttributeValue> = {};
  if (place !== undefined) attributes["causeway.place"] = place;
  if (source !== undefined) attributes["causeway.source"] = source;
  if (reason !== undefined) attributes["causeway.reason"] = reason;
  if (lane !== undefined) attributes["causeway.lane"] = lane;
  if (number !== undefined) attributes["causeway.number"] = number;
  if (retry !== undefined) attributes["causeway.retry"] = retry;
  if (waitMs !== undefined) attributes["causeway.wait_ms"] = waitMs;
  return attributes;
}
