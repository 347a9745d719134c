import { Buffer } from "node:buffer";

/** One entry of a directory, with the attributes that were asked for. */
export class LdapEntry {
  /** Its distinguished name, as the server writes it. */
  readonly dn: string;
  readonly #values = new Map<string, readonly (string | Buffer)[]>();

  constructor(dn: string, attributes: Iterable<readonly [name: string, values: unknown]>) {
    this.dn = dn;
    for (const [name, values] of attributes) {
      const list: readonly unknown[] = Array.isArray(values) ? values : [values];
      const known = list.filter((each) => typeof each === "string" || Buffer.isBuffer(each));
      this.#values.set(name.toLowerCase(), known as readonly (string | Buffer)[]);
    }
  }

  /** Returns the texts of an attribute, whose name may be written in any case. */
  texts(attribute: string): readonly string[] {
    const values = this.#values.get(attribute.toLowerCase()) ?? [];
    return values.filter((each) => typeof each === "string");
  }

  /** Returns the first text of an attribute; empty when there is none. */
  text(attribute: string): string {
    return this.texts(attribute)[0] ?? "";
  }

  /** Returns the first value of an attribute as bytes; undefined when there is none. */
  bytes(attribute: string): Uint8Array | undefined {
    const value = this.#values.get(attribute.toLowerCase())?.[0];
    return typeof value === "string" ? Buffer.from(value, "utf8") : value;
  }
}
