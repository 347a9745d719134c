/** Counters of XEP-0198 §2 are unsigned and have 32 bits. */
const MODULUS = 2 ** 32;

/** Returns an unbounded `count` as it is written in `h`. */
export function toHandled(count: number): number {
  return count % MODULUS;
}

/** Returns the distance from `from` to `to`, both as written in `h`, in 0 to 2^32 − 1. */
export function distance(from: number, to: number): number {
  return (to - from) >>> 0;
}

/** Reads the value of an attribute `h` (xs:unsignedInt); undefined when it is not one. */
export function parseHandled(text: string | undefined): number | undefined {
  if (text === undefined || !/^\s*\+?\d{1,10}\s*$/.test(text)) return undefined;
  const value = Number(text);
  return value < MODULUS ? value : undefined;
}
