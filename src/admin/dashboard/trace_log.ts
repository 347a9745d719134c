import type { TraceNode, TraceStepAnswer } from "./api_types.ts";

/** Stanzas that the page keeps, and steps of one of them. */
const MAX_STANZAS = 100;
const MAX_STEPS = 100;

/** One stanza of a trace, with its steps at all nodes. */
export interface TracedStanza {
  readonly id: string;
  /** Place in the order in which stanzas were first seen; from 1. */
  readonly number: number;
  /** Its first step, which names kind, addresses and length. */
  readonly first: TraceStepAnswer;
  /** By time. */
  readonly steps: readonly TraceStepAnswer[];
  /** Further steps, which are not kept. */
  readonly dropped: number;
}

/** Everything that a trace has told. */
export interface TraceLog {
  readonly nodes: readonly TraceNode[];
  /** Newest first. */
  readonly stanzas: readonly TracedStanza[];
  /** Stanzas seen, including those that are no longer kept. */
  readonly seen: number;
  /** Steps that nodes had to leave out, because there were too many. */
  readonly missed: number;
}

export const EMPTY_TRACE: TraceLog = { nodes: [], stanzas: [], seen: 0, missed: 0 };

/** Adds what a node says of the trace itself. */
export function addNode(log: TraceLog, node: TraceNode): TraceLog {
  const others = log.nodes.filter((each) => each.node !== node.node);
  const nodes = [...others, node].toSorted((one, other) => one.node < other.node ? -1 : 1);
  return { ...log, nodes };
}

/** Adds a step. Nodes tell their steps apart from one another, so the time decides their order. */
export function addStep(log: TraceLog, step: TraceStepAnswer): TraceLog {
  const known = log.stanzas.find(({ id }) => id === step.stanza);
  if (known === undefined) {
    const number = log.seen + 1;
    const stanza = { id: step.stanza, number, first: step, steps: [step], dropped: 0 };
    return { ...log, seen: number, stanzas: [stanza, ...log.stanzas].slice(0, MAX_STANZAS) };
  }
  const isFull = known.steps.length >= MAX_STEPS;
  const changed: TracedStanza = isFull
    ? { ...known, dropped: known.dropped + 1 }
    : { ...known, steps: inserted(known.steps, step) };
  return { ...log, stanzas: log.stanzas.map((each) => each === known ? changed : each) };
}

/** Fate of a stanza as far as it is known, with the state whose mark stands for it. */
export function fateOf(
  { steps }: TracedStanza,
): { readonly state: "good" | "warning" | "bad" | "info"; readonly text: string } {
  const last = (...names: readonly TraceStepAnswer["step"][]) =>
    steps.findLast(({ step }) => names.includes(step));
  const answered = last("answered");
  if (answered !== undefined) {
    return { state: "bad", text: withReason("answered with an error", answered) };
  }
  if (last("delivered", "acknowledged") !== undefined) return { state: "good", text: "delivered" };
  if (last("stored") !== undefined) return { state: "good", text: "stored" };
  if (last("taken") !== undefined) return { state: "good", text: "taken by a service" };
  const dropped = last("dropped", "refused");
  if (dropped !== undefined) return { state: "bad", text: withReason(dropped.step, dropped) };
  if (last("held") !== undefined) return { state: "warning", text: "bounces" };
  return { state: "info", text: "on its way" };
}

function withReason(text: string, { reason }: TraceStepAnswer): string {
  return reason === undefined ? text : `${text}: ${reason}`;
}

function inserted(
  steps: readonly TraceStepAnswer[],
  step: TraceStepAnswer,
): readonly TraceStepAnswer[] {
  const at = steps.findLastIndex((each) => each.at <= step.at) + 1;
  return steps.toSpliced(at, 0, step);
}
