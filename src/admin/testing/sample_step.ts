import type { TraceStepAnswer } from "../api/trace_schemas.ts";

/** Returns the first step of a message from alice to bob; `parts` replace some of it. */
export function sampleStep(parts: Partial<TraceStepAnswer> = {}): TraceStepAnswer {
  return {
    at: "2026-11-25T10:32:01.418Z",
    node: "node1@dc1.example.com",
    datacenter: "dc1.example.com",
    stanza: "a-1",
    kind: "message",
    type: "chat",
    from: "alice@example.com/phone",
    to: "bob@example.com",
    bytes: 214,
    step: "accepted",
    text: "entered the mesh here",
    ...parts,
  };
}
