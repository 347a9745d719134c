import type { AdminTraceListener, AdminTraces } from "../api/trace_routes.ts";
import type { TraceStepAnswer } from "../api/trace_schemas.ts";

const HERE = { node: "node1@dc1.example.com", datacenter: "dc1.example.com" };
const THERE = { node: "node1@fra1.example.com", datacenter: "fra1.example.com" };
const LATE = { node: "node2@sto7.example.com", datacenter: "sto7.example.com" };

/** Traces that all tell of three stanzas at once, and go on until they are stopped. */
export function modelTraces(): AdminTraces {
  return {
    addressOf: (text) => text,
    isFull: false,
    open({ address }, listener) {
      tell(address, listener);
      return { endsAtMs: Date.parse("2026-11-25T10:42:00Z"), stop: () => listener.ended(0) };
    },
  };
}

function tell(address: string, listener: AdminTraceListener): void {
  listener.node({ ...THERE, state: "watching", missed: 0 });
  listener.node({ ...LATE, state: "forbidden", missed: 0 });
  const stanza = (id: string, parts: Partial<TraceStepAnswer>) => {
    let ms = 0;
    return (
      at: { readonly node: string; readonly datacenter: string },
      step: TraceStepAnswer["step"],
      text: string,
    ) =>
      listener.step({
        ...{ at: `2026-11-25T10:32:01.4${String(ms++).padStart(2, "0")}Z`, ...at, stanza: id },
        ...{ kind: "message", type: "chat", from: `${address}/phone`, to: "bob@example.com" },
        ...{ bytes: 214, step, text, ...parts },
      });
  };
  const delivered = stanza("a-1", {});
  delivered(HERE, "accepted", "entered the mesh here");
  delivered(HERE, "looked-up", "found at fra1.example.com, says the cache");
  delivered(HERE, "queued", "queued for fra1.example.com, lane 1, number 512");
  delivered(HERE, "written", "written to the link, lane 1, number 512");
  delivered(THERE, "arrived", "arrived from dc1.example.com, number 512");
  delivered(THERE, "delivered", "delivered here");
  delivered(HERE, "settled", "settled: delivered");
  const bounced = stanza("a-2", { to: "carol@example.com" });
  bounced(HERE, "accepted", "entered the mesh here");
  bounced(HERE, "held", "bounces: retry 1 in 200 ms");
  const answered = stanza("a-3", {
    kind: "iq",
    type: "get",
    to: "nobody@example.com/x",
    bytes: 96,
  });
  answered(HERE, "accepted", "entered the mesh here");
  answered(HERE, "answered", "answered with an error: service-unavailable");
}
