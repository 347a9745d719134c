import { SeededRandom } from "../../src/base/mod.ts";

/** Options of the mutations of one target. */
export interface MutatorOptions {
  /** Pieces that mean something to the target, spliced in whole. */
  readonly tokens: readonly Uint8Array[];
  /** Inputs are cut to this length. @default 65536 */
  readonly maxBytes?: number;
}

/** Changes inputs at random, repeatably from a seed. */
export class Mutator {
  readonly #random: SeededRandom;
  readonly #tokens: readonly Uint8Array[];
  readonly #maxBytes: number;

  constructor(seed: number, options: MutatorOptions) {
    this.#random = new SeededRandom(seed);
    this.#tokens = options.tokens;
    this.#maxBytes = options.maxBytes ?? 65_536;
  }

  /** One of `items`. */
  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.#random.unit() * items.length)]!;
  }

  /** An integer in [0, below). */
  below(below: number): number {
    return Math.floor(this.#random.unit() * below);
  }

  /** A changed copy of `input`; now and then joined with a part of `other`. */
  mutate(input: Uint8Array, other: Uint8Array): Uint8Array {
    let bytes = input;
    // Most inputs differ in one place: there the parsers go on far enough to be wrong.
    const changes = 1 + (this.below(3) === 0 ? this.below(6) : 0);
    for (let i = 0; i < changes; i++) bytes = this.#change(bytes, other);
    return bytes.length > this.#maxBytes ? bytes.subarray(0, this.#maxBytes) : bytes;
  }

  #change(bytes: Uint8Array, other: Uint8Array): Uint8Array {
    const at = this.below(bytes.length + 1);
    switch (this.below(9)) {
      case 0: // flip a bit
        return this.#edit(bytes, at, (byte) => byte ^ (1 << this.below(8)));
      case 1: // any byte
        return this.#edit(bytes, at, () => this.below(256));
      case 2: // a number at its edge
        return this.#edit(bytes, at, () => this.pick([0, 1, 0x7f, 0x80, 0xfe, 0xff]));
      case 3: // leave something out
        return splice(bytes, at, 1 + this.below(8), EMPTY);
      case 4: // insert bytes
        return splice(
          bytes,
          at,
          0,
          Uint8Array.from({ length: 1 + this.below(4) }, () => this.below(256)),
        );
      case 5: // replace with something that means something
        return splice(
          bytes,
          at,
          this.below(6),
          this.#tokens.length > 0 ? this.pick(this.#tokens) : EMPTY,
        );
      case 6: { // say something twice
        const length = Math.min(1 + this.below(64), bytes.length - at);
        return splice(bytes, at, 0, bytes.slice(at, at + length));
      }
      case 7: // end early
        return bytes.slice(0, at);
      default: // go on with another input
        return splice(bytes, at, bytes.length, other.slice(this.below(other.length + 1)));
    }
  }

  #edit(bytes: Uint8Array, at: number, change: (byte: number) => number): Uint8Array {
    if (bytes.length === 0) return bytes;
    const copy = bytes.slice();
    const index = Math.min(at, copy.length - 1);
    copy[index] = change(copy[index]!);
    return copy;
  }
}

const EMPTY = new Uint8Array(0);

function splice(bytes: Uint8Array, at: number, removed: number, inserted: Uint8Array): Uint8Array {
  const after = Math.min(bytes.length, at + removed);
  const result = new Uint8Array(at + inserted.length + bytes.length - after);
  result.set(bytes.subarray(0, at));
  result.set(inserted, at);
  result.set(bytes.subarray(after), at + inserted.length);
  return result;
}
