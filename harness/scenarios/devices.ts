import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { type Scenario } from "../scenario.ts";
import { untilNothingIsHeld } from "./_figures.ts";
import { bare, becomeAvailable, Stage } from "./_stage.ts";
import { TWO_NODES, withoutCache } from "./_two_nodes.ts";

/** Messages of the run that shows each device's order. */
const MESSAGES = 60;

/** One person with several devices in several datacenters (RFC 6121 §8.5.2). */
export const DEVICES: Scenario = {
  name: "devices",
  summary: "messages for a person reach all their devices, in whichever datacenter each is",
  options: withoutCache({ ...TWO_NODES, datacenters: 3 }),
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const senders: ChatClient[] = [];
    for (const at of ["dc1", "dc2", "dc3"]) senders.push(await stage.enterAvailable("alice", at));
    const phone = await stage.enterAvailable("bob", "dc1", { resource: "phone" });
    const bob = bare(phone.jid);
    const laptop = await stage.enter("bob", "dc2", { resource: "laptop", node: 1 });
    await stage.untilTableSaysOfSession(laptop, "dc2");
    const expectAt = async (devices: readonly ChatClient[], type: string, to = bob) => {
      for (const sender of senders) {
        const body = crypto.randomUUID();
        await sender.sendMessage(to, body, { type });
        for (const device of devices) {
          assert.equal((await device.expectMessage(body)).from, sender.jid);
        }
      }
    };
    for (const type of ["chat", "normal", "headline"]) await expectAt([phone], type);
    say("bob's laptop has logged in last, without presence: his phone gets what is for him");

    await laptop.presence({ priority: -1 });
    for (const type of ["chat", "normal", "headline"]) await expectAt([phone], type);
    say("nor does a negative priority of the laptop keep anything from the phone");

    // A copy that is still on its way to the laptop would reach it as soon as it is available.
    await untilNothingIsHeld(cluster);
    await becomeAvailable(laptop, 0);
    for (const type of ["chat", "normal", "headline"]) await expectAt([phone, laptop], type);
    await expectAt([phone, laptop], "chat", `${bob}/gone`);
    await expectAt([laptop], "chat", laptop.jid);
    say("both available: both get what is for bob, and one what is for it alone");

    const [sender] = senders;
    const bodies = Array.from({ length: MESSAGES }, (_, number) => `message ${number}`);
    await Promise.all(bodies.map((body) => sender!.sendMessage(bob, body)));
    for (const device of [phone, laptop]) {
      const got = [];
      for (const _ of bodies) got.push((await device.expectMessage(() => true)).body);
      assert.deepEqual(got, bodies, `at ${device.jid}`);
    }
    say(`${MESSAGES} messages came to both in their order`);

    await phone.sendMessage(bob, "note to myself");
    for (const device of [phone, laptop]) await device.expectMessage("note to myself");
    say("a note to oneself comes to all one's devices");

    await phone.disconnect();
    await stage.untilGone(phone.jid);
    await expectAt([laptop], "chat");
    await laptop.presence({ priority: -1 });
    const id = await sender!.sendMessage(bob, "nobody gets this");
    await sender!.expectError(id, "service-unavailable");
    for (const client of [...senders, laptop]) await client.expectNothingElse();
    say("the laptop goes on alone; with nobody to take it, a message comes back as an error");
  },
};
