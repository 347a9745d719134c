import assert from "node:assert/strict";
import fc from "fast-check";
import { BareJid, FullJid } from "../jid/jid.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";
import { CLIENT_NAMESPACE, STREAM_NAMESPACE } from "../stream/namespaces.ts";
import type {
  InlineBind,
  InlineRequests,
  NegotiationAction,
  NegotiationEvent,
  ResumeRequest,
} from "./negotiation_events.ts";
import { NO_FEATURES } from "./negotiation_events.ts";
import type { NegotiationState, NegotiationTerms } from "./negotiation_step.ts";
import { stepNegotiation } from "./negotiation_state.ts";

const HEADER: StreamHeader = {
  name: "stream",
  namespace: STREAM_NAMESPACE,
  contentNamespace: CLIENT_NAMESPACE,
  to: "example.com",
  from: undefined,
  id: undefined,
  version: "1.0",
  lang: undefined,
  prefixes: [],
};

const ENCRYPTED: NegotiationTerms = {
  isManageable: false,
  hasCsi: false,
  startTls: "none",
  mechanisms: ["SCRAM-SHA-256", "PLAIN"],
  withheld: [],
  channelBindings: [],
  hasSasl2: true,
  maxAuthFailures: 3,
  hosts: (domain) => domain === "example.com",
};

const PLAINTEXT: NegotiationTerms = {
  ...ENCRYPTED,
  startTls: "required",
  mechanisms: [],
  withheld: ["SCRAM-SHA-256", "PLAIN"],
};

const ALICE = new BareJid("alice", "example.com");
const FULL = new FullJid(ALICE, "home");

/** Runs events from a fresh stream; returns the last state and, per event, the kinds of its actions. */
function run(
  events: readonly NegotiationEvent[],
  terms: NegotiationTerms,
  from: NegotiationState = { kind: "opening" },
): { state: NegotiationState; actions: NegotiationAction[]; kinds: string[] } {
  let state = from;
  let actions: readonly NegotiationAction[] = [];
  const kinds: string[] = [];
  for (const event of events) {
    ({ state, actions } = stepNegotiation(state, event, terms));
    kinds.push(actions.map((action) => action.kind).join(" "));
  }
  return { state, actions: [...actions], kinds };
}

const NOTHING: InlineRequests = { resume: undefined, bind: undefined };

/** Parts of every `auth` event of RFC 6120. */
const BY_SASL = { kind: "auth", profile: "sasl", inline: NOTHING } as const;

const AUTH: NegotiationEvent = { ...BY_SASL, mechanism: "PLAIN", text: "x" };
const OPEN: NegotiationEvent = { kind: "header", header: HEADER };
const REFUSED: NegotiationEvent = {
  kind: "sasl",
  reply: { kind: "failure", condition: "not-authorized" },
};

Deno.test("stepNegotiation() leads through TLS, authentication and binding", () => {
  const tls = run([OPEN, { kind: "starttls" }, { kind: "secured" }], PLAINTEXT);
  assert.deepEqual(tls.kinds, ["send-header send-features", "proceed", "restart"]);
  const login = run(
    [
      OPEN,
      { ...BY_SASL, mechanism: "SCRAM-SHA-256", text: "first" },
      { kind: "sasl", reply: { kind: "challenge", text: "server-first" } },
      { kind: "response", profile: "sasl", text: "final" },
      { kind: "sasl", reply: { kind: "success", account: ALICE, text: "server-final" } },
      OPEN,
      { kind: "bind", iqId: "b1", resource: "home" },
      { kind: "registered", jid: FULL },
      { kind: "stanza" },
      { kind: "footer" },
    ],
    ENCRYPTED,
    tls.state,
  );
  assert.deepEqual(login.kinds, [
    "send-header send-features",
    "hold authenticate",
    "challenge release",
    "hold respond",
    "success restart release",
    "send-header send-features",
    "hold register",
    "bind-result release",
    "",
    "end",
  ]);
  assert.equal(login.state.kind, "closed");
});

const HEADER_CASES: readonly [what: string, header: Partial<StreamHeader>, condition: string][] = [
  ["another namespace", { namespace: "http://example.com/x" }, "invalid-namespace"],
  ["another content namespace", { contentNamespace: "jabber:server" }, "invalid-namespace"],
  ["another name", { name: "flood" }, "bad-format"],
  ["no version", { version: undefined }, "unsupported-version"],
  ["version 0.9", { version: "0.9" }, "unsupported-version"],
  ["an invalid version", { version: "one" }, "unsupported-version"],
  ["no to", { to: undefined }, "improper-addressing"],
  ["an account as to", { to: "alice@example.com" }, "improper-addressing"],
  ["an invalid to", { to: "@" }, "improper-addressing"],
  ["a foreign host", { to: "example.org" }, "host-unknown"],
];

for (const [what, change, condition] of HEADER_CASES) {
  Deno.test(`stepNegotiation() answers a header with ${what} with ${condition}`, () => {
    const header = { ...HEADER, ...change };
    const { state, actions } = run([{ kind: "header", header }], ENCRYPTED);
    assert.equal(state.kind, "closed");
    assert.deepEqual(actions, [
      { kind: "send-header", host: undefined },
      { kind: "stream-error", condition },
      { kind: "end" },
    ]);
  });
}

Deno.test("stepNegotiation() answers a later version with its own", () => {
  for (const version of ["1.1", "2.0", "01.000"]) {
    const header = { ...HEADER, version };
    assert.equal(run([{ kind: "header", header }], ENCRYPTED).state.kind, "offering");
  }
});

Deno.test("stepNegotiation() normalises the host", () => {
  const { state } = run([{ kind: "header", header: { ...HEADER, to: "EXAMPLE.com" } }], ENCRYPTED);
  assert.deepEqual(state, { kind: "offering", host: "example.com", failures: 0 });
});

Deno.test("stepNegotiation() offers nothing where neither TLS nor plaintext is allowed", () => {
  const { actions } = run([OPEN], { ...PLAINTEXT, startTls: "none" });
  assert.deepEqual(actions, [
    { kind: "send-header", host: "example.com" },
    { kind: "stream-error", condition: "policy-violation" },
    { kind: "end" },
  ]);
});

Deno.test("stepNegotiation() refuses to authenticate before TLS", () => {
  const { state, actions } = run([OPEN, AUTH], PLAINTEXT);
  assert.deepEqual(actions, [
    {
      kind: "sasl-failure",
      profile: "sasl",
      condition: "encryption-required",
      mechanism: undefined,
    },
  ]);
  assert.deepEqual(state, { kind: "offering", host: "example.com", failures: 1 });
});

Deno.test("stepNegotiation() refuses a mechanism that does not exist", () => {
  const { actions } = run([OPEN, { ...BY_SASL, mechanism: "LOGIN", text: "x" }], ENCRYPTED);
  assert.deepEqual(actions, [
    { kind: "sasl-failure", profile: "sasl", condition: "invalid-mechanism", mechanism: undefined },
  ]);
});

Deno.test("stepNegotiation() refuses a second STARTTLS", () => {
  const { state, kinds } = run([OPEN, { kind: "starttls" }], ENCRYPTED);
  assert.equal(state.kind, "closed");
  assert.equal(kinds[1], "tls-failure end");
});

Deno.test("stepNegotiation() allows maxAuthFailures - 1 failures, and ends at one more", () => {
  const attempt = [AUTH, REFUSED];
  const { state } = run([OPEN, ...attempt, ...attempt], ENCRYPTED);
  assert.deepEqual(state, { kind: "offering", host: "example.com", failures: 2 });
  const last = run(attempt, ENCRYPTED, state);
  assert.equal(last.state.kind, "closed");
  assert.deepEqual(last.actions, [
    { kind: "sasl-failure", profile: "sasl", condition: "not-authorized", mechanism: "PLAIN" },
    { kind: "stream-error", condition: "policy-violation" },
    { kind: "end" },
    { kind: "release" },
  ]);
});

Deno.test("stepNegotiation() counts an abort as a failure", () => {
  const { state, actions } = run([
    OPEN,
    AUTH,
    { kind: "sasl", reply: { kind: "challenge", text: "" } },
    { kind: "abort", profile: "sasl" },
  ], ENCRYPTED);
  assert.deepEqual(actions, [
    { kind: "sasl-failure", profile: "sasl", condition: "aborted", mechanism: "PLAIN" },
  ]);
  assert.deepEqual(state, { kind: "offering", host: "example.com", failures: 1 });
});

const MANAGED = { ...ENCRYPTED, isManageable: true };
const RESUME: NegotiationEvent = { kind: "resume", previd: "id", h: 3 };
const ASKED: ResumeRequest = { previd: "id", h: 3 };
const BIND: InlineBind = {
  tag: "x",
  clientId: undefined,
  enable: undefined,
  wantsCarbons: false,
  isInactive: false,
};
const ENABLING: InlineBind = { ...BIND, enable: { isResumable: true, maxSeconds: undefined } };

function authenticate(inline: Partial<InlineRequests>): NegotiationEvent {
  const { resume, bind } = inline;
  return {
    kind: "auth",
    profile: "sasl2",
    mechanism: "PLAIN",
    text: "x",
    inline: { resume, bind },
  };
}

/** Logins by XEP-0388, by what they ask for besides. */
const SASL2_AUTHS = {
  nothing: authenticate({}),
  bind: authenticate({ bind: BIND }),
  enable: authenticate({ bind: ENABLING }),
  resume: authenticate({ resume: ASKED }),
  "resume, else bind": authenticate({ resume: ASKED, bind: ENABLING }),
  "resume without an id": authenticate({ resume: { previd: undefined, h: 0 } }),
} as const;

const SUCCEEDED: NegotiationEvent = {
  kind: "sasl",
  reply: { kind: "success", account: ALICE, text: "server-final" },
};
const GONE: NegotiationEvent = { kind: "resume-failed", condition: "item-not-found", h: 3 };
const REGISTERED: NegotiationEvent = { kind: "registered", jid: FULL };
const NO_ROOM: NegotiationEvent = { kind: "refused", condition: "resource-constraint" };
const RESUMED: NegotiationEvent = { kind: "resumed", jid: FULL };

/** Conversations by XEP-0388: what is asked for, what follows the proof, and the actions for each. */
const SASL2_LOGINS: readonly [
  asked: keyof typeof SASL2_AUTHS,
  then: readonly NegotiationEvent[],
  kinds: readonly string[],
  state: NegotiationState["kind"],
][] = [
  ["nothing", [], ["success2 send-features release"], "binding"],
  ["bind", [REGISTERED], ["register", "success2 send-features release"], "bound"],
  ["bind", [NO_ROOM], ["register", "success2 send-features release"], "binding"],
  ["enable", [REGISTERED], ["register", "success2 send-features release"], "bound"],
  ["resume", [RESUMED], ["resume", "release"], "bound"],
  ["resume", [GONE], ["resume", "success2 send-features release"], "binding"],
  ["resume, else bind", [RESUMED], ["resume", "release"], "bound"],
  [
    "resume, else bind",
    [GONE, REGISTERED],
    ["resume", "register", "success2 send-features release"],
    "bound",
  ],
  [
    "resume, else bind",
    [GONE, NO_ROOM],
    ["resume", "register", "success2 send-features release"],
    "binding",
  ],
  ["resume without an id", [], ["success2 send-features release"], "binding"],
];

for (const [asked, then, kinds, state] of SASL2_LOGINS) {
  const after = then.map(({ kind }) => kind).join(", ") || "nothing";
  Deno.test(`stepNegotiation() leads a SASL2 login with ${asked} to ${state} after ${after}`, () => {
    const login = run([OPEN, SASL2_AUTHS[asked], SUCCEEDED, ...then], MANAGED);
    assert.deepEqual(login.kinds.slice(1), ["hold authenticate", ...kinds]);
    assert.equal(login.state.kind, state);
  });
}

Deno.test("stepNegotiation() answers a SASL2 login with all that became of it, in one <success/>", () => {
  const failed = run(
    [OPEN, SASL2_AUTHS["resume, else bind"], SUCCEEDED, GONE, REGISTERED],
    MANAGED,
  );
  assert.deepEqual(failed.actions.slice(0, 2), [
    {
      kind: "success2",
      jid: FULL,
      success: {
        text: "server-final",
        bind: ENABLING,
        failedResume: { condition: "item-not-found", h: 3 },
      },
    },
    { kind: "send-features", features: { ...NO_FEATURES, isManageable: false } },
  ]);
  const plain = run([OPEN, SASL2_AUTHS.bind, SUCCEEDED, REGISTERED], MANAGED);
  assert.deepEqual(plain.actions[1], {
    kind: "send-features",
    features: { ...NO_FEATURES, isManageable: true },
  });
  const unmanaged = run([OPEN, SASL2_AUTHS.resume, SUCCEEDED], ENCRYPTED);
  assert.deepEqual(unmanaged.actions[0], {
    kind: "success2",
    jid: ALICE,
    success: {
      text: "server-final",
      bind: undefined,
      failedResume: { condition: "feature-not-implemented", h: undefined },
    },
  });
});

Deno.test("stepNegotiation() takes no element of the other SASL profile during an exchange", () => {
  const challenge: NegotiationEvent = { kind: "sasl", reply: { kind: "challenge", text: "" } };
  for (const [login, profile] of [[AUTH, "sasl2"], [SASL2_AUTHS.bind, "sasl"]] as const) {
    for (
      const stray of [
        { kind: "response", profile, text: "x" },
        { kind: "abort", profile },
        { kind: "auth", profile, mechanism: "PLAIN", text: "x", inline: NOTHING },
      ] as const
    ) {
      const { state, actions } = run([OPEN, login, challenge, stray], ENCRYPTED);
      assert.equal(state.kind, "closed");
      assert.deepEqual(actions[0], {
        kind: "stream-error",
        condition: "unsupported-stanza-type",
      });
    }
  }
});

const STRANGERS: readonly [NegotiationState["kind"], NegotiationState, string][] = [
  ["offering", { kind: "offering", host: "example.com", failures: 0 }, "not-authorized"],
  ["binding", { kind: "binding", account: ALICE }, "not-authorized"],
];

for (const [kind, from, condition] of STRANGERS) {
  Deno.test(`stepNegotiation() refuses a stanza while ${kind}`, () => {
    const { actions } = run([{ kind: "stanza" }], ENCRYPTED, from);
    assert.deepEqual(actions, [{ kind: "stream-error", condition }, { kind: "end" }]);
  });

  Deno.test(`stepNegotiation() refuses a foreign element while ${kind}`, () => {
    const { actions } = run([{ kind: "foreign" }], ENCRYPTED, from);
    assert.deepEqual(actions[0], { kind: "stream-error", condition: "unsupported-stanza-type" });
  });
}

Deno.test("stepNegotiation() refuses another account's from after authentication", () => {
  const reopening: NegotiationState = { kind: "reopening", account: ALICE };
  const open = (from: string): NegotiationEvent => ({
    kind: "header",
    header: { ...HEADER, from },
  });
  assert.equal(run([open("alice@example.com")], ENCRYPTED, reopening).state.kind, "binding");
  assert.deepEqual(run([open("bob@example.com")], ENCRYPTED, reopening).actions, [
    { kind: "send-header", host: "example.com" },
    { kind: "stream-error", condition: "invalid-from" },
    { kind: "end" },
  ]);
  for (const nobody of ["@example.com", "a@b@c", "a@build_box"]) {
    assert.equal(run([open(nobody)], ENCRYPTED, reopening).state.kind, "closed", nobody);
  }
});

Deno.test("stepNegotiation() ignores a from without a localpart, such as the name of a client's machine", () => {
  const reopening: NegotiationState = { kind: "reopening", account: ALICE };
  const domains = [
    "localhost",
    "localhost/x",
    "localhost/x@y",
    "example.com",
    "127.0.0.1",
    "[::1]",
  ];
  // The name of a machine need not be a domain that a JID may have.
  const others = ["build_box", "fe80::1%eth0", "-x-", "Alice's laptop", "a..b", "/x@y", ""];
  for (const from of [...domains, ...others]) {
    for (const state of [reopening, { kind: "opening" } as const]) {
      const { actions } = run([{ kind: "header", header: { ...HEADER, from } }], ENCRYPTED, state);
      assert.deepEqual(actions.map(({ kind }) => kind), ["send-header", "send-features"], from);
    }
  }
});

Deno.test("stepNegotiation() refuses another host after authentication", () => {
  const { actions } = run(
    [{ kind: "header", header: { ...HEADER, to: "example.org" } }],
    { ...ENCRYPTED, hosts: () => true },
    { kind: "reopening", account: ALICE },
  );
  assert.deepEqual(actions[1], { kind: "stream-error", condition: "host-unknown" });
});

Deno.test("stepNegotiation() lets a client bind again after a refusal", () => {
  const { state, actions } = run(
    [{ kind: "bind", iqId: "b1", resource: "x" }, {
      kind: "refused",
      condition: "resource-constraint",
    }],
    ENCRYPTED,
    { kind: "binding", account: ALICE },
  );
  assert.deepEqual(state, { kind: "binding", account: ALICE });
  assert.deepEqual(actions, [
    { kind: "bind-error", iqId: "b1", condition: "resource-constraint" },
    { kind: "release" },
  ]);
});

Deno.test("stepNegotiation() sends nothing during a TLS handshake", () => {
  const { state, actions } = run(
    [{ kind: "fail", condition: "connection-timeout" }],
    PLAINTEXT,
    { kind: "securing" },
  );
  assert.equal(state.kind, "closed");
  assert.deepEqual(actions, [{ kind: "end" }]);
});

const ANY_EVENT: fc.Arbitrary<NegotiationEvent> = fc.constantFrom<NegotiationEvent>(
  OPEN,
  { kind: "header", header: { ...HEADER, to: "example.org" } },
  { kind: "starttls" },
  AUTH,
  { ...BY_SASL, mechanism: undefined, text: undefined },
  { kind: "response", profile: "sasl", text: "x" },
  { kind: "abort", profile: "sasl" },
  { kind: "bind", iqId: "b", resource: undefined },
  { kind: "stanza" },
  { kind: "foreign" },
  ...Object.values(SASL2_AUTHS),
  { kind: "response", profile: "sasl2", text: "x" },
  { kind: "abort", profile: "sasl2" },
  { kind: "sasl", reply: { kind: "challenge", text: "" } },
  SUCCEEDED,
  REFUSED,
  RESUME,
  { kind: "resumed", jid: FULL },
  { kind: "resume-failed", condition: "item-not-found", h: undefined },
  { kind: "management" },
  { kind: "secured" },
  { kind: "registered", jid: FULL },
  { kind: "refused", condition: "conflict" },
  { kind: "footer" },
  { kind: "fail", condition: "system-shutdown" },
  { kind: "dismiss", condition: "system-shutdown" },
);

Deno.test("stepNegotiation() answers any sequence, and binds only authenticated clients", () => {
  fc.assert(fc.property(
    fc.array(ANY_EVENT, { maxLength: 40 }),
    fc.constantFrom(ENCRYPTED, PLAINTEXT, MANAGED, { ...MANAGED, hasSasl2: false }),
    (events, terms) => {
      let state: NegotiationState = { kind: "opening" };
      let isAuthenticated = false;
      let isTold = false;
      let isHeld = false;
      let isOutputOver = false;
      for (const event of events) {
        const wasClosed = state.kind === "closed";
        const step = stepNegotiation(state, event, terms);
        const isProven = event.kind === "sasl" && event.reply.kind === "success";
        if (isProven && step.state.kind !== "closed") isAuthenticated = true;
        state = step.state;
        for (const { kind } of step.actions) {
          if (kind === "hold") isHeld = true;
          if (kind === "release") isHeld = false;
          if (kind === "success" || kind === "success2") {
            assert(isAuthenticated);
            assert(!isTold, "only one <success/>");
            isTold = true;
            assert(kind === "success" || terms.hasSasl2);
          }
          if (kind === "authenticate") assert(terms !== PLAINTEXT);
          if (kind === "register" || kind === "resume") assert(isAuthenticated);
          if (isOutputOver) assert.equal(kind, "end", "nothing is sent after our end");
          if (kind === "end-output") isOutputOver = true;
        }
        if (wasClosed) assert.deepEqual(step.actions, []);
        // Input is held exactly while the server works on an answer.
        if (state.kind !== "closed") {
          const owes = state.kind === "registering" || state.kind === "resuming" ||
            (state.kind === "authenticating" && state.isWaiting);
          assert.equal(isHeld, owes);
        }
      }
    },
  ));
});

Deno.test("stepNegotiation() reads a dismissed bound client until its end or its fault", () => {
  const DISMISS: NegotiationEvent = { kind: "dismiss", condition: "system-shutdown" };
  const bound: NegotiationState = { kind: "bound", jid: FULL };
  const last: readonly NegotiationEvent[] = [
    { kind: "footer" },
    { kind: "fail", condition: "policy-violation" },
    DISMISS,
    OPEN,
  ];
  for (const end of last) {
    const { state, kinds } = run([DISMISS, { kind: "stanza" }, end, end], ENCRYPTED, bound);
    assert.equal(state.kind, "closed");
    assert.deepEqual(kinds, ["stream-error end-output", "", "end", ""]);
  }
  const stranger = run([OPEN, DISMISS], ENCRYPTED);
  assert.equal(stranger.state.kind, "closed");
  assert.deepEqual(stranger.kinds[1], "stream-error end");
});

Deno.test("stepNegotiation() holds input while the search for the resumed stream runs", () => {
  const binding: NegotiationState = { kind: "binding", account: ALICE };
  const resumed = run([RESUME, { kind: "resumed", jid: FULL }], MANAGED, binding);
  assert.deepEqual(resumed.kinds, ["hold resume", "release"]);
  assert.deepEqual(resumed.state, { kind: "bound", jid: FULL });
  const failed = run(
    [RESUME, { kind: "resume-failed", condition: "item-not-found", h: 3 }],
    MANAGED,
    binding,
  );
  assert.deepEqual(failed.kinds, ["hold resume", "management-failure release"]);
  assert.deepEqual(failed.state, binding);
});

Deno.test("stepNegotiation() refuses stream management before authentication, and goes on", () => {
  const authenticating: NegotiationState = {
    kind: "authenticating",
    host: "example.com",
    failures: 1,
    profile: "sasl",
    mechanism: "SCRAM-SHA-256",
    inline: NOTHING,
    isWaiting: false,
  };
  const offering: NegotiationState = { kind: "offering", host: "example.com", failures: 1 };
  for (const from of [offering, authenticating]) {
    for (const event of [RESUME, { kind: "management" } as const]) {
      const { state, actions } = run([event], MANAGED, from);
      assert.equal(state, from);
      assert.deepEqual(actions, [
        { kind: "management-failure", condition: "unexpected-request", h: undefined },
      ]);
      assert.equal(run([event], ENCRYPTED, from).state.kind, "closed");
    }
  }
});

Deno.test("stepNegotiation() ends a stream that gets input while it is being resumed", () => {
  const resuming: NegotiationState = { kind: "resuming", account: ALICE, success: undefined };
  for (const event of [RESUME, { kind: "stanza" }, { kind: "bind", iqId: "1", resource: "x" }]) {
    const { state, actions } = run([event as NegotiationEvent], MANAGED, resuming);
    assert.equal(state.kind, "closed");
    assert.deepEqual(actions[0], { kind: "stream-error", condition: "policy-violation" });
  }
});

Deno.test("stepNegotiation() offers PLAIN alone at a host that keeps no keys", () => {
  const terms: NegotiationTerms = {
    ...ENCRYPTED,
    mechanisms: ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256", "PLAIN"],
    channelBindings: ["tls-server-end-point"],
    offersPlainOnly: (host) => host === "example.com",
  };
  const { state, actions } = run([OPEN], terms);
  const sent = actions.find((action) => action.kind === "send-features");
  assert.deepEqual(sent?.features.mechanisms, ["PLAIN"]);
  assert.deepEqual(sent?.features.channelBindings, []);
  const scram: NegotiationEvent = { ...BY_SASL, mechanism: "SCRAM-SHA-256", text: "x" };
  assert.deepEqual(run([scram], terms, state).actions, [{
    kind: "sasl-failure",
    profile: "sasl",
    condition: "invalid-mechanism",
    mechanism: undefined,
  }]);
  assert.equal(run([AUTH], terms, state).state.kind, "authenticating");
  const other = run([OPEN], { ...terms, offersPlainOnly: () => false });
  const usual = other.actions.find((action) => action.kind === "send-features");
  assert.equal(usual?.features.mechanisms.length, 3);
  // Without TLS neither is offered; PLAIN alone would be inside it.
  const plain = { ...PLAINTEXT, offersPlainOnly: () => true };
  const before = run([OPEN], plain).state;
  for (
    const [event, condition] of [[AUTH, "encryption-required"], [
      scram,
      "invalid-mechanism",
    ]] as const
  ) {
    const [failure] = run([event], plain, before).actions;
    assert.equal(failure?.kind === "sasl-failure" && failure.condition, condition);
  }
});
