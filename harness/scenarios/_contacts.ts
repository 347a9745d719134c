import assert from "node:assert/strict";
import type { ChatClient, ReceivedStanza } from "../clients/mod.ts";
import { becomeAvailable, isPresence } from "./_stage.ts";

/** Asks for the roster, and returns its items as they stand in the answer. */
export async function askForRoster(client: ChatClient, version?: string): Promise<string> {
  const ver = version === undefined ? "" : ` ver='${version}'`;
  const answer = await client.iq({
    type: "get",
    payload: `<query xmlns='jabber:iq:roster'${ver}/>`,
  });
  assert.equal(answer.type, "result", answer.xml);
  return answer.xml;
}

/** Takes the next roster push, which says these things of the contact. */
export async function expectPush(
  client: ChatClient,
  contact: string,
  attributes: Readonly<Record<string, string>>,
): Promise<string> {
  const parts = Object.entries(attributes).map(([name, value]) =>
    new RegExp(`${name}=["']${value}["']`)
  );
  const push = await client.expectStanza((stanza) =>
    isPush(stanza) && new RegExp(`jid=["']${contact}["']`).test(stanza.xml) &&
    parts.every((part) => part.test(stanza.xml))
  );
  return push.xml;
}

/** True for a roster push. */
export function isPush({ kind, type, xml }: ReceivedStanza): boolean {
  return kind === "iq" && type === "set" && xml.includes("jabber:iq:roster");
}

/** Takes a presence of this sender: available without a type. */
export function expectPresence(
  client: ChatClient,
  from: string,
  type?: string,
): Promise<ReceivedStanza> {
  return client.expectStanza(isPresence({ from, type }));
}

/** Presences that a client has got from `from`, as their types. */
export function presencesFrom(client: ChatClient, from: string): readonly (string | undefined)[] {
  return client.received.filter((each) => each.kind === "presence" && each.from === from)
    .map(({ type }) => type);
}

/** Waits until `to` has got a message that `from` has just sent. */
export async function expectMark(from: ChatClient, to: ChatClient): Promise<void> {
  const mark = crypto.randomUUID();
  await from.sendMessage(to.jid, mark);
  await to.expectMessage(mark);
}

/** Makes the two see each other: both are available. */
export async function befriend(one: ChatClient, other: ChatClient): Promise<void> {
  const [a, b] = [accountOf(one), accountOf(other)];
  for (const [asker, asked, from, to] of [[one, other, a, b], [other, one, b, a]] as const) {
    await asker.presence({ to, type: "subscribe" });
    await expectPresence(asked, from, "subscribe");
    await asked.presence({ to: from, type: "subscribed" });
    await expectPresence(asker, to, "subscribed");
    await expectPresence(asker, asked.jid);
  }
}

/** The account of a client. */
export function accountOf({ jid }: ChatClient): string {
  return jid.split("/", 1)[0]!; // split gives at least one part
}

/** Asks for the roster and becomes available, as clients do at login. */
export async function logInFully(client: ChatClient): Promise<ChatClient> {
  await askForRoster(client);
  await becomeAvailable(client);
  return client;
}
