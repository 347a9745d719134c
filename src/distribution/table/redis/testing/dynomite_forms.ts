import assert from "node:assert/strict";

const FIXTURE = new URL("../../../../../fixtures/redis/dynomite_commands.json", import.meta.url);
const dynomite = JSON.parse(Deno.readTextFileSync(FIXTURE)) as Readonly<
  Record<
    | "key_and_no_argument"
    | "key_and_one_argument"
    | "key_and_two_arguments"
    | "key_and_three_arguments"
    | "key_and_any_arguments"
    | "keys",
    readonly string[]
  >
>;

/** Number of arguments that Dynomite takes after the key, by command; `Infinity` for any number. */
const ARGUMENTS: ReadonlyMap<string, number> = new Map([
  ...dynomite.key_and_no_argument.map((name) => [name, 0] as const),
  ...dynomite.key_and_one_argument.map((name) => [name, 1] as const),
  ...dynomite.key_and_two_arguments.map((name) => [name, 2] as const),
  ...dynomite.key_and_three_arguments.map((name) => [name, 3] as const),
  ...dynomite.key_and_any_arguments.map((name) => [name, Infinity] as const),
  ...dynomite.keys.map((name) => [name, Infinity] as const),
]);

/** Keys that share one `{tag}` lie on one node of a rack. */
const TAG = /\{([^}]+)\}/;

/**
 * Throws on a command that the session table must not send: Dynomite would close the connection, or
 * answer it wrongly if a rack has several nodes.
 */
export function assertTaken([verb, key, ...args]: readonly string[]): void {
  const count = ARGUMENTS.get(verb!);
  assert.notEqual(count, undefined, `Dynomite does not know ${verb}`);
  assert.ok(key !== undefined && key !== "", `${verb} has no key`);
  assert.ok(count === Infinity || count === args.length, `${verb} has ${args.length} arguments`);
  if (dynomite.keys.includes(verb!)) assert.equal(args.length, 0, `${verb} has several keys`);
  if (verb !== "SUNION" || args.length === 0) return;
  const tags = [key, ...args].map((each) => TAG.exec(each)?.[1]);
  assert.ok(tags[0] !== undefined && tags.every((tag) => tag === tags[0]), `${verb} of many tags`);
}
