import { deepStrictEqual, strictEqual } from "node:assert/strict";
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

Deno.test("PresenceState keeps directed presence for people of its domain, up to 16 KiB", () => {
  const state = new PresenceState(20);
  const direct = (to: string, length: number, type: Stanza["type"] = "available") => {
    const bytes = new Uint8Array(length);
    return state.direct({ kind: "presence", type, from: PHONE, to: parseJid(to), bytes }, 7);
  };
  const kept = (account: string) =>
    state.directedTo(parseJid(account)).map(({ to, presence }) =>
      `${to.text} ${presence?.bytes.length} ${presence?.sinceUs}`
    );
  direct("bob@example.com", 10_000);
  direct("bob@example.com/x", 6_384);
  direct("bob@example.com/y", 1);
  direct("room@rooms.example.com/x", 1);
  deepStrictEqual(kept("bob@example.com"), [
    "bob@example.com 10000 7",
    "bob@example.com/x 6384 7",
    "bob@example.com/y undefined undefined",
  ]);
  deepStrictEqual(kept("room@rooms.example.com"), ["room@rooms.example.com/x undefined undefined"]);
  direct("bob@example.com", 9_999);
  direct("bob@example.com/y", 1);
  direct("bob@example.com/x", 1, "unavailable");
  direct("bob@example.com/z", 6_384);
  deepStrictEqual(kept("bob@example.com"), [
    "bob@example.com 9999 7",
    "bob@example.com/y 1 7",
    "bob@example.com/z 6384 7",
  ]);
  strictEqual(state.becomeUnavailable().length, 4);
  direct("bob@example.com", 16_384);
  deepStrictEqual(kept("bob@example.com"), ["bob@example.com 16384 7"]);
});
