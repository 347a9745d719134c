import assert from "node:assert/strict";
import type { TraceNode, TraceStepAnswer } from "./api_types.ts";
import { sampleStep } from "../testing/sample_step.ts";
import { addNode, addStep, EMPTY_TRACE, fateOf, type TraceLog } from "./trace_log.ts";

function logOf(...steps: readonly Partial<TraceStepAnswer>[]): TraceLog {
  return steps.reduce((log, step) => addStep(log, sampleStep(step)), EMPTY_TRACE);
}

Deno.test("addStep() puts the steps of a stanza together, by time, and the newest stanza first", () => {
  const log = logOf(
    { at: "2026-11-25T10:32:01.000Z", step: "accepted" },
    { at: "2026-11-25T10:32:01.900Z", step: "delivered", node: "node1@dc2.example.com" },
    { at: "2026-11-25T10:32:01.400Z", step: "written" },
    { at: "2026-11-25T10:32:01.400Z", step: "received" },
    { stanza: "b-1" },
  );
  assert.deepEqual(log.stanzas.map(({ id, number }) => [id, number]), [["b-1", 2], ["a-1", 1]]);
  assert.deepEqual(log.stanzas[1]!.steps.map(({ step }) => step), [
    "accepted",
    "written",
    "received",
    "delivered",
  ]);
});

Deno.test("addStep() keeps 100 stanzas, and 100 steps of each", () => {
  const many = logOf(...Array.from({ length: 101 }, (_, index) => ({ stanza: `s-${index}` })));
  assert.equal(many.stanzas.length, 100);
  assert.equal(many.seen, 101);
  assert.deepEqual([many.stanzas[0]!.id, many.stanzas.at(-1)!.id], ["s-100", "s-1"]);
  const long = logOf(...Array.from({ length: 103 }, () => ({})));
  assert.deepEqual([long.stanzas[0]!.steps.length, long.stanzas[0]!.dropped], [100, 3]);
});

Deno.test("addNode() keeps the last word of each node", () => {
  const node = (name: string, state: TraceNode["state"]): TraceNode => ({
    node: name,
    datacenter: "dc2.example.com",
    state,
    missed: 0,
  });
  const log = [node("n2", "asked"), node("n1", "asked"), node("n2", "watching")]
    .reduce(addNode, EMPTY_TRACE);
  assert.deepEqual(log.nodes.map(({ node, state }) => [node, state]), [
    ["n1", "asked"],
    ["n2", "watching"],
  ]);
});

Deno.test("fateOf() says how far a stanza is, and whether that is bad", () => {
  const rows: readonly (readonly [readonly Partial<TraceStepAnswer>[], string, string])[] = [
    [[{}], "info", "on its way"],
    [[{}, { step: "held" }], "warning", "bounces"],
    [[{}, { step: "held" }, { step: "delivered" }], "good", "delivered"],
    [[{}, { step: "stored" }], "good", "stored"],
    [[{}, { step: "taken" }], "good", "taken by a service"],
    [[{}, { step: "dropped", reason: "expired" }], "bad", "dropped: expired"],
    [
      [{}, { step: "not-delivered" }, { step: "answered", reason: "service-unavailable" }],
      "bad",
      "answered with an error: service-unavailable",
    ],
  ];
  for (const [steps, state, text] of rows) {
    assert.deepEqual(fateOf(logOf(...steps).stanzas[0]!), { state, text });
  }
});
