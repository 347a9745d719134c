import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { AbsentAccounts } from "./absent_accounts.ts";

const MESSAGE: Stanza = {
  kind: "message",
  type: "chat",
  from: parseJid("alice@example.com"),
  to: parseJid("bob@example.com"),
  bytes: new Uint8Array(),
};

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** A database that answers when the test says so. */
function open() {
  const clock = new ManualClock();
  const asked: string[] = [];
  const open: { resolve(exists: boolean): void; reject(error: Error): void }[] = [];
  let isBlocked = false;
  const accounts = new AbsentAccounts({
    creationOf: async ({ text }) => {
      asked.push(text);
      const { promise, ...answer } = Promise.withResolvers<boolean>();
      open.push(answer);
      return await promise ? "0a" : undefined;
    },
    refusalsFor: () => Promise.resolve(() => isBlocked),
    clock,
  });
  const ask = async (name: string) => {
    const { kind, ...rest } = await accounts.receptionOf(
      parseJid(`${name}@example.com`).bare,
      MESSAGE,
    );
    deepStrictEqual(rest, kind === "taken" ? { creation: "0a" } : {});
    return kind;
  };
  return { clock, asked, open, ask, block: () => isBlocked = true };
}

Deno.test("AbsentAccounts asks about an account once at a time, and remembers the answer for a while", async () => {
  const { clock, asked, open: questions, ask, block } = open();
  const answers = Promise.all([ask("bob"), ask("bob"), ask("bob")]);
  strictEqual(asked.length, 1);
  questions.shift()!.resolve(true);
  deepStrictEqual(await answers, ["taken", "taken", "taken"]);
  clock.advance(1_999);
  block();
  strictEqual(await ask("bob"), "blocked");
  strictEqual(asked.length, 1);
  clock.advance(1);
  const again = ask("bob");
  strictEqual(asked.length, 2);
  questions.shift()!.resolve(false);
  strictEqual(await again, "missing");
});

Deno.test("AbsentAccounts asks again for those who call once there may be an account", async () => {
  const { asked, open: questions, ask } = open();
  const [first, second, third] = [ask("bob"), ask("bob"), ask("bob")];
  questions.shift()!.resolve(false);
  strictEqual(await first, "missing");
  await turn();
  strictEqual(asked.length, 2, "the other two share the next question");
  const fourth = ask("bob");
  questions.shift()!.resolve(false);
  deepStrictEqual(await Promise.all([second, third]), ["missing", "missing"]);
  await turn();
  questions.shift()!.resolve(true); // it was made meanwhile
  strictEqual(await fourth, "taken");
  strictEqual(await ask("bob"), "taken");
  strictEqual(asked.length, 3);
});

Deno.test("AbsentAccounts asks about few accounts at a time, in order", async () => {
  const { asked, open: questions, ask } = open();
  const names = Array.from({ length: 12 }, (_, i) => `account${i}`);
  const answers = names.map(ask);
  let most = 0;
  while (questions.length > 0) {
    most = Math.max(most, questions.length);
    questions.shift()!.resolve(true);
    await turn();
  }
  strictEqual(most, 4);
  deepStrictEqual(await Promise.all(answers), names.map(() => "taken"));
  deepStrictEqual(asked, names.map((name) => `${name}@example.com`));
});

Deno.test("AbsentAccounts tells everybody who waits that the database fails, and asks again", async () => {
  const { asked, open: questions, ask } = open();
  const answers = [ask("bob"), ask("bob")];
  const failed = answers.map((answer) => rejects(answer, /away/));
  questions.shift()!.reject(new Error("away"));
  await Promise.all(failed);
  const again = ask("bob");
  questions.shift()!.resolve(true);
  strictEqual(await again, "taken");
  strictEqual(asked.length, 2);
});
