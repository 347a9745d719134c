import assert from "node:assert/strict";
import { errors, types } from "cassandra-driver";
import { cassandraError } from "./cassandra_failure.ts";

const { responseErrorCodes: codes } = types;

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
