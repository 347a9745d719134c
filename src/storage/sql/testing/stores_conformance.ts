import assert from "node:assert/strict";
import { rosterStoreConformance } from "../../testing/roster_store_conformance.ts";
import { lastStoreConformance } from "../../testing/last_store_conformance.ts";
import { manyResourcesConformance } from "../../testing/many_resources_conformance.ts";
import { privacyStoreConformance } from "../../testing/privacy_store_conformance.ts";
import { offlineStoreConformance } from "../../testing/offline_store_conformance.ts";
import { privateStoreConformance } from "../../testing/private_store_conformance.ts";
import {
  archiveStoreConformance,
  conformanceArchived,
} from "../../testing/archive_store_conformance.ts";
import { largeArchiveConformance } from "../../testing/large_archive_conformance.ts";
import { pepStoreConformance } from "../../testing/pep_store_conformance.ts";
import { roomArchiveConformance } from "../../testing/room_archive_conformance.ts";
import { roomStoreConformance } from "../../testing/room_store_conformance.ts";
import { mucStoreConformance } from "../../testing/muc_store_conformance.ts";
import { subscriptionRequestStoreConformance } from "../../testing/subscription_request_store_conformance.ts";
import { userStoreConformance } from "../../testing/user_store_conformance.ts";
import { vcardStoreConformance } from "../../testing/vcard_store_conformance.ts";
import { archiveStepsConformance } from "./archive_steps_conformance.ts";
import { copiesOfUnits } from "./copies_of_units.ts";
import { preparedDatabase, withConnection } from "./databases.ts";
import {
  assertIndexed,
  assertKeyed,
  enlargeMysql,
  enlargePostgres,
  notingEngine,
  ofOneArchive,
} from "./explained.ts";
import type { PlanOptions, SentStatements } from "./explained.ts";
import { SERVER_KINDS, serverDuringTests } from "./servers.ts";
import { assertParses, noting } from "./transact_sql.ts";
import { UsedDatabases } from "./used_databases.ts";
import { sqlServerDatabase } from "../sql_server.ts";
import type { SqlServerOptions } from "../sql_server.ts";
import { SqlStores } from "../sql_stores.ts";

/** Registers the tests of every store with one kind of server. Skips a kind that is not run here. */
export function storesConformance(name: string): void {
  const found = SERVER_KINDS.find((each) => each.name === name);
  if (found === undefined) {
    Deno.test({ name: `${name}: every store`, ignore: true, fn() {} });
    return;
  }
  const { kind, statements } = noting(found);
  if (kind.driver === "mssql") Deno.test.afterAll(() => assertParses(statements));
  const server = serverDuringTests(kind);
  const sent: SentStatements = new Map();

  const databases = new UsedDatabases(server);
  const open = async () => {
    const options = await databases.take();
    const engine = notingEngine(options.engine, sent);
    const stores = new SqlStores(sqlServerDatabase({ ...options, engine }));
    return {
      users: stores.users.bind(stores),
      requests: stores.subscriptionRequests.bind(stores),
      rosters: stores.rosters.bind(stores),
      privateStorage: stores.privateStorage.bind(stores),
      vcards: stores.vcards.bind(stores),
      lastLogouts: stores.lastLogouts.bind(stores),
      privacyLists: stores.privacyLists.bind(stores),
      offlineMessages: stores.offlineMessages.bind(stores),
      pep: stores.pep.bind(stores),
      archives: stores.archives.bind(stores),
      rooms: stores.rooms.bind(stores),
      muc: stores.muc.bind(stores),
      roomNames: stores.roomNames.bind(stores),
      [Symbol.asyncDispose]: async () => {
        await stores.close();
        await databases.giveBack(options);
      },
    };
  };
  userStoreConformance(kind.name, open);
  subscriptionRequestStoreConformance(kind.name, open);
  rosterStoreConformance(kind.name, open);
  privateStoreConformance(kind.name, open);
  vcardStoreConformance(kind.name, open);
  lastStoreConformance(kind.name, open);
  privacyStoreConformance(kind.name, open);
  offlineStoreConformance(kind.name, open);
  pepStoreConformance(kind.name, open);
  archiveStoreConformance(kind.name, open);
  roomArchiveConformance(kind.name, open);
  roomStoreConformance(kind.name, open);
  mucStoreConformance(kind.name, open);

  Deno.test(`${kind.name}: a database that all these tests have used has the rows of a new one`, async () => {
    const rowsOf = (options: SqlServerOptions) =>
      withConnection(options, async (connection) => {
        const counts: Record<string, unknown> = {};
        for (const table of await kind.engine.dialect.tables(connection)) {
          const { rows } = await connection.execute(`SELECT COUNT(*) AS count FROM ${table}`);
          counts[table] = Number(rows[0]!["count"]);
        }
        return counts;
      });
    const used = await rowsOf(await databases.take());
    assert.ok(Object.keys(used).length > 20);
    assert.deepEqual(used, await rowsOf(await preparedDatabase(server())));
  });

  if (kind.engine.dialect.archiveStep !== undefined) archiveStepsConformance(kind.name, server);

  if (kind.driver === "mysql") {
    Deno.test(`${kind.name}: archives: words are searched only where there is an index of them`, async () => {
      const options = await preparedDatabase(server());
      const searches = async (): Promise<boolean> => {
        await using stores = new SqlStores(sqlServerDatabase(options));
        await stores.probe();
        const store = stores.archives();
        const message = conformanceArchived(1);
        assert.deepEqual(await store.append([message], 1_700_000_000_000), ["stored"]);
        await store.removeAll(message.archive);
        return store.searchesText;
      };
      assert.equal(await searches(), true);
      // As servers before MySQL 5.6.4 and MariaDB 10.0.5 make the table.
      await withConnection(
        options,
        (connection) => connection.execute("DROP INDEX archive_texts_by_words ON archive_texts"),
      );
      assert.equal(await searches(), false);
    });
  }

  if (kind.driver === "mysql") {
    Deno.test(`${kind.name}: settings that old servers need are read from the server's own variables`, async () => {
      const { engine, address } = await preparedDatabase(server());
      const connection = await server().connect(address.database);
      const [tooOld, newer] = kind.name === "MariaDB"
        ? ["10.2.1-MariaDB", "10.2.2-MariaDB"]
        : ["5.7.8", "5.7.9"];
      const problems = (version: string) =>
        engine.dialect.settingProblems({
          isOpen: true,
          // The server says that it is an older one.
          execute: (sql, values) =>
            connection.execute(
              sql === "SELECT VERSION() AS version" ? `SELECT '${version}' AS version` : sql,
              values,
            ),
          close: () => Promise.resolve(),
          destroy: () => {},
        });
      try {
        // Servers of today know no other file format, and have no such variables.
        const absent = [
          `innodb_large_prefix is absent: version ${tooOld} needs innodb_large_prefix=true`,
          `innodb_file_format is absent: version ${tooOld} needs innodb_file_format=BARRACUDA`,
          `innodb_file_format_max is absent: version ${tooOld} needs innodb_file_format_max=BARRACUDA`,
        ];
        assert.deepEqual(await problems(newer), []);
        assert.deepEqual(await problems(tooOld), absent);
        await connection.execute("SET GLOBAL innodb_file_per_table = OFF");
        assert.deepEqual(await problems(newer), []);
        assert.deepEqual(await problems(tooOld), [
          ...absent,
          `innodb_file_per_table is OFF: version ${tooOld} needs innodb_file_per_table=true`,
        ]);
      } finally {
        await connection.execute("SET GLOBAL innodb_file_per_table = ON");
        await connection.close();
      }
    });
  }

  if (kind.driver === "mysql") {
    Deno.test(`${kind.name}: archives: the server reads one that has just grown in its order, and sorts nothing`, async () => {
      const options = await preparedDatabase(server());
      const own: SentStatements = new Map();
      const engine = notingEngine(options.engine, own);
      await using stores = new SqlStores(sqlServerDatabase({ ...options, engine }));
      const root = await server().connect(options.address.database);
      try {
        // It goes on to believe that the table is as small as at first, as it does for ten seconds.
        await root.execute("SET GLOBAL innodb_stats_auto_recalc = OFF");
        const store = stores.archives();
        const messages = Array.from({ length: 3_000 }, (_, i) => conformanceArchived(i));
        for (let from = 0; from < messages.length; from += 1_000) {
          await store.append(messages.slice(from, from + 1_000), 1_700_000_000_000);
          if (from === 0) await root.execute("ANALYZE TABLE archive_messages");
        }
        const { archive } = messages[0]!;
        for (const from of ["start", "end"] as const) {
          await store.read(archive, {}, { limit: 50, from });
        }
        await store.ends(archive);
        const sorted = [...own.values()].filter(([sql]) =>
          /^select .* from .archive_messages. where .* order by .position./.test(sql)
        );
        assert.equal(sorted.length, 4);
        for (const [sql, ...values] of sorted) {
          const { rows } = await root.execute(`EXPLAIN ${sql}`, values);
          const plan = rows.filter((each) => each["table"] === "archive_messages");
          assert.deepEqual(plan.map(({ key }) => key), ["PRIMARY"], sql);
          for (const { Extra: extra } of rows) assert.doesNotMatch(String(extra), /filesort/, sql);
        }
      } finally {
        await root.execute("SET GLOBAL innodb_stats_auto_recalc = ON");
        await root.close();
      }
    });
  }

  // What stands in for it has no plans, and one transaction at a time.
  if (kind.driver === "mssql") return;
  manyResourcesConformance(kind.name, open);
  largeArchiveConformance(kind.name, open);
  Deno.test(`${kind.name}: archives: removals and additions at the same time leave no message without its archive`, async () => {
    await using fixture = await open();
    const store = fixture.archives();
    let sequence = 0;
    const add = () => store.append([conformanceArchived(++sequence)], 1_700_000_000_000);
    const remove = () => store.removeAll("alice@example.com");
    for (let round = 0; round < 60; round++) {
      await Promise.all([remove(), add(), add(), remove(), add(), add()]);
      // A message that was left would have the place of one of these.
      for (let i = 0; i < 3; i++) assert.deepEqual(await add(), ["stored"]);
    }
  });

  copiesOfUnits(kind.name, async () => {
    const options = await preparedDatabase(server());
    return sqlServerDatabase({ ...options, engine: notingEngine(options.engine, sent) });
  });

  // Last, when all statements have been sent.
  // MariaDB starts again in the middle: its process is one that began before the test.
  const sanitize = kind.name !== "MariaDB";
  Deno.test({
    name:
      `${kind.name}: every statement of stores and of copying finds its rows by an index in tables of a million`,
    sanitizeOps: sanitize,
    sanitizeResources: sanitize,
    async fn() {
      // Messages of all accounts, and of one account.
      const searches = [...sent.keys()].filter((each) => /\bfrom archive_texts .*words/.test(each));
      assert.ok(searches.length > 0 && sent.size > searches.length);
      const enlarged = async (how: PlanOptions) => {
        const options = await preparedDatabase(server());
        const { database } = options.address;
        const root = await server().connect(database);
        try {
          const execute = async (sql: string) => (await root.execute(sql)).rows;
          if (kind.driver === "pgsql") await enlargePostgres(execute, how);
          else await enlargeMysql(execute, database, how);
        } finally {
          await root.close();
        }
        return options;
      };
      const isOneArchive = true;
      const [all, one] = [await enlarged({}), await enlarged({ isOneArchive })];
      if (kind.name === "MariaDB") {
        await server().kill();
        await server().launch();
      }
      const assertPlans = kind.driver === "pgsql" ? assertIndexed : assertKeyed;
      await withConnection(all, (connection) => assertPlans(connection, sent));
      const queries = ofOneArchive(sent);
      assert.ok(queries.size > 0);
      await withConnection(one, (connection) => assertPlans(connection, queries, { isOneArchive }));
    },
  });
}
