/**
 * A value that must not be shown. Printed, logged or serialised it reads `[secret]`. Only `reveal`
 * returns the value.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** Returns the value itself. Call this where the secret is used, and do not store the result. */
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
