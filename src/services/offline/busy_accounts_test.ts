import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { BusyAccounts } from "./busy_accounts.ts";
import { HOST, message } from "./testing/offline_fixture.ts";

const LATER = message("later");
const BOB = LATER.to.bare;

function make(): { clock: ManualClock; rested: BareJid[]; busy: BusyAccounts } {
  const [clock, rested]: [ManualClock, BareJid[]] = [new ManualClock(), []];
  return { clock, rested, busy: new BusyAccounts({ clock, rested: (jid) => rested.push(jid) }) };
}

Deno.test("BusyAccounts holds messages to an account until all work for it is over", () => {
  const { busy, rested } = make();
  assert.equal(busy.holds(LATER), false);
  busy.begin(BOB);
  busy.begin(BOB);
  busy.end(BOB);
  assert.equal(busy.holds(LATER), true);
  assert.deepEqual(rested, []);
  busy.end(BOB);
  assert.equal(busy.holds(LATER), false);
  assert.deepEqual(rested, [BOB]);
});

Deno.test("BusyAccounts holds no message that is for another account or never kept", () => {
  const { busy } = make();
  busy.begin(BOB);
  assert.equal(busy.holds({ ...LATER, type: "headline" }), false);
  assert.equal(busy.holds(message("x", undefined, `carol@${HOST}`)), false);
});

Deno.test("BusyAccounts holds messages for two seconds, which holdAnew() begins again", () => {
  const { busy, clock } = make();
  busy.begin(BOB);
  clock.advance(1_000);
  busy.begin(BOB);
  clock.advance(999);
  assert.equal(busy.holds(LATER), true);
  clock.advance(1);
  assert.equal(busy.holds(LATER), false, "more work alone does not hold for longer");
  busy.holdAnew(BOB);
  clock.advance(1_999);
  assert.equal(busy.holds(LATER), true);
  clock.advance(1);
  assert.equal(busy.holds(LATER), false);
});
