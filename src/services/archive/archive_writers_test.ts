import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchiveStore } from "../../storage/mod.ts";
import { conformanceArchived } from "../../storage/testing/archive_store_conformance.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { ArchiveWriters } from "./archive_writers.ts";

const ACCOUNTS = Array.from({ length: 20 }, (_, i) => parseJid(`user${i}@example.com`).bare);

/** Writers of a store that answers when the test says so. */
function open(batchesAtOnce?: number) {
  const batches: { readonly archives: readonly string[]; answer(): void }[] = [];
  const store = {
    batchesAtOnce,
    append: (messages: readonly ArchivedMessage[]) =>
      new Promise<readonly ArchiveOutcome[]>((resolve) => {
        const archives = messages.map(({ archive }) => archive);
        batches.push({ archives, answer: () => resolve(messages.map(() => "stored")) });
      }),
  };
  const writers = new ArchiveWriters({
    store: store as unknown as ArchiveStore, // writers only add
    logger: SILENT_LOGGER,
    clock: new ManualClock(),
  });
  const done: string[] = [];
  let sequence = 0;
  const add = (account: typeof ACCOUNTS[number]) => {
    const archive = account.text;
    const message = conformanceArchived(++sequence, { archive });
    writers.of(account).add({ message, late: () => {}, done: () => void done.push(archive) });
  };
  return { writers, batches, done, add };
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

Deno.test("ArchiveWriters send a store one batch, unless it takes several", async () => {
  const { writers, batches, add } = open();
  for (const account of ACCOUNTS) add(account);
  await turn();
  strictEqual(batches.length, 1);
  strictEqual(batches[0]!.archives.length, ACCOUNTS.length);
  batches[0]!.answer();
  await writers.close();
});

Deno.test("ArchiveWriters have no batch wait for one with other accounts' messages", async () => {
  const { writers, batches, done, add } = open(2);
  for (const account of ACCOUNTS) add(account);
  strictEqual(writers.pending, ACCOUNTS.length);
  await turn();
  strictEqual(batches.length, 2);
  const [first, second] = batches.map(({ archives }) => new Set(archives));
  ok(first!.isDisjointFrom(second!));
  for (const account of ACCOUNTS) add(account);
  batches[1]!.answer();
  await turn();
  strictEqual(batches.length, 3, "the first one has no answer yet");
  deepStrictEqual(new Set(batches[2]!.archives), second);
  deepStrictEqual(new Set(done), second);
  batches[2]!.answer();
  batches[0]!.answer();
  await turn();
  deepStrictEqual(new Set(batches[3]!.archives), first, "an account keeps its writer");
  batches[3]!.answer();
  await writers.close();
  strictEqual(done.length, 2 * ACCOUNTS.length);
  strictEqual(writers.pending, 0);
});
