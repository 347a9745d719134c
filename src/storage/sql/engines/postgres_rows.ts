// @ts-types="@types/pg"
import pg from "pg";
import type { FieldDef } from "pg";
import type { SqlRow } from "../sql_connection.ts";
import type { RowTexts } from "./postgres_messages.ts";

/** Object identifier of the type BIGINT, whose values stay text. */
const BIGINT = 20;

/** SQLSTATE of a prepared statement whose result has other columns by now. */
const RESULT_CHANGED = "0A000";

type ColumnReader = (text: string) => unknown;

/** Makes a row of its values, in the order of the columns. */
type RowMaker = (values: unknown[]) => SqlRow;

/** Columns of a result. */
export class ResultShape {
  static readonly NONE: ResultShape = ResultShape.of([]);
  readonly #readers: readonly ColumnReader[];
  readonly #make: RowMaker;

  private constructor(fields: readonly FieldDef[], make: RowMaker) {
    this.#readers = fields.map(({ dataTypeID }) => readerFor(dataTypeID));
    this.#make = make;
  }

  static of(fields: readonly FieldDef[]): ResultShape {
    const names = fields.map(({ name }) => name);
    return new ResultShape(fields, (values) => {
      const row: Record<string, unknown> = {};
      for (let i = 0; i < names.length; i++) row[names[i]!] = values[i];
      return row;
    });
  }

  /**
   * Returns the columns of a statement that is executed often. Its rows have them on their prototype,
   * and their values in an array: with properties whose names vary a row takes half as long again to
   * read.
   */
  static ofPrepared(fields: readonly FieldDef[]): ResultShape {
    const View = viewOf(fields.map(({ name }) => name));
    return new ResultShape(fields, (values) => new View(values));
  }

  /**
   * Returns the row of these values as text.
   *
   * @throws with the code that the server has for this, when the row has other columns
   */
  rowOf(texts: RowTexts): SqlRow {
    const readers = this.#readers;
    if (texts.length !== readers.length) {
      const error = new Error(`A row has ${texts.length} columns instead of ${readers.length}`);
      throw Object.assign(error, { code: RESULT_CHANGED });
    }
    const values: unknown[] = new Array(texts.length);
    for (let i = 0; i < texts.length; i++) {
      const text = texts[i]!;
      values[i] = text === null ? null : readers[i]!(text);
    }
    return this.#make(values);
  }
}

/** Key of a row's values: no column has it. */
const VALUES = Symbol("values");

type ViewClass = new (values: readonly unknown[]) => SqlRow;

/**
 * Classes of rows by their columns: one for all connections, so that code which reads such rows meets one
 * class. Prepared statements are constants, so there are few.
 */
const views = new Map<string, ViewClass>();

function viewOf(names: readonly string[]): ViewClass {
  const key = JSON.stringify(names);
  const known = views.get(key);
  if (known !== undefined) return known;
  class View {
    readonly [VALUES]: readonly unknown[];

    constructor(values: readonly unknown[]) {
      this[VALUES] = values;
    }
  }
  for (const [index, name] of names.entries()) {
    Object.defineProperty(View.prototype, name, {
      enumerable: true,
      configurable: true, // of two columns with one name the last one counts
      get(this: View) {
        return this[VALUES][index];
      },
    });
  }
  const view = View as unknown as ViewClass; // with the columns that were defined
  views.set(key, view);
  return view;
}

function readerFor(type: number): ColumnReader {
  // The driver would check that a BIGINT has only digits.
  return type === BIGINT ? asText : pg.types.getTypeParser(type);
}

function asText(value: string): string {
  return value;
}
