import assert from "node:assert/strict";
import { PresenceAccount } from "../ledger/mod.ts";
import { PresenceReader } from "./presence_reader.ts";
import { joined } from "./testing/joined.ts";

const ANN = "ann@a/load";
const BEN = "ben@a/load";

Deno.test("PresenceReader notes who is available and who is not, and no other presence", () => {
  const presence = new PresenceAccount(() => 0);
  for (const [client, jid] of [[BEN, BEN], ["ann", ANN]] as const) {
    presence.opened(client, jid);
    presence.online(client);
  }
  const { sideline } = joined(new PresenceReader(presence), BEN);
  presence.saw("ann", BEN, true);
  const missing = () => presence.balance().missing;
  sideline.sawPresence(`<presence from="${ANN}" type='subscribe'/>`);
  assert.equal(missing(), 1);
  sideline.sawPresence(`<presence from="${ANN}"><status>here</status></presence>`);
  assert.equal(missing(), 0);
  sideline.sawPresence(`<presence from="${ANN}" type='error'/>`);
  assert.equal(missing(), 0);
  sideline.sawPresence(`<presence type='unavailable' from='${ANN}'/>`);
  assert.equal(missing(), 1);
  sideline.lost();
  assert.equal(presence.balance().due, 0, "ben is away");
});
