import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { PYTHON_CHECKERS_HOME } from "../../../../harness/databases/mod.ts";
import type { SqlConnection } from "../sql_connection.ts";
import type { ServerKind } from "./servers.ts";

const PARSERS = fileURLToPath(
  new URL("../../../../harness/databases/parse_tsql.py", import.meta.url),
);

/** Returns a kind of server that notes every statement that is sent to it. */
export function noting(kind: ServerKind): {
  readonly kind: ServerKind;
  readonly statements: Set<string>;
} {
  const statements = new Set<string>();
  const wrapped = (inner: SqlConnection): SqlConnection => ({
    get isOpen() {
      return inner.isOpen;
    },
    execute(sql, values) {
      statements.add(withoutLists(sql));
      return inner.execute(sql, values);
    },
    close: () => inner.close(),
    destroy: () => inner.destroy(),
  });
  const { engine } = kind;
  const noted: ServerKind = {
    ...kind,
    engine: { ...engine, connect: async (...args) => wrapped(await engine.connect(...args)) },
  };
  return { kind: noted, statements };
}

/** Asserts that sqlglot and sqlfluff parse every text as T-SQL. */
export async function assertParses(texts: Iterable<string>): Promise<void> {
  const child = new Deno.Command("/usr/bin/python3", {
    args: [PARSERS],
    env: { PYTHONPATH: PYTHON_CHECKERS_HOME },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode(JSON.stringify([...texts])));
  await writer.close();
  const { success, stdout } = await child.output();
  assert.ok(success, "the parsers run");
  assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), []);
}

/** Shortens lists of parameters and rows, which differ in their lengths alone. */
function withoutLists(sql: string): string {
  return sql.replaceAll(/@\d+/g, "@1").replaceAll(/(@1)(?:, @1)+/g, "@1, @1")
    .replaceAll(/(\(@1(?:, @1)?\))(?:, \(@1(?:, @1)?\))+/g, "$1, $1");
}
