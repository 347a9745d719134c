import assert from "node:assert/strict";
import { MSSQL } from "./engines/mssql.ts";
import { POSTGRES } from "./engines/postgres.ts";
import { SQLITE } from "./engines/sqlite.ts";
import type { PlaceOf } from "./statement.ts";
import { Statement } from "./statement.ts";

interface Values {
  readonly key: Uint8Array;
  readonly rounds: number;
}

const [ONE, OTHER] = [Uint8Array.of(1), Uint8Array.of(2)];

Deno.test("Statement.with() fills in the values in their order, each time anew", () => {
  const statement = new Statement((tables, place: PlaceOf<Values>) =>
    tables.updateTable("users").set({ sha1_iterations: place("rounds"), sha256_iterations: 7 })
      .where("account_key", "=", place("key")).where("account_key", "!=", place("key"))
  );
  const first = statement.with(SQLITE, { key: ONE, rounds: 1 });
  const second = statement.with(SQLITE, { key: OTHER, rounds: 2 });
  assert.deepEqual(first.parameters, [1, 7, ONE, ONE]);
  assert.deepEqual(second.parameters, [2, 7, OTHER, OTHER]);
  assert.equal(
    first.sql,
    'update "users" set "sha1_iterations" = ?, "sha256_iterations" = ? ' +
      'where "account_key" = ? and "account_key" != ?',
  );
  assert.equal(second.sql, first.sql);
});

Deno.test("Statement.with() writes a statement once for each engine", () => {
  let written = 0;
  const statement = new Statement((tables, place: PlaceOf<Pick<Values, "key">>, dialect) => {
    written++;
    const rows = tables.selectFrom("users").select("localpart")
      .where("account_key", "=", place("key"));
    return dialect.limit(rows, 1);
  });
  const texts = [SQLITE, POSTGRES.dialect, MSSQL.dialect, SQLITE, POSTGRES.dialect, MSSQL.dialect]
    .map((dialect) => statement.with(dialect, { key: ONE }).sql);
  assert.equal(written, 3);
  assert.deepEqual(texts.slice(0, 3), texts.slice(3));
  assert.deepEqual(texts.slice(0, 3), [
    'select "localpart" from "users" where "account_key" = ? limit 1',
    'select "localpart" from "users" where "account_key" = $1 limit $2',
    'select top(1) "localpart" from "users" where "account_key" = @1',
  ]);
});
