import assert from "node:assert/strict";
import type { RosterItem, RosterStore } from "../storage/mod.ts";
import type { BareJid } from "../xmpp/mod.ts";
import { parseJid } from "../xmpp/mod.ts";
import { maySee } from "./node_services.ts";

const ALICE = parseJid("alice@example.com").bare as BareJid;

Deno.test("maySee() lets nobody pass from whom a privacy list hides the account, by the same steps", async () => {
  const bob = parseJid("bob@example.com/x");
  const steps: string[] = [];
  const asks = (isSubscribed: boolean, isHidden: boolean) => {
    const readItem = () => {
      steps.push("roster");
      const item = isSubscribed ? { subscription: "from" } as RosterItem : undefined;
      return Promise.resolve(item);
    };
    const hosts = {
      rosters: () => ({ readItem }) as unknown as RosterStore, // no other method is used
      creations: () => Promise.resolve(new Map()),
      hiderOf: () => {
        steps.push("list");
        return Promise.resolve(() => isHidden);
      },
    };
    return maySee(bob, ALICE, { pep: { hosts } });
  };
  for (
    const [isSubscribed, isHidden, isShown] of [
      [true, false, true],
      [true, true, false],
      [false, false, false],
    ] as const
  ) {
    assert.equal(await asks(isSubscribed, isHidden), isShown);
    assert.deepEqual(steps.splice(0), ["roster", "list"]);
  }
});
