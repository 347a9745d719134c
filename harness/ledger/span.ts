/** A stretch of time, in milliseconds on the ledger's clock. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Milliseconds of `span` that lie in none of `windows`, which may overlap. */
export function msOutside(span: Span, windows: readonly Span[]): number {
  let outsideMs = 0;
  let atMs = span.fromMs;
  for (const { fromMs, toMs } of windows.toSorted((one, other) => one.fromMs - other.fromMs)) {
    outsideMs += Math.max(0, Math.min(fromMs, span.toMs) - atMs);
    atMs = Math.max(atMs, toMs);
  }
  return outsideMs + Math.max(0, span.toMs - atMs);
}
