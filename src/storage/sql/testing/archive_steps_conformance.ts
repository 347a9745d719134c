import assert from "node:assert/strict";
import { until } from "../../../../harness/until.ts";
import { archiveKeyOf } from "../../archive_store.ts";
import type { ArchivedMessage } from "../../archive_store.ts";
import { conformanceArchived } from "../../testing/archive_store_conformance.ts";
import { keyOf } from "../keys.ts";
import type { SqlConnection } from "../sql_connection.ts";
import type { SqlServerOptions } from "../sql_server.ts";
import { sqlServerDatabase } from "../sql_server.ts";
import { SqlStores } from "../sql_stores.ts";
import { preparedDatabase } from "./databases.ts";
import type { TestServer } from "./servers.ts";

const [ALICE, BOB, CAROL] = ["alice@example.com", "bob@example.com", "carol@example.com"];
const NOW = 1_700_000_000_000;
/** Executions after which PostgreSQL plans a prepared statement without looking at its values. */
const CUSTOM_PLANS = 5;

/** Stores whose connections note the statements that they are sent. */
class NotingStores implements AsyncDisposable {
  readonly sent: string[] = [];
  readonly #stores: SqlStores;

  constructor(options: SqlServerOptions) {
    const note = (inner: SqlConnection): SqlConnection => ({
      get isOpen() {
        return inner.isOpen;
      },
      execute: (sql, values, name) => {
        this.sent.push(sql);
        return inner.execute(sql, values, name);
      },
      close: () => inner.close(),
      destroy: () => inner.destroy(),
    });
    const { engine } = options;
    const connect: typeof engine.connect = async (...args) => note(await engine.connect(...args));
    this.#stores = new SqlStores(sqlServerDatabase({ ...options, engine: { ...engine, connect } }));
  }

  get archives() {
    return this.#stores.archives();
  }

  /** Adds messages, which are stored. Returns the number of statements that it took. */
  async add(...messages: readonly ArchivedMessage[]): Promise<number> {
    this.sent.length = 0;
    assert.deepEqual(await this.archives.append(messages, NOW), messages.map(() => "stored"));
    return this.sent.length;
  }

  async read(archive: string, text?: string): Promise<readonly number[]> {
    const page = await this.archives.read(archive, { text }, { limit: 1_000, from: "start" });
    return page!.messages.map(({ sequence }) => sequence);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#stores.close();
  }
}

function messagesOf(archive: string, ...sequences: readonly number[]): ArchivedMessage[] {
  return sequences.map((each) => conformanceArchived(each, { archive, text: `quick ${each}` }));
}

/** Registers the tests of messages that one statement adds, for an engine that has it. */
export function archiveStepsConformance(name: string, server: () => TestServer): void {
  const open = async () => new NotingStores(await preparedDatabase(server()));

  Deno.test(`${name}: archives: messages take one statement where the archives have some already`, async () => {
    await using stores = await open();
    const names = [ALICE, BOB, CAROL];
    assert.ok(await stores.add(...names.flatMap((each) => messagesOf(each, 1))) > 1);
    for (let i = 1; i <= CUSTOM_PLANS + 3; i++) {
      const [first, second] = [2 * i, 2 * i + 1];
      const messages = names.flatMap((each) => messagesOf(each, first));
      const others = names.toReversed().flatMap((each) => messagesOf(each, second));
      assert.equal(await stores.add(...messages, ...others), 1);
    }
    const all = Array.from({ length: 2 * (CUSTOM_PLANS + 3) + 1 }, (_, i) => i + 1);
    for (const each of names) {
      assert.deepEqual(await stores.read(each), all);
      assert.deepEqual(await stores.read(each, "quick"), all);
      assert.deepEqual(await stores.read(each, "4"), [4]);
    }
    const plain = names.map((archive) => ({
      ...conformanceArchived(100, { archive }),
      text: undefined,
    }));
    for (let i = 0; i < CUSTOM_PLANS + 3; i++) {
      const numbered = plain.map((each) => ({ ...each, sequence: 100 + i }));
      assert.equal(await stores.add(...numbered), 1);
    }
    assert.deepEqual((await stores.read(CAROL)).slice(all.length), [
      ...[100, 101, 102, 103, 104, 105, 106, 107],
    ]);
    assert.deepEqual(await stores.read(CAROL, "quick"), all);
  });

  Deno.test(`${name}: archives: the statement leaves out messages that are there already`, async () => {
    const options = await preparedDatabase(server());
    await using stores = new NotingStores(options);
    await stores.add(...messagesOf(ALICE, 1, 2), ...messagesOf(BOB, 1));
    for (let i = 1; i <= CUSTOM_PLANS + 3; i++) {
      const [first, last] = [2 * i + 1, 2 * i + 2];
      const again = messagesOf(ALICE, first, first - 1, last);
      assert.equal(await stores.add(...again, ...messagesOf(BOB, i + 1, i + 1)), 1);
    }
    const all = Array.from({ length: 2 * (CUSTOM_PLANS + 3) + 2 }, (_, i) => i + 1);
    assert.deepEqual(await stores.read(ALICE), all);
    assert.deepEqual(await stores.read(ALICE, "quick"), all);
    assert.deepEqual(await stores.read(BOB), all.slice(0, CUSTOM_PLANS + 4));
    const [counted] = await server().asRoot(
      "SELECT count(*) AS words, count(archive_messages.position) AS messages FROM archive_texts " +
        "LEFT JOIN archive_messages USING (account_key, position)",
      options.address.database,
    );
    const messages = all.length + CUSTOM_PLANS + 4;
    assert.deepEqual(Object.values(counted!).map(Number), [messages, messages], "no word is alone");
  });

  Deno.test(`${name}: archives: many bytes of words and stanzas take several statements`, async () => {
    await using stores = await open();
    await stores.add(...messagesOf(ALICE, 1));
    const many = Array.from({ length: 2_500 }, (_, i) => `longish${i}`).join(" ");
    const long = (sequence: number) => ({
      ...messagesOf(ALICE, sequence)[0]!,
      text: `${sequence}th ${many}`,
    });
    assert.equal(await stores.add(long(2)), 1);
    const sequences = Array.from({ length: 100 }, (_, i) => 3 + i);
    assert.ok(await stores.add(...sequences.map(long)) > 1);
    assert.deepEqual(await stores.read(ALICE, "longish2499"), [2, ...sequences]);
    assert.deepEqual(await stores.read(ALICE, "102th"), [102]);
  });

  Deno.test(`${name}: archives: the statement obeys preferences that it finds`, async () => {
    await using stores = await open();
    const { archives } = stores;
    await stores.add(...messagesOf(ALICE, 1), ...messagesOf(BOB, 1));
    await archives.setPreferences(ALICE, { byDefault: "never", always: [BOB], never: [CAROL] });
    const from = (peer: string, sequence: number) => ({
      ...messagesOf(ALICE, sequence)[0]!,
      peer: { bare: peer, resourcepart: "" },
    });
    assert.ok(await stores.add(from(BOB, 2)) > 1);
    assert.equal(await stores.add(from(BOB, 3), ...messagesOf(BOB, 2)), 1);
    assert.deepEqual(await archives.append([from(CAROL, 4), from(BOB, 5)], NOW), [
      "unwanted",
      "stored",
    ]);
    // Another node changes them.
    await archives.setPreferences(ALICE, { byDefault: "never", always: [], never: [BOB] });
    assert.deepEqual(await archives.append([from(BOB, 6), ...messagesOf(BOB, 3)], NOW), [
      "unwanted",
      "stored",
    ]);
    await archives.setPreferences(ALICE, { byDefault: "always", always: [], never: [] });
    assert.deepEqual(await archives.append([from(BOB, 7)], NOW), ["stored"]);
    assert.deepEqual(await stores.read(ALICE), [1, 2, 3, 5, 7]);
    assert.deepEqual(await stores.read(BOB), [1, 2, 3]);
  });

  Deno.test(`${name}: archives: the statement tells the archives of two accounts of one name apart`, async () => {
    await using stores = await open();
    const [first, second] = [archiveKeyOf(ALICE, "0a"), archiveKeyOf(ALICE, "0b")];
    assert.ok(await stores.add(...messagesOf(first, 1)) > 1);
    assert.ok(await stores.add(...messagesOf(second, 10)) > 1);
    assert.equal(await stores.add(...messagesOf(first, 2), ...messagesOf(second, 11)), 1);
    assert.deepEqual(await stores.read(first), [1, 2]);
    assert.deepEqual(await stores.read(second), [10, 11]);
    await stores.archives.removeAll(ALICE);
    await stores.add(...messagesOf(second, 12));
    await stores.add(...messagesOf(first, 3));
    assert.deepEqual(await stores.read(first), [3]);
    assert.deepEqual(await stores.read(second), [12]);
  });

  Deno.test(`${name}: archives: the statement goes on where the transaction that it waited for has ended`, async () => {
    const options = await preparedDatabase(server());
    await using stores = new NotingStores(options);
    await stores.add(...messagesOf(ALICE, 1), ...messagesOf(BOB, 1));
    const { database } = options.address;
    const root = await server().connect(database);
    const row = `account_key = '\\x${keyOf(BOB).toString("hex")}'`;
    const waiting = async (change: string) => {
      await root.execute("BEGIN");
      await root.execute(change);
      stores.sent.length = 0;
      const sequence = ++next;
      const added = stores.archives.append(
        [...messagesOf(ALICE, sequence), ...messagesOf(BOB, sequence)],
        NOW,
      );
      const blocked = server().kind.blocked(database);
      await until(async () => (await server().asRoot(blocked)).length > 0, {
        what: "the statement waits for the row",
        withinMs: 30_000,
      });
      await root.execute("COMMIT");
      assert.deepEqual(await added, ["stored", "stored"]);
      return stores.sent.length;
    };
    let next = 1;
    try {
      for (let i = 0; i < CUSTOM_PLANS + 3; i++) {
        const later = NOW + 1_000 * i;
        const change = `UPDATE archives SET last_position = last_position + 10, ` +
          `visible_at = ${later} WHERE ${row}`;
        assert.equal(await waiting(change), 1);
        const [found] = await server().asRoot(
          `SELECT last_position, visible_at, most_late FROM archives WHERE ${row}`,
          database,
        );
        assert.deepEqual(
          Object.values(found!).map(Number),
          [1 + 11 * (i + 1), later, later - NOW],
        );
        const [message] = await server().asRoot(
          `SELECT position, visible_at FROM archive_messages WHERE ${row} AND sequence = ${next}`,
          database,
        );
        assert.deepEqual(Object.values(message!).map(Number), [1 + 11 * (i + 1), later]);
      }
      // The archive goes, and begins anew.
      const removal =
        `DELETE FROM archive_messages WHERE ${row}; DELETE FROM archives WHERE ${row}`;
      assert.ok(await waiting(removal) > 1);
      assert.deepEqual(await stores.read(BOB), [next]);
    } finally {
      await root.close();
    }
  });

  Deno.test(`${name}: archives: statements of several nodes store each message once, in one order`, async () => {
    const options = await preparedDatabase(server());
    await using one = new NotingStores(options);
    await using other = new NotingStores(options);
    const names = [ALICE, BOB, CAROL];
    await one.add(...names.flatMap((each) => messagesOf(each, 0)));
    one.sent.length = 0;
    const rounds = 40;
    const write = async (stores: NotingStores, first: number) => {
      for (let round = 0; round < rounds; round++) {
        const sequence = first + round;
        const order = round % 2 === 0 ? names : names.toReversed();
        const messages = order.flatMap((each) => messagesOf(each, sequence));
        assert.deepEqual(await stores.archives.append(messages, NOW), messages.map(() => "stored"));
      }
    };
    await Promise.all([
      write(one, 1_000),
      write(one, 2_000),
      write(other, 3_000),
      write(other, 4_000),
      // Devices of one person at both nodes: each stores what it delivers.
      write(one, 5_000),
      write(other, 5_000),
    ]);
    assert.ok(!one.sent.includes("BEGIN"), "no statement got in the way of another");
    for (const each of names) {
      const found = await one.read(each);
      assert.equal(new Set(found).size, 5 * rounds + 1);
      assert.equal(found.length, 5 * rounds + 1);
      for (const first of [1_000, 2_000, 3_000, 4_000, 5_000]) {
        const own = found.filter((sequence) => Math.trunc(sequence / 1_000) === first / 1_000);
        assert.deepEqual(own, Array.from({ length: rounds }, (_, i) => first + i));
      }
      assert.deepEqual(await one.read(each, "quick"), found);
    }
  });
}
