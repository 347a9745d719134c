import assert from "node:assert/strict";
import fc from "fast-check";
import type { RosterItem } from "../../storage/mod.ts";
import type { SubscriptionStep, SubscriptionVerb } from "./subscription_state.ts";
import { isVisibleChange, stepInbound, stepOutbound, unlistedItem } from "./subscription_state.ts";

const BOB = "bob@example.com";
const REQUEST = new TextEncoder().encode("<presence type='subscribe'/>");

/** The nine states of RFC 6121, appendix A.1. */
const STATES = {
  "None": {},
  "None + Pending Out": { isAsking: true },
  "None + Pending In": { request: REQUEST },
  "None + Pending Out+In": { isAsking: true, request: REQUEST },
  "To": { subscription: "to" },
  "To + Pending In": { subscription: "to", request: REQUEST },
  "From": { subscription: "from" },
  "From + Pending Out": { subscription: "from", isAsking: true },
  "Both": { subscription: "both" },
} as const satisfies Record<string, Partial<RosterItem>>;
type State = keyof typeof STATES;

function itemIn(state: State): RosterItem {
  return { ...unlistedItem(BOB), name: "Bob", isListed: true, ...STATES[state] };
}

/** Name of the state of `item`. */
function stateOf(item: RosterItem | undefined): string {
  const { subscription, isAsking, request } = item ?? unlistedItem(BOB);
  const name = `${subscription[0]!.toUpperCase()}${subscription.slice(1)}`;
  const pending = [...isAsking ? ["Out"] : [], ...request === undefined ? [] : ["In"]];
  return pending.length === 0 ? name : `${name} + Pending ${pending.join("+")}`;
}

/** A row of a table: state before, whether the stanza is passed on, state after ("" : the same). */
type Row = readonly [State, "yes" | "no", State | ""];

const OUTBOUND: Readonly<Record<SubscriptionVerb, readonly Row[]>> = {
  subscribe: [ // A.2.1
    ["None", "yes", "None + Pending Out"],
    ["None + Pending Out", "yes", ""],
    ["None + Pending In", "yes", "None + Pending Out+In"],
    ["None + Pending Out+In", "yes", ""],
    ["To", "yes", ""],
    ["To + Pending In", "yes", ""],
    ["From", "yes", "From + Pending Out"],
    ["From + Pending Out", "yes", ""],
    ["Both", "yes", ""],
  ],
  unsubscribe: [ // A.2.2
    ["None", "yes", ""],
    ["None + Pending Out", "yes", "None"],
    ["None + Pending In", "yes", ""],
    ["None + Pending Out+In", "yes", "None + Pending In"],
    ["To", "yes", "None"],
    ["To + Pending In", "yes", "None + Pending In"],
    ["From", "yes", ""],
    ["From + Pending Out", "yes", "From"],
    ["Both", "yes", "From"],
  ],
  subscribed: [ // A.2.3
    ["None", "no", ""],
    ["None + Pending Out", "no", ""],
    ["None + Pending In", "yes", "From"],
    ["None + Pending Out+In", "yes", "From + Pending Out"],
    ["To", "no", ""],
    ["To + Pending In", "yes", "Both"],
    ["From", "no", ""],
    ["From + Pending Out", "no", ""],
    ["Both", "no", ""],
  ],
  unsubscribed: [ // A.2.4
    ["None", "no", ""],
    ["None + Pending Out", "no", ""],
    ["None + Pending In", "yes", "None"],
    ["None + Pending Out+In", "yes", "None + Pending Out"],
    ["To", "no", ""],
    ["To + Pending In", "yes", "To"],
    ["From", "yes", "None"],
    ["From + Pending Out", "yes", "None + Pending Out"],
    ["Both", "yes", "To"],
  ],
};

const INBOUND: Readonly<Record<SubscriptionVerb, readonly Row[]>> = {
  subscribe: [ // A.3.1
    ["None", "yes", "None + Pending In"],
    ["None + Pending Out", "yes", "None + Pending Out+In"],
    ["None + Pending In", "no", ""],
    ["None + Pending Out+In", "no", ""],
    ["To", "yes", "To + Pending In"],
    ["To + Pending In", "no", ""],
    ["From", "no", ""],
    ["From + Pending Out", "no", ""],
    ["Both", "no", ""],
  ],
  unsubscribe: [ // A.3.2
    ["None", "no", ""],
    ["None + Pending Out", "no", ""],
    ["None + Pending In", "yes", "None"],
    ["None + Pending Out+In", "yes", "None + Pending Out"],
    ["To", "no", ""],
    ["To + Pending In", "yes", "To"],
    ["From", "yes", "None"],
    ["From + Pending Out", "yes", "None + Pending Out"],
    ["Both", "yes", "To"],
  ],
  subscribed: [ // A.3.3
    ["None", "no", ""],
    ["None + Pending Out", "yes", "To"],
    ["None + Pending In", "no", ""],
    ["None + Pending Out+In", "yes", "To + Pending In"],
    ["To", "no", ""],
    ["To + Pending In", "no", ""],
    ["From", "no", ""],
    ["From + Pending Out", "yes", "Both"],
    ["Both", "no", ""],
  ],
  unsubscribed: [ // A.3.4
    ["None", "no", ""],
    ["None + Pending Out", "yes", "None"],
    ["None + Pending In", "no", ""],
    ["None + Pending Out+In", "yes", "None + Pending In"],
    ["To", "yes", "None"],
    ["To + Pending In", "yes", "None + Pending In"],
    ["From", "no", ""],
    ["From + Pending Out", "yes", "From"],
    ["Both", "yes", "From"],
  ],
};

function inbound(item: RosterItem | undefined, verb: SubscriptionVerb): SubscriptionStep {
  return stepInbound(item, verb, { contact: BOB, stanza: REQUEST });
}

function outbound(item: RosterItem | undefined, verb: SubscriptionVerb): SubscriptionStep {
  return stepOutbound(item, verb, BOB);
}

function hasFrom(item: RosterItem | undefined): boolean {
  return item?.subscription === "from" || item?.subscription === "both";
}

for (
  const [name, tables, step] of [
    ["stepOutbound()", OUTBOUND, outbound],
    ["stepInbound()", INBOUND, inbound],
  ] as const
) {
  for (const [verb, rows] of Object.entries(tables) as [SubscriptionVerb, readonly Row[]][]) {
    assert.deepEqual(rows.map(([state]) => state), Object.keys(STATES), "every state has a row");
    for (const [state, isPassedOn, after] of rows) {
      Deno.test(`${name} of ${verb} in the state ${state}`, () => {
        const before = itemIn(state);
        const result = step(before, verb);
        assert.equal(result.isPassedOn, isPassedOn === "yes");
        assert.equal(stateOf(result.item), after === "" ? state : after);
        assert.equal(result.item?.name, "Bob", "the rest of the item stays");
        const gained = !hasFrom(before) && hasFrom(result.item);
        const lost = hasFrom(before) && !hasFrom(result.item);
        const isShown = gained || result.reply === "subscribed";
        assert.equal(result.presence, isShown ? "announce" : lost ? "withdraw" : undefined);
      });
    }
  }
}

Deno.test("stepInbound() answers requests of those who see the presence already, and unsubscribes", () => {
  for (const state of Object.keys(STATES) as State[]) {
    const item = itemIn(state);
    assert.equal(
      inbound(item, "subscribe").reply,
      hasFrom(item) ? "subscribed" : undefined,
      state,
    );
    assert.equal(
      inbound(item, "unsubscribe").reply,
      hasFrom(item) || item.request !== undefined ? "unsubscribed" : undefined,
      state,
    );
    for (const verb of ["subscribed", "unsubscribed"] as const) {
      assert.equal(inbound(item, verb).reply, undefined);
    }
  }
});

Deno.test("a contact that only asks is not listed, and leaves no item when it is refused", () => {
  const { item } = inbound(undefined, "subscribe");
  assert.equal(item?.isListed, false);
  assert.equal(isVisibleChange(undefined, item), false);
  const refused = outbound(item, "unsubscribed");
  assert.deepEqual([refused.item, refused.isPassedOn], [undefined, true]);
  const takenBack = inbound(item, "unsubscribe");
  assert.deepEqual([takenBack.item, takenBack.isPassedOn], [undefined, true]);
  const accepted = outbound(item, "subscribed").item;
  assert.deepEqual([accepted?.isListed, accepted?.subscription], [true, "from"]);
  assert.equal(isVisibleChange(item, accepted), true);
});

Deno.test("subscribed without a request approves the next one in advance (RFC 6121 §3.4)", () => {
  for (const state of ["None", "None + Pending Out", "To"] as const) {
    const { item, isPassedOn } = outbound(itemIn(state), "subscribed");
    assert.deepEqual([item?.isApproved, isPassedOn, stateOf(item)], [true, false, state]);
    const asked = inbound(item, "subscribe");
    assert.deepEqual(
      [asked.isPassedOn, asked.reply, asked.presence, hasFrom(asked.item), asked.item?.isApproved],
      [false, "subscribed", "announce", true, false],
    );
    const cancelled = outbound(item, "unsubscribed");
    assert.deepEqual([cancelled.item?.isApproved, cancelled.isPassedOn], [false, false]);
  }
  const unknown = outbound(undefined, "subscribed").item;
  assert.deepEqual([unknown?.isApproved, unknown?.isListed], [true, true]);
  for (const state of ["From", "From + Pending Out", "Both"] as const) {
    assert.equal(outbound(itemIn(state), "subscribed").item?.isApproved, false, state);
  }
});

Deno.test("two rosters agree after any conversation whose stanzas arrive in order", () => {
  const verbs = ["subscribe", "subscribed", "unsubscribe", "unsubscribed"] as const;
  const turn = fc.record({ isAlice: fc.boolean(), verb: fc.constantFrom(...verbs) });
  fc.assert(fc.property(fc.array(turn, { maxLength: 30 }), (turns) => {
    const rosters = new Map<boolean, RosterItem | undefined>();
    /** Sends one stanza, and all automatic answers to it. */
    const send = (isAlice: boolean, verb: SubscriptionVerb, isReply: boolean): void => {
      if (!isReply) {
        const out = outbound(rosters.get(isAlice), verb);
        rosters.set(isAlice, out.item);
        if (!out.isPassedOn) return;
      }
      const received = inbound(rosters.get(!isAlice), verb);
      rosters.set(!isAlice, received.item);
      if (received.reply !== undefined) send(!isAlice, received.reply, true);
    };
    for (const { isAlice, verb } of turns) send(isAlice, verb, false);
    const [alice, bob] = [rosters.get(true), rosters.get(false)];
    for (const [one, other] of [[alice, bob], [bob, alice]] as const) {
      const sees = one?.subscription === "to" || one?.subscription === "both";
      assert.equal(sees, hasFrom(other));
      assert.equal(one?.isAsking ?? false, other?.request !== undefined);
    }
  }));
});
