import type { AdminTraces, TraceStepAnswer } from "../../admin/mod.ts";
import type { Step, TracedNode, Tracing } from "../../distribution/tracing/mod.ts";
import { parseJid, tryParseJid } from "../../xmpp/mod.ts";

/** Makes the traces that the admin API begins. */
export function makeTraces(tracing: Tracing): AdminTraces {
  return {
    addressOf: (text) => tryParseJid(text)?.text,
    get isFull() {
      return tracing.isFull;
    },
    open: ({ address, forMs, who }, listener) =>
      tracing.open({ jid: parseJid(address), forMs, who }, {
        step: (at, step) => listener.step(answerOf(at, step)),
        node: (at, state, missed) => listener.node({ ...at, state, missed }),
        ended: (missed) => listener.ended(missed),
      }),
  };
}

function answerOf(at: TracedNode, step: Step): TraceStepAnswer {
  const { atUs, process, sequence, stanzaBytes, kind, type, from, to } = step;
  const { place, source, reason, lane, number, retry, waitMs } = step;
  return {
    at: new Date(atUs / 1000).toISOString(),
    ...at,
    stanza: `${process.toString(36)}-${sequence}`,
    kind,
    type,
    from,
    to,
    bytes: stanzaBytes,
    step: step.step,
    text: textOf(step),
    ...(place !== undefined && { place }),
    ...(source !== undefined && { source }),
    ...(reason !== undefined && { reason }),
    ...(lane !== undefined && { lane }),
    ...(number !== undefined && { number }),
    ...(retry !== undefined && { retry }),
    ...(waitMs !== undefined && { waitMs }),
  };
}

/** Returns a step in a sentence. */
export function textOf(step: Step): string {
  const { place, source, reason, lane, number, retry, waitMs } = step;
  const inLane = lane === undefined ? "" : `, lane ${lane}, number ${number ?? "unknown"}`;
  switch (step.step) {
    case "accepted":
      return reason === "owed"
        ? "made here, as the error that answers a stanza"
        : reason === "resent"
        ? "entered the mesh here, perhaps for the second time"
        : "entered the mesh here";
    case "arrived":
      return `arrived from ${place ?? "another node"}${number ? `, number ${number}` : ""}`;
    case "refused":
      return `refused on arrival from ${place ?? "another node"}: ${reason ?? "no reason"}`;
    case "waiting":
      return `waits ${reason ?? ""}`.trimEnd();
    case "looked-up":
      return `${place === undefined ? "nobody is found" : `found at ${place}`}, says ${
        source === "redis" ? "the session table" : "the cache"
      }`;
    case "held":
      return `bounces: retry ${retry ?? 1}${waitMs === undefined ? "" : ` in ${waitMs} ms`}`;
    case "queued":
      return `queued for ${place ?? "another node"}${inLane}`;
    case "moved":
      return `moved to another endpoint${inLane}`;
    case "written":
      return `written to the link${inLane}`;
    case "received":
      return `received by the next node${inLane}`;
    case "returned":
      return `came back: ${reason ?? "no reason"}`;
    case "delivered":
      return "delivered here";
    case "not-delivered":
      return `not delivered here: ${reason ?? "nobody takes it"}`;
    case "kept":
      return "waits for the client's acknowledgement";
    case "acknowledged":
      return "acknowledged by the client";
    case "stored":
      return source === "offline" ? "stored until the next login" : "stored in the archive";
    case "taken":
      return `taken over by ${source ?? "a service"}`;
    case "answered":
      return `answered with the error ${reason ?? "unknown"} (${source ?? "no reason"})`;
    case "dropped":
      return `dropped: ${reason ?? "no reason"}`;
    case "settled":
      return "settled: its fate is final here";
    case "other":
      return "took a step that this version does not know";
    default:
      return step.step satisfies never;
  }
}
