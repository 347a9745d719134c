import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { RosterQuestions } from "./roster_questions.ts";

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Rosters that answer when the test says so. */
function open() {
  const clock = new ManualClock();
  const asked: string[] = [];
  const answers: ((isContact: boolean) => void)[] = [];
  const rosters = new RosterQuestions({
    isContact: ({ localpart }, contact) => {
      asked.push(`${localpart} ${contact.localpart}`);
      return new Promise((resolve) => void answers.push(resolve));
    },
    clock,
  });
  const jid = (name: string) => parseJid(`${name}@example.com`).bare;
  const ask = (account: string, contact: string) => rosters.ask(jid(account), jid(contact));
  return { clock, asked, answers, ask };
}

Deno.test("RosterQuestions asks one roster once at a time, and others meanwhile", async () => {
  const { asked, answers, ask } = open();
  const [first, second, other] = [ask("bob", "a"), ask("bob", "b"), ask("carol", "a")];
  await turn();
  deepStrictEqual(asked, ["bob a", "carol a"]);
  answers[1]!(true);
  strictEqual(await other, true);
  answers[0]!(true);
  strictEqual(await first, true);
  await turn();
  deepStrictEqual(asked, ["bob a", "carol a", "bob b"]);
  answers[2]!(false);
  strictEqual(await second, false);
});

Deno.test("RosterQuestions gives up all that has waited for too long, and asks few at a time", async () => {
  const { clock, asked, answers, ask } = open();
  const questions = [ask("bob", "a"), ask("bob", "b")];
  for (let i = 0; i < 5; i++) questions.push(ask(`account${i}`, "a"));
  const failed = questions.map((question) => rejects(question, { code: "offline/roster-late" }));
  await turn();
  strictEqual(asked.length, 4);
  clock.advance(5_000);
  await Promise.all(failed);
  const next = ask("bob", "c");
  await turn();
  strictEqual(asked.length, 4, "rosters that do not answer keep their places");
  for (const answer of answers) answer(true);
  await turn();
  deepStrictEqual(asked.slice(4), ["bob c"], "nobody waits for the others");
  answers.at(-1)!(true);
  strictEqual(await next, true);
});

Deno.test("RosterQuestions gives one place to a roster that hangs, whoever else waits for it", async () => {
  const { clock, asked, answers, ask } = open();
  for (let i = 0; i < 6; i++) {
    const late = rejects(ask("bob", "a"), { code: "offline/roster-late" });
    clock.advance(5_000);
    await late;
  }
  deepStrictEqual(asked, ["bob a"]);
  const others = ["carol", "dave", "erin"].map((name) => ask(name, "a"));
  await turn();
  strictEqual(asked.length, 4);
  for (const answer of answers.slice(1)) answer(true);
  deepStrictEqual(await Promise.all(others), [true, true, true]);
  const last = ask("bob", "z");
  await turn();
  strictEqual(asked.length, 4);
  answers[0]!(true);
  await turn();
  deepStrictEqual(asked.slice(4), ["bob z"]);
  answers.at(-1)!(false);
  strictEqual(await last, false);
});
