import assert from "node:assert/strict";
import { CausewayError } from "../base/mod.ts";
import { parseAccountAddress } from "./accounts.ts";
import type { TakingAccounts } from "./import_users.ts";
import { importUsers } from "./import_users.ts";
import { parseUserList } from "./user_list.ts";

/** Adds the accounts of a list of 40, and returns the result, and the first lines that failed. */
async function importedWith(add: (localpart: string) => Promise<void>) {
  const accounts: TakingAccounts = {
    address: (text) => parseAccountAddress(text, ["example.com"]),
    add: ({ localpart }) => add(localpart),
    put: async ({ localpart }) => {
      await add(localpart);
      return { wasReserved: false };
    },
  };
  const lines = Array.from({ length: 40 }, (_, i) => `user${i + 1}@example.com,secret`);
  const told: string[] = [];
  const result = await importUsers(accounts, parseUserList(lines.join("\n")), {
    replacesExisting: false,
    told: (message) => told.push(message),
  });
  return { ...result, told };
}

Deno.test("importUsers() ends when a database takes no account of a batch", async () => {
  const away = new CausewayError("storage/unreachable", "it is away", { retryable: true });
  const { told, ...result } = await importedWith((localpart) =>
    Number(localpart.slice("user".length)) > 20 ? Promise.reject(away) : Promise.resolve()
  );
  assert.deepEqual(result, { imported: 20, failed: 20, left: 0 });
  assert.equal(told[0], "line 21: it is away");
  const atOnce = await importedWith(() => Promise.reject(away));
  assert.deepEqual([atOnce.imported, atOnce.failed, atOnce.left], [0, 16, 24]);
  assert.equal(atOnce.told.length, 16);
});

Deno.test("importUsers() goes on behind accounts that cannot be added, and tells of each at once", async () => {
  const there = new CausewayError("storage/user-exists", "the account exists");
  const { told, ...result } = await importedWith(() => Promise.reject(there));
  assert.deepEqual(result, { imported: 0, failed: 40, left: 0 });
  assert.equal(told.length, 40);
});
