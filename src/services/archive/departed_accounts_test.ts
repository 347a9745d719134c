import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchiveStore } from "../../storage/mod.ts";
import { archiveKeyOf } from "../../storage/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { DepartedAccounts } from "./departed_accounts.ts";

const HOST = "example.com";

/** Accounts and archives that the test changes. */
function open() {
  const clock = new ManualClock();
  const accounts = new Map([["alice", "0a"], ["bob", "0b"]]);
  const asked: (readonly string[])[] = [];
  const removals: string[] = [];
  const left = new Map<string, number>();
  const state = { isDown: false, isDirectory: false, removed: 0 };
  const departed = new DepartedAccounts({
    existing: (host, localparts) => {
      strictEqual(host, HOST);
      asked.push(localparts);
      return state.isDown ? Promise.reject(new Error("away")) : Promise.resolve(accounts);
    },
    keepsAll: () => state.isDirectory,
    storeOf: () => ({
      removeBefore: ({ archive }, limit) => {
        removals.push(archive!);
        const some = Math.min(left.get(archive!) ?? 0, limit);
        left.set(archive!, (left.get(archive!) ?? 0) - some);
        return Promise.resolve(some);
      },
    } as Pick<ArchiveStore, "removeBefore"> as ArchiveStore),
    removed: { inc: (by = 1) => state.removed += by },
    clock,
    logger: SILENT_LOGGER,
  });
  const note = (name: string, creation: string) => {
    const { bare } = parseJid(`${name}@${HOST}`);
    departed.note(bare, archiveKeyOf(bare.text, creation));
  };
  const look = async () => {
    clock.advance(10_000);
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { accounts, asked, removals, left, state, departed, note, look };
}

Deno.test("DepartedAccounts removes what was stored for an account that is gone, and nothing else", async () => {
  const { accounts, asked, removals, left, state, note, look } = open();
  for (const creation of ["0a", "0a", "09"]) note("alice", creation);
  note("bob", "0b");
  note("carol", "0c");
  left.set("alice@example.com 09", 20_001);
  await look();
  deepStrictEqual(asked, [["alice", "bob", "carol"]]);
  const gone = ["alice@example.com 09", "carol@example.com 0c"];
  deepStrictEqual(removals, [gone[0], gone[0], gone[0], gone[0], gone[1]]);
  strictEqual(state.removed, 20_001);
  await look();
  strictEqual(asked.length, 1, "each is looked up once after a message");
  accounts.set("carol", "0c");
  note("carol", "0c");
  await look();
  strictEqual(removals.length, 5);
});

Deno.test("DepartedAccounts leaves an archive alone whose key has no creation", async () => {
  const { removals, left, departed, note, look } = open();
  left.set("carol@example.com", 20_001);
  note("carol", "");
  note("dave", "0d");
  await look();
  note("carol", "");
  await departed.close();
  deepStrictEqual(removals, ["dave@example.com 0d"]);
});

Deno.test("DepartedAccounts keeps the archives of a directory's accounts, whatever it finds", async () => {
  const { asked, removals, state, departed, note } = open();
  state.isDirectory = true;
  note("carol", "0c");
  await departed.close();
  deepStrictEqual([asked, removals], [[], []]);
});

Deno.test("DepartedAccounts looks again when the database failed, and when it is closed", async () => {
  const { asked, removals, state, departed, note, look } = open();
  state.isDown = true;
  note("alice", "01");
  await look();
  deepStrictEqual(removals, []);
  state.isDown = false;
  await look();
  deepStrictEqual(removals, ["alice@example.com 01"]);
  note("bob", "02");
  await departed.close();
  deepStrictEqual(removals[1], "bob@example.com 02");
  strictEqual(asked.length, 3);
});

Deno.test("DepartedAccounts looks at once when many wait, some hundred with a question", async () => {
  const { asked, note, departed } = open();
  for (let i = 0; i < 60_000; i++) note(`user${i}`, "0a");
  await departed.close();
  strictEqual(asked.length, 120);
  strictEqual(Math.max(...asked.map(({ length }) => length)), 500);
});
