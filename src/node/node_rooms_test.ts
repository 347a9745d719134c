import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { Envelope } from "../distribution/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../observe/mod.ts";
import type { RoomMessage } from "../storage/mod.ts";
import type { LocalSession, Stanza, XmlElement } from "../xmpp/mod.ts";
import { buildStanza, element, FullJid, parseElement, parseJid } from "../xmpp/mod.ts";
import { deliverFromRoom, makeCopyOrder } from "./node_rooms.ts";

const DOMAIN = "muclight.example.com";

/** A message of a room that another datacenter has passed on, and sent to others as well. */
function copyOf(number: number, settled: number[]): Envelope {
  const xml = `<message from='coven@${DOMAIN}/alice@example.com' to='bob@example.com' ` +
    `type='groupchat'><body>hi</body>` +
    `<stanza-id xmlns='urn:xmpp:sid:0' by='coven@${DOMAIN}' id='${number}'/></message>`;
  const envelope = new Envelope({
    stanza: buildStanza(parseElement(new TextEncoder().encode(xml))),
    process: 7,
    sequence: number,
    origin: "dc2.example.com",
    sentAtUs: 0,
    ttl: 3,
    bounces: 0,
    mayBeRepeat: false,
    isSpread: true,
  }, { settle: () => void settled.push(number) });
  envelope.arrived("link", "dc2.example.com");
  return envelope;
}

/** The order of messages of MUC Light rooms at a node, and what becomes of them. */
class Order {
  readonly clock = new ManualClock();
  /** False while the person has no session here. */
  isHere = true;
  /** Messages of the room that the database has. */
  readonly kept: RoomMessage[] = [];
  readonly given: Envelope[] = [];
  readonly calls: [call: string, copy: Envelope][] = [];
  readonly copies = makeCopyOrder(
    { mucLight: { domain: DOMAIN }, globalDistrib: { globalHost: "example.com" } },
    {
      stores: { rooms: () => ({ messages: () => Promise.resolve(this.kept) }) },
      local: () => ({
        deliverLate: (copy) => {
          if (this.isHere) this.given.push(copy);
          return this.isHere;
        },
        deliverTo: () => {},
      }),
      router: () => ({
        memory: { noteDelivered: (copy) => void this.calls.push(["noted", copy]) },
        returned: (copy, reason) => void this.calls.push([reason, copy]),
        envelopCopy: (stanza) => new Envelope({ ...copyOf(0, []), stanza, process: 1 }),
      }),
      metrics: new MetricsRegistry(this.clock),
      log: SILENT_LOGGER,
      clock: this.clock,
    },
  )!;
}

Deno.test("makeCopyOrder() gives a message whose person has gone back to the router as it is", async () => {
  const order = new Order();
  const settled: number[] = [];
  assert.equal(order.copies.take(copyOf(1, settled)), false);
  const late = copyOf(3, settled);
  assert.equal(order.copies.take(late), true);
  assert.deepEqual(order.calls, [], "nobody has got it yet");
  order.isHere = false;
  await order.copies.close();
  assert.deepEqual(order.calls, [["waited", late]]);
  assert.deepEqual([late.isSpread, settled], [true, []]);
});

Deno.test("makeCopyOrder() notes a message when a session has got it, and none that it has read", async () => {
  const order = new Order();
  const late = copyOf(3, []);
  order.copies.take(copyOf(1, []));
  order.copies.take(late);
  const stanza = `<message from='coven@${DOMAIN}/alice@example.com' type='groupchat'/>`;
  order.kept.push({ number: 2, id: "2", sentAtMs: 0, stanza });
  order.clock.advance(250);
  await new Promise((resolve) => setTimeout(resolve)); // it reads meanwhile
  await order.copies.close();
  const numbers = order.given.map(({ process, sequence }) => [process, sequence]);
  assert.deepEqual(numbers, [[1, 0], [7, 3]], "each has a number of its own");
  assert.deepEqual(order.calls, [["noted", late]]);
});

Deno.test("deliverFromRoom() takes the ids out that an occupant claims for somebody else's archive", () => {
  const bob = parseJid("bob@example.com/phone") as FullJid;
  const got: string[] = [];
  const sessions = {
    find: (jid: FullJid) => jid === bob ? { jid } as LocalSession : undefined,
    deliverTo: (_session: unknown, { bytes }: Stanza) => {
      got.push(new TextDecoder().decode(bytes));
      return "delivered" as const;
    },
  };
  const addresses = { from: parseJid("coven@conference.example.com/witch"), to: bob };
  const claimed = element("stanza-id", { xmlns: "urn:xmpp:sid:0", by: bob.bare.text, id: "x" });
  const said = (...children: XmlElement[]) =>
    buildStanza(element("message", { type: "groupchat" }, ...children), addresses);
  const message = said(element("body", {}, "hi"), claimed);
  const archive = { unclaimed: () => said(element("body", {}, "hi")) };
  assert.equal(deliverFromRoom(bob, message, { sessions, archive }), true);
  assert.equal(deliverFromRoom(bob, message, { sessions, archive: undefined }), true);
  const presence = buildStanza(element("presence"), addresses);
  assert.equal(deliverFromRoom(bob, presence, { sessions, archive }), true);
  assert.deepEqual(got.map((xml) => /stanza-id|presence/.exec(xml)?.[0]), [
    undefined,
    "stanza-id",
    "presence",
  ]);
  const gone = parseJid("bob@example.com/gone") as FullJid;
  assert.equal(deliverFromRoom(gone, message, { sessions, archive }), false);
});
