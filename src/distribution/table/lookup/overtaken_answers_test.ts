import assert from "node:assert/strict";
import { OvertakenAnswers } from "./overtaken_answers.ts";

const BOB = "bob@example.com";
const CAROL = "carol@example.com";

Deno.test("OvertakenAnswers.isOvertaken() is true for questions asked before the name changed", () => {
  const answers = new OvertakenAnswers();
  const before = answers.begin();
  answers.changed(BOB);
  const after = answers.begin();
  assert.deepEqual(
    [BOB, CAROL].map((name) => [before, after].map((each) => answers.isOvertaken(name, each))),
    [[true, false], [false, false]],
  );
});

Deno.test("OvertakenAnswers.allChanged() overtakes all pending questions, and no later ones", () => {
  const answers = new OvertakenAnswers();
  const before = answers.begin();
  answers.allChanged();
  assert.ok(answers.isOvertaken(BOB, before));
  assert.ok(!answers.isOvertaken(BOB, answers.begin()));
});

Deno.test("OvertakenAnswers remembers a change while a question from before it is pending", () => {
  const answers = new OvertakenAnswers();
  const [first, second] = [answers.begin(), answers.begin()];
  answers.changed(BOB);
  const third = answers.begin();
  answers.changed(CAROL);
  answers.end(second); // out of order, as a pool of connections answers
  assert.ok(answers.isOvertaken(BOB, first));
  answers.end(first);
  assert.ok(answers.isOvertaken(CAROL, third));
  answers.end(third);
  answers.changed(BOB); // no question is pending
  assert.ok(!answers.isOvertaken(BOB, answers.begin()));
});

Deno.test("OvertakenAnswers remembers 10 000 names, and takes all as changed with one more", () => {
  for (const [count, isOvertaken] of [[10_000, false], [10_001, true]] as const) {
    const answers = new OvertakenAnswers();
    const question = answers.begin();
    for (let n = 0; n < count; n++) answers.changed(`user${n}@example.com`);
    assert.equal(answers.isOvertaken(BOB, question), isOvertaken);
    assert.ok(answers.isOvertaken("user0@example.com", question));
  }
});
