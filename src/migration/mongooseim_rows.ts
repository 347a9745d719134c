import { CausewayError } from "../base/mod.ts";
import type { XmlElement } from "../xmpp/mod.ts";
import { DocumentReader } from "../xmpp/mod.ts";

/** A database with MongooseIM's tables. */
export interface MongooseimDatabase {
  readonly driver: "pgsql" | "mysql";
  /** Name for messages, without secrets. */
  readonly place: string;
  /** Runs a statement that reads; `?` stands for each value. */
  query(
    sql: string,
    values?: readonly (string | number)[],
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
}

/** Characters of a name, a group or a status that are read: one more than anything that is taken. */
const MAX_TEXT = 1_024;
/** Bytes of an element that are read: a vCard, one of private storage, or one of an item. */
export const MAX_XML_BYTES = 2_097_152;

/** Returns a column whose text is cut, so that no account has more than memory. */
export function cut(column: string): string {
  return `left(${column}, ${MAX_TEXT}) AS ${column}`;
}

/** Reads one element; undefined for another text. */
export function tryRead(text: string): XmlElement | undefined {
  let root: XmlElement | undefined;
  const ignored = () => {};
  const reader = new DocumentReader({
    opened: () => "build",
    built: (element) => root = element,
    tooLarge: ignored,
    closed: ignored,
  });
  try {
    reader.push(new TextEncoder().encode(text));
    reader.end();
  } catch (thrown) {
    if (thrown instanceof CausewayError) return undefined;
    throw thrown;
  }
  return root;
}

/** Returns the text of a value; an empty one where there is none. */
export function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  return value instanceof Uint8Array ? new TextDecoder().decode(value) : String(value);
}
