import assert from "node:assert/strict";
import { loadCassandraDriver } from "./cassandra_driver.ts";
import { cassandraError } from "./cassandra_failure.ts";
import { CONSISTENCIES, DATA_TYPES, ERROR_CODES } from "./cql_protocol.ts";

const { errors, types } = await loadCassandraDriver();
const { responseErrorCodes: codes } = types;

Deno.test("the numbers of the protocol are those of the driver", () => {
  assert.deepEqual({ ...types.consistencies, ...CONSISTENCIES }, types.consistencies);
  assert.deepEqual({ ...types.dataTypes, ...DATA_TYPES }, types.dataTypes);
  assert.deepEqual({ ...types.responseErrorCodes, ...ERROR_CODES }, types.responseErrorCodes);
});

Deno.test("cassandraError() names what a server refuses, and says whether to try again", () => {
  const rows: readonly (readonly [number, string, string, boolean])[] = [
    [codes.invalid, "Batch too large", "storage/value-too-large", false],
    [
      codes.invalid,
      "Request is too big: length 17 exceeds maximum allowed length 16",
      "storage/value-too-large",
      false,
    ],
    [codes.invalid, "Undefined column name x", "storage/failed", false],
    [codes.invalid, "unconfigured table archives", "storage/schema-missing", false],
    [codes.writeFailure, "Operation failed - received 0 responses", "storage/io", true],
    [codes.overloaded, "Too many requests", "storage/overloaded", true],
  ];
  for (const [code, message, expected, retryable] of rows) {
    const thrown = new errors.ResponseError(code, message);
    const error = cassandraError(thrown, { action: "add to", place: "the archives" });
    assert.equal(error.code, expected, message);
    assert.equal(error.retryable, retryable, message);
  }
});
