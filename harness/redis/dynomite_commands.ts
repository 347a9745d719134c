import table from "../../fixtures/redis/dynomite_commands.json" with { type: "json" };

/** A command as it travels: its name and its operands, binary strings. */
export type Command = readonly string[];

/** True for the number of operands that the parser takes. */
type Form = (operands: readonly string[]) => boolean;

const FORMS = new Map<string, Form>();

function declare(names: readonly string[], form: Form): void {
  for (const name of names) FORMS.set(name, form);
}

/** A key, which must not be empty, and so many arguments. */
function keyAnd(isCount: (count: number) => boolean): Form {
  return ([key, ...args]) => key !== undefined && key !== "" && isCount(args.length);
}

declare(table.bare, (operands) => operands.length === 0);
declare(table.at_most_one_argument_and_no_key, (operands) => operands.length <= 1);
declare(table.key_and_no_argument, keyAnd((count) => count === 0));
declare(table.key_and_one_argument, keyAnd((count) => count === 1));
declare(table.key_and_two_arguments, keyAnd((count) => count === 2));
declare(table.key_and_three_arguments, keyAnd((count) => count === 3));
declare(table.key_and_any_arguments, keyAnd(() => true));
declare(table.keys, (keys) => keys.length > 0 && !keys.includes(""));
declare(table.keys_with_values, (pairs) => pairs.length > 0 && pairs.length % 2 === 0);
declare(table.script_with_keys, ([_script, count, ...rest]) => {
  const keys = /^\d+$/.test(count ?? "") ? Number(count) : 0;
  return keys > 0 && rest.length >= keys;
});

const NOT_REPLICATED = new Set(table.not_replicated);

/** Commands and command forms that Redis accepts but Dynomite does not. */
export const DYNOMITE_CLOSES_ON: readonly Command[] = [
  ["AUTH", "open sesame"],
  ["HELLO", "2"],
  ["SELECT", "0"],
  ["CLIENT", "ID"],
  ["ECHO", "word"],
  ["GETDEL", "key"],
  ["UNLINK", "key"],
  ["SMISMEMBER", "set", "member"],
  ["EXPIRE", "key", "10", "NX"],
  ["LPOP", "list", "2"],
  ["RPOP", "list", "2"],
  ["HSET", "hash", "field", "value", "another", "value"],
  ["EVAL", "return 1", "0"],
  ["MULTI"],
  ["SUBSCRIBE", "channel"],
];

/**
 * Returns false for a command that makes Dynomite close the connection, because its parser does not
 * know it.
 */
export function isTaken([name, ...operands]: Command): boolean {
  return FORMS.get(name!.toUpperCase())?.(operands) ?? false;
}

/**
 * Returns true for a command that Dynomite forwards to the other datacenters, whatever its result
 * here.
 */
export function isReplicated([name]: Command): boolean {
  return !NOT_REPLICATED.has(name!.toUpperCase());
}

/**
 * True for SUNION over keys that need not lie on one node. Dynomite takes it and asks the node of the
 * first key alone, which is wrong as soon as a rack has several; the stand-in does not let that pass.
 */
export function isScattered([name, ...keys]: Command): boolean {
  if (name!.toUpperCase() !== "SUNION" || keys.length < 2) return false;
  const tags = new Set(keys.map(hashTag));
  return tags.has(undefined) || tags.size > 1;
}

/**
 * Returns the text between the first `{` and the next `}`; undefined when there is none or it is
 * empty.
 */
export function hashTag(key: string): string | undefined {
  return /\{([^}]+)\}/.exec(key)?.[1];
}
