import assert from "node:assert/strict";
import { POSTGRES } from "./engines/postgres.ts";
import { SQLITE } from "./engines/sqlite.ts";
import { ListStatement } from "./list_statement.ts";
import type { NamedQuery } from "./named_query.ts";
import type { PlaceOf } from "./statement.ts";

interface Values {
  readonly keys: readonly Uint8Array[];
  readonly rounds: number;
  readonly domains: readonly Uint8Array[];
}

const [ONE, OTHER, THIRD] = [Uint8Array.of(1), Uint8Array.of(2), Uint8Array.of(3)];

function usersStatement(writing: () => void = () => {}) {
  return new ListStatement((tables, place: PlaceOf<Values>) => {
    writing();
    return tables.selectFrom("users").select("localpart")
      .where("account_key", "in", place("keys"))
      .where("sha1_iterations", "=", place("rounds"))
      .where("domainpart", "in", place("domains"));
  }, { name: "some-users" });
}

Deno.test("ListStatement.with() fills in values and lists, with a list's first element repeated up to a length", () => {
  const { sql, parameters } = usersStatement()
    .with(SQLITE, { keys: [ONE, OTHER, THIRD], rounds: 7, domains: [OTHER] });
  assert.deepEqual(parameters, [ONE, OTHER, THIRD, ONE, ONE, ONE, ONE, ONE, 7, OTHER]);
  assert.equal(
    sql,
    'select "localpart" from "users" where "account_key" in (?, ?, ?, ?, ?, ?, ?, ?) ' +
      'and "sha1_iterations" = ? and "domainpart" in (?)',
  );
});

Deno.test("ListStatement.with() writes a statement once for each engine and each length, under a name of its own", () => {
  let written = 0;
  const statement = usersStatement(() => void written++);
  const named = (dialect: typeof SQLITE, keys: number, domains: number) => {
    const lists = {
      keys: Array.from({ length: keys }, () => ONE),
      domains: Array.from({ length: domains }, () => ONE),
    };
    const query: NamedQuery = statement.with(dialect, { ...lists, rounds: 1 });
    return [query.name, query.parameters.length];
  };
  assert.deepEqual(named(SQLITE, 1, 2), ["some-users-1-8", 10]);
  assert.deepEqual(named(SQLITE, 2, 1), ["some-users-8-1", 10]);
  assert.deepEqual(named(SQLITE, 8, 1), ["some-users-8-1", 10]);
  assert.equal(written, 2);
  assert.deepEqual(named(POSTGRES.dialect, 5, 1), ["some-users-8-1", 10]);
  assert.equal(written, 3);
  assert.deepEqual(named(SQLITE, 513, 9), ["some-users-1024-64", 1_089]);
});
