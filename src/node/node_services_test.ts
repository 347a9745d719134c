import assert from "node:assert/strict";
import type { BareJid } from "../xmpp/mod.ts";
import { parseJid } from "../xmpp/mod.ts";
import { maySee } from "./node_services.ts";

const ALICE = parseJid("alice@example.com").bare as BareJid;

Deno.test("maySee() lets nobody pass from whom a privacy list hides the account", async () => {
  const bob = parseJid("bob@example.com/x");
  const asks = (isSubscribed: boolean, isHidden: boolean) =>
    maySee(bob, ALICE, {
      rosters: { maySee: () => Promise.resolve(isSubscribed) },
      privacy: {
        defaults: { hiders: () => Promise.resolve(new Map([[ALICE.text, () => isHidden]])) },
      },
    });
  assert.equal(await asks(true, false), true);
  assert.equal(await asks(true, true), false);
  assert.equal(await asks(false, false), false);
});
