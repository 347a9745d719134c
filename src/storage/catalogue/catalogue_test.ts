import assert from "node:assert/strict";
import {
  backendRow,
  CATALOGUE,
  DATA_KINDS,
  isAtLeast,
  kindProblem,
  versionProblem,
} from "./catalogue.ts";
import type { BackendId, DataKind } from "./catalogue.ts";

/** The table of the design, written down a second time. */
const HOLDS: Readonly<Record<BackendId, readonly string[]>> = {
  internal: Object.keys(DATA_KINDS),
  redis: ["sessions"],
  rdbms: [
    ...["users", "vcard", "roster", "private", "privacy", "last", "mam", "muc_light"],
    ...["pep", "offline", "muc"],
  ],
  riak: ["users", "vcard", "roster", "private", "privacy", "last", "mam", "offline"],
  elasticsearch: ["mam"],
  ldap: ["users", "shared_roster", "vcard"],
  cassandra: ["mam"],
};

Deno.test("kindProblem() accepts what a backend may hold and refuses everything else", () => {
  assert.deepEqual(CATALOGUE.map(({ id }) => id).toSorted(), Object.keys(HOLDS).toSorted());
  for (const { id } of CATALOGUE) {
    for (const kind of Object.keys(DATA_KINDS) as DataKind[]) {
      assert.equal(kindProblem(id, kind) === undefined, HOLDS[id].includes(kind), `${id} ${kind}`);
    }
  }
});

Deno.test("kindProblem() prints the backend's row and names the backends that may", () => {
  assert.equal(
    kindProblem("redis", "users"),
    "redis may not hold users: Redis may hold sessions; users may be held by internal, rdbms, " +
      "riak, ldap",
  );
  assert.equal(
    kindProblem("ldap", "mam"),
    "ldap may not hold mam: LDAP may hold users, shared_roster, vcard (read only); mam may be " +
      "held by internal, rdbms, riak, elasticsearch, cassandra",
  );
});

Deno.test("versionProblem() refuses servers below the minimum version", () => {
  assert.equal(versionProblem("mysql", "5.5.14"), undefined);
  assert.equal(versionProblem("mysql", "8.0.31-log"), undefined);
  assert.equal(
    versionProblem("mysql", "5.5.13-log"),
    "MySQL 5.5.13-log is too old: MySQL 5.5.14 or newer is served",
  );
  assert.equal(versionProblem("mariadb", "10.11.19-MariaDB-0+deb12u1"), undefined);
  assert.match(versionProblem("riak", "1.4.12") ?? "", /Riak KV 2\.0 or newer/);
  assert.match(versionProblem("pgsql", "9.5.25") ?? "", /PostgreSQL 9\.6 or newer/);
  assert.equal(versionProblem("redis", "2.8"), undefined);
});

Deno.test("isAtLeast() compares versions number by number", () => {
  for (
    const [version, minimum, expected] of [
      ["15", "9.6", true],
      ["9.6", "9.6.0", true],
      ["9.6.0", "9.6", true],
      ["9.10", "9.9", true],
      ["5.5.9", "5.5.14", false],
      ["15.18 (Debian 15.18-0+deb12u1)", "15.18", true],
      ["unknown", "0.1", false],
      ["", "1", false],
    ] as const
  ) {
    assert.equal(isAtLeast(version, minimum), expected, `${version} ≥ ${minimum}`);
  }
});

Deno.test("each row has a server, a kind of data and a pool where it is reached over the network", () => {
  for (const { id } of CATALOGUE) {
    const row = backendRow(id);
    assert.ok(row.products.length > 0 && row.kinds.length > 0, id);
    assert.equal(row.poolKind === undefined, id === "internal", id);
  }
});
