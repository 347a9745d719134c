import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { PING } from "./_ping.ts";
import { bare, Stage } from "./_stage.ts";

const VERSION = "<query xmlns='jabber:iq:version'/>";
const LAST = "<query xmlns='jabber:iq:last'/>";
const TIME = "<time xmlns='urn:xmpp:time'/>";
const INFO = "<query xmlns='http://jabber.org/protocol/disco#info'/>";
const ITEMS = "<query xmlns='http://jabber.org/protocol/disco#items'/>";

/** Features of a host. The scenario then uses those that the host itself answers for. */
const FEATURES = [
  "http://jabber.org/protocol/disco#info",
  "http://jabber.org/protocol/disco#items",
  "http://jabber.org/protocol/pubsub",
  "http://jabber.org/protocol/pubsub#access-open",
  "http://jabber.org/protocol/pubsub#access-presence",
  "http://jabber.org/protocol/pubsub#access-roster",
  "http://jabber.org/protocol/pubsub#access-whitelist",
  "http://jabber.org/protocol/pubsub#auto-create",
  "http://jabber.org/protocol/pubsub#auto-subscribe",
  "http://jabber.org/protocol/pubsub#config-node",
  "http://jabber.org/protocol/pubsub#config-node-max",
  "http://jabber.org/protocol/pubsub#create-and-configure",
  "http://jabber.org/protocol/pubsub#create-nodes",
  "http://jabber.org/protocol/pubsub#delete-items",
  "http://jabber.org/protocol/pubsub#delete-nodes",
  "http://jabber.org/protocol/pubsub#filtered-notifications",
  "http://jabber.org/protocol/pubsub#instant-nodes",
  "http://jabber.org/protocol/pubsub#item-ids",
  "http://jabber.org/protocol/pubsub#last-published",
  "http://jabber.org/protocol/pubsub#member-affiliation",
  "http://jabber.org/protocol/pubsub#modify-affiliations",
  "http://jabber.org/protocol/pubsub#multi-items",
  "http://jabber.org/protocol/pubsub#outcast-affiliation",
  "http://jabber.org/protocol/pubsub#persistent-items",
  "http://jabber.org/protocol/pubsub#presence-subscribe",
  "http://jabber.org/protocol/pubsub#publish",
  "http://jabber.org/protocol/pubsub#publish-options",
  "http://jabber.org/protocol/pubsub#purge-nodes",
  "http://jabber.org/protocol/pubsub#retract-items",
  "http://jabber.org/protocol/pubsub#retrieve-default",
  "http://jabber.org/protocol/pubsub#retrieve-items",
  "jabber:iq:last",
  "jabber:iq:privacy",
  "jabber:iq:private",
  "jabber:iq:register",
  "jabber:iq:version",
  "urn:xmpp:blocking",
  "urn:xmpp:carbons:2",
  "urn:xmpp:ping",
  "urn:xmpp:time",
  "vcard-temp",
];

/** Services of the hosts, asked from every datacenter. */
export const HOST_SERVICES: Scenario = {
  name: "host-services",
  summary:
    "users of every datacenter get ping, disco, version and time from the global and all local hosts",
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const users = await Promise.all([
      stage.enter("alice", "dc1"),
      stage.enter("bob", "dc2", { library: "slixmpp" }),
      stage.enter("carol", "dc3"),
    ]);
    const locals = cluster.datacenters.map((each) => each.localHost);
    for (const [index, user] of users.entries()) {
      for (const host of [cluster.globalHost, ...locals]) await expectServices(user, host);
      say(`${user.jid} asks ${cluster.globalHost}, ${locals.join(", ")} from dc${index + 1}`);
    }

    for (const user of users) {
      // No address: the server answers on behalf of the account (RFC 6120 §8.1.1.1, §10.3.3).
      await expectResult(user, undefined, PING);
      const info = await expectResult(user, bare(user.jid), INFO);
      assert.match(info.xml, /category=["']account["']/);
      const items = await expectResult(user, bare(user.jid), ITEMS);
      assert.doesNotMatch(items.xml, /<item/);
      await expectRefusal(user, undefined, "<query xmlns='urn:example'/>");
    }
    say("a user's own account answers");

    for (const user of users) {
      for (const other of users) {
        if (other !== user) await expectRefusal(user, bare(other.jid), PING);
        if (other !== user) await expectRefusal(user, bare(other.jid), INFO);
        if (other !== user) await expectNoItems(user, bare(other.jid));
      }
    }
    say("other users' accounts reveal nothing");

    for (const user of users) {
      const others = users.filter((other) => other !== user).map(({ jid }) => bare(jid));
      await expectOneOrder(user, [`nobody@${cluster.globalHost}`, ...others]);
    }
    say("the answers come in the order of the requests, whether or not the account exists");

    for (const user of users) {
      for (const host of [cluster.globalHost, ...locals]) {
        const id = await user.sendMessage(host, "hello, server");
        const error = await user.expectError(id, "service-unavailable");
        assert.deepEqual([error.from, error.to], [host, user.jid]);
        await user.presence({ to: host });
      }
    }
    for (const user of users) {
      await user.expectNothingElse();
      for (const other of users) if (other !== user) await user.expectNothingElse(other);
    }
    say("hosts take no messages, and ignore presence; nothing else arrived");
  },
};

/** Checks the answer to a stranger about an account, existing or not (XEP-0030 §8). */
async function expectNoItems(user: ChatClient, account: string): Promise<void> {
  const items = await expectResult(user, account, ITEMS);
  assert.match(items.xml, /<query /);
  assert.doesNotMatch(items.xml, /<item/);
}

/**
 * Asks all accounts the same at once: an account that takes longer to look up would answer later.
 */
async function expectOneOrder(user: ChatClient, accounts: readonly string[]): Promise<void> {
  for (const payload of [PING, VERSION, LAST, INFO]) {
    const before = user.received.length;
    const answers = accounts.map((to) => user.iq({ type: "get", to, payload }));
    for (const answer of await Promise.all(answers)) assert.equal(answer.type, "error", answer.xml);
    assert.deepEqual(user.received.slice(before).map(({ from }) => from), accounts, payload);
  }
  const before = user.received.length;
  const rooms = await Promise.all(
    accounts.map((to) => user.sendMessage(to, "hello", { type: "groupchat" })),
  );
  for (const id of rooms) await user.expectError(id, "service-unavailable");
  assert.deepEqual(user.received.slice(before).map(({ from }) => from), accounts);
}

async function expectServices(user: ChatClient, host: string): Promise<void> {
  const ping = await expectResult(user, host, PING);
  assert.doesNotMatch(ping.xml, /<ping/);
  const version = await expectResult(user, host, VERSION);
  assert.match(version.xml, /<name>Causeway<\/name>/);
  assert.match(version.xml, /<version>\d+\.\d+\.\d+[^<]*<\/version>/);
  const time = await expectResult(user, host, TIME);
  assert.match(time.xml, /<tzo>[+-]\d\d:\d\d<\/tzo>/);
  const utc = /<utc>([^<]+)<\/utc>/.exec(time.xml)?.[1] ?? "";
  assert.match(utc, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  assert.ok(Math.abs(Date.parse(utc) - Date.now()) < 60_000, `${host} says it is ${utc}`);
  const info = await expectResult(user, host, INFO);
  assert.match(info.xml, /<identity [^>]*category=["']server["']/);
  assert.match(info.xml, /<identity [^>]*type=["']im["']/);
  const features = [...info.xml.matchAll(/<feature [^>]*var=["']([^"']+)["']/g)];
  assert.deepEqual(features.map(([, name]) => name), FEATURES);
  await expectResult(user, host, ITEMS);
  await expectRefusal(user, host, "<query xmlns='urn:example'/>");
}

async function expectResult(
  user: ChatClient,
  to: string | undefined,
  payload: string,
): Promise<ReceivedStanza> {
  const answer = await user.iq({ type: "get", payload, ...(to === undefined ? {} : { to }) });
  assert.equal(answer.type, "result", `${to} answers ${answer.xml} to ${payload}`);
  assertFrom(answer, user, to);
  return answer;
}

async function expectRefusal(
  user: ChatClient,
  to: string | undefined,
  payload: string,
): Promise<void> {
  const answer = await user.iq({ type: "get", payload, ...(to === undefined ? {} : { to }) });
  assert.equal(answer.errorCondition, "service-unavailable", `${to} answers ${answer.xml}`);
  assertFrom(answer, user, to);
}

/**
 * Checks the `from` of an answer. An answer to a request without `to` may omit it (RFC 6120
 * §8.1.2.1).
 */
function assertFrom(answer: ReceivedStanza, user: ChatClient, to: string | undefined): void {
  if (to === undefined) assert.ok(answer.from === undefined || answer.from === bare(user.jid));
  else assert.equal(answer.from, to);
  assert.equal(answer.to, user.jid);
}
