/// <reference lib="dom" />
import { useEffect, useRef, useState } from "preact/hooks";
import type { AdminClient } from "./admin_client.ts";
import type { Caller, TraceBegun, TraceNode, TraceStepAnswer } from "./api_types.ts";
import { JidInput } from "./jid_input.tsx";
import { StatusMark } from "./status_mark.tsx";
import { countOf, formatTime } from "./text.ts";
import type { TracedStanza, TraceLog } from "./trace_log.ts";
import { addNode, addStep, EMPTY_TRACE, fateOf } from "./trace_log.ts";

/** Milliseconds between two drawings while steps come. */
const DRAW_MS = 150;
const SPANS = [["60", "1 minute"], ["600", "10 minutes"], ["3600", "1 hour"]] as const;

type Phase =
  | { readonly kind: "none" }
  | { readonly kind: "asking"; readonly jid: string }
  | { readonly kind: "running"; readonly jid: string; readonly endsAt: string }
  | { readonly kind: "ended"; readonly jid: string; readonly why: string }
  | { readonly kind: "failed"; readonly message: string };

/** An address that another card asks to trace. A new object asks again. */
export interface TraceWish {
  readonly jid: string;
}

/** Follows an address: what becomes of each stanza from and to it, at every node, as it happens. */
export function TraceCard({ client, caller, wish }: {
  readonly client: AdminClient;
  /** Undefined until the node has said who asks. */
  readonly caller: Caller | undefined;
  readonly wish: TraceWish | undefined;
}) {
  const [phase, setPhase] = useState<Phase>({ kind: "none" });
  const [log, setLog] = useState<TraceLog>(EMPTY_TRACE);
  const trace = useRef<AbortController | undefined>(undefined);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => () => trace.current?.abort(), []);
  useEffect(() => {
    if (wish === undefined || input.current === null) return;
    input.current.value = wish.jid;
    input.current.scrollIntoView({ block: "center" });
    input.current.focus();
  }, [wish]);
  const isRunning = phase.kind === "asking" || phase.kind === "running";

  const follow = async (jid: string, seconds: string) => {
    trace.current?.abort();
    const abort = trace.current = new AbortController();
    setPhase({ kind: "asking", jid });
    let newest = EMPTY_TRACE;
    setLog(newest);
    let drawing: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      drawing = undefined;
      if (trace.current === abort) setLog(newest);
    };
    const path = `/api/v1/trace/${encodeURIComponent(jid)}?for=${seconds}`;
    let end: Phase = { kind: "ended", jid, why: "the node has gone away" };
    try {
      for await (const { name, data } of client.events(path, abort.signal)) {
        const said: unknown = JSON.parse(data); // the API keeps to its description
        if (name === "begun") {
          const { address, endsAt } = said as TraceBegun;
          setPhase({ kind: "running", jid: address, endsAt });
        } else if (name === "node") newest = addNode(newest, said as TraceNode);
        else if (name === "step") newest = addStep(newest, said as TraceStepAnswer);
        else if (name === "missed") {
          const { steps } = said as { readonly steps: number };
          newest = { ...newest, missed: newest.missed + steps };
        } else if (name === "full") {
          end = { kind: "failed", message: "There are too many traces already" };
        } else if (name === "ended") end = { kind: "ended", jid, why: "its time is over" };
        drawing ??= setTimeout(draw, DRAW_MS);
      }
    } catch (thrown) {
      end = abort.signal.aborted
        ? { kind: "ended", jid, why: "it was stopped" }
        : { kind: "failed", message: (thrown as Error).message };
    }
    clearTimeout(drawing);
    if (trace.current !== abort) return; // another one has begun
    setLog(newest);
    setPhase(end);
  };
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (isRunning) return trace.current?.abort();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const jid = String(form.get("jid")).trim();
    if (jid !== "") void follow(jid, String(form.get("for"))); // it handles its own failures
  };
  const isForbidden = caller?.role === "read";
  return (
    <section class="card trace" aria-labelledby="trace-title">
      <h2 id="trace-title">Trace an address</h2>
      <p class="note" id="trace-note">
        {isForbidden
          ? "A trace needs a token of the role act. The token of this page may only read."
          : "Shows what becomes of each stanza from and to an address, at every node. Contents " +
            "are never shown, and the audit log names who traced whom."}
      </p>
      <form onSubmit={submit} aria-describedby="trace-note">
        <label for="trace-jid">JID</label>
        <JidInput id="trace-jid" input={input} isDisabled={isForbidden} />
        <span class="field">
          <label for="trace-for">for</label>
          <select id="trace-for" name="for" disabled={isForbidden}>
            {SPANS.map(([seconds, text]) => (
              <option key={seconds} value={seconds} selected={seconds === "600"}>{text}</option>
            ))}
          </select>
        </span>
        <button type="submit" disabled={isForbidden}>{isRunning ? "Stop" : "Trace"}</button>
      </form>
      <p role="status">
        <PhaseText phase={phase} />
      </p>
      {log.nodes.length > 0 && <Nodes nodes={log.nodes} />}
      {phase.kind !== "none" && phase.kind !== "failed" && <Stanzas log={log} />}
    </section>
  );
}

function PhaseText({ phase }: { readonly phase: Phase }) {
  switch (phase.kind) {
    case "none":
      return null;
    case "asking":
      return <>Asking for a trace of {phase.jid} …</>;
    case "running":
      return (
        <StatusMark
          state="good"
          text={`Tracing ${phase.jid} until ${formatTime(phase.endsAt)}`}
        />
      );
    case "ended":
      return <StatusMark state="idle" text={`The trace of ${phase.jid} has ended: ${phase.why}`} />;
    case "failed":
      return <StatusMark state="bad" text={phase.message} />;
    default:
      return phase satisfies never;
  }
}

const NODE_STATES: Readonly<Record<TraceNode["state"], readonly [state: string, text: string]>> = {
  asked: ["waiting", "is asked"],
  watching: ["good", "traces too"],
  forbidden: ["bad", "does not allow it"],
  busy: ["warning", "has too many traces"],
  ended: ["idle", "has ended"],
};

function Nodes({ nodes }: { readonly nodes: readonly TraceNode[] }) {
  return (
    <ul class="trace-nodes" aria-label="Other nodes">
      {nodes.map(({ node, state, missed }) => (
        <li key={node}>
          <span>{node}</span>
          <StatusMark
            state={NODE_STATES[state][0]}
            text={NODE_STATES[state][1] + (missed > 0 ? `, ${countOf(missed, "step")} missed` : "")}
          />
        </li>
      ))}
    </ul>
  );
}

function Stanzas({ log: { stanzas, seen, missed } }: { readonly log: TraceLog }) {
  if (stanzas.length === 0) return <p class="empty">No stanza has come or gone yet.</p>;
  return (
    <>
      <p class="note">
        {countOf(seen, "stanza")}, newest first
        {seen > stanzas.length && `; the last ${stanzas.length} are below`}
        {missed > 0 && `; ${countOf(missed, "step")} left out, as there were too many`}
      </p>
      <ol class="rows stanzas scroll tall" tabIndex={0} aria-label="Stanzas of the trace">
        {stanzas.map((stanza) => <Stanza key={stanza.id} stanza={stanza} />)}
      </ol>
    </>
  );
}

function Stanza({ stanza }: { readonly stanza: TracedStanza }) {
  const { number, first, steps, dropped } = stanza;
  const fate = fateOf(stanza);
  return (
    <li>
      <details open={number === 1}>
        <summary>
          <span class="stanza-head">
            <span class="name">{number}. {first.kind} {first.type}</span>
            <StatusMark state={fate.state} text={fate.text} />
          </span>
          <span class="note">
            {first.from === "" ? "no sender" : first.from} →{" "}
            {first.to === "" ? "the server" : first.to}
            {" · "}
            {countOf(first.bytes, "byte")}
          </span>
        </summary>
        <ol class="steps">
          {steps.map((step, index) => (
            <li key={index}>
              <time dateTime={step.at}>{timeOf(step.at)}</time>
              <span class="step-node">{step.node}</span>
              <span class="step-text">{step.text}</span>
            </li>
          ))}
          {dropped > 0 && <li class="note">{countOf(dropped, "further step")}</li>}
        </ol>
      </details>
    </li>
  );
}

/** Time of day with milliseconds, which tell the steps of one stanza apart. */
function timeOf(time: string): string {
  return `${formatTime(time)}.${time.slice(20, 23)}`;
}
