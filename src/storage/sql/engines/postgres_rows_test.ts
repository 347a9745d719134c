import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
// @ts-types="@types/pg"
import pg from "pg";
import { ResultShape } from "./postgres_rows.ts";

const { BOOL, BYTEA, INT2, INT4, INT8, TEXT } = pg.types.builtins;

function field(name: string, dataTypeID: number): pg.FieldDef {
  return {
    name,
    dataTypeID,
    tableID: 0,
    columnID: 0,
    dataTypeSize: -1,
    dataTypeModifier: -1,
    format: "text",
  };
}

const FIELDS = [
  field("big", INT8),
  field("whole", INT4),
  field("small", INT2),
  field("values", TEXT),
  field("bytes", BYTEA),
  field("flag", BOOL),
];
const TEXTS = ["9223372036854775807", "-2147483648", "32767", "12", "\\x00ff", "t"];
const VALUES = {
  big: "9223372036854775807",
  whole: -2_147_483_648,
  small: 32_767,
  values: "12",
  bytes: Buffer.of(0, 0xff),
  flag: true,
};
const NAMES = Object.keys(VALUES);

for (const kind of ["of", "ofPrepared"] as const) {
  Deno.test(`ResultShape.${kind}() returns rows with values of each type, and nulls`, () => {
    const shape = ResultShape[kind](FIELDS);
    const columnsOf = (texts: (string | null)[]) => {
      const row = shape.rowOf(texts);
      return Object.fromEntries(NAMES.map((name) => [name, row[name]]));
    };
    assert.deepEqual(columnsOf(TEXTS), VALUES);
    const nulls = Object.fromEntries(NAMES.map((name) => [name, null]));
    assert.deepEqual(columnsOf(TEXTS.map(() => null)), nulls);
    for (const [text, value] of [["0", 0], ["-1", -1], ["2147483647", 2_147_483_647]] as const) {
      assert.equal(columnsOf(["1", text, "1", "", "\\x", "f"])["whole"], value);
    }
  });
}

Deno.test("ResultShape.ofPrepared() returns rows that outlive the next one", () => {
  const shape = ResultShape.ofPrepared([field("value", TEXT)]);
  const texts = ["first"];
  const first = shape.rowOf(texts);
  texts[0] = "second";
  const second = shape.rowOf(texts);
  assert.deepEqual([first["value"], second["value"]], ["first", "second"]);
});

Deno.test("ResultShape.ofPrepared() makes rows of one class for all connections", () => {
  const classOf = (...names: string[]) => {
    const shape = ResultShape.ofPrepared(names.map((name) => field(name, TEXT)));
    return shape.rowOf(names).constructor;
  };
  assert.equal(classOf("a", "b"), classOf("a", "b"));
  assert.notEqual(classOf("a", "b"), classOf("b", "a"));
  assert.notEqual(classOf('a","b'), classOf("a", "b"));
});

for (const kind of ["of", "ofPrepared"] as const) {
  Deno.test(`ResultShape.${kind}() takes the last of two columns with one name`, () => {
    const shape = ResultShape[kind]([field("same", TEXT), field("same", INT4)]);
    assert.equal(shape.rowOf(["1", "2"])["same"], 2);
  });

  Deno.test(`ResultShape.${kind}() refuses a row with another number of columns`, () => {
    const shape = ResultShape[kind]([field("first", TEXT), field("second", TEXT)]);
    for (const texts of [["1"], ["1", "2", "3"]]) {
      assert.throws(() => shape.rowOf(texts), { code: "0A000" });
    }
  });
}
