/**
 * A value that must not be shown: it is `[secret]` wherever it is printed, logged or serialised, and
 * given out by `reveal` alone.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself. Call it where the secret is used, and keep the result nowhere. */
  reveal(): string {
    return this.#value;
  }

  toString(): string {
    return "[secret]";
  }

  toJSON(): string {
    return "[secret]";
  }
}
