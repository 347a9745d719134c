import { strictEqual } from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { PresenceState } from "./presence_state.ts";

const PHONE = parseJid("alice@example.com/phone");
const SECOND_US = 1_000_000;

function presenceAt(sinceUs: number): Stanza {
  const bytes = new TextEncoder().encode("<presence/>");
  return { kind: "presence", type: "available", from: PHONE, to: PHONE.bare, bytes, sinceUs };
}

Deno.test("PresenceState.isNew() is true for ten seconds after the initial presence, not a later one", () => {
  const state = new PresenceState(10);
  strictEqual(state.isNew(0), false);
  state.becomeAvailable(presenceAt(SECOND_US), 0);
  state.becomeAvailable(presenceAt(9 * SECOND_US), 0);
  strictEqual(state.isNew(10 * SECOND_US), true);
  strictEqual(state.isNew(11 * SECOND_US), false);
  state.becomeUnavailable();
  strictEqual(state.isNew(2 * SECOND_US), false);
});

Deno.test("PresenceState.restore() keeps a session new that was new at its other node", () => {
  for (const isNewlyAvailable of [true, false]) {
    const state = new PresenceState(10);
    const common = { presence: presenceAt(0), priority: 0, directed: [] };
    state.restore({ ...common, isNewlyAvailable }, SECOND_US);
    strictEqual(state.isNew(2 * SECOND_US), isNewlyAvailable);
    state.becomeAvailable(presenceAt(3 * SECOND_US), 0);
    strictEqual(state.isNew(4 * SECOND_US), isNewlyAvailable, "not by presence that follows");
  }
});
