/** Place in a distributed trace, which the next node continues (W3C Trace Context). */
export interface TraceContext {
  /** 32 lower-case hexadecimal digits, not all 0. */
  readonly traceId: string;
  /** 16 lower-case hexadecimal digits, not all 0. */
  readonly spanId: string;
}
