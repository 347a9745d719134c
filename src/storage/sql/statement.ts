import { DummyDriver, Kysely } from "kysely";
import type { CompiledQuery } from "kysely";
import type { NamedQuery } from "./named_query.ts";
import { PooledAdapter } from "./pooled_dialect.ts";
import type { SqlDialect } from "./sql_dialect.ts";
import type { Tables } from "./tables.ts";

/** A place in a statement for a value that each execution brings. */
class Placeholder {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

/** Returns the place of the value `name`, to be used as if it were that value. */
export type PlaceOf<Values> = <Name extends keyof Values>(name: Name) => Values[Name];

/** The query that `Statement` makes its text of. */
export interface Written<Row> {
  compile(): CompiledQuery<Row>;
}

/** Writes a statement for one engine, with places instead of values. */
type Writer<Values, Row> = (
  tables: Kysely<Tables>,
  place: PlaceOf<Values>,
  dialect: SqlDialect,
) => Written<Row>;

const writers = new WeakMap<SqlDialect, Kysely<Tables>>();

/**
 * A statement that is written once for each engine, and executed with other values each time:
 * `queries.executeQuery(STATEMENT.with(dialect, values))`. To write a statement takes longer than a
 * local database takes to carry it out. Statements are constants of a module.
 */
export class Statement<Values, Row> {
  readonly #write: Writer<Values, Row>;
  readonly #name: string | undefined;
  readonly #written = new WeakMap<SqlDialect, CompiledQuery<Row>>();

  /**
   * @param write uses every place exactly as a value: it may not look into it
   * @param options `name`, which no other statement has: PostgreSQL prepares the statement once in
   * each connection, so that an execution is neither parsed nor planned. For statements whose plan is
   * the same whatever the values
   */
  constructor(write: Writer<Values, Row>, options: { readonly name?: string | undefined } = {}) {
    this.#write = write;
    this.#name = options.name;
  }

  /** Returns the statement for an engine, with these values. */
  with(dialect: SqlDialect, values: Values): CompiledQuery<Row> {
    let written = this.#written.get(dialect);
    if (written === undefined) {
      // A place stands for a value of that type, and is replaced before anybody looks at it.
      const place: PlaceOf<Values> = (name) => new Placeholder(name) as Values[typeof name];
      written = this.#write(writerFor(dialect), place, dialect).compile();
      this.#written.set(dialect, written);
    }
    const parameters = written.parameters.map((parameter) =>
      parameter instanceof Placeholder
        ? values[parameter.name as keyof Values] // a name that `place` was given
        : parameter
    );
    // Kysely hands it on as it is, so the driver finds the name.
    const named: NamedQuery<Row> = { ...written, parameters, name: this.#name };
    return named;
  }
}

/** Returns a Kysely that writes statements for an engine and has no database. */
function writerFor(dialect: SqlDialect): Kysely<Tables> {
  let writer = writers.get(dialect);
  if (writer === undefined) {
    writer = new Kysely<Tables>({
      dialect: {
        createDriver: () => new DummyDriver(),
        createQueryCompiler: () => dialect.compiler(),
        createAdapter: () => new PooledAdapter(),
        createIntrospector: () => {
          throw new TypeError("Cannot look at tables: there is no database");
        },
      },
    });
    writers.set(dialect, writer);
  }
  return writer;
}
