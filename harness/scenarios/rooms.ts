import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import type { Scenario } from "../scenario.ts";
import { bare, isPresence, Stage } from "./_stage.ts";

const HISTORY = 3;
/** Messages of each of two simultaneous speakers. */
const MESSAGES = 30;

/** Rooms that a component of one datacenter serves to users in the others. */
export const ROOMS: Scenario = {
  name: "rooms",
  summary: "a component at dc1 serves rooms: users of dc2 and dc3 meet there, and get the history",
  replications: ["builtin"],
  async run(cluster, say) {
    await using stage = new Stage(cluster);
    const rooms = await stage.connectRooms("rooms", "dc1", { historyLength: HISTORY });
    await stage.untilTableSays(rooms.jid, "dc1.example.com");
    const room = `kitchen@${rooms.jid}`;
    const alice = await stage.enterAvailable("alice", "dc1");
    const bob = await stage.enterAvailable("bob", "dc2", { library: "slixmpp" });
    const carol = await stage.enterAvailable("carol", "dc3");

    await enter(bob, room, { nick: "bob", others: [], past: [] });
    for (let n = 0; n < HISTORY + 2; n++) await speak(bob, room, `bob ${n}`, [bob]);
    say("bob (dc2) enters a room served at dc1, and hears himself");

    await enter(carol, room, { nick: "carol", others: ["bob"], past: ["bob 2", "bob 3", "bob 4"] });
    await bob.expectStanza(isPresence({ from: `${room}/carol`, type: undefined }));
    await speak(carol, room, "hello bob", [bob, carol]);
    await speak(bob, room, "hello carol", [bob, carol]);
    say(`carol (dc3) enters: she gets the occupants and the last ${HISTORY} messages; they talk`);

    const ids = await Promise.all([bob, carol].map(async (speaker) => {
      const sent: string[] = [];
      for (let n = 0; n < MESSAGES; n++) {
        sent.push(await speaker.sendMessage(room, `${n}`, { type: "groupchat" }));
      }
      return sent;
    }));
    const heard = await Promise.all([bob, carol].map((listener) => hear(listener, 2 * MESSAGES)));
    assert.deepEqual(heard[0], heard[1], "both hear the same, in the same order");
    for (const [index, nick] of ["bob", "carol"].entries()) {
      const theirs = heard[0]!.filter(({ from }) => from === `${room}/${nick}`);
      assert.deepEqual(theirs.map(({ id }) => id), ids[index], `${nick} is heard in order`);
    }
    say(
      `both speak at once, ${MESSAGES} times: both get the same conversation, each speaker in ` +
        `order`,
    );

    const whisper = await bob.sendMessage(`${room}/carol`, "just you");
    const whispered = await carol.expectMessage("just you");
    assert.deepEqual([whispered.id, whispered.from], [whisper, `${room}/bob`]);
    const outside = await alice.sendMessage(room, "may I?", { type: "groupchat" });
    await alice.expectError(outside, "not-acceptable");
    await alice.joinRoom(`${room}/bob`);
    const taken = await alice.expectStanza(isPresence({ from: `${room}/bob`, type: "error" }));
    assert.equal(taken.errorCondition, "conflict");
    say(
      "bob whispers to carol; alice, who is not in the room, can neither speak nor take bob's " +
        "nickname",
    );

    const before = carol.jid;
    await carol.disconnect();
    await bob.expectStanza(isPresence({ from: `${room}/carol`, type: "unavailable" }));
    const again = await stage.enterAvailable("carol", "dc1");
    assert.notEqual(again.jid, before);
    const past = heard[0]!.slice(-HISTORY).map(({ body }) => body);
    await enter(again, room, { nick: "carol", others: ["bob"], past });
    await bob.expectStanza(isPresence({ from: `${room}/carol`, type: undefined }));
    await speak(bob, room, "back so soon?", [bob, again]);
    say(
      "carol logs out, and the room learns it; she enters again from dc1, and gets the history " +
        "again",
    );

    await bob.kill();
    await again.expectStanza(isPresence({ from: `${room}/bob`, type: "unavailable" }));
    await speak(again, room, "where is he?", [again]);
    await stage.untilGone(bare(bob.jid));
    for (const client of [alice, again]) {
      await client.expectNothingElse(rooms);
      await client.expectNothingElse(client);
    }
    assert.deepEqual(rooms.received.filter(({ type }) => type === "error"), []);
    say("bob's connection is cut: the room learns that too, and nothing else arrived anywhere");
  },
};

/**
 * Lets `client` enter as `nick`, and checks that it gets `others` and `past` in the order of
 * XEP-0045.
 */
async function enter(
  client: ChatClient,
  room: string,
  { nick, others, past }: {
    readonly nick: string;
    readonly others: readonly string[];
    readonly past: readonly (string | undefined)[];
  },
): Promise<void> {
  const first = client.received.length;
  await client.joinRoom(`${room}/${nick}`);
  await client.expectMessage((message) => message.from === room && /<subject/.test(message.xml));
  for (const each of [...others, nick]) {
    await client.expectStanza(isPresence({ from: `${room}/${each}`, type: undefined }));
  }
  for (const body of past) {
    const { xml } = await client.expectMessage((message) => message.body === body);
    assert.match(xml, /<delay /, "it is told as something of the past");
  }
  const told = client.received.slice(first).filter(({ from }) => bare(from ?? "") === room);
  assert.deepEqual(
    told.map(({ kind, from, body }) => [kind, from!.slice(room.length + 1), body]),
    [
      ...[...others, nick].map((each) => ["presence", each, undefined]),
      ...past.map((body, index) => ["message", nickIn(told[others.length + 1 + index]!), body]),
      ["message", "", undefined],
    ],
  );
}

function nickIn({ from = "" }: ReceivedStanza): string {
  return from.split("/")[1] ?? "";
}

/** Lets `speaker` say `body`, and checks that each of `listeners` gets it once. */
async function speak(
  speaker: ChatClient,
  room: string,
  body: string,
  listeners: readonly ChatClient[],
): Promise<void> {
  const id = await speaker.sendMessage(room, body, { type: "groupchat" });
  for (const listener of listeners) {
    const heard = await listener.expectMessage(body);
    assert.deepEqual([heard.id, heard.type], [id, "groupchat"]);
  }
}

/** Takes the next `count` messages of a room, as they come. */
async function hear(
  listener: ChatClient,
  count: number,
): Promise<readonly Pick<ReceivedStanza, "id" | "from" | "body">[]> {
  const heard = [];
  for (let n = 0; n < count; n++) {
    const { id, from, body } = await listener.expectMessage(({ type }) => type === "groupchat");
    heard.push({ id, from, body });
  }
  return heard;
}
