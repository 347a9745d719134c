/** Value of an attribute of a span, an event or a log record. */
export type AttributeValue = string | number | boolean;

export type Attributes = Readonly<Record<string, AttributeValue>>;

/** Moment within a span. */
export interface SpanEvent {
  readonly name: string;
  /** Wall-clock microseconds. */
  readonly atUs: number;
  readonly attributes: Attributes;
}

/** A span that has ended, with ids in lower-case hexadecimal (W3C Trace Context). */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Undefined for the first span of a trace. */
  readonly parentSpanId: string | undefined;
  /** True when another process made the parent. */
  readonly hasRemoteParent: boolean;
  readonly name: string;
  /** `producer` brings a message into the mesh, `consumer` takes it over from another node. */
  readonly kind: "producer" | "consumer";
  /** Wall-clock microseconds. */
  readonly startUs: number;
  readonly endUs: number;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  /** Events beyond the bound, which are not among `events`. */
  readonly droppedEvents: number;
  /** Reason why the message did not reach its recipient; undefined while nothing failed. */
  readonly error: string | undefined;
}
