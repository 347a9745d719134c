const UTF8 = new TextEncoder();

/** Returns `parts` one after another, text as UTF-8. */
export function joinBytes(...parts: readonly (string | Uint8Array)[]): Uint8Array {
  const pieces = parts.map((part) => typeof part === "string" ? UTF8.encode(part) : part);
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}
