import assert from "node:assert/strict";
import fc from "fast-check";
import { COMPONENT_NAMESPACE, STREAM_NAMESPACE } from "../stream/namespaces.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";
import type { ComponentEvent, ComponentState } from "./component_state.ts";
import { stepComponent } from "./component_state.ts";

const DOMAIN = "echo.example.com";

const HEADER: StreamHeader = {
  name: "stream",
  namespace: STREAM_NAMESPACE,
  contentNamespace: COMPONENT_NAMESPACE,
  to: DOMAIN,
  from: undefined,
  id: undefined,
  version: undefined,
  lang: undefined,
  prefixes: [],
};

const STATES: readonly ComponentState[] = [
  { kind: "opening" },
  { kind: "proving", domain: DOMAIN },
  { kind: "registering", domain: DOMAIN },
  { kind: "open", domain: DOMAIN },
  { kind: "ending" },
  { kind: "closed" },
];

const EVENTS: readonly ComponentEvent[] = [
  { kind: "header", header: HEADER },
  { kind: "handshake", isRight: true },
  { kind: "handshake", isRight: false },
  { kind: "stanza" },
  { kind: "foreign" },
  { kind: "registered" },
  { kind: "footer" },
  { kind: "fail", condition: "connection-timeout" },
  { kind: "dismiss", condition: "system-shutdown" },
];

function step(state: ComponentState, event: ComponentEvent) {
  return stepComponent(state, event, (domain) => domain === DOMAIN);
}

/** Returns the next state and one word for each action; an error is named by its condition. */
function outcome(state: ComponentState, event: ComponentEvent): string {
  const { state: next, actions } = step(state, event);
  const words = actions.map((action) =>
    action.kind === "stream-error" ? action.condition : action.kind
  );
  return [next.kind, ...words].join(" ");
}

Deno.test("stepComponent() answers every event in every state", () => {
  const rows = STATES.map((state) => [state.kind, EVENTS.map((event) => outcome(state, event))]);
  const timedOut = "closed connection-timeout end";
  const shutDown = "closed system-shutdown end";
  assert.deepEqual(Object.fromEntries(rows), {
    opening: [
      "proving send-header",
      "closed send-header bad-format end",
      "closed send-header bad-format end",
      "closed send-header bad-format end",
      "closed send-header bad-format end",
      "closed send-header bad-format end",
      "closed end",
      "closed send-header connection-timeout end",
      "closed send-header system-shutdown end",
    ],
    proving: [
      "closed bad-format end",
      "registering hold register",
      "closed refuse not-authorized end",
      "closed not-authorized end",
      "closed not-authorized end",
      "closed not-authorized end",
      "closed end",
      timedOut,
      shutDown,
    ],
    registering: [
      "closed policy-violation end",
      "closed policy-violation end",
      "closed policy-violation end",
      "closed policy-violation end",
      "closed policy-violation end",
      "open accept release",
      "closed end",
      timedOut,
      shutDown,
    ],
    open: [
      "closed bad-format end",
      "closed unsupported-stanza-type end",
      "closed unsupported-stanza-type end",
      "open",
      "closed unsupported-stanza-type end",
      "closed unsupported-stanza-type end",
      "closed end",
      timedOut,
      "ending system-shutdown end-output",
    ],
    ending: EVENTS.map(({ kind }) => kind === "stanza" ? "ending" : "closed end"),
    closed: EVENTS.map(() => "closed"),
  });
});

Deno.test("stepComponent() accepts a header for a domain that it serves, and names the fault of others", () => {
  const cases: readonly (readonly [Partial<StreamHeader>, string])[] = [
    [{ to: "Echo.Example.COM" }, "proving send-header"],
    [{ version: "0.9" }, "proving send-header"],
    [{ to: "other.example.com" }, "closed send-header host-unknown end"],
    [{ to: undefined }, "closed send-header improper-addressing end"],
    [{ to: `x@${DOMAIN}` }, "closed send-header improper-addressing end"],
    [{ contentNamespace: "jabber:client" }, "closed send-header invalid-namespace end"],
    [{ namespace: "urn:x" }, "closed send-header invalid-namespace end"],
    [{ name: "strom" }, "closed send-header bad-format end"],
  ];
  for (const [fields, expected] of cases) {
    const header = { ...HEADER, ...fields };
    assert.equal(outcome({ kind: "opening" }, { kind: "header", header }), expected);
  }
});

Deno.test("stepComponent() opens a stream for the domain of its header, and keeps to it", () => {
  let state: ComponentState = { kind: "opening" };
  const domains: unknown[] = [];
  for (const event of [EVENTS[0]!, EVENTS[1]!, EVENTS[5]!]) {
    const next = step(state, event);
    state = next.state;
    for (const action of next.actions) if ("domain" in action) domains.push(action.domain);
  }
  assert.deepEqual(state, { kind: "open", domain: DOMAIN });
  assert.deepEqual(domains, [DOMAIN, DOMAIN], "in the header, and to be registered");
});

Deno.test("stepComponent() accepts at most once, only after the right handshake, and ends once", () => {
  fc.assert(fc.property(fc.array(fc.constantFrom(...EVENTS)), (events) => {
    let state: ComponentState = { kind: "opening" };
    const done: string[] = [];
    let isProven = false;
    for (const event of events) {
      isProven ||= state.kind === "proving" && event.kind === "handshake" && event.isRight;
      const next = step(state, event);
      state = next.state;
      done.push(...next.actions.map(({ kind }) => kind));
    }
    const count = (kind: string) => done.filter((each) => each === kind).length;
    assert.ok(count("accept") <= (isProven ? 1 : 0));
    assert.ok(count("send-header") <= 1);
    assert.equal(count("end"), state.kind === "closed" ? 1 : 0);
    assert.ok(count("end") === 0 || done.at(-1) === "end");
  }));
});
