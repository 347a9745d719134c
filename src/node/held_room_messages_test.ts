import assert from "node:assert/strict";
import { ManualClock } from "../base/mod.ts";
import { Envelope } from "../distribution/mod.ts";
import type { EnvelopeFields } from "../distribution/mod.ts";
import { Delivery } from "../distribution/routing/delivery.ts";
import { DeliveryFixture } from "../distribution/routing/testing/delivery_fixture.ts";
import { OWN_PROCESS, PEER_PROCESS } from "../distribution/routing/testing/router_fixture.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../observe/mod.ts";
import type { RoomMessage } from "../storage/mod.ts";
import { buildStanza, FullJid, parseElement, parseJid } from "../xmpp/mod.ts";
import type { Delivery as SessionDelivery, Stanza } from "../xmpp/mod.ts";
import { LocalSide } from "./local_side.ts";
import { makeCopyOrder } from "./node_rooms.ts";

const DOMAIN = "muclight.example.com";
const ROOM = `coven@${DOMAIN}`;
const PHONE = parseJid("bob@example.com/phone") as FullJid;

const CLIENT = { priority: 0, hasCarbons: false, isConfidential: true };

/** The last step of routing at a node with two sessions of one person, and messages of a room for it. */
class World {
  readonly clock = new ManualClock();
  readonly fixture = new DeliveryFixture();
  /** Numbers of the messages that the sessions got. */
  readonly got: number[] = [];
  /** Numbers of the messages that the phone got alone, before it left. */
  readonly gotByPhone: number[] = [];
  /** Names of what is settled. */
  readonly settled: string[] = [];
  /** Messages of the room that the database has. */
  readonly kept: RoomMessage[] = [];
  readonly order = makeCopyOrder(
    { mucLight: { domain: DOMAIN }, globalDistrib: { globalHost: "example.com" } },
    {
      stores: {
        rooms: () => ({
          messages: (_, { after = 0, before = 9 }) =>
            Promise.resolve(
              this.kept.filter(({ number }) => number > after && number < before),
            ),
        }),
      },
      local: () => this.local,
      router: () => ({
        memory: this.fixture.memory,
        returned: () => assert.fail("the sessions are here"),
        envelopCopy: (stanza) =>
          new Envelope({ ...fieldsOf(stanza, 99), process: OWN_PROCESS, isCopy: true }),
      }),
      metrics: new MetricsRegistry(this.clock),
      log: SILENT_LOGGER,
      clock: this.clock,
    },
  )!;
  readonly local: LocalSide = new LocalSide({
    globalHost: "example.com",
    hosts: new Set(["example.com"]),
    sessions: {
      find: (jid) => jid === PHONE ? { ...CLIENT, jid, send: () => true } : undefined,
      ofAccount: () => [{ jid: PHONE, priority: 0, lastPresence: undefined }],
      deliver: (stanza, delivery) => this.#keep(this.got, stanza, delivery),
      deliverTo: (_, stanza, delivery) => this.#keep(this.gotByPhone, stanza, delivery),
    },
    components: { find: () => undefined, deliver: () => "no-session" },
    services: { handle: () => "ignored" },
    rooms: { serves: (domain) => domain === DOMAIN, take: () => "ignored" },
    copyOrder: this.order,
    answer: () => assert.fail("nobody is to be answered"),
  });
  readonly #delivery = new Delivery({
    ...this.fixture,
    process: OWN_PROCESS,
    local: { ...this.fixture.local, deliver: (envelope) => this.local.deliver(envelope) },
  });

  constructor() {
    for (const number of [1, 2, 3]) {
      const stanza = `<message from='${ROOM}/alice@example.com' type='groupchat'>` +
        `<body>${number}</body></message>`;
      this.kept.push({ number, id: `${number}`, sentAtMs: 0, stanza });
    }
  }

  /** A message of the room comes over a lane. */
  arrive(number: number, name = `${number}`, fields: Partial<EnvelopeFields> = {}): void {
    const xml = `<message from='${ROOM}/alice@example.com' to='bob@example.com' type='groupchat'>` +
      `<body>${number}</body>` +
      `<stanza-id xmlns='urn:xmpp:sid:0' by='${ROOM}' id='${number}'/></message>`;
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    const settle = () => void this.settled.push(name);
    const envelope = new Envelope({ ...fieldsOf(stanza, number), ...fields }, { settle });
    envelope.arrived("link", "dc2.example.com");
    this.#delivery.deliverHere(envelope, true);
  }

  async wait(ms: number): Promise<void> {
    this.clock.advance(ms);
    await new Promise((resolve) => setTimeout(resolve)); // it reads meanwhile
  }

  /** Numbers within their process of what was delivered to the account, as a session takes them along. */
  get known(): readonly number[] {
    return this.fixture.memory.deliveredTo(PHONE.bare.text, 9)
      .flatMap(({ recent }) => recent).toSorted();
  }

  /** Clients acknowledge nothing. */
  #keep(got: number[], { bytes }: Stanza, delivery: SessionDelivery): "delivered" {
    delivery.retain();
    got.push(Number(/<body>(.*?)</.exec(new TextDecoder().decode(bytes))![1]));
    return "delivered";
  }
}

function fieldsOf(stanza: Stanza, sequence: number): EnvelopeFields {
  return {
    stanza,
    process: PEER_PROCESS,
    sequence,
    origin: "dc2.example.com",
    sentAtUs: 0,
    ttl: 3,
    bounces: 0,
    mayBeRepeat: false,
  };
}

Deno.test("a message of a room that waits is known as delivered once a session has it", async () => {
  const world = new World();
  world.arrive(1);
  world.arrive(3);
  assert.deepEqual([world.got, world.known], [[1], [1]]);
  world.arrive(2);
  assert.deepEqual([world.got, world.known], [[1, 2, 3], [1, 2, 3]]);
  world.arrive(3, "a repeat", { mayBeRepeat: true });
  assert.deepEqual([world.got, world.settled], [[1, 2, 3], ["a repeat"]]);
  await world.order.close();
});

Deno.test("a message of a room that was read from the database is known when it comes", async () => {
  const world = new World();
  world.arrive(1);
  world.arrive(3);
  await world.wait(250);
  assert.deepEqual(world.got, [1, 2, 3]);
  world.arrive(2, "a copy", { isCopy: true, isSpread: true });
  world.arrive(2, "itself", { isSpread: true });
  world.arrive(2, "a repeat", { mayBeRepeat: true });
  assert.deepEqual(world.settled, ["a copy", "itself", "a repeat"]);
  assert.deepEqual([world.got, world.known], [[1, 2, 3], [1, 2, 3]]);
  await world.order.close();
});

Deno.test("of a message of a room that comes twice while it waits the second one stays", async () => {
  const twice: readonly (readonly [string, Partial<EnvelopeFields>])[] = [
    ["over another lane", { mayBeRepeat: true }],
    ["from the node that took the room over", { process: 8, sequence: 55 }],
  ];
  for (const [name, fields] of twice) {
    const world = new World();
    world.arrive(1);
    world.arrive(3, "whose node has died");
    world.arrive(3, name, fields);
    assert.deepEqual(
      world.settled,
      ["whose node has died"],
      "a client has still to acknowledge it",
    );
    world.arrive(2);
    world.arrive(3, `${name}, again`, { ...fields, mayBeRepeat: true });
    assert.deepEqual([world.got, world.settled.slice(1)], [[1, 2, 3], [`${name}, again`]]);
    await world.order.close();
  }
});

Deno.test("a session that leaves gets the messages of a room that wait, and the others go on waiting", async () => {
  const world = new World();
  world.arrive(1);
  world.arrive(3);
  world.order.leaving(PHONE, false);
  assert.deepEqual([world.got, world.gotByPhone, world.known], [[1], [3], [1]]);
  await world.wait(250);
  assert.deepEqual(world.got, [1, 2, 3], "what is missing is still read");
  assert.deepEqual(world.settled, []);
  await world.order.close();
});
