import { z } from "zod";
import type { SchemaWords } from "./schema_words.ts";
import { wordsOf } from "./schema_words.ts";

/**
 * A schema without its wrappers for defaults and optionality, and the facts that the wrappers
 * stated.
 */
export interface Unwrapped {
  readonly schema: z.ZodType;
  readonly words: SchemaWords;
  readonly meaning: string | undefined;
  /** True when the key may be left out. */
  readonly isOptional: boolean;
  /** The default as it would be written, or undefined. */
  readonly defaultValue: unknown;
}

/** Takes defaults and optionality off `schema`. */
export function unwrap(schema: z.ZodType): Unwrapped {
  let inner = schema;
  let words: SchemaWords = {};
  let meaning: string | undefined;
  let isOptional = false;
  let defaultValue: unknown;
  for (;;) {
    words = { ...wordsOf(inner), ...words };
    meaning ??= inner.description;
    if (inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault) {
      isOptional = true;
      defaultValue ??= inner.def.defaultValue;
    } else if (inner instanceof z.ZodOptional) isOptional = true;
    else return { schema: inner, words, meaning, isOptional, defaultValue };
    // zod types what it wraps as its core type; every schema here is made by the classic one.
    inner = inner.def.innerType as z.ZodType;
  }
}

/** The keys of a table schema, in the order they were declared; undefined for anything else. */
export function shapeOf(schema: z.ZodType): Readonly<Record<string, z.ZodType>> | undefined {
  return schema instanceof z.ZodObject ? schema.shape : undefined;
}

/** The members of a union, or the schema alone. */
export function branchesOf(schema: z.ZodType): readonly z.ZodType[] {
  return schema instanceof z.ZodUnion ? schema.options as readonly z.ZodType[] : [schema];
}

/** Returns the schema of the value at `path`, or undefined if there is none. */
export function schemaAt(root: z.ZodType, path: readonly PropertyKey[]): z.ZodType | undefined {
  let schema: z.ZodType | undefined = root;
  for (const key of path) {
    if (schema === undefined) return undefined;
    schema = branchesOf(unwrap(schema).schema)
      .map((branch) => childOf(branch, key))
      .find((child) => child !== undefined);
  }
  return schema;
}

function childOf(schema: z.ZodType, key: PropertyKey): z.ZodType | undefined {
  const { schema: plain } = unwrap(schema);
  if (plain instanceof z.ZodArray) return plain.element as z.ZodType;
  if (plain instanceof z.ZodRecord) return plain.valueType as z.ZodType;
  return shapeOf(plain)?.[String(key)];
}

/** Describes the values that a schema allows, in words that fit after "expected". */
export function describeAllowed(schema: z.ZodType): string {
  const { schema: plain, words } = unwrap(schema);
  if (words.allowed !== undefined) return words.allowed;
  if (plain instanceof z.ZodEnum) return joinWords(plain.options.map((o) => JSON.stringify(o)));
  if (plain instanceof z.ZodLiteral) {
    return joinWords([...plain.values].map((value) => JSON.stringify(value)));
  }
  if (plain instanceof z.ZodNumber) return describeNumber(plain);
  if (plain instanceof z.ZodBoolean) return "true or false";
  if (plain instanceof z.ZodString) return "a string";
  if (plain instanceof z.ZodArray) {
    const element = unwrap(plain.element as z.ZodType);
    if (shapeOf(element.schema) !== undefined) return "a list of tables";
    return `a list, each item ${describeAllowed(element.schema)}`;
  }
  if (plain instanceof z.ZodObject || plain instanceof z.ZodRecord) return "a table";
  return joinWords(branchesOf(plain).map(describeAllowed));
}

function describeNumber(schema: z.ZodNumber): string {
  const { minValue: min, maxValue: max } = schema;
  const kind = schema.isInt ? "an integer" : "a number";
  const hasMax = max !== null && max < Number.MAX_SAFE_INTEGER;
  if (min !== null && hasMax) return `${kind} from ${min} to ${max}`;
  return min === null ? kind : `${kind}, ${min} or more`;
}

/** `a, b or c`. */
export function joinWords(items: readonly string[]): string {
  if (items.length < 2) return items.join("");
  return `${items.slice(0, -1).join(", ")} or ${items.at(-1)}`;
}
