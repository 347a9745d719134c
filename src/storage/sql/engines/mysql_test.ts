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
