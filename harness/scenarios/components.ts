import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { becomeAvailable, isPresence, Stage } from "./_stage.ts";

/** A component in one datacenter, used from all of them. */
export const COMPONENT: Scenario = {
  name: "component",
  summary: "a component at dc1 answers users of every datacenter, goes, and comes back at dc2",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const echo = await stage.connectComponent("echo", "dc1");
    echo.echo();
    await stage.untilTableSays(echo.jid, "dc1.example.com");
    const users = await Promise.all([
      stage.enter("alice", "dc1"),
      stage.enter("bob", "dc2", { library: "slixmpp" }),
      stage.enter("carol", "dc3", { security: "direct" }),
    ]);
    await expectEchoes(users, echo.jid);
    await expectEchoes(users, `somebody@${echo.jid}/with resource`);
    say("it answers alice, bob and carol, from exactly the address that they wrote to");

    await echo.kill();
    await stage.untilGone(echo.jid);
    await Promise.all(users.map((user) => expectUnavailable(user, echo.jid)));
    say("its connection is cut: messages and requests get service-unavailable");

    const again = await stage.connectComponent("echo", "dc2");
    again.echo();
    await stage.untilTableSays(echo.jid, "dc2.example.com");
    await expectEchoes(users, echo.jid);
    say("it connects to dc2: everyone finds it there");

    await again.disconnect();
    await stage.untilGone(echo.jid);
    await Promise.all(users.map((user) => expectUnavailable(user, echo.jid)));
    for (const user of users) await user.expectNothingElse();
    say("it ends its stream: service-unavailable again, and nothing else arrived");
  },
};

/** A component of an unrelated domain that writes first. */
export const FOREIGN_COMPONENT: Scenario = {
  name: "foreign-component",
  summary:
    "a component of a foreign domain writes from dc2 to users whose nodes do not know it yet",
  replications: ["external", "builtin"],
  options: { components: [{ name: "push.example.net", secret: "far away" }] },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const users = [await stage.enter("alice", "dc1"), await stage.enter("carol", "dc3")];
    const push = await stage.connectComponent("push.example.net", "dc2");
    await stage.untilTableSays(push.jid, "dc2.example.com");
    for (const [i, at] of ["dc1", "dc3"].entries()) {
      await stage.untilTableSaysOfSession(users[i]!, at);
    }
    const bodies = Array.from({ length: 20 }, (_, i) => `news ${i}`);
    for (const user of users) {
      for (const body of bodies) await push.sendMessage(user.jid, body);
      for (const body of bodies) await user.expectMessage(body);
      const seen = user.received.map(({ body }) => body).filter((body) => body?.startsWith("news"));
      assert.deepEqual(seen, bodies);
    }
    say(
      "alice and carol first learn of it from its first message, and all messages come in order",
    );
    for (const user of users) {
      await user.sendMessage(push.jid, "thank you");
      assert.equal((await push.expectMessage("thank you")).from, user.jid);
      await user.expectNothingElse();
    }
    say("they find it, and answer");
  },
};

/** Components find each other as users do. */
export const TWO_COMPONENTS: Scenario = {
  name: "two-components",
  summary: "components in different datacenters talk to each other, and one sends presence",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const rooms = await stage.connectComponent("rooms", "dc2");
    const hidden = await stage.connectComponent("hidden", "dc3");
    await stage.untilTableSays(rooms.jid, "dc2.example.com");
    await stage.untilTableSays(hidden.jid, "dc3.example.com");
    for (const [from, to] of [[rooms, hidden], [hidden, rooms]] as const) {
      const sender = `robot@${from.jid}`;
      const id = await from.sendMessage(`gate@${to.jid}`, "open", { from: sender });
      const message = await to.expectMessage("open");
      assert.deepEqual([message.id, message.from, message.to], [id, sender, `gate@${to.jid}`]);
      await to.sendMessage(sender, "opened", { from: `gate@${to.jid}` });
      const answer = await from.expectMessage("opened");
      assert.deepEqual([answer.from, answer.to], [`gate@${to.jid}`, sender]);
    }
    say("rooms (dc2) and hidden (dc3) write to each other, and answer");

    const alice = await stage.enter("alice", "dc1");
    await alice.presence({ to: rooms.jid });
    await rooms.expectStanza(isPresence({ from: alice.jid, type: undefined }));
    await rooms.presence({ to: alice.jid });
    await alice.expectStanza(isPresence({ from: rooms.jid, type: undefined }));
    await becomeAvailable(alice);
    await alice.disconnect();
    await rooms.expectStanza(isPresence({ from: alice.jid, type: "unavailable" }));
    say("alice (dc1) sends rooms presence and leaves: rooms gets both");

    await rooms.expectNothingElse(hidden);
    await hidden.expectNothingElse(rooms);
    say("nothing else arrived");
  },
};

const DISCO_ITEMS = "http://jabber.org/protocol/disco#items";

/** The disco lists of every datacenter. */
export const COMPONENT_LISTING: Scenario = {
  name: "component-listing",
  summary: "disco at every datacenter lists the components of all datacenters except hidden ones",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const asking = await Promise.all([
      stage.enter("alice", "dc1"),
      stage.enter("bob", "dc2"),
      stage.enter("carol", "dc3"),
    ]);
    const hosts = [cluster.globalHost, ...cluster.datacenters.map((each) => each.localHost)];
    const untilListed = async (...domains: readonly string[]) => {
      for (const user of asking) {
        for (const host of hosts) {
          await cluster.until(async () => {
            assert.deepEqual(await itemsOf(user, host), domains);
            return true;
          }, { what: `disco of ${host} lists ${domains} to ${user.jid}` });
        }
      }
    };
    const echo = await stage.connectComponent("echo", "dc1");
    const hidden = await stage.connectComponent("hidden", "dc1");
    await stage.untilTableSays(hidden.jid, "dc1.example.com");
    await untilListed(echo.jid);
    say("echo is listed by the global host and every local host, to alice, bob and carol");

    const rooms = await stage.connectComponent("rooms", "dc3");
    await untilListed(echo.jid, rooms.jid);
    say("so is rooms, from dc3");

    await asking[1]!.sendMessage(hidden.jid, "psst"); // one of three
    await hidden.expectMessage("psst");
    say("hidden is reached from dc2, and listed nowhere");

    await echo.disconnect();
    await untilListed(rooms.jid);
    await rooms.kill();
    await untilListed();
    say("a component that disconnects is no longer listed");
  },
};

async function expectEchoes(users: readonly ChatClient[], address: string): Promise<void> {
  await Promise.all(users.map(async (user) => {
    const body = `${user.jid} → ${address}`;
    const id = await user.sendMessage(address, body);
    const echo = await user.expectMessage(body);
    assert.deepEqual([echo.from, echo.to, echo.id], [address, user.jid, id]);
  }));
}

async function expectUnavailable(user: ChatClient, domain: string): Promise<void> {
  const asking = user.iq({
    type: "get",
    to: domain,
    payload: `<query xmlns='${DISCO_ITEMS}'/>`,
  });
  const id = await user.sendMessage(domain, "are you there?");
  const error = await user.expectError(id, "service-unavailable");
  assert.deepEqual([error.from, error.to], [domain, user.jid]);
  const answer = await asking;
  assert.deepEqual([answer.from, answer.errorCondition], [domain, "service-unavailable"]);
}

async function itemsOf(user: ChatClient, host: string): Promise<readonly string[]> {
  const answer = await user.iq({
    type: "get",
    to: host,
    payload: `<query xmlns='${DISCO_ITEMS}'/>`,
  });
  assert.deepEqual([answer.type, answer.from], ["result", host]);
  return [...answer.xml.matchAll(/<item [^>]*jid=["']([^"']+)["']/g)].map(([, jid]) => jid!);
}
