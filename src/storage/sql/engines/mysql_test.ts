import assert from "node:assert/strict";
import { MYSQL, mysqlSettingProblems } from "./mysql.ts";

const RIGHT = new Map([
  ["innodb_large_prefix", "ON"],
  ["innodb_file_format", "Barracuda"],
  ["innodb_file_format_max", "Barracuda"],
  ["innodb_file_per_table", "ON"],
  ["innodb_flush_log_at_trx_commit", "1"],
]);

Deno.test("mysqlSettingProblems() names what MySQL 5.7.8 and older lack", () => {
  for (const version of ["5.5.14", "5.6.51-log", "5.7.8"]) {
    assert.deepEqual(mysqlSettingProblems({ product: "mysql", version }, RIGHT), [], version);
  }
  const wrong = new Map([...RIGHT, ["innodb_large_prefix", "OFF"]]);
  wrong.delete("innodb_file_format_max");
  assert.deepEqual(mysqlSettingProblems({ product: "mysql", version: "5.7.8" }, wrong), [
    "innodb_large_prefix is OFF: version 5.7.8 needs innodb_large_prefix=true",
    "innodb_file_format_max is absent: version 5.7.8 needs innodb_file_format_max=BARRACUDA",
  ]);
  for (const version of ["5.7.9", "8.0.31", "9.1.0"]) {
    assert.deepEqual(mysqlSettingProblems({ product: "mysql", version }, new Map()), [], version);
  }
  const mariadb = { product: "mariadb", version: "10.11.19-MariaDB" };
  assert.deepEqual(mysqlSettingProblems(mariadb, new Map()), []);
});

Deno.test("mysqlSettingProblems() reports changes that are not on the disk when they are reported", () => {
  const lazy = new Map([...RIGHT, ["innodb_flush_log_at_trx_commit", "2"]]);
  assert.deepEqual(mysqlSettingProblems({ product: "mysql", version: "8.0.31" }, lazy), [
    "innodb_flush_log_at_trx_commit is 2: a change is reported before it is on the disk; set it " +
    "to 1",
  ]);
});

Deno.test("MYSQL.failureOf() recognises a full disk by what the server says", () => {
  const error = Object.assign(
    new Error("Error writing file './x' (Errcode: 28 \"No space left\")"),
    {
      errno: 1026,
      sqlState: "HY000",
    },
  );
  assert.equal(MYSQL.dialect.failureOf(error), "full");
});

Deno.test("MYSQL.failureOf() names failures of the whole server, and conflicts that a group finds", () => {
  const named = (errno: number, sqlState: string, message = "x") =>
    MYSQL.dialect.failureOf(Object.assign(new Error(message), { errno, sqlState }));
  assert.equal(named(1047, "08S01"), "no-quorum");
  assert.equal(named(1184, "08S01"), "unreachable");
  assert.equal(named(3101, "40000"), "conflict");
  const aborted = "Got error 149 - 'Lock deadlock; Retry transaction' during COMMIT";
  assert.equal(named(1180, "HY000", aborted), "conflict");
  assert.equal(named(1153, "08S01"), "value-too-large");
  assert.equal(named(3032, "HY000"), "unreachable");
  for (const errno of [1820, 1862, 3118, 4151]) assert.equal(named(errno, "HY000"), "denied");
  assert.equal(named(1366, "HY000"), undefined);
});
