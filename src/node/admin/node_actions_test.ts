import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import type { ActedParts } from "./node_actions.ts";
import { makeActions } from "./node_actions.ts";

Deno.test("makeActions() tells an operator of one session, and of several", () => {
  const session = (text: string) => ({ jid: parseJid(text), end: () => {} });
  const open = [session("alice@example.com/desk"), session("alice@example.com/phone")];
  const parts = { sessions: { ofAccount: () => open } };
  const control = { requestStop: () => false, reload: () => Promise.reject(new Error("unused")) };
  // Ending sessions looks at the sessions alone.
  const { kick } = makeActions(parts as unknown as ActedParts, control, "dc1.example.com");
  assert.deepEqual(kick("alice@example.com/phone"), {
    outcome: "done",
    affected: 1,
    text: "Ended 1 session of alice@example.com/phone",
  });
  assert.deepEqual(kick("alice@example.com"), {
    outcome: "done",
    affected: 2,
    text: "Ended 2 sessions of alice@example.com",
  });
});
