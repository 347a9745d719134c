import assert from "node:assert/strict";
import type { ChatClient } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { accountOf, logInFully } from "./_contacts.ts";
import { PING } from "./_ping.ts";
import { isPresence, Stage } from "./_stage.ts";

/** Resource of the clients. */
const RESOURCE = "desk";

/** Requests of every namespace that is served, and of one that is not. */
const PAYLOADS: readonly string[] = [
  "<query xmlns='http://jabber.org/protocol/disco#info'/>",
  "<query xmlns='http://jabber.org/protocol/disco#info' node='urn:x'/>",
  "<query xmlns='http://jabber.org/protocol/disco#items'/>",
  "<query xmlns='http://jabber.org/protocol/disco#items' node='urn:x'/>",
  "<ping xmlns='urn:xmpp:ping'/>",
  "<time xmlns='urn:xmpp:time'/>",
  "<query xmlns='jabber:iq:version'/>",
  "<query xmlns='jabber:iq:last'/>",
  "<query xmlns='jabber:iq:roster'/>",
  "<query xmlns='jabber:iq:roster'><item jid='x@example.com'/></query>",
  "<query xmlns='jabber:iq:private'><x xmlns='urn:x'/></query>",
  "<query xmlns='jabber:iq:private'/>",
  "<query xmlns='jabber:iq:privacy'/>",
  "<query xmlns='jabber:iq:register'/>",
  "<query xmlns='jabber:iq:register'><remove/></query>",
  "<query xmlns='jabber:iq:search'/>",
  "<query xmlns='jabber:iq:auth'/>",
  "<vCard xmlns='vcard-temp'/>",
  "<vCard xmlns='vcard-temp'><FN>x</FN></vCard>",
  "<blocklist xmlns='urn:xmpp:blocking'/>",
  "<block xmlns='urn:xmpp:blocking'><item jid='x@example.com'/></block>",
  "<unblock xmlns='urn:xmpp:blocking'/>",
  "<enable xmlns='urn:xmpp:carbons:2'/>",
  "<query xmlns='urn:xmpp:mam:2'/>",
  "<prefs xmlns='urn:xmpp:mam:2' default='never'/>",
  "<metadata xmlns='urn:xmpp:mam:2'/>",
  "<query xmlns='urn:xmpp:muclight:0#info'/>",
  "<query xmlns='http://jabber.org/protocol/muc#admin'/>",
  "<query xmlns='http://jabber.org/protocol/muc#owner'/>",
  "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='urn:xmpp:avatar:metadata'/></pubsub>",
  "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items/></pubsub>",
  "<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscriptions/></pubsub>",
  "<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item><x xmlns='urn:x'/></item></publish></pubsub>",
  "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='n'/></pubsub>",
  "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/>",
  "<bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/>",
  "<x xmlns='urn:example:unknown'/>",
  "<a xmlns='urn:x'/><b xmlns='urn:x'/>",
  "",
];

/** Types of presence; empty: available. */
const PRESENCES = [
  "",
  "unavailable",
  "probe",
  "subscribe",
  "unsubscribe",
  "subscribed",
  "unsubscribed",
  "error",
];

const BODY = "<body>x</body>";
/** Contents that a client shows nobody: their senders may not learn that nobody got them. */
const SILENT = [
  "<active xmlns='http://jabber.org/protocol/chatstates'/>",
  "<received xmlns='urn:xmpp:receipts' id='x'/>",
].flatMap((content) => [["chat", content], ["normal", content]] as const);

/**
 * Messages by type and content. The sender of another one to a bare JID may learn that nobody got it.
 * No error answers a message to somebody who blocks its sender, as none answers one that a client has
 * got.
 */
const MESSAGES = {
  bare: [["headline", BODY], ["error", BODY], ...SILENT],
  full: [["normal", BODY], ["headline", BODY], ["groupchat", BODY], ["error", BODY], ...SILENT],
} as const;

/** A host that keeps messages for its people. */
const KEEPING_HOST = "chat.example.org";
/** The certificates of the nodes do not name that host. */
const PLAIN = { security: "none", library: "slixmpp", domain: KEEPING_HOST } as const;

/** People by what they are for a stranger, and the datacenter where they log in. */
const PEOPLE: Readonly<Record<string, string | undefined>> = {
  offline: undefined,
  here: "dc1",
  elsewhere: "dc2",
  hibernating: "dc1",
  blocking: "dc1",
  hiding: "dc2",
  gone: "dc1",
};

/** No answer tells a stranger which accounts exist, and who is online. */
export const STRANGERS: Scenario = {
  name: "strangers",
  summary:
    "no answer tells a stranger whether an account exists, is online, where, or blocks the stranger",
  options: {
    datacenters: 2,
    users: ["mallory", ...Object.keys(PEOPLE)].map((localpart) => ({
      localpart,
      password: "secret",
    })),
    configure(configuration) {
      const { hosts, modules } = configuration;
      hosts.push(KEEPING_HOST);
      configuration["host_config"] = { [KEEPING_HOST]: { modules: { mod_offline: {} } } };
      modules.mod_global_distrib["bounce"] = { resend_after_ms: 50, max_retries: 1 };
      modules["mod_muc"] = {};
    },
  },
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const enter = async (who: string, at: string) => {
      const entrance = { resource: RESOURCE, streamManagement: who === "hibernating" };
      const client = await logInFully(await stage.enter(who, at, entrance));
      await stage.untilTableSaysOfSession(client, at);
      return client;
    };
    const mallory = await enter("mallory", "dc1");
    const online = new Map<string, ChatClient>();
    for (const [who, at] of Object.entries(PEOPLE)) {
      if (at !== undefined) online.set(who, await enter(who, at));
    }
    const stranger = accountOf(mallory);
    const block = `<block xmlns='urn:xmpp:blocking'><item jid='${stranger}'/></block>`;
    const deny = `<item type='jid' value='${stranger}' action='deny' order='1'/>`;
    const lists = [`<list name='quiet'>${deny}</list>`, "<default name='quiet'/>"]
      .map((each) => `<query xmlns='jabber:iq:privacy'>${each}</query>`);
    for (
      const [who, payloads] of [["blocking", [block]], ["gone", [block]], [
        "hiding",
        lists,
      ]] as const
    ) {
      for (const payload of payloads) {
        assert.equal((await online.get(who)!.iq({ type: "set", payload })).type, "result");
      }
    }
    const gone = online.get("gone")!;
    await gone.disconnect();
    await stage.untilGone(gone.jid);
    await online.get("hibernating")!.kill();
    say("some are offline, some online at either datacenter, and some of them block mallory");

    const domain = cluster.globalHost;
    const absent = await answersTo(mallory, `nobody@${domain}/gone`);
    for (const who of Object.keys(PEOPLE)) {
      assert.deepEqual(await answersTo(mallory, `${who}@${domain}/gone`), absent, who);
    }
    say("mallory gets the same answers of all of them, and of an account that does not exist");

    const expected = Object.fromEntries(
      Object.entries(absent).map(([stanza, answers]) => {
        const isMessage = stanza.startsWith("<message") && stanza.includes("to='FULL'");
        return [stanza, isMessage ? [] : answers];
      }),
    );
    for (const who of ["blocking", "hiding"]) {
      assert.deepEqual(await answersTo(mallory, `${who}@${domain}/${RESOURCE}`), expected, who);
    }
    say("so she does of a client of somebody who blocks her, except that no message comes back");

    await stage.addAccount(`offline@${KEEPING_HOST}`, "dc1");
    await stage.addAccount(`here@${KEEPING_HOST}`, "dc1");
    await stage.enterAvailable("here", "dc1", PLAIN);
    const nobody = await answersTo(mallory, `nobody@${KEEPING_HOST}/gone`);
    for (const who of ["offline", "here"]) {
      assert.deepEqual(await answersTo(mallory, `${who}@${KEEPING_HOST}/gone`), nobody, who);
    }
    say("a host that keeps messages for its people says no more of them");

    await meetInRoom(online.get("blocking")!, mallory);
    say("somebody blocks mallory's nickname in a room: her private messages end in silence there");
  },
};

/** Has `owner` block the nickname of `stranger` in a room, and `stranger` write to her alone there. */
async function meetInRoom(owner: ChatClient, stranger: ChatClient): Promise<void> {
  const room = `hall@conference.${accountOf(owner).split("@")[1]}`;
  const [own, theirs] = [`${room}/keeper`, `${room}/guest`];
  await owner.joinRoom(own);
  await owner.expectStanza(isPresence({ from: own, type: undefined }));
  const unlock =
    "<query xmlns='http://jabber.org/protocol/muc#owner'><x xmlns='jabber:x:data' type='submit'/></query>";
  assert.equal((await owner.iq({ type: "set", to: room, payload: unlock })).type, "result");
  await stranger.joinRoom(theirs);
  await stranger.expectStanza(isPresence({ from: theirs, type: undefined }));
  const block = `<block xmlns='urn:xmpp:blocking'><item jid='${theirs}'/></block>`;
  assert.equal((await owner.iq({ type: "set", payload: block })).type, "result");

  const before = stranger.received.length;
  await stranger.sendMessage(own, "psst");
  await stranger.sendMessage(room, "hello", { type: "groupchat" });
  await stranger.expectMessage("hello");
  const refused = await stranger.iq({ type: "get", to: own, payload: PING });
  assert.equal(refused.errorCondition, "service-unavailable");
  // Answered behind all that the room had sent to her.
  assert.equal((await owner.iq({ type: "get", to: own, payload: PING })).type, "result");
  const heard = stranger.received.slice(before).filter(({ kind }) => kind !== "iq");
  assert.deepEqual(heard.map(({ body }) => body), ["hello"], "neither an error nor her leaving");
  const bodies = owner.received.flatMap(({ from, body }) => from === theirs ? [body] : []);
  assert.deepEqual(bodies.filter((body) => body !== undefined), []);
}

/** Returns the answers to a stanza of each kind, by the stanza, with the same addresses for all. */
async function answersTo(
  client: ChatClient,
  full: string,
): Promise<Readonly<Record<string, readonly string[]>>> {
  const account = full.slice(0, full.indexOf("/"));
  const before = client.received.length;
  const prefix = crypto.randomUUID();
  const sent: string[] = [];
  const send = async (stanza: string) => {
    sent.push(stanza);
    await client.sendStanza(stanza);
  };
  const all = [[account, MESSAGES.bare], [full, MESSAGES.full]] as const;
  for (const [to, messages] of all) {
    const addresses = () => `id='${prefix}-${sent.length}' to='${to}'`;
    for (const type of ["get", "set"]) {
      for (const payload of PAYLOADS) {
        await send(`<iq ${addresses()} type='${type}'>${payload}</iq>`);
      }
    }
    for (const type of PRESENCES) {
      await send(`<presence ${addresses()}${type === "" ? "" : ` type='${type}'`}/>`);
    }
    for (const [type, content] of messages) {
      await send(`<message ${addresses()} type='${type}'>${content}</message>`);
    }
  }
  for (const [index, stanza] of sent.entries()) {
    if (!stanza.startsWith("<iq")) continue;
    await client.expectStanza(({ id }) => id === `${prefix}-${index}`);
  }
  // Answered last: it waits for its retry behind all others.
  await client.iq({ type: "get", to: full, payload: "<x xmlns='urn:example:last'/>" });
  await client.iq({ type: "get", payload: PING });
  const received = client.received.slice(before);
  const unnamed = (xml: string) =>
    xml.replaceAll(full, "FULL").replaceAll(account, "BARE").replaceAll(prefix, "id");
  return Object.fromEntries(sent.map((stanza, index) => [
    unnamed(stanza),
    received.filter(({ id }) => id === `${prefix}-${index}`).map(({ xml }) => unnamed(xml)),
  ]));
}
