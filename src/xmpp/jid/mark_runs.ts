/**
 * Longest run of marks in a text: 30, as in the Stream-Safe Text Format (UAX #15 §13). No language
 * writes ten in a row.
 */
export const MAX_MARK_RUN = 30;

/** Marks, and the half-width sound marks that width mapping and NFKC turn into marks. */
const LONG_RUN = new RegExp(`[\\p{M}\\uff9e\\uff9f]{${MAX_MARK_RUN + 1}}`, "u");

/**
 * True when more than `MAX_MARK_RUN` marks follow one another. Normalisation sorts the marks after a
 * letter one by one, in time that grows with the square of their number, so call this first.
 */
export function hasLongMarkRun(text: string): boolean {
  return LONG_RUN.test(text);
}
