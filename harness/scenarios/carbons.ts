import assert from "node:assert/strict";
import { type ChatClient, newId } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { bare, Stage } from "./_stage.ts";
import { TWO_NODES, withoutCache } from "./_two_nodes.ts";

const ENABLE = "<enable xmlns='urn:xmpp:carbons:2'/>";
const DISABLE = "<disable xmlns='urn:xmpp:carbons:2'/>";
const PRIVATE = "<private xmlns='urn:xmpp:carbons:2'/>";
/** Messages of the run that shows the order of carbons. */
const MESSAGES = 40;

/** Message carbons over nodes and datacenters (XEP-0280). */
export const CARBONS: Scenario = {
  name: "carbons",
  summary: "each device of a person gets what the others send and receive, in every datacenter",
  replications: ["builtin"],
  options: withoutCache({ ...TWO_NODES, datacenters: 3 }),
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const alice = await stage.enterAvailable("alice", "dc2");
    const phone = await stage.enterAvailable("bob", "dc1", { resource: "phone" });
    const tablet = await stage.enterAvailable("bob", "dc1", { resource: "tablet", node: 1 });
    const watch = await stage.enterAvailable("bob", "dc3", { resource: "watch", node: 1 });
    const laptop = await stage.enterAvailable("bob", "dc2", {
      resource: "laptop",
      node: 1,
      library: "slixmpp",
    });
    const devices = [phone, tablet, watch, laptop];
    await stage.untilTableSaysOfSession(alice, "dc2");
    for (const device of devices) {
      await stage.untilTableSays(device.jid, cluster.datacenter(at(device)).localHost);
      assert.equal((await device.iq({ type: "set", payload: ENABLE })).type, "result");
    }
    const bob = bare(phone.jid);

    for (const device of devices) {
      const body = crypto.randomUUID();
      await alice.sendMessage(device.jid, body);
      await device.expectMessage(body);
      for (const other of devices) {
        if (other !== device) await expectCarbon(other, "received", body);
      }
    }
    say("what alice writes to one device of bob's comes to the three others as a carbon");

    for (const device of devices) {
      const body = crypto.randomUUID();
      await device.sendMessage(alice.jid, body);
      await alice.expectMessage(body);
      for (const other of devices) {
        if (other !== device) await expectCarbon(other, "sent", body);
      }
    }
    say("and so does what bob writes at one of them");

    await alice.sendMessage(bob, "for all");
    for (const device of devices) await device.expectMessage("for all");
    const bodies = Array.from({ length: MESSAGES }, (_, number) => `message ${number}`);
    await Promise.all(bodies.map((body) => phone.sendMessage(alice.jid, body)));
    for (const body of bodies) {
      await alice.expectMessage(body);
      for (const other of [tablet, watch, laptop]) {
        const next = await other.expectMessage(isCarbon);
        assert.ok(
          next.xml.includes(`>${body}<`),
          `${body} comes next at ${other.jid}: ${next.xml}`,
        );
      }
    }
    say(`a message for all is no carbon; ${MESSAGES} carbons came in their order`);

    const nobody = bob.replace("bob", "nobody");
    for (const device of devices) {
      const id = newId("lost");
      await device.sendStanza(
        `<message to='${nobody}' type='chat' id='${id}'><body>${id}</body></message>`,
      );
      await device.expectError(id, "service-unavailable");
      for (const other of devices) {
        if (other === device) continue;
        await expectCarbon(other, "sent", id);
        const carbon = await other.expectMessage(({ type, xml }) =>
          type === "error" && isCarbon({ xml })
        );
        assert.ok(carbon.xml.includes(id), `the error for ${id} comes as a carbon: ${carbon.xml}`);
        assert.match(carbon.xml, /<received[ >].*<service-unavailable[ />]/s);
      }
    }
    say("an error that answers one device's message comes to the three others");

    await phone.sendStanza(
      `<message to='${alice.jid}' type='chat' id='p'><body>private</body>${PRIVATE}</message>`,
    );
    await alice.expectMessage("private");
    assert.equal((await laptop.iq({ type: "set", payload: DISABLE })).type, "result");
    await alice.sendMessage(phone.jid, "the last");
    await phone.expectMessage("the last");
    for (const other of [tablet, watch]) await expectCarbon(other, "received", "the last");
    for (const device of [phone, tablet, watch]) await device.iq({ type: "set", payload: DISABLE });
    for (const client of [alice, ...devices]) await client.expectNothingElse();
    say("nothing comes of what is private, nor to a device that has turned carbons off");
  },
};

function at({ jid }: ChatClient): string {
  if (jid.endsWith("/watch")) return "dc3";
  return jid.endsWith("/laptop") ? "dc2" : "dc1";
}

function isCarbon({ xml }: { readonly xml: string }): boolean {
  return xml.includes("urn:xmpp:carbons:2");
}

async function expectCarbon(
  client: ChatClient,
  direction: "sent" | "received",
  body: string,
): Promise<void> {
  const { from, to, xml } = await client.expectMessage((stanza) =>
    isCarbon(stanza) && stanza.xml.includes(`>${body}<`)
  );
  assert.deepEqual([from, to], [bare(client.jid), client.jid]);
  assert.match(xml, new RegExp(`<${direction}[ >]`));
}
