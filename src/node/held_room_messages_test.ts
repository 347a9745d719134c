import assert from "node:assert/strict";
import type { EnvelopeFields } from "../distribution/mod.ts";
import { FullJid, parseJid } from "../xmpp/mod.ts";
import type { Delivery as SessionDelivery, Stanza } from "../xmpp/mod.ts";
import {
  messageInDatabase,
  messageOverLane,
  numberIn,
  RoomDelivery,
} from "./testing/room_delivery.ts";

const PHONE = parseJid("bob@example.com/phone") as FullJid;

const CLIENT = { priority: 0, hasCarbons: false, isConfidential: true };

/** The last step of routing at a node with two sessions of one person, and messages of a room for it. */
class World {
  /** Numbers of the messages that the sessions got. */
  readonly got: number[] = [];
  /** Numbers of the messages that the phone got alone, before it left. */
  readonly gotByPhone: number[] = [];
  /** Names of what is settled. */
  readonly settled: string[] = [];
  readonly #node = new RoomDelivery({
    sessions: {
      find: (jid) => jid === PHONE ? { ...CLIENT, jid, send: () => true } : undefined,
      ofAccount: () => [{ jid: PHONE, priority: 0, lastPresence: undefined }],
      deliver: (stanza, delivery) => this.#keep(this.got, stanza, delivery),
      deliverTo: (_, stanza, delivery) => this.#keep(this.gotByPhone, stanza, delivery),
    },
    messages: (_, { after = 0, before = 9 }) =>
      Promise.resolve(
        [1, 2, 3].filter((number) => number > after && number < before).map(messageInDatabase),
      ),
    returned: () => assert.fail("the sessions are here"),
    answer: () => assert.fail("nobody is to be answered"),
  });
  readonly order = this.#node.order;

  /** A message of the room comes over a lane. */
  arrive(number: number, name = `${number}`, fields: Partial<EnvelopeFields> = {}): void {
    const settle = () => void this.settled.push(name);
    this.#node.deliver(messageOverLane(number, fields, settle));
  }

  async wait(ms: number): Promise<void> {
    this.#node.clock.advance(ms);
    await new Promise((resolve) => setTimeout(resolve)); // it reads meanwhile
  }

  /** Numbers within their process of what was delivered to the account, as a session takes them along. */
  get known(): readonly number[] {
    return this.#node.memory.deliveredTo(PHONE.bare.text, 9)
      .flatMap(({ recent }) => recent).toSorted();
  }

  /** Clients acknowledge nothing. */
  #keep(got: number[], stanza: Stanza, delivery: SessionDelivery): "delivered" {
    delivery.retain();
    got.push(numberIn(stanza));
    return "delivered";
  }
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
