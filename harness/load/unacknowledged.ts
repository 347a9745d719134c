/** XEP-0198 counts modulo 2^32. */
const MODULUS = 2 ** 32;

/**
 * Stanzas that a client with stream management has sent and that the server has not acknowledged,
 * in order.
 */
export class Unacknowledged {
  #stanzas: string[] = [];
  #first = 0;
  /** The last `h`. */
  #handled = 0;

  get size(): number {
    return this.#stanzas.length - this.#first;
  }

  push(stanza: string): void {
    this.#stanzas.push(stanza);
  }

  /**
   * Takes the server's `h`.
   * @throws {RangeError} when it covers more than was sent
   */
  acknowledge(h: number): void {
    const count = (h - this.#handled + MODULUS) % MODULUS;
    if (count > this.size) {
      throw new RangeError(`The server has handled ${count} stanzas: ${this.size} were sent to it`);
    }
    this.#handled = h;
    this.#first += count;
    if (this.#first < this.#stanzas.length / 2) return;
    this.#stanzas = this.#stanzas.slice(this.#first);
    this.#first = 0;
  }

  /** Everything that is left, oldest first. */
  all(): readonly string[] {
    return this.#stanzas.slice(this.#first);
  }

  /** Takes out everything that is left; counting begins anew, as on a new stream. */
  restart(): readonly string[] {
    const left = this.all();
    this.#stanzas = [];
    this.#first = 0;
    this.#handled = 0;
    return left;
  }
}
