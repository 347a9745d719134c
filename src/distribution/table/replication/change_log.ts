import type { TableRecord } from "../../wire/mod.ts";

/**
 * Changes kept for datacenters that were away. One that missed more gets a snapshot, and loses
 * nothing.
 */
const CAPACITY = 16_384;

/** The last changes of this node's own entries, numbered from 1. */
export class ChangeLog {
  readonly #records: TableRecord[] = [];
  readonly #capacity: number;
  #lastNumber = 0;

  constructor(capacity = CAPACITY) {
    this.#capacity = capacity;
  }

  /** Number of the last change; 0 before the first. */
  get lastNumber(): number {
    return this.#lastNumber;
  }

  append(record: TableRecord): void {
    this.#records[this.#lastNumber++ % this.#capacity] = record;
  }

  /** True when every change after `number` is still here. */
  reaches(number: number): boolean {
    return number <= this.#lastNumber && this.#lastNumber - number <= this.#capacity;
  }

  /** Returns up to `most` changes after `number`, which the log reaches. */
  behind(number: number, most: number): readonly TableRecord[] {
    const count = Math.min(most, this.#lastNumber - number);
    return Array.from({ length: count }, (_, i) => this.#records[(number + i) % this.#capacity]!);
  }
}
