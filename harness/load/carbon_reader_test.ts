import assert from "node:assert/strict";
import { Ledger } from "../ledger/mod.ts";
import { CarbonReader } from "./carbon_reader.ts";
import { loadStanza } from "./load_stanza.ts";
import { joined } from "./testing/joined.ts";

const ANN = "ann@a/load";
const BEN = "ben@a/load";
const BENS_DEVICE = "ben@a/device";

function carbon(direction: string, from: string, inner: string): string {
  return `<message from="${from}" to='${BENS_DEVICE}1'><${direction} xmlns='urn:xmpp:carbons:2'>` +
    `<forwarded xmlns='urn:xmpp:forward:0'>${inner}</forwarded></${direction}></message>`;
}

Deno.test("CarbonReader turns carbons on, and tells the ledger of those from its own account alone", () => {
  const ledger = new Ledger(() => 0);
  ledger.addDevice(BENS_DEVICE, BEN);
  const flow = ledger.open(ANN, BEN);
  const mark = { flow: flow.number, seq: ledger.sending(flow) };
  const { sideline } = joined(new CarbonReader(ledger), BENS_DEVICE);
  assert.match(sideline.opened(`${BENS_DEVICE}1`)[0]!, /<enable xmlns='urn:xmpp:carbons:2'\/>/);
  const inner = loadStanza("message", BEN, mark).replace(
    "<message",
    "<message xmlns='jabber:client'",
  );
  const came = () => ledger.balance({ windows: [] }).devices.ways.received.came;
  assert.ok(sideline.take(carbon("received", "ben@a", inner)));
  assert.deepEqual([came(), ledger.balance({ windows: [] }).strays], [1, 0]);
  for (
    const wrong of [
      carbon("received", "ann@a", inner),
      carbon("sent", "ben@a", inner),
      carbon("received", "ben@a", inner.replace("lazy", "busy")),
    ]
  ) assert.ok(sideline.take(wrong));
  assert.deepEqual([came(), ledger.balance({ windows: [] }).strays], [1, 3]);
  assert.equal(sideline.take(inner), false, "a message that is no carbon");
});
