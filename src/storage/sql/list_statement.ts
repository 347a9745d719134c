import type { CompiledQuery, Kysely } from "kysely";
import type { SqlDialect } from "./sql_dialect.ts";
import type { PlaceOf, Written } from "./statement.ts";
import { Statement } from "./statement.ts";
import type { Tables } from "./tables.ts";

/** Lengths of lists in statements: each length is a statement of its own, which connections keep. */
const LENGTHS = [1, 8, 64, 512];
/** Longer lists have a multiple of it. */
const LONGEST = 512;

/** Returns the list, with its first element repeated up to the next of the lengths. */
function padded<Element>(list: readonly Element[]): readonly Element[] {
  const length = LENGTHS.find((each) => each >= list.length) ??
    Math.ceil(list.length / LONGEST) * LONGEST;
  return [...list, ...Array.from({ length: length - list.length }, () => list[0]!)];
}

/** Values by their names: those of a statement, and the elements of its lists by name and index. */
type Flat = Readonly<Record<string, unknown>>;

/**
 * A `Statement` whose values may be lists, for conditions such as `where("account_key", "in", …)`. It
 * is written once for each engine and each of a few lengths: to write a list of fifty keys takes longer
 * than to look them up. Each list has at least one element, and may name an element twice.
 */
export class ListStatement<Values extends object, Row> {
  readonly #write: (tables: Kysely<Tables>, place: PlaceOf<Values>) => Written<Row>;
  readonly #name: string;
  readonly #statements = new Map<string, Statement<Flat, Row>>();

  /**
   * @param write uses every place exactly as a value: it may not look into it, or into an element of
   * a list
   * @param options `name` as that of `Statement`
   */
  constructor(
    write: (tables: Kysely<Tables>, place: PlaceOf<Values>) => Written<Row>,
    { name }: { readonly name: string },
  ) {
    this.#write = write;
    this.#name = name;
  }

  /** Returns the statement for an engine, with these values. */
  with(dialect: SqlDialect, values: Values): CompiledQuery<Row> {
    const flat: Record<string, unknown> = {};
    const lengths: Record<string, number> = {};
    for (const [name, value] of Object.entries(values)) {
      if (!Array.isArray(value)) {
        flat[name] = value;
        continue;
      }
      const list = padded(value);
      lengths[name] = list.length;
      for (const [i, element] of list.entries()) flat[elementName(name, i)] = element;
    }
    return this.#statementOf(lengths).with(dialect, flat);
  }

  #statementOf(lengths: Readonly<Record<string, number>>): Statement<Flat, Row> {
    const name = [this.#name, ...Object.values(lengths)].join("-");
    let statement = this.#statements.get(name);
    if (statement === undefined) {
      statement = new Statement((tables, place: PlaceOf<Flat>) => {
        const placeOf = (value: string) =>
          lengths[value] === undefined
            ? place(value)
            : Array.from({ length: lengths[value] }, (_, i) => place(elementName(value, i)));
        // A place stands for its value, and a list of places for a list.
        return this.#write(tables, placeOf as PlaceOf<Values>);
      }, { name });
      this.#statements.set(name, statement);
    }
    return statement;
  }
}

function elementName(list: string, index: number): string {
  return `${list} ${index}`;
}
