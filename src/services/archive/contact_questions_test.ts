import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { CausewayError, ManualClock, Pauses } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { ContactQuestions } from "./contact_questions.ts";

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** Rosters that answer when the test says so. */
function open() {
  const clock = new ManualClock();
  const pauses = new Pauses(clock);
  const asked: string[] = [];
  const questions: PromiseWithResolvers<boolean>[] = [];
  const rosters = new ContactQuestions({
    isContact: ({ localpart }, contact) => {
      asked.push(`${localpart} ${contact.localpart}`);
      const question = Promise.withResolvers<boolean>();
      questions.push(question);
      return question.promise;
    },
    pauses,
    logger: SILENT_LOGGER,
    clock,
  });
  const jid = (name: string) => parseJid(`${name}@example.com`).bare;
  /** Answers of calls, in the order in which they came. */
  const answers: string[] = [];
  const ask = (account: string, contact: string, name = `${account} ${contact}`) =>
    rosters.ask(
      jid(account),
      jid(contact),
      (isContact) => void answers.push(`${name} ${isContact}`),
    );
  return { rosters, pauses, clock, asked, questions, answers, ask, jid };
}

Deno.test("ContactQuestions asks one roster once at a time, and others meanwhile", async () => {
  const { rosters, asked, questions, answers, ask } = open();
  for (const [account, contact] of [["bob", "a"], ["bob", "b"], ["carol", "a"]] as const) {
    ask(account, contact);
  }
  await turn();
  deepStrictEqual([asked, rosters.waiting], [["bob a", "carol a"], 3]);
  questions[1]!.resolve(true);
  await turn();
  questions[0]!.resolve(true);
  await turn();
  deepStrictEqual(asked, ["bob a", "carol a", "bob b"]);
  questions[2]!.resolve(false);
  await turn();
  deepStrictEqual(answers, ["carol a true", "bob a true", "bob b false"]);
  strictEqual(rosters.waiting, 0);
});

Deno.test("ContactQuestions asks about a contact once for all calls that wait, and keeps their order", async () => {
  const { asked, questions, answers, ask } = open();
  const calls = [["a", "1"], ["a", "2"], ["b", "3"], ["a", "4"]] as const;
  for (const [contact, name] of calls) ask("bob", contact, name);
  await turn();
  // The roster may have got the contact after the question.
  ask("bob", "a", "5");
  for (const isContact of [false, false, true]) {
    questions.at(-1)!.resolve(isContact);
    await turn();
  }
  deepStrictEqual(asked, ["bob a", "bob b", "bob a"]);
  deepStrictEqual(answers, ["1 false", "2 false", "3 false", "4 false", "5 true"]);
});

Deno.test("ContactQuestions asks a roster that fails again, and others in its pause", async () => {
  const { rosters, clock, asked, questions, answers, ask, jid } = open();
  for (let i = 0; i < 5; i++) ask(`account${i}`, "a");
  await turn();
  strictEqual(asked.length, 4);
  questions[0]!.reject(new Error("away"));
  await turn();
  deepStrictEqual(asked.slice(4), ["account4 a"]);
  for (const question of questions.slice(1)) question.resolve(true);
  await turn();
  strictEqual(rosters.isLate(jid("account0")), false);
  clock.advance(1_000);
  await turn();
  strictEqual(rosters.isLate(jid("account0")), true);
  strictEqual(rosters.isLate(jid("account1")), false);
  deepStrictEqual(asked.slice(5), ["account0 a"]);
  questions[5]!.resolve(true);
  await turn();
  strictEqual(rosters.isLate(jid("account0")), false);
  strictEqual(answers.at(-1), "account0 a true");
});

Deno.test("ContactQuestions answers no more than a roster can tell whose item is damaged", async () => {
  const { rosters, clock, asked, questions, answers, ask, jid } = open();
  for (const [contact, name] of [["a", "1"], ["b", "2"], ["a", "3"]] as const) {
    ask("bob", contact, name);
  }
  await turn();
  questions[0]!.reject(new CausewayError("storage/corrupt", "damaged"));
  await turn();
  deepStrictEqual([asked, answers], [["bob a", "bob b"], ["1 undefined"]]);
  questions[1]!.resolve(true);
  await turn();
  deepStrictEqual(answers.slice(1), ["2 true", "3 undefined"]);
  clock.advance(1_000);
  deepStrictEqual([rosters.waiting, rosters.isLate(jid("bob"))], [0, false]);
});

Deno.test("ContactQuestions gives one place to a roster that hangs, and none to calls that were taken back", async () => {
  const { asked, questions, answers, ask } = open();
  for (let i = 0; i < 6; i++) ask("bob", `${i}`);
  for (const name of ["carol", "dave", "erin"]) ask(name, "a");
  const takeBack = ask("frank", "a");
  await turn();
  strictEqual(asked.length, 4);
  takeBack();
  for (const question of questions.slice(1)) question.resolve(true);
  await turn();
  deepStrictEqual(answers, ["carol a true", "dave a true", "erin a true"]);
  ask("grace", "a");
  await turn();
  deepStrictEqual(asked.slice(4), ["grace a"]);
});

Deno.test("ContactQuestions asks a roster that fails once more when pauses are closed", async () => {
  const { pauses, asked, questions, answers, ask } = open();
  for (const contact of ["a", "b"]) ask("bob", contact);
  await turn();
  questions[0]!.reject(new Error("away"));
  await turn();
  pauses.close();
  await turn();
  deepStrictEqual([asked, answers], [["bob a", "bob a"], []]);
  questions[1]!.reject(new Error("away"));
  await turn();
  deepStrictEqual([asked.length, answers], [2, ["bob a undefined", "bob b undefined"]]);
});

Deno.test("ContactQuestions.close() ends all calls", async () => {
  const { rosters, asked, answers, ask } = open();
  for (const contact of ["a", "b"]) ask("bob", contact);
  await turn();
  rosters.close();
  ask("bob", "c");
  deepStrictEqual(answers, ["bob a undefined", "bob b undefined", "bob c undefined"]);
  await turn();
  deepStrictEqual(asked, ["bob a"]);
});
