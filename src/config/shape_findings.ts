import { z } from "zod";
import { describeValue, valueAt } from "./key_path.ts";
import { nearestKey } from "./nearest_key.ts";
import {
  branchesOf,
  describeAllowed,
  joinWords,
  schemaAt,
  shapeOf,
  unwrap,
} from "./schema_walk.ts";
import type { KeyPath } from "./toml_lines.ts";

/** A mistake before its line is known. */
export interface Mistake {
  readonly path: KeyPath;
  readonly problem: string;
}

const SECRET_KEYS: ReadonlySet<unknown> = new Set([
  ...["password", "sentinel_password", "secret", "token", "tokens", "enumeration_secret"],
]);

/**
 * Keys that a reader of other documentation may expect but that are no options here, with the
 * reason.
 */
const EXPLAINED: ReadonlyMap<string, string> = new Map([
  [
    "general",
    "no table of Causeway's: this looks like a configuration of MongooseIM, which " +
    "`causeway config from-mongooseim` translates",
  ],
  [
    "mod_global_distrib",
    "not allowed in host_config: the module stands only under the top-level modules, as " +
    "[modules.mod_global_distrib]",
  ],
  [
    "dhfile",
    "not allowed: links use TLS 1.3 alone, which negotiates its groups by name (RFC 8446 §4.2.7), " +
    "so Diffie-Hellman parameters from a file have no effect; remove it",
  ],
  [
    "ciphers",
    "not allowed: links use TLS 1.3 alone, whose five cipher suites are all of authenticated " +
    "encryption, and the runtime takes no choice among them; remove it",
  ],
  [
    "dn_filter",
    "not served: Causeway searches each account once, and reads no second entry to decide on it; put " +
    "the condition into filter, or into local_filter of auth.ldap",
  ],
  [
    "search_fields",
    "not served: people are searched by the fields of XEP-0055 that vcard_map gives attributes; " +
    "remove it",
  ],
  [
    "search_reported",
    "not served: a search reports the fields of XEP-0055 that vcard_map gives attributes; remove it",
  ],
  [
    "redis",
    "not allowed here: Redis holds the session table alone, and its server is named in " +
    "[modules.mod_global_distrib.redis]",
  ],
  [
    "protocol_options",
    "not allowed: links use TLS 1.3 alone, and neither older versions nor compression can be " +
    "turned on; remove it",
  ],
]);

/** The same for keys of TLS where clients and others connect, which speak TLS 1.2 too. */
const EXPLAINED_FOR_LISTENERS: ReadonlyMap<string, string> = new Map(
  ["dhfile", "ciphers", "protocol_options"].map((key) => [
    key,
    "not allowed: TLS 1.2 and 1.3 are spoken here with the ciphers and groups of the runtime, which " +
    "takes no choice among them; remove it",
  ]),
);

/**
 * Names by which other servers and programs call what has another name here: options and their
 * values. The first that is allowed at a place is meant.
 */
const SYNONYMS: ReadonlyMap<string, readonly string[]> = new Map([
  ["method", ["backend"]],
  ["ip_address", ["host"]],
  ["host", ["server"]],
  ["user", ["username"]],
  ["cacertfile", ["cafile"]],
  ["postgres", ["pgsql", "rdbms"]],
  ["postgresql", ["pgsql", "rdbms"]],
  ["pgsql", ["rdbms"]],
  ["mariadb", ["mysql", "rdbms"]],
  ["mysql", ["rdbms"]],
  ["odbc", ["mssql", "rdbms"]],
  ["mssql", ["rdbms"]],
  ["opensearch", ["elastic", "elasticsearch"]],
  ["mnesia", ["internal"]],
  ["sqlite", ["internal"]],
]);

/** Describes in our words the mistakes that zod found in the shape of `input`. */
export function describeShape(
  root: z.ZodType,
  input: unknown,
  issues: readonly z.core.$ZodIssue[],
): Mistake[] {
  const mistakes = new Map<string, Mistake>();
  for (const issue of issues) {
    for (const mistake of describeIssue(root, input, issue, [])) {
      // A value that breaks two rules of one schema is reported once.
      const name = JSON.stringify(mistake.path);
      if (!mistakes.has(name)) mistakes.set(name, mistake);
    }
  }
  return [...mistakes.values()];
}

function describeIssue(
  root: z.ZodType,
  input: unknown,
  issue: z.core.$ZodIssue,
  prefix: KeyPath,
): Mistake[] {
  const path = [...prefix, ...issue.path] as (string | number)[]; // TOML has no symbols for keys
  const value = valueAt(input, path);
  const schema = schemaAt(root, path);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      path: [...path, key],
      problem: describeUnknownKey([...path, key], knownKeys(schema), value),
    }));
  }
  if (issue.code === "invalid_key") {
    const key = String(path.at(-1));
    const record = schemaAt(root, path.slice(0, -1));
    return [{ path, problem: `expected ${describeKey(record)} as the key, found "${key}"` }];
  }
  if (issue.code === "invalid_union" && schema !== undefined) {
    const branch = branchFor(schema, value);
    const inner = branch === undefined ? undefined : issue.errors[branch];
    if (inner !== undefined) return inner.flatMap((i) => describeIssue(root, input, i, path));
  }
  const allowed = schema === undefined ? issue.message : describeAllowed(schema);
  if (value === undefined) return [{ path, problem: `missing; expected ${allowed}` }];
  // An item of a list is as secret as the list.
  const name = path.findLast((part) => typeof part === "string");
  const found = describeValue(value, SECRET_KEYS.has(name));
  const meant = typeof value === "string" ? nameMeantBy(value, wordsOf(schema)) : undefined;
  const question = meant === undefined ? "" : `, did you mean "${meant}"?`;
  return [{ path, problem: `expected ${allowed}, found ${found}${question}` }];
}

/** Returns the name that `written` probably stands for. */
function nameMeantBy(written: string, allowed: readonly string[]): string | undefined {
  return SYNONYMS.get(written)?.find((name) => allowed.includes(name)) ??
    nearestKey(written, allowed);
}

/** Returns the words of which a value must be one; none where other values are allowed. */
function wordsOf(schema: z.ZodType | undefined): readonly string[] {
  const plain = schema === undefined ? undefined : unwrap(schema).schema;
  return plain instanceof z.ZodEnum ? plain.options.map(String) : [];
}

function describeUnknownKey(path: KeyPath, allowed: readonly string[], table: unknown): string {
  const key = String(path.at(-1));
  if (allowed.includes(key)) {
    const others = Object.keys(table ?? {}).filter((other) => other !== key);
    return `not allowed together with ${joinWords(others)}`;
  }
  const explained = (path[0] === "listen" ? EXPLAINED_FOR_LISTENERS.get(key) : undefined) ??
    EXPLAINED.get(key);
  if (explained !== undefined) return explained;
  if (allowed.length === 0) return "unknown key; no keys are allowed here";
  const meant = nameMeantBy(key, allowed);
  const question = meant === undefined ? "" : `, did you mean ${meant}?`;
  return `unknown key${question || ";"} allowed here: ${allowed.join(", ")}`;
}

/** Returns the keys that a table may have, over all branches of a union. */
function knownKeys(schema: z.ZodType | undefined): string[] {
  if (schema === undefined) return [];
  const branches = branchesOf(unwrap(schema).schema);
  return branches.flatMap((branch) => Object.keys(shapeOf(branch) ?? {}));
}

function describeKey(schema: z.ZodType | undefined): string {
  const plain = schema === undefined ? undefined : unwrap(schema).schema;
  return plain instanceof z.ZodRecord
    ? describeAllowed(plain.keyType as z.ZodType)
    : "another name";
}

/**
 * Returns the position of the union's branch that was probably meant: the table that shares a key
 * with `value`.
 */
function branchFor(schema: z.ZodType, value: unknown): number | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const tables = branchesOf(unwrap(schema).schema)
    .map((branch, position) => ({ shape: shapeOf(branch), position }))
    .filter((table) => table.shape !== undefined);
  const sharing = tables.find((t) =>
    Object.keys(value).some((key) => Object.hasOwn(t.shape!, key))
  );
  return (sharing ?? (tables.length === 1 ? tables[0] : undefined))?.position;
}
