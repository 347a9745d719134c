import assert from "node:assert/strict";
import fc from "fast-check";
import type { GivingEvent, GivingState } from "./giving_state.ts";
import { stepGiving } from "./giving_state.ts";
import type { TakingEvent, TakingState } from "./taking_state.ts";
import { stepTaking } from "./taking_state.ts";

/** Plays events; returns the final state, and all actions. */
function play(...events: readonly TakingEvent[]): { state: TakingState["kind"]; done: string[] } {
  let state: TakingState = { kind: "asking", hops: 0 };
  const done: string[] = [];
  for (const event of events) {
    const step = stepTaking(state, event);
    state = step.state;
    for (const action of step.actions) done.push(describe(action));
  }
  return { state: state.kind, done };
}

function describe(action: ReturnType<typeof stepTaking>["actions"][number]): string {
  switch (action.kind) {
    case "tell":
      return `tell ${action.step}`;
    case "fail":
      return `fail ${action.reason}`;
    default:
      return action.kind;
  }
}

const SESSION: TakingEvent = { kind: "session" };
const PIECE: TakingEvent = { kind: "queue", isEnd: false };
const END: TakingEvent = { kind: "queue", isEnd: true };
const GIVEN: TakingEvent = { kind: "given" };
const MOVED: TakingEvent = { kind: "end", reason: "moved" };

Deno.test("stepTaking() asks for more until the end, commits, and has the session once it is given", () => {
  const { state, done } = play(SESSION, PIECE, PIECE, END, END, GIVEN, { kind: "placed" }, END);
  assert.equal(state, "taken");
  assert.deepEqual(done, [
    "tell more",
    "tell more",
    "tell commit",
    "tell commit",
    "arrive",
    "tell taken",
    "tell taken",
  ]);
});

for (
  const [event, expected] of [
    [{ kind: "lost" }, ["tell decline", "fail lost"]],
    [{ kind: "late" }, ["tell decline", "fail timeout"]],
    [{ kind: "stopped" }, ["tell decline", "fail stopped"]],
    [{ kind: "broken", reason: "too-large" }, ["tell decline", "fail too-large"]],
    [{ kind: "end", reason: "stale" }, ["fail stale"]],
  ] as const
) {
  Deno.test(`stepTaking() fails on ${event.kind} as long as the session is not given`, () => {
    for (const before of [[], [SESSION], [SESSION, PIECE], [SESSION, END]]) {
      const { state, done } = play(...before, event);
      assert.equal(state, "over");
      assert.deepEqual(done.slice(-expected.length), expected);
    }
  });
}

Deno.test("stepTaking() fails when the client goes before it commits, and goes on after that", () => {
  for (const before of [[], [SESSION], [SESSION, PIECE]]) {
    const { state, done } = play(...before, { kind: "gone" });
    assert.equal(state, "over");
    assert.deepEqual(done.slice(-2), ["tell decline", "fail client-gone"]);
  }
  assert.equal(play(SESSION, END, { kind: "gone" }).state, "committing");
  assert.equal(play(SESSION, END, { kind: "gone" }, GIVEN).state, "placing");
  assert.equal(play(SESSION, END, { kind: "gone" }, { kind: "late" }).state, "over");
});

Deno.test("stepTaking() places a given session, whatever becomes of link and client meanwhile", () => {
  const given = [SESSION, END, GIVEN];
  for (const kind of ["lost", "late", "gone"] as const) {
    assert.equal(play(...given, { kind }).state, "placing");
    assert.equal(play(...given, { kind }, { kind: "placed" }).done.at(-1), "tell taken");
  }
  assert.deepEqual(play(...given, { kind: "unplaced" }).done.slice(-2), [
    "tell decline",
    "fail no-place",
  ]);
});

Deno.test("stepTaking() follows END moved four times, and no more", () => {
  const times = (count: number) => play(...Array<TakingEvent>(count).fill(MOVED));
  assert.deepEqual(times(4), { state: "asking", done: Array(4).fill("ask-on") });
  assert.equal(times(5).state, "over");
  assert.equal(times(5).done.at(-1), "fail moved");
});

Deno.test("stepTaking() refuses a node that keeps no order", () => {
  assert.equal(play(GIVEN).done.at(-1), "fail refused");
  assert.equal(play(END).done.at(-1), "fail refused");
  assert.equal(play(SESSION, GIVEN).done.at(-1), "fail refused");
  assert.equal(play(SESSION, SESSION).done.at(-1), "fail refused");
});

Deno.test("stepTaking() declines a session that is given after its transfer has ended", () => {
  assert.equal(play(SESSION, END, { kind: "late" }, GIVEN).done.at(-1), "tell decline");
});

// ---- both ends, over a link that loses frames on their way when it breaks --------------------

type Message =
  | { readonly to: "giver"; readonly event: GivingEvent }
  | { readonly to: "taker"; readonly event: TakingEvent };

/** Both nodes, the link between them, and the fate of the session. */
class Pair {
  giver: GivingState = { kind: "covering" };
  taker: TakingState = { kind: "asking", hops: 0 };
  readonly flying: Message[] = [];
  isLinked = true;
  /**
   * Outcome: the session is the giver's again, is at the taker, or its stanzas were routed again.
   */
  isThawed = false;
  isPlaced = false;
  isGivenBack = false;
  isChecking = false;

  giverStep(event: GivingEvent): void {
    const { state, actions } = stepGiving(this.giver, event);
    this.giver = state;
    for (const action of actions) {
      if (action.kind === "thaw") this.isThawed = true;
      if (action.kind === "give-back") this.isGivenBack = true;
      if (action.kind === "check") this.isChecking = true;
      if (action.kind === "send-session") {
        this.#fly({ to: "taker", event: { kind: "session" } });
        this.#fly({ to: "taker", event: { kind: "queue", isEnd: true } });
      }
      if (action.kind === "tell-given") this.#fly({ to: "taker", event: { kind: "given" } });
      if (action.kind === "tell-end") {
        this.#fly({ to: "taker", event: { kind: "end", reason: action.reason } });
      }
    }
  }

  takerStep(event: TakingEvent): void {
    const { state, actions } = stepTaking(this.taker, event);
    this.taker = state;
    for (const action of actions) {
      if (action.kind === "tell") {
        this.#fly({ to: "giver", event: { kind: "have", step: action.step } });
      }
    }
    if (event.kind === "placed" && state.kind === "taken") this.isPlaced = true;
  }

  arrive(at: number): void {
    if (this.flying.length === 0) return;
    // Each direction keeps its order.
    const message = this.flying[at % this.flying.length]!;
    const first = this.flying.find(({ to }) => to === message.to)!;
    this.flying.splice(this.flying.indexOf(first), 1);
    if (first.to === "giver") this.giverStep(first.event);
    else this.takerStep(first.event);
  }

  cut(): void {
    if (!this.isLinked) return;
    this.isLinked = false;
    this.flying.length = 0;
    this.giverStep({ kind: "lost" });
    this.takerStep({ kind: "lost" });
  }

  heal(): void {
    if (this.isLinked) return;
    this.isLinked = true;
    this.giverStep({ kind: "linked" });
    this.takerStep({ kind: "news" });
  }

  #fly(message: Message): void {
    if (this.isLinked) this.flying.push(message);
  }
}

type Move = { readonly kind: string; readonly at: number };

const MOVES = [
  "arrive",
  "arrive",
  "arrive",
  "arrive",
  "cut",
  "heal",
  "late",
  "gone",
  "stopped",
  "step",
];

function apply(pair: Pair, { kind, at }: Move): void {
  switch (kind) {
    case "arrive":
      return pair.arrive(at);
    case "cut":
      return pair.cut();
    case "heal":
      return pair.heal();
    case "late":
      return at % 2 === 0 ? pair.giverStep({ kind: "late" }) : pair.takerStep({ kind: "late" });
    case "gone":
    case "stopped":
      return pair.takerStep({ kind });
    default:
      return settleOwn(pair, at % 3 === 0);
  }
}

/** Does the work that each node owes itself. */
function settleOwn(pair: Pair, cannotPlace = false): void {
  if (pair.giver.kind === "covering") pair.giverStep({ kind: "covered" });
  if (pair.isChecking) {
    pair.isChecking = false;
    pair.giverStep({ kind: "checked", isElsewhere: false });
  }
  if (pair.taker.kind === "placing") {
    pair.takerStep({ kind: cannotPlace ? "unplaced" : "placed" });
  }
}

Deno.test("a session is at one node, or its stanzas are routed again, whichever frames are lost on the way", () => {
  const move = fc.record({ kind: fc.constantFrom(...MOVES), at: fc.nat(20) });
  const outcomes = new Set<string>();
  fc.assert(
    fc.property(fc.array(move, { maxLength: 40 }), (moves) => {
      const pair = new Pair();
      for (const each of moves) {
        apply(pair, each);
        const has = [pair.isThawed, pair.isPlaced, pair.isGivenBack].filter((each) => each);
        assert.ok(has.length <= 1, "it is in two places");
      }
      // In the end the link holds, and everybody has time.
      pair.heal();
      for (let turn = 0; turn < 50; turn++) {
        settleOwn(pair);
        pair.arrive(turn);
      }
      if (pair.taker.kind !== "taken") {
        pair.takerStep({ kind: "late" });
        pair.giverStep({ kind: "late" });
        for (let turn = 0; turn < 50; turn++) pair.arrive(turn);
      }
      const { isThawed, isPlaced, isGivenBack } = pair;
      const isOne = [isThawed, isPlaced, isGivenBack].filter((each) => each).length === 1;
      assert.ok(isOne, `${JSON.stringify({ isThawed, isPlaced, isGivenBack })}`);
      outcomes.add(isThawed ? "thawed" : isPlaced ? "placed" : "given back");
    }),
    { numRuns: 5000 },
  );
  assert.deepEqual([...outcomes].toSorted(), ["given back", "placed", "thawed"]);
});
