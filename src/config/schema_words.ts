import { z } from "zod";
import { tryNormalizeDomain } from "./normalize_domain.ts";
import type { Target, ValueOf } from "./part_options.ts";

/**
 * Facts about a schema that zod does not know: words for people, for messages and the reference page, and
 * the place of the value.
 */
export interface SchemaWords {
  /** The allowed values, in words that fit after "expected". */
  readonly allowed?: string;
  /** Default that depends on other options. */
  readonly defaultText?: string;
  /** True when `allowed` says everything, so that the reference page does not list the parts. */
  readonly isWhole?: boolean;
  /** Option of a part that the value sets. */
  readonly target?: Target;
  /** Unit of a number whose target has another: milliseconds, or a whole rate. */
  readonly unit?: "seconds" | "per second";
}

const REGISTRY = z.registry<SchemaWords>();

/** `schema` with words attached, besides those that it has. */
export function withWords<T extends z.ZodType>(schema: T, words: SchemaWords): T {
  REGISTRY.add(schema, { ...wordsOf(schema), ...words });
  return schema;
}

/** `schema` of an option that sets the option `target` of a part; seconds become milliseconds. */
export function sets<T extends Target, S extends z.ZodType<ValueOf<T>>>(target: T, schema: S): S {
  return withWords(schema, { target });
}

/** `schema` of a number that is seconds. */
export function inSeconds<T extends z.ZodNumber>(schema: T): T {
  return withWords(schema, { unit: "seconds" });
}

/** The words attached to `schema` itself. */
export function wordsOf(schema: z.ZodType): SchemaWords {
  return REGISTRY.get(schema) ?? {};
}

/**
 * Makes an option without a default in the schema. `defaultText` describes its value when it is
 * absent.
 */
export function absent<T extends z.ZodType>(
  schema: T,
  defaultText: string,
  meaning: string,
): z.ZodOptional<T> {
  return withWords(schema.optional().describe(meaning), { defaultText });
}

/** A new schema of an XMPP domain. */
export function domain(): z.ZodString {
  return withWords(z.string().refine((name) => tryNormalizeDomain(name) !== undefined), {
    allowed: 'a domain such as "example.com"',
  });
}

/** A text with at least one character. */
export function text(): z.ZodString {
  return withWords(z.string().min(1), { allowed: "a non-empty string" });
}

/** A path of a file; relative ones start at the configuration file's directory. */
export function filePath(): z.ZodString {
  return withWords(z.string().min(1), { allowed: "a file path" });
}

/** Makes a schema of an address to listen on: host name or IP address, and a port that may be 0. */
export function listenAddress() {
  const schema = z.strictObject({
    host: hostName().describe("host name or IP address to listen on"),
    port: listenPort().describe("TCP port; 0 takes a free one"),
  });
  return withWords(schema, { allowed: "a table { host, port }", isWhole: true });
}

/** Makes a schema of an address to connect to. */
export function remoteAddress() {
  const schema = z.strictObject({
    host: hostName().describe("host name or IP address to connect to"),
    port: z.int().min(1).max(65535).describe("TCP port"),
  });
  return withWords(schema, { allowed: "a table { host, port }", isWhole: true });
}

/** A list of addresses. */
export function addresses<T extends z.ZodType>(address: T, least = 0): z.ZodArray<T> {
  const schema = z.array(address).min(least);
  const allowed = `a list of ${least === 0 ? "" : `at least ${least} of `}{ host, port }`;
  return withWords(schema, { allowed, isWhole: true });
}

/** A host name or IP address, without port or brackets. */
export function hostName(): z.ZodString {
  return withWords(z.string().regex(/^[^\s#/@[\]]+$/), { allowed: "a host name or IP address" });
}

/** A TCP port to listen on. */
export function listenPort(): z.ZodInt {
  return z.int().min(0).max(65535);
}

/** A whole number of seconds, at least `least`. */
export function seconds(least = 1): z.ZodInt {
  const schema = z.int().min(least).max(31_536_000);
  return withWords(inSeconds(schema), {
    allowed: `a whole number of seconds, ${least} or more`,
  });
}

/** Seconds with or without a fraction; milliseconds are the finest. */
export function secondsBetween(least: number, most: number): z.ZodNumber {
  const schema = z.number().min(least).max(most);
  return withWords(inSeconds(schema), {
    allowed: `a number of seconds from ${least} to ${most}`,
  });
}

/** A whole number of milliseconds, at least `least`. */
export function milliseconds(least = 1): z.ZodInt {
  const schema = z.int().min(least).max(86_400_000);
  return withWords(schema, { allowed: `a whole number of milliseconds, ${least} to 86400000` });
}

/** A count or size. */
export function integer(least: number, most: number = Number.MAX_SAFE_INTEGER): z.ZodInt {
  return z.int().min(least).max(most);
}

/** A secret in the file, in the environment, or in a file of its own. */
export function secret() {
  const schema = z.union([
    z.string(),
    z.strictObject({ env: text().describe("name of an environment variable that holds it") }),
    z.strictObject({
      file: filePath().describe("file that holds it; a final newline is left out"),
    }),
  ]);
  return withWords(schema, {
    allowed: 'a string, { env = "NAME" } or { file = "PATH" }',
    isWhole: true,
  });
}

export type SecretInput = z.infer<ReturnType<typeof secret>>;
