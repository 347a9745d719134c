import assert from "node:assert/strict";
import { CausewayError } from "../../../base/mod.ts";
import type { Stanza } from "../../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../../xmpp/mod.ts";
import { fullJid, PrivacyFixture, stanza } from "./privacy_fixture.ts";

export const [ALICE, BOB] = ["alice@example.com", "bob@example.com"];
export const PHONE = `${ALICE}/phone`;
export const LAPTOP = `${ALICE}/laptop`;
export const BLOCK_BOB = `<block xmlns='urn:xmpp:blocking'><item jid='${BOB}'/></block>`;
export const UNBLOCK_ALL = "<unblock xmlns='urn:xmpp:blocking'/>";
export const BLOCK_LIST = "<blocklist xmlns='urn:xmpp:blocking'/>";
/** Failure of a database that cannot be reached. */
export const DOWN = new CausewayError("storage/unreachable", "Cannot reach it", {
  retryable: true,
});

/** Returns a request of privacy lists. */
export function query(payload = ""): string {
  return `<query xmlns='jabber:iq:privacy'>${payload}</query>`;
}

/** Returns a request that stores a list. */
export function listOf(name: string, items: string): string {
  return query(`<list name='${name}'>${items}</list>`);
}

/** Returns an item of a list that denies. */
export function deny(order: number, attributes = "", kinds = ""): string {
  return `<item action='deny' order='${order}' ${attributes}>${kinds}</item>`;
}

/** Returns a node with a session of alice's phone. */
export async function withPhone(fixture = new PrivacyFixture()): Promise<PrivacyFixture> {
  assert.equal(await fixture.server.opening(fullJid(PHONE)), undefined);
  return fixture;
}

/** True when a message to a session, the phone's if none is named, is refused. */
export function refuses({ server }: PrivacyFixture, from: string, session = PHONE): boolean {
  return server.refuses(fullJid(session), stanza("message", "chat", [from, session]));
}

/** Returns a push that tells the phone of a change of the roster. */
export function rosterPush(): Stanza {
  const iq = element(
    "iq",
    { type: "set", id: "1" },
    element("query", { xmlns: "jabber:iq:roster" }),
  );
  return buildStanza(iq, { from: parseJid(ALICE), to: parseJid(PHONE) });
}
