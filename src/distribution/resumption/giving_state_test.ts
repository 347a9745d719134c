import assert from "node:assert/strict";
import fc from "fast-check";
import type { GivingEvent, GivingState } from "./giving_state.ts";
import { stepGiving } from "./giving_state.ts";

const EVENTS: readonly GivingEvent[] = [
  { kind: "covered" },
  { kind: "waited" },
  { kind: "have", step: "more" },
  { kind: "have", step: "commit" },
  { kind: "have", step: "taken" },
  { kind: "have", step: "decline" },
  { kind: "checked", isElsewhere: false },
  { kind: "checked", isElsewhere: true },
  { kind: "late" },
  { kind: "lost" },
  { kind: "linked" },
  { kind: "ended", reason: "superseded" },
  { kind: "left" },
  { kind: "settled" },
  { kind: "peer-gone", isCertain: true },
  { kind: "peer-gone", isCertain: false },
];

/** Plays events; returns the final state, and all actions. */
function play(...events: readonly GivingEvent[]): { state: GivingState["kind"]; done: string[] } {
  let state: GivingState = { kind: "covering" };
  const done: string[] = [];
  for (const event of events) {
    const step = stepGiving(state, event);
    state = step.state;
    for (const action of step.actions) {
      const reason = action.kind === "tell-end" ? ` ${action.reason}` : "";
      const repeat = action.kind === "give-back" && action.mayBeRepeat ? " as repeats" : "";
      done.push(action.kind + reason + repeat);
    }
  }
  return { state: state.kind, done };
}

const COVERED: GivingEvent = { kind: "covered" };
const COMMIT: GivingEvent = { kind: "have", step: "commit" };
const OURS: GivingEvent = { kind: "checked", isElsewhere: false };
const TAKEN: GivingEvent = { kind: "have", step: "taken" };
const DECLINE: GivingEvent = { kind: "have", step: "decline" };

Deno.test("stepGiving() gives a session away on commit, and ends when all is settled", () => {
  const { state, done } = play(
    COVERED,
    { kind: "have", step: "more" },
    COMMIT,
    OURS,
    TAKEN,
    { kind: "left" },
    { kind: "settled" },
  );
  assert.equal(state, "over");
  assert.deepEqual(done, [
    "send-session",
    "send-more",
    "check",
    "give",
    "tell-given",
    "send-more",
    "leave-when-known",
    "give-back",
    "tell-end done",
  ]);
});

for (
  const [name, event, expected] of [
    ["declines", DECLINE, ["thaw"]],
    ["cannot be reached", { kind: "lost" }, ["thaw"]],
    ["is gone", { kind: "peer-gone", isCertain: true }, ["thaw"]],
    ["takes too long", { kind: "late" }, ["thaw", "tell-end late"]],
    ["sends taken before GIVEN", TAKEN, ["thaw", "tell-end other"]],
  ] as const
) {
  Deno.test(`stepGiving() takes the session back from a taker that ${name} before it is given`, () => {
    for (const before of [[], [COVERED], [COVERED, COMMIT]]) {
      const { state, done } = play(...before, event);
      assert.equal(state, "over");
      assert.deepEqual(done.slice(-expected.length), expected);
      assert.ok(!done.includes("give"));
    }
  });
}

Deno.test("stepGiving() reports a session that has ended by itself, and does not take it back", () => {
  for (const before of [[], [COVERED], [COVERED, COMMIT]]) {
    const { done } = play(...before, { kind: "ended", reason: "ended" });
    assert.equal(done.at(-1), "tell-end ended");
    assert.ok(!done.includes("thaw"));
  }
});

Deno.test("stepGiving() does not give a session away after a login elsewhere with its resource", () => {
  const { state, done } = play(COVERED, COMMIT, { kind: "checked", isElsewhere: true });
  assert.equal(state, "over");
  assert.deepEqual(done.slice(-2), ["thaw", "tell-end ended"]);
});

Deno.test("stepGiving() never takes a given session back: its stanzas are settled or routed again", () => {
  const given = [COVERED, COMMIT, OURS];
  assert.deepEqual(play(...given, DECLINE).done.at(-1), "give-back");
  assert.deepEqual(play(...given, TAKEN, DECLINE).done.at(-1), "give-back as repeats");
  assert.deepEqual(play(...given, { kind: "lost" }, { kind: "late" }).state, "given");
  assert.deepEqual(play(...given, { kind: "lost" }, { kind: "linked" }).done.at(-1), "tell-given");
  const gone = (isCertain: boolean) => play(...given, TAKEN, { kind: "peer-gone", isCertain });
  assert.equal(gone(true).done.at(-1), "give-back");
  assert.equal(gone(false).done.at(-1), "give-back as repeats");
});

Deno.test("stepGiving() ends only when no stanza comes here any more and all are settled", () => {
  const taken = [COVERED, COMMIT, OURS, TAKEN];
  assert.equal(play(...taken, { kind: "settled" }).state, "taken");
  assert.equal(play(...taken, { kind: "left" }).state, "taken");
  assert.equal(play(...taken, { kind: "settled" }, { kind: "left" }).state, "taken");
  assert.equal(play(...taken, { kind: "left" }, { kind: "settled" }).state, "over");
});

Deno.test("stepGiving() ends every session once: taken back, reported, or given back", () => {
  fc.assert(fc.property(fc.array(fc.constantFrom(...EVENTS), { maxLength: 30 }), (events) => {
    const { state, done } = play(...events);
    const ends = done.filter((each) => each === "thaw" || each.startsWith("give-back"));
    assert.ok(ends.length <= 1);
    const given = done.indexOf("give");
    assert.ok(!done.includes("thaw") || given === -1);
    assert.ok(ends[0]?.startsWith("give-back") !== true || given !== -1);
    if (state !== "over") assert.deepEqual(ends, []);
    assert.equal(done.filter((each) => each === "give").length, given === -1 ? 0 : 1);
  }));
});
