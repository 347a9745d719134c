import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import type { RoomMessage } from "../../storage/mod.ts";
import { buildStanza, parseElement, parseJid } from "../../xmpp/mod.ts";
import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import { CopyOrder } from "./copy_order.ts";
import type { RoomCopy } from "./copy_order.ts";

const COVEN = "coven@muclight.example.com";

/** One person at a node. */
class World {
  readonly clock = new ManualClock();
  readonly got: string[] = [];
  readonly kept: RoomMessage[] = [];
  settled = 0;
  /** True while what arrives are copies, of which others are answered for. */
  areCopies = false;
  /** True for each message that was given after it had waited, if it was a copy. */
  readonly gotCopies: boolean[] = [];
  /** Messages that sessions got which leave. */
  readonly gotToo: string[] = [];
  isDown = false;
  /** Ends the readings that wait; undefined while none is slow. */
  slow: (() => void)[] | undefined;
  /** True while the person has no session here. */
  isGone = false;
  readonly order = new CopyOrder<RoomCopy>({
    read: async (_, { after, before, limit }) => {
      if (this.isDown) throw new Error("down");
      if (this.slow !== undefined) await new Promise<void>((end) => this.slow!.push(end));
      const found = this.kept.filter(({ number }) => number > after && number < before);
      return found.slice(-limit);
    },
    give: ({ stanza, isCopy }) => {
      this.gotCopies.push(isCopy);
      this.#note(stanza);
    },
    giveTo: ({ text }, { stanza }) => void this.gotToo.push(`${text}: ${bodyOf(stanza)}`),
    drop: (copy) => copy.settle(),
    giveMissing: (message) => {
      if (this.isGone) return false;
      this.#note(message);
      return true;
    },
    metrics: new MetricsRegistry(this.clock),
    logger: SILENT_LOGGER,
    clock: this.clock,
  });

  /** Messages arrive in this order. */
  arrive(...numbers: readonly (number | string)[]): void {
    for (const number of numbers) {
      const id = typeof number === "string"
        ? ""
        : `<stanza-id xmlns='urn:xmpp:sid:0' by='${COVEN}' id='${number}'/>`;
      const xml = `<message from='${COVEN}/alice@example.com' to='bob@example.com' ` +
        `type='groupchat'><body>${number}</body>${id}</message>`;
      const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
      const settle = () => void this.settled++;
      const copy = { stanza, isCopy: this.areCopies, detach() {}, settle };
      if (!this.order.take(copy)) this.#note(stanza);
    }
  }

  /** The room tells of a change of somebody's affiliation. */
  tell(jid: string): void {
    const xml = `<message from='${COVEN}' to='bob@example.com' type='groupchat'>` +
      `<x xmlns='urn:xmpp:muclight:0#affiliations'><version>2</version>` +
      `<user affiliation='none'>${jid}</user></x><body/></message>`;
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    strictEqual(this.order.take({ stanza, isCopy: false, detach() {}, settle() {} }), false);
  }

  keep(number: number): void {
    const stanza = `<message from='${COVEN}/alice@example.com' type='groupchat'>` +
      `<body>${number}</body></message>`;
    this.kept.push({ number, id: `${number}`, sentAtMs: 0, stanza });
  }

  async wait(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.work();
  }

  /** Waits until all is done that the clock does not hold up. */
  async work(): Promise<void> {
    for (let i = 0; i < 5; i++) await Promise.resolve();
    await new Promise((resolve) => setTimeout(resolve));
  }

  #note(stanza: Stanza): void {
    this.got.push(bodyOf(stanza));
  }
}

function bodyOf({ bytes }: Stanza): string {
  return /<body>(.*?)</.exec(new TextDecoder().decode(bytes))![1]!;
}

Deno.test("CopyOrder gives messages that overtake each other in the order of their numbers", async () => {
  const world = new World();
  world.arrive(7, 10, 9, "chat", 8, 11);
  deepStrictEqual(world.got, ["7", "chat", "8", "9", "10", "11"]);
  await world.order.close();
});

Deno.test("CopyOrder reads a message that does not come, and drops it when it does", async () => {
  const world = new World();
  for (const number of [1, 2, 3, 4, 5]) world.keep(number);
  world.arrive(1, 3, 5);
  deepStrictEqual(world.got, ["1"]);
  await world.wait(250);
  deepStrictEqual(world.got, ["1", "2", "3", "4", "5"]);
  world.arrive(2, 6, 4);
  deepStrictEqual(world.got, ["1", "2", "3", "4", "5", "6"]);
  strictEqual(world.settled, 2);
  await world.order.close();
});

Deno.test("CopyOrder reads what is missing of a room that has gone far ahead", async () => {
  const world = new World();
  for (let number = 10; number <= 300; number++) world.keep(number);
  world.arrive(10, 12);
  await world.wait(250);
  deepStrictEqual(world.got, ["10", "11", "12"]);
  world.arrive(14, 290);
  await world.wait(250);
  deepStrictEqual(world.got.slice(3, 6), ["13", "14", "15"]);
  strictEqual(world.got.at(-1), "290");
  await world.order.close();
});

Deno.test("CopyOrder lets a copy go its way whose message nobody here took from the database", async () => {
  const world = new World();
  for (const number of [1, 2, 3]) world.keep(number);
  world.arrive(1, 3);
  world.isGone = true;
  await world.wait(250);
  world.arrive(2);
  deepStrictEqual(world.got, ["1", "3", "2"]);
  strictEqual(world.settled, 0);
  await world.order.close();
});

Deno.test("CopyOrder goes on without a message that the database has not", async () => {
  const world = new World();
  world.arrive(1, 3);
  await world.wait(250);
  world.arrive(2);
  deepStrictEqual(world.got, ["1", "3", "2"], "late is better than never");
  world.isDown = true;
  world.arrive(5, 6);
  await world.wait(250);
  deepStrictEqual(world.got.slice(3), ["5", "6"]);
  await world.order.close();
});

Deno.test("CopyOrder keeps the order after a silence, too", async () => {
  const world = new World();
  world.arrive(1);
  await world.wait(60_001);
  world.arrive(3, 2, 4);
  deepStrictEqual(world.got, ["1", "2", "3", "4"]);
  await world.wait(60_001);
  world.arrive(100, 101);
  deepStrictEqual(world.got.slice(4), ["100", "101"], "so much does not come late");
  await world.order.close();
});

Deno.test("CopyOrder reads nothing from before its person has come to the room", async () => {
  const world = new World();
  for (let number = 1; number <= 10; number++) world.keep(number);
  world.arrive(1, 3);
  world.tell("carol@example.com");
  deepStrictEqual(world.got, ["1"], "somebody else comes or goes");
  world.tell("bob@example.com");
  deepStrictEqual(world.got, ["1", "3"]);
  world.arrive(9, 10);
  deepStrictEqual(world.got, ["1", "3", "9", "10"]);
  world.arrive(2, 11);
  deepStrictEqual(world.got.slice(4), ["2", "11"]);
  await world.order.close();
});

Deno.test("CopyOrder reads nothing of what somebody missed long ago, or much of it", async () => {
  const world = new World();
  for (let number = 1; number <= 500; number++) world.keep(number);
  world.arrive(1);
  await world.wait(60_001);
  world.arrive(5);
  await world.wait(250);
  deepStrictEqual(world.got, ["1", "5"]);
  world.arrive(400);
  await world.wait(250);
  deepStrictEqual(world.got, ["1", "5", "400"]);
  await world.order.close();
});

Deno.test("CopyOrder gives what waits when the node stops, and bounds it", async () => {
  const world = new World();
  world.arrive(1, ...Array.from({ length: 2_001 }, (_, i) => i + 3));
  strictEqual(world.got.length, 2_002, "one past the bound waits no longer than those before it");
  deepStrictEqual(world.got.slice(-2), ["2002", "2003"]);
  world.arrive(2_005);
  strictEqual(world.got.length, 2_002);
  await world.order.close();
  strictEqual(world.got.length, 2_003);
  world.arrive(9_000);
  strictEqual(world.got.at(-1), "9000");
});

Deno.test("CopyOrder gives no message twice, though one that it has read comes after a silence", async () => {
  const world = new World();
  for (const number of [1, 2, 3, 4, 5]) world.keep(number);
  world.arrive(1, 3);
  await world.wait(250);
  deepStrictEqual(world.got, ["1", "2", "3"]);
  await world.wait(60_001);
  world.arrive(2); // a link was cut meanwhile
  deepStrictEqual(world.got, ["1", "2", "3"]);
  world.arrive(5);
  await world.wait(250);
  await world.wait(60_001);
  world.arrive(100, 4);
  deepStrictEqual(world.got, ["1", "2", "3", "4", "5", "100"]);
  strictEqual(world.settled, 2);
  await world.order.close();
});

Deno.test("CopyOrder goes on behind the last message, though an earlier one comes after a silence", async () => {
  const world = new World();
  for (const number of [1, 2, 3, 4, 5]) world.keep(number);
  world.arrive(1, 4);
  world.tell("bob@example.com"); // 2 and 3 are late
  deepStrictEqual(world.got, ["1", "4"]);
  await world.wait(60_001);
  world.arrive(2, 5);
  deepStrictEqual(world.got, ["1", "4", "2", "5"]);
  await world.wait(250);
  deepStrictEqual(world.got, ["1", "4", "2", "5"], "4 is not read");
  await world.order.close();
});

Deno.test("CopyOrder reads no message that found no place to wait", async () => {
  const world = new World();
  for (let number = 1; number <= 2_010; number++) world.keep(number);
  world.arrive(1, ...Array.from({ length: 2_001 }, (_, i) => i + 3));
  await world.wait(250);
  world.arrive(2_005);
  await world.wait(250);
  deepStrictEqual(world.got.slice(-3), ["2003", "2004", "2005"]);
  strictEqual(new Set(world.got).size, world.got.length, "none came twice");
  await world.order.close();
});

Deno.test("CopyOrder has a message that comes during a reading wait for earlier ones, too", async () => {
  const world = new World();
  for (let number = 1; number <= 6; number++) world.keep(number);
  world.slow = [];
  world.arrive(1, 3);
  await world.wait(250);
  world.arrive(6);
  world.slow.pop()!();
  await world.work();
  deepStrictEqual(world.got, ["1", "2", "3"]);
  world.arrive(4, 5);
  deepStrictEqual(world.got, ["1", "2", "3", "4", "5", "6"]);
  await world.order.close();
});

Deno.test("CopyOrder gives no message twice, though it has read hundreds that a slow link holds up", async () => {
  const world = new World();
  const late = Array.from({ length: 200 }, (_, i) => 2 * i + 2);
  world.arrive(1);
  for (const number of late) {
    world.keep(number);
    world.arrive(number + 1);
    await world.wait(250);
  }
  strictEqual(world.got.length, 401);
  world.arrive(...late);
  strictEqual(world.got.length, 401);
  strictEqual(world.settled, 200);
  await world.order.close();
});

Deno.test("CopyOrder waits for each missing message, though another one was missing just before", async () => {
  for (const silenceMs of [0, 60_001]) {
    const world = new World();
    world.arrive(1);
    await world.wait(silenceMs);
    world.arrive(3);
    await world.wait(200);
    world.arrive(5, 2);
    await world.wait(200);
    deepStrictEqual(world.got, ["1", "2", "3"]);
    world.arrive(4);
    deepStrictEqual(world.got, ["1", "2", "3", "4", "5"]);
    await world.order.close();
  }
});

Deno.test("CopyOrder gives a message once that comes again while it waits: the one that is answered for", async () => {
  const world = new World();
  world.arrive(1, 3, 3);
  world.areCopies = true;
  world.arrive(3, 4);
  world.areCopies = false;
  world.arrive(4);
  deepStrictEqual([world.got, world.settled], [["1"], 3], "what came first, or is a copy");
  world.arrive(2);
  deepStrictEqual(world.got, ["1", "2", "3", "4"]);
  deepStrictEqual(world.gotCopies.slice(-2), [false, false]);
  strictEqual(world.settled, 3, "those that were given are settled by who has them");
  await world.order.close();
});

Deno.test("CopyOrder gives what waits to a session that leaves, and to others in its turn", async () => {
  const [bob, alice] = ["bob@example.com/phone", "alice@example.com/phone"].map(parseJid);
  const world = new World();
  world.arrive(1, 4, 3);
  for (const isLast of [false, true]) world.order.leaving(alice as FullJid, isLast);
  deepStrictEqual([world.got, world.gotToo], [["1"], []]);
  world.order.leaving(bob as FullJid, false);
  const phone = "bob@example.com/phone";
  deepStrictEqual([world.got, world.gotToo], [["1"], [`${phone}: 3`, `${phone}: 4`]]);
  world.order.leaving(bob as FullJid, true);
  deepStrictEqual(world.got, ["1", "3", "4"], "nobody is here to wait");
  world.arrive(2, 5);
  deepStrictEqual(world.got.slice(3), ["2", "5"]);
  world.arrive(7);
  await world.wait(250);
  deepStrictEqual(world.got.slice(5), ["7"], "the order goes on");
  await world.order.close();
});

Deno.test("CopyOrder reads nothing of what somebody got elsewhere before they came back", async () => {
  const world = new World();
  for (let number = 1; number <= 10; number++) world.keep(number);
  const { bare: bob } = parseJid("bob@example.com/phone");
  world.order.gone(bob);
  world.arrive(1, 3);
  world.order.gone(parseJid("alice@example.com/phone").bare);
  deepStrictEqual(world.got, ["1"]);
  world.order.gone(bob);
  deepStrictEqual(world.got, ["1", "3"], "what waits goes to where they are");
  world.arrive(9, 10);
  deepStrictEqual(world.got.slice(2), ["9", "10"]);
  await world.wait(250);
  strictEqual(world.got.length, 4);
  await world.order.close();
});
