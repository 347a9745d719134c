import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { ALICE, BOB, COVEN, MucWorld } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

const PHONE = "bob@example.com/phone";

/** A room with alice and bob at dc1, and bob's phone at dc2, which came last. */
async function withPhone(): Promise<[MucWorld, MucNode, MucNode]> {
  const world = await MucWorld.open(["dc1.example.com", "dc2.example.com"]);
  const [one, two] = world.nodes as [MucNode, MucNode];
  await one.make(ALICE, "witch");
  await one.enter(BOB, "bard");
  world.clock.advance(5);
  await two.enter(PHONE, "bard");
  return [world, one, two];
}

/** Makes alice ask bob for something, and returns the devices that are asked. */
async function asked(one: MucNode, two: MucNode): Promise<readonly string[]> {
  const devices = [[one, BOB], [two, PHONE]] as const;
  for (const [node, jid] of devices) node.got(jid);
  await one.ask(ALICE, "get", "<query xmlns='jabber:iq:version'/>", `${COVEN}/bard`);
  return devices.filter(([node, jid]) => node.got(jid).some((xml) => xml.startsWith("<iq")))
    .map(([, jid]) => jid);
}

Deno.test("a request goes to no device that has no connection at another node", async () => {
  const [world, one, two] = await withPhone();
  await using _ = world;
  deepStrictEqual(await asked(one, two), [PHONE]);
  two.away.add(PHONE);
  await world.look();
  deepStrictEqual(await asked(one, two), [BOB]);
  two.away.delete(PHONE);
  await world.look();
  deepStrictEqual(await asked(one, two), [PHONE]);
});

Deno.test("a device that comes back at its old node is not taken for asleep", async () => {
  const [world, one, two] = await withPhone();
  await using _ = world;
  const three = world.begin("dc3.example.com");
  two.away.add(PHONE);
  await world.look(3);
  two.away.delete(PHONE);
  three.resume(PHONE, two);
  await world.look(3);
  two.resume(PHONE, three);
  await world.look(3);
  deepStrictEqual(await asked(one, two), [PHONE]);
});

Deno.test("nodes tell nothing of a device without a connection that has its nickname alone", async () => {
  const [world, one, two] = await withPhone();
  await using _ = world;
  let told = 0;
  const { tell } = world;
  world.tell = (from, host, stanza) => {
    if (new TextDecoder().decode(stanza.bytes).includes("<asleep")) told++;
    tell.call(world, from, host, stanza);
  };
  one.away.add(ALICE);
  await world.look();
  strictEqual(told, 0);
  two.away.add(PHONE);
  await world.look();
  strictEqual(told, 1);
});
