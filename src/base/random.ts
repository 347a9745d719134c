/** Randomness, passed in so that a simulation can repeat a run from its seed. */
export interface Random {
  /** A number in [0, 1). */
  unit(): number;
}

/** Randomness for jitter and spreading; not for secrets. */
export const MATH_RANDOM: Random = { unit: () => Math.random() };

/** A repeatable sequence from a 32-bit seed (mulberry32). */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  unit(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  }
}

/**
 * A process incarnation: a random integer in [1, 2^52), drawn once at start, compared for equality
 * only. It fits a double, so that frames need no BigInt.
 */
export function randomIncarnation(): number {
  const words = crypto.getRandomValues(new Uint32Array(2));
  return ((words[0]! & 0xfffff) * 4294967296 + words[1]!) || 1;
}

/** `byteLength` random bytes as lower-case hexadecimal, from the system's secure source. */
export function randomHex(byteLength: number): string {
  return crypto.getRandomValues(new Uint8Array(byteLength)).toHex();
}
