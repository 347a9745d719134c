import assert from "node:assert/strict";
import { sampleStep } from "../admin/testing/sample_step.ts";
import { TraceLines } from "./trace_command.ts";

const STEP = sampleStep();

Deno.test("TraceLines.of() names a stanza once, and numbers the steps of each", () => {
  const lines = new TraceLines();
  const of = (data: object) => lines.of({ name: "step", data: { ...STEP, ...data } });
  assert.deepEqual(of({}), [
    "[1] message chat, 214 bytes, from alice@example.com/phone to bob@example.com",
    "[1] 10:32:01.418  node1@dc1.example.com  entered the mesh here",
  ]);
  assert.equal(of({ stanza: "a-2", kind: "iq", type: "get" })[0]!.slice(0, 10), "[2] iq get");
  assert.deepEqual(of({ text: "delivered here", node: "node1@dc2.example.com" }), [
    "[1] 10:32:01.418  node1@dc2.example.com  delivered here",
  ]);
});

Deno.test("TraceLines.of() shows no control characters that a peer has sent", () => {
  const lines = new TraceLines().of({ name: "step", data: { ...STEP, text: "\u001b[2Jgone" } });
  assert.match(lines[1]!, / \[2Jgone$/);
  assert.ok(!lines.join("").includes("\u001b"));
});

Deno.test("TraceLines.of() says how other nodes answer, and what was missed", () => {
  const lines = new TraceLines();
  const node = (state: string, missed = 0) =>
    lines.of({ name: "node", data: { ...STEP, state, missed } })[0];
  assert.deepEqual(
    [
      node("asked"),
      node("watching"),
      node("watching", 3),
      node("forbidden"),
      node("busy"),
      node("ended"),
      node("ended", 3),
    ],
    [
      "node1@dc1.example.com is asked",
      "node1@dc1.example.com traces too",
      "node1@dc1.example.com has missed 3 steps, as there were too many",
      "node1@dc1.example.com: dc1.example.com does not allow the trace",
      "node1@dc1.example.com has too many traces already",
      "node1@dc1.example.com traces no longer",
      "node1@dc1.example.com traces no longer; it missed 3 steps, as there were too many",
    ],
  );
  assert.deepEqual(lines.of({ name: "missed", data: { steps: 7 } }), [
    "(7 steps missed: there were too many)",
  ]);
});
