import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Cluster } from "../cluster/mod.ts";
import type { Scenario } from "../scenario.ts";
import { PATIENT_BOUNCE } from "./_patient_bounce.ts";
import { bare, becomeAvailable, type Entrance, isPresence, Stage } from "./_stage.ts";

/** Login options of alice (dc1), bob (dc2) and carol (dc3). */
export type Cast = readonly [alice: Entrance, bob: Entrance, carol: Entrance];

/** alice, bob and carol talk, each at a datacenter of their own, whatever their clients are. */
export const CONVERSATIONS: readonly Scenario[] = [
  conversation("xmpp-js-starttls", "@xmpp/client over STARTTLS", alike("@xmpp", "starttls")),
  conversation("xmpp-js-direct-tls", "@xmpp/client over direct TLS", alike("@xmpp", "direct")),
  conversation("slixmpp-starttls", "slixmpp over STARTTLS", alike("slixmpp", "starttls")),
  conversation("slixmpp-direct-tls", "slixmpp over direct TLS", alike("slixmpp", "direct")),
  conversation("mixed-clients", "@xmpp/client and slixmpp, either kind of TLS", [
    { library: "@xmpp", security: "direct" },
    { library: "slixmpp", security: "starttls" },
    { library: "@xmpp", security: "starttls" },
  ], [
    { library: "slixmpp", security: "direct" },
    { library: "@xmpp", security: "starttls" },
    { library: "slixmpp", security: "starttls" },
  ]),
];

const PEOPLE = ["alice", "bob", "carol"] as const;

function alike(
  library: NonNullable<Entrance["library"]>,
  security: NonNullable<Entrance["security"]>,
): Cast {
  const entrance = { library, security };
  return [entrance, entrance, entrance];
}

/** Makes a scenario in which three users talk, once for each cast. */
export function conversation(name: string, clients: string, ...casts: readonly Cast[]): Scenario {
  return {
    name,
    summary: `alice at dc1, bob at dc2 and carol at dc3 talk: ${clients}`,
    options: PATIENT_BOUNCE,
    async run(cluster, say) {
      for (const cast of casts) {
        await converse(cluster, cast, say);
        // The next cast begins without sessions.
        await using stage = new Stage(cluster);
        for (const who of PEOPLE) await stage.untilGone(`${who}@${cluster.globalHost}`);
      }
    },
  };
}

async function converse(
  cluster: Cluster,
  cast: Cast,
  say: (line: string) => void,
): Promise<void> {
  await using stage = new Stage(cluster);
  const clients = await Promise.all(
    PEOPLE.map((who, index) => stage.enter(who, `dc${index + 1}`, cast[index])),
  );
  say(
    `logged in: ${
      cast.map((each) => `${each.library} ${each.security}${each.webSocket ? " (WebSocket)" : ""}`)
        .join(", ")
    }`,
  );

  for (const [from, to] of pairs(clients)) await expectDelivery(from, to, to.jid);
  await expectSilence(clients);
  say("before presence: full JIDs are reached");

  for (const [from, to] of pairs(clients)) await from.sendMessage(bare(to.jid), early(from));
  for (const client of clients) await becomeAvailable(client);
  for (const [from, to] of pairs(clients)) await to.expectMessage(early(from));
  for (const [from, to] of pairs(clients)) await expectDelivery(from, to, bare(to.jid));
  for (const [from, to] of pairs(clients)) await expectDelivery(from, to, to.jid);
  for (const [from, to] of pairs(clients)) {
    const isOwnPresence = isPresence({ from: to.jid, type: undefined });
    const places = [isOwnPresence, bodyIs(early(from)), bodyIs(greeting(from, bare(to.jid)))]
      .map((predicate) => to.received.findIndex(predicate));
    assert.deepEqual(places, places.toSorted((left, right) => left - right));
  }
  say("after presence: bare JIDs are reached too, first by the messages that waited");

  for (const [from, to] of pairs(clients)) await expectRequest(from, to);
  await expectSilence(clients);
  say("requests and their answers find their way; nothing else arrived anywhere");
}

/** `from` writes to `address`, which is `to`; and the message arrives as it was sent. */
async function expectDelivery(from: ChatClient, to: ChatClient, address: string): Promise<void> {
  const body = greeting(from, address);
  const id = await from.sendMessage(address, body);
  const message = await to.expectMessage(body);
  const { type } = message;
  assert.deepEqual(
    { id: message.id, type, from: message.from, to: message.to },
    { id, type: "chat", from: from.jid, to: address },
  );
}

function greeting(from: ChatClient, address: string): string {
  return `${from.jid} → ${address}: grüße & <ünïcödé> 🛣`;
}

function early(from: ChatClient): string {
  return `${from.jid} is early`;
}

function bodyIs(body: string): (stanza: ReceivedStanza) => boolean {
  return (stanza) => stanza.body === body;
}

/**
 * Sends a request from `from` to `to`. `to` is a client without services, so its answer may be an
 * error.
 */
async function expectRequest(from: ChatClient, to: ChatClient): Promise<void> {
  const asking = from.iq({ type: "get", to: to.jid, payload: "<nothing xmlns='urn:example'/>" });
  const request = await to.expectStanza((stanza) => stanza.kind === "iq");
  assert.deepEqual([request.from, request.to, request.type], [from.jid, to.jid, "get"]);
  const answer = await asking;
  assert.deepEqual([answer.from, answer.to, answer.id], [to.jid, from.jid, request.id]);
  assert.equal(answer.type, "error");
}

/** A last message from everyone to everyone proves that nothing is on its way any more. */
async function expectSilence(clients: readonly ChatClient[]): Promise<void> {
  for (const [from, to] of pairs(clients)) await to.expectNothingElse(from);
  for (const client of clients) await client.expectNothingElse();
}

function* pairs(clients: readonly ChatClient[]): Iterable<readonly [ChatClient, ChatClient]> {
  for (const from of clients) for (const to of clients) if (from !== to) yield [from, to];
}
