import assert from "node:assert/strict";
import { ArchiveAccount, archiveFindings, archiveLine, findings, Ledger } from "./mod.ts";

const [ANN, BEN] = ["ann@x", "ben@x"];

/** A ledger with one flow of `count` messages from ann to ben, all delivered or none. */
function setUp(count: number, { isDelivered = true } = {}) {
  const clock = { nowMs: 0 };
  const ledger = new Ledger(() => clock.nowMs);
  const flow = ledger.open(`${ANN}/load`, `${BEN}/load`, BEN);
  for (let seq = 0; seq < count; seq++) {
    ledger.sending(flow);
    clock.nowMs++;
    if (isDelivered) ledger.arrived(`${BEN}/load`, { flow: 0, seq });
  }
  const account = new ArchiveAccount(ledger);
  const stored = (owner: string, ...seqs: number[]) => {
    for (const seq of seqs) account.stored(owner, { flow: 0, seq });
  };
  return { ledger, account, stored };
}

Deno.test("ArchiveAccount finds nothing where both archives have each message once", () => {
  const { account, stored } = setUp(3);
  for (const owner of [ANN, BEN]) stored(owner, 0, 1, 2);
  const balance = account.balance();
  assert.deepEqual(archiveFindings(balance), []);
  assert.equal(archiveLine(balance), "archives: 6 due, 6 kept, 0 lost, 0 doubled, 0 strays");
});

Deno.test("ArchiveAccount finds exactly the planted losses, duplicates and strays", () => {
  const { account, stored } = setUp(4);
  stored(ANN, 0, 2, 3);
  stored(BEN, 0, 1, 1, 2, 2);
  stored("cat@x", 0);
  stored(ANN, 4);
  account.stray();
  const balance = account.balance();
  assert.deepEqual(archiveFindings(balance), [
    "2 messages missing in archives",
    "2 messages doubled in archives",
    "3 strays in archives",
  ]);
  assert.equal(balance.examples.length, 4);
  assert.match(balance.examples[0]!, /^missing in the archive of ann@x: L0\.1 /);
});

Deno.test("ArchiveAccount allows two copies of a message that its client wrote again", () => {
  const { ledger, account, stored } = setUp(1);
  ledger.writtenAgain({ flow: 0, seq: 0 });
  stored(ANN, 0, 0);
  stored(BEN, 0);
  assert.deepEqual(account.balance().doubled, { allowed: 1, forbidden: 0 });
});

Deno.test("ArchiveAccount takes a message in its recipient's archive for one that is not lost", () => {
  const { ledger, account, stored } = setUp(2, { isDelivered: false });
  assert.equal(ledger.unsettled(), 2);
  stored(BEN, 0);
  stored(ANN, 1);
  assert.equal(ledger.unsettled(), 1, "ann's own archive is no delivery");
  const all = ledger.balance({ windows: [{ fromMs: 0, toMs: 10 }] });
  assert.equal(all.archived, 1);
  assert.deepEqual(findings(all, { answers: "none" }), ["1 lost"]);
  assert.deepEqual(account.balance().lost, { allowed: 0, forbidden: 1 }, "ann's copy of the first");
});

Deno.test("ArchiveAccount allows the sender's archive alone to miss what it may miss", () => {
  const { account, stored } = setUp(3);
  stored(ANN, 2);
  stored(BEN, 1, 2);
  const { lost } = account.balance((sender, atMs) => sender === `${ANN}/load` && atMs < 1);
  assert.deepEqual(lost, { allowed: 1, forbidden: 2 });
});

Deno.test("archiveFindings() refuses a run in which no archive owed anything", () => {
  assert.deepEqual(archiveFindings(setUp(0).account.balance()), ["no archive owed anything"]);
});
