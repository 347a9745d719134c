import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import { openStream, RawSocket, SlixmppClient } from "../clients/mod.ts";
import type { Cluster, Datacenter } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { logIn } from "./_log_in.ts";
import { PING } from "./_ping.ts";
import { bare, becomeAvailable, isPresence, Stage } from "./_stage.ts";
import { runUsersCommand } from "./_users_command.ts";

const BOOKMARKS = "<query xmlns='jabber:iq:private'><storage xmlns='storage:bookmarks'/></query>";
const REMOVE = "<query xmlns='jabber:iq:register'><remove/></query>";
const LAST = "<query xmlns='jabber:iq:last'/>";
/** Failures of clients whose session has ended. */
const ENDED = /not-authorized|disconnected|closed/;
const VCARD = "<vCard xmlns='vcard-temp'/>";
const SEARCH = "<query xmlns='jabber:iq:search'><x xmlns='jabber:x:data' type='submit'>" +
  "<field var='fn'><value>alice*</value></field></x></query>";

/** Data of accounts, and accounts in the hands of their owners, with the plugins of real clients. */
export const ACCOUNT_DATA: Scenario = {
  name: "account-data",
  summary:
    "bookmarks, vCards and passwords that people change at one datacenter are so at all of " +
    "them, and an account that is deleted leaves nothing",
  replications: ["builtin"],
  options: {
    configure: (configuration, { name }) => {
      // Nodes of dc1 and dc2 do not look by themselves: a notice ends sessions there, or nothing does.
      configuration.modules["mod_vcard"] = { search: true, search_finds: "all" };
      configuration.modules["mod_register"] = { allow_registration: true };
      configuration["limits"] = { account_check_interval: name === "dc3" ? 1 : 86_400 };
    },
  },
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const [dc1, dc2, dc3] = cluster.datacenters as [Datacenter, Datacenter, Datacenter];
    const account = (who: string) => `${who}@${cluster.globalHost}`;
    const alice = slixmpp(await stage.enter("alice", "dc1", { library: "slixmpp" }));
    const laptop = await stage.enter("alice", "dc2");
    const bob = slixmpp(await stage.enter("bob", "dc3", { library: "slixmpp" }));

    await alice.task("store_bookmark", { room: "tea@rooms.example.com", nick: "Älice 😀" });
    assert.deepEqual(await alice.task("read_bookmarks"), ["tea@rooms.example.com Älice 😀"]);
    const bookmarks = await laptop.iq({ type: "get", payload: BOOKMARKS });
    assert.match(bookmarks.xml, /jid=["']tea@rooms\.example\.com["']/);
    assert.deepEqual(await bob.task("read_bookmarks"), []);
    say("alice stores a bookmark at dc1, her client at dc2 reads it, and bob does not");

    for (const who of ["alice", "nobody"]) {
      await assert.rejects(bob.task("read_name", { of: account(who) }), /^Error: item-not-found$/);
    }
    await alice.task("publish_avatar", { text: "not really a picture" });
    const pictured = await laptop.iq({ type: "get", payload: VCARD });
    assert.match(pictured.xml, /<BINVAL>/);
    await alice.task("publish_name", { name: "Alice <A> & Co." });
    assert.equal(await bob.task("read_name", { of: account("alice") }), "Alice <A> & Co.");
    for (const type of ["get", "set"] as const) {
      const answer = await bob.iq({ type, to: account("alice"), payload: BOOKMARKS });
      assert.equal(answer.errorCondition, "service-unavailable");
    }
    const search = async () =>
      (await bob.iq({ type: "set", to: cluster.globalHost, payload: SEARCH })).xml;
    assert.match(await search(), new RegExp(`<value>${account("alice")}</value>`));
    say(
      "bob at dc3 reads the vCard that she wrote at dc1 and finds her by it, and nothing private",
    );

    const phone = await stage.enterAvailable("alice", "dc1");
    await phone.presence({ type: "unavailable" });
    await cluster.until(
      async () => {
        const answer = await laptop.iq({ type: "get", to: account("alice"), payload: LAST });
        return /<query [^>]*seconds=["']\d+["']/.test(answer.xml);
      },
      { what: "alice's last logout is noted" },
    );
    for (const who of ["alice", "nobody"]) {
      const answer = await bob.iq({ type: "get", to: account(who), payload: LAST });
      assert.equal(answer.errorCondition, "forbidden");
    }
    const uptime = await bob.iq({ type: "get", to: cluster.globalHost, payload: LAST });
    assert.match(uptime.xml, /seconds=["']\d+["']/);
    for (const client of [bob, alice]) await becomeAvailable(client);
    await bob.presence({ to: account("alice"), type: "subscribe" });
    await alice.presence({ to: account("bob"), type: "subscribed" });
    await cluster.until(
      async () => {
        const answer = await bob.iq({ type: "get", to: account("alice"), payload: LAST });
        return /<query [^>]*seconds=["']0["']/.test(answer.xml);
      },
      { what: "bob reads that alice is online" },
    );
    await bob.expectStanza(isPresence({ from: alice.jid, type: undefined }));
    say("her client at dc2 reads when her phone left dc1; bob may, once he sees her presence");

    await bob.task("tell_state", { state: "inactive" });
    const heard = bob.received.length;
    for (const priority of [1, 2]) await alice.presence({ to: bob.jid, priority });
    await alice.sendMessage(bob.jid, "wake up");
    await bob.expectMessage("wake up");
    const presences = bob.received.slice(heard).filter(({ kind, from, body }) =>
      from === alice.jid && (kind === "presence" || body === "wake up")
    );
    assert.equal(presences.length, 2, "the earlier presence was never sent");
    assert.match(presences[0]!.xml, /<priority>2</);
    await bob.task("tell_state", { state: "active" });
    say("while bob's client is inactive, it gets her newest presence alone, before her message");

    await alice.task("change_password", { password: "new secret" });
    for (const at of [dc1, dc2, dc3]) {
      assert.equal(await logIn(at, "alice", "new secret"), "in");
      assert.equal(await logIn(at, "alice", "secret"), "not-authorized");
    }
    for (const client of [alice, laptop]) await expectAnswer(client);
    say("she changes her password at dc1: the old one is refused everywhere, her sessions stay");

    const removed = await alice.iq({ type: "set", payload: REMOVE });
    assert.equal(removed.type, "result");
    for (const client of [alice, laptop]) {
      await assert.rejects(client.expectMessage("anything"), ENDED);
    }
    for (const at of [dc1, dc2, dc3]) {
      assert.equal(await logIn(at, "alice", "new secret"), "not-authorized");
    }
    await assert.rejects(
      bob.task("read_name", { of: account("alice") }),
      /^Error: item-not-found$/,
    );
    say("she deletes her account at dc1: her sessions there and at dc2 end, and her vCard is gone");

    assert.doesNotMatch(await search(), /alice@/);
    await register(cluster, "dc2", "alice", "a third secret");
    const heiress = await stage.enter("alice", "dc2", { password: "a third secret" });
    const left = await heiress.iq({ type: "get", payload: BOOKMARKS });
    assert.doesNotMatch(left.xml, /conference/);
    say("somebody else registers the name at dc2, and finds nothing of hers");

    await runUsersCommand(cluster, dc1, ["remove", account("bob")]);
    await assert.rejects(bob.expectMessage("anything"), ENDED);
    await expectAnswer(heiress);
    say("an operator deletes bob's account with the command: his session at dc3 ends too");

    const reader = await stage.enter("alice", "dc1", { password: "a third secret" });
    await runUsersCommand(cluster, dc1, ["remove", account("alice")]);
    await runUsersCommand(cluster, dc1, ["add", account("alice")], "a fourth secret");
    assert.ok(await isRefused(heiress, "set"), "nothing changes");
    await cluster.until(
      () => isRefused(reader, "get"),
      { what: "a session that was looked up more than two seconds ago reads nothing" },
    );
    for (const client of [heiress, reader]) {
      await assert.rejects(client.expectMessage("anything"), ENDED);
    }
    say("the name gets another owner: sessions of the last one change and read nothing, and end");
  },
};

/** Makes an account as a client does that has none (XEP-0077 §3.1). */
async function register(
  cluster: Cluster,
  at: string,
  localpart: string,
  password: string,
): Promise<void> {
  const { port } = cluster.datacenter(at).clientAddress("direct");
  const tls = { caCerts: [cluster.authority.certificatePem], serverName: cluster.globalHost };
  await using socket = await RawSocket.connect({ port, tls });
  const features = await openStream(socket, cluster.globalHost);
  assert.match(features, /<register xmlns='http:\/\/jabber.org\/features\/iq-register'\/>/);
  await socket.send(
    `<iq type='set' id='r1' to='${cluster.globalHost}'><query xmlns='jabber:iq:register'>` +
      `<username>${localpart}</username><password>${password}</password></query></iq>`,
  );
  assert.match(await socket.readUntil(">"), /^<iq [^>]*type='result'\/>$/);
}

function slixmpp(client: ChatClient): SlixmppClient {
  assert.ok(client instanceof SlixmppClient);
  return client;
}

/** True when a request is refused, or the session has ended before: a notice may be faster. */
async function isRefused(client: ChatClient, type: "get" | "set"): Promise<boolean> {
  try {
    const { errorCondition } = await client.iq({ type, payload: BOOKMARKS });
    return errorCondition === "registration-required";
  } catch (thrown) {
    assert.match(String(thrown), ENDED);
    return true;
  }
}

async function expectAnswer(client: ChatClient): Promise<void> {
  const answer = await client.iq({ type: "get", to: bare(client.jid), payload: PING });
  assert.equal(answer.type, "result");
}
