import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { COMPONENT, TestServer } from "./testing/server.ts";
import type { ChatClient } from "./chat_client.ts";
import { RoomService } from "./room_service.ts";
import { XmppJsClient } from "./xmpp_js_client.ts";

const ROOM = `kitchen@${COMPONENT.domain}`;

async function open(server: TestServer, historyLength: number): Promise<RoomService> {
  return await RoomService.connect({
    ...COMPONENT,
    port: server.port("component"),
    historyLength,
  });
}

/** Enters, and gives what it is told, up to the subject, which comes last. */
async function enter(client: ChatClient, nick: string): Promise<readonly string[]> {
  const first = client.received.length;
  await client.joinRoom(`${ROOM}/${nick}`);
  await client.expectMessage(({ xml }) => /<subject/.test(xml));
  return client.received.slice(first).map(({ kind, from, body }) =>
    `${kind} ${from!.slice(ROOM.length)} ${body ?? ""}`
  );
}

Deno.test("RoomService tells a newcomer who is there, the last messages, and the subject last", async () => {
  await using server = await TestServer.start();
  await using _rooms = await open(server, 2);
  await using alice = await XmppJsClient.connect(server.optionsFor("alice", "none"));
  await using bob = await XmppJsClient.connect(server.optionsFor("bob", "none"));
  deepStrictEqual(await enter(alice, "al"), ["presence /al ", "message  "]);
  match(alice.received[0]!.xml, /code="110"/);
  for (const body of ["one", "two", "three"]) {
    const id = await alice.sendMessage(ROOM, body, { type: "groupchat" });
    const heard = await alice.expectMessage(body);
    deepStrictEqual([heard.id, heard.from, heard.type], [id, `${ROOM}/al`, "groupchat"]);
  }
  deepStrictEqual(await enter(bob, "bo"), [
    "presence /al ",
    "presence /bo ",
    "message /al two",
    "message /al three",
    "message  ",
  ]);
  const told = await bob.expectMessage("two");
  match(told.xml, /<delay /);
});

Deno.test("RoomService refuses a nickname that is taken and a speaker who is not in the room", async () => {
  await using server = await TestServer.start();
  await using _rooms = await open(server, 2);
  await using alice = await XmppJsClient.connect(server.optionsFor("alice", "none"));
  await using bob = await XmppJsClient.connect(server.optionsFor("bob", "none"));
  await enter(alice, "al");
  await bob.joinRoom(`${ROOM}/al`);
  const taken = await bob.expectStanza(({ type }) => type === "error");
  strictEqual(taken.errorCondition, "conflict");
  const id = await bob.sendMessage(ROOM, "let me in", { type: "groupchat" });
  await bob.expectError(id, "not-acceptable");
  const nobody = await alice.sendMessage(`${ROOM}/nobody`, "hello");
  await alice.expectError(nobody, "item-not-found");
  await alice.expectNothingElse();
});

Deno.test("RoomService shows that an occupant has left, and lets the nickname be taken again", async () => {
  await using server = await TestServer.start();
  await using _rooms = await open(server, 2);
  await using alice = await XmppJsClient.connect(server.optionsFor("alice", "none"));
  await using bob = await XmppJsClient.connect(server.optionsFor("bob", "none"));
  await enter(alice, "al");
  await enter(bob, "bo");
  await bob.presence({ to: `${ROOM}/bo`, type: "unavailable" });
  for (const client of [alice, bob]) {
    await client.expectStanza(({ type, from }) => type === "unavailable" && from === `${ROOM}/bo`);
  }
  deepStrictEqual(await enter(bob, "bo"), ["presence /al ", "presence /bo ", "message  "]);
});
