import assert from "node:assert/strict";
import type { BareJid, LocalSession } from "../xmpp/mod.ts";
import { parseJid } from "../xmpp/mod.ts";
import { isOnline, maySee } from "./node_services.ts";

const ALICE = parseJid("alice@example.com").bare as BareJid;
const OWN = 1;

/** True when alice is online with sessions of these priorities here, and of these processes. */
function online(
  priorities: readonly (number | undefined)[],
  processes: readonly number[],
): Promise<boolean> {
  const places = processes.map((process) => ({ host: "dc", resourcepart: "x", process }));
  return isOnline(ALICE, {
    process: OWN,
    sessions: { ofAccount: () => priorities.map((priority) => ({ priority }) as LocalSession) },
    table: { sessionsOf: () => Promise.resolve(new Map([[ALICE.text, places as never[]]])) },
  });
}

Deno.test("isOnline() knows resources that are available here, and sessions elsewhere", async () => {
  assert.equal(await online([], []), false);
  assert.equal(await online([undefined], [OWN]), false, "connected here, and not available");
  assert.equal(await online([undefined, -1], [OWN]), true);
  assert.equal(await online([], [2]), true);
  assert.equal(await online([undefined], [OWN, 2]), true);
});

Deno.test("maySee() lets nobody pass from whom a privacy list hides the account", async () => {
  const bob = parseJid("bob@example.com/x");
  const asks = (isSubscribed: boolean, isHidden: boolean) =>
    maySee(bob, ALICE, {
      rosters: { maySee: () => Promise.resolve(isSubscribed) },
      privacy: { hiders: () => Promise.resolve(new Map([[ALICE.text, () => isHidden]])) },
    });
  assert.equal(await asks(true, false), true);
  assert.equal(await asks(true, true), false);
  assert.equal(await asks(false, false), false);
});
