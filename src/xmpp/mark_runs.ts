/**
 * Marks in a row that a text may have: 30, as in the Stream-Safe Text Format (UAX #15 §13). The longest
 * that any language writes is below ten.
 */
export const MAX_MARK_RUN = 30;

/** Marks, and the half-width sound marks that width mapping and NFKC turn into marks. */
const LONG_RUN = new RegExp(`[\\p{M}\\uff9e\\uff9f]{${MAX_MARK_RUN + 1}}`, "u");

/**
 * True when more than `MAX_MARK_RUN` marks follow one another. Normalisation sorts the marks behind a
 * letter one by one, in time that grows with the square of their number: ask this first.
 */
export function hasLongMarkRun(text: string): boolean {
  return LONG_RUN.test(text);
}
