import { DatabaseSync } from "node:sqlite";
import { createHash } from "node:crypto";
import { InternalStore } from "../src/storage/mod.ts";
import { conformanceCredentials } from "../src/storage/testing/user_store_conformance.ts";

const ACCOUNTS = 1000;

await Deno.mkdir(".tmp", { recursive: true });
const directory = await Deno.makeTempDir({ dir: ".tmp", prefix: "storage-bench-" });
globalThis.addEventListener("unload", () => Deno.removeSync(directory, { recursive: true }));
const path = `${directory}/store.sqlite`;
const store = await InternalStore.open({ path });
const users = store.users("example.com");
for (let i = 0; i < ACCOUNTS; i++) await users.add(`user${i}`, conformanceCredentials(i));

const driver = new DatabaseSync(path);
const statement = driver.prepare(
  "SELECT * FROM users WHERE account_key >= ? ORDER BY account_key LIMIT 1",
);
const keyOf = (localpart: string) =>
  createHash("sha256").update(`${localpart}@example.com`).digest();
let turn = 0;
const next = () => `user${turn++ % ACCOUNTS}`;

Deno.bench("the driver alone: the row of an account", { group: "read", baseline: true }, () => {
  statement.all(keyOf(next()));
});

Deno.bench("UserStore.credentials()", { group: "read" }, async () => {
  await users.credentials(next());
});

Deno.bench("UserStore.exists()", { group: "read" }, async () => {
  await users.exists(next());
});
