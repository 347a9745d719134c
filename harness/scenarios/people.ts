import assert from "node:assert/strict";
import type { Scenario } from "../scenario.ts";
import type { Person } from "./_person.ts";
import { type ClientKind, enterPerson } from "./_enter_person.ts";
import { bare, Stage } from "./_stage.ts";

/** Each kind of client, in the hands of alice, and the one that bob has then. */
const PAIRS: readonly (readonly [ClientKind, ClientKind])[] = [
  ["slixmpp", "@xmpp"],
  ["@xmpp", "profanity"],
  ["profanity", "slixmpp"],
];

/** Two people do with ordinary clients what those offer, over three datacenters. */
export const PEOPLE: readonly Scenario[] = PAIRS.map(([hers, his]) => ({
  name: `people-with-${hers.replace("@", "")}`,
  summary: `alice, with ${hers} at dc1 and dc3, and bob, with ${his} at dc2, use all that their ` +
    "clients offer",
  options: { datacenters: 3 },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const phone = await enterPerson(stage, { kind: hers, who: "alice", at: "dc1", as: "phone" });
    const laptop = await enterPerson(stage, { kind: hers, who: "alice", at: "dc3", as: "laptop" });
    const bob = await enterPerson(stage, { kind: his, who: "bob", at: "dc2", as: "desk" });
    const devices = [phone, laptop];
    say(`alice's phone and laptop are online with ${hers}, bob with ${his}`);

    await becomeFriends(phone, bob);
    for (const device of devices) await device.expectFriend(bare(bob.jid), "Bobby");
    await bob.expectFriend(bare(phone.jid), "Alice");
    await expectMutualPresence(devices, bob);
    say("they add each other: both of her devices see him, and he sees both");

    await seeEachOtherComeAndGo(devices, bob);
    say("each sees the other leave and come back");

    await copyMessages(phone, laptop, bob);
    say("her laptop gets a copy of what her phone sends and receives, and the other way round");

    await blockAndUnblock(phone, laptop, bob);
    say("she blocks him at her phone and unblocks him at her laptop");

    await phone.publishName("Alice Liddell");
    await bob.publishName("Robert Roe");
    await bob.expectName(bare(phone.jid), "Alice Liddell");
    for (const device of devices) await device.expectName(bare(bob.jid), "Robert Roe");
    say("each reads the name in the other's vCard");

    await phone.addBookmark(`tea@rooms.${cluster.globalHost}`);
    await laptop.expectBookmark(`tea@rooms.${cluster.globalHost}`);
    say("her laptop has the bookmark that she set at her phone");
  },
}));

async function becomeFriends(phone: Person, bob: Person): Promise<void> {
  const [alice, his] = [bare(phone.jid), bare(bob.jid)];
  await phone.add(his, "Bobby");
  await bob.accept(alice);
  await bob.add(alice, "Alice");
  await phone.accept(his);
}

async function expectMutualPresence(devices: readonly Person[], bob: Person): Promise<void> {
  for (const device of devices) {
    await device.expectOnline(bob.jid);
    await bob.expectOnline(device.jid);
  }
}

async function seeEachOtherComeAndGo(devices: readonly Person[], bob: Person): Promise<void> {
  await bob.leave();
  for (const device of devices) await device.expectOffline(bob.jid);
  await bob.comeBack();
  await expectMutualPresence(devices, bob);
  for (const device of devices) {
    await device.leave();
    await bob.expectOffline(device.jid);
    await device.comeBack();
    await expectMutualPresence(devices, bob);
  }
}

async function copyMessages(phone: Person, laptop: Person, bob: Person): Promise<void> {
  for (const device of [phone, laptop]) await device.enableCarbons();
  const his = bare(bob.jid);
  for (const [device, other] of [[phone, laptop], [laptop, phone]] as const) {
    const [question, answer] = [`question-to-${device.jid}`, `answer-of-${device.jid}`];
    await bob.say(device.jid, question);
    await device.expectMessage(bob.jid, question);
    await other.expectCarbon("received", his, question);
    await device.say(bob.jid, answer);
    await bob.expectMessage(device.jid, answer);
    await other.expectCarbon("sent", his, answer);
  }
}

async function blockAndUnblock(phone: Person, laptop: Person, bob: Person): Promise<void> {
  const devices = [phone, laptop];
  const his = bare(bob.jid);
  for (const device of devices) await device.expectBlocked([]);
  await phone.block(his);
  for (const device of devices) {
    await device.expectBlocked([his]);
    await device.expectOffline(bob.jid);
    await bob.expectOffline(device.jid);
    await bob.say(device.jid, `unheard-at-${device.jid}`);
    // The answer comes behind the message.
    await bob.expectRefusedPing(device.jid);
  }
  await laptop.unblock(his);
  await expectMutualPresence(devices, bob);
  for (const device of devices) {
    await device.expectBlocked([]);
    await bob.say(device.jid, `heard-at-${device.jid}`);
    await device.expectMessage(bob.jid, `heard-at-${device.jid}`);
    assert.ok(await device.hasRead(his, `heard-at-${device.jid}`));
    assert.ok(!await device.hasRead(his, "unheard"));
  }
}
