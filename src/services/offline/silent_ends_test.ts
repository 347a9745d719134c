import assert from "node:assert/strict";
import { FairShares, ManualClock } from "../../base/mod.ts";
import type { MessageType, Stanza } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { DiscreetRefusals } from "./discreet_refusals.ts";
import { isForPerson, SilentEnds } from "./silent_ends.ts";

const CHAT_STATE = "<composing xmlns='http://jabber.org/protocol/chatstates'/>";
const [ALICE, BOB] = ["alice@example.com/desk", "bob@example.com"];

function message(
  content: string,
  { from = ALICE, to = BOB, type = "chat" }: {
    readonly from?: string;
    readonly to?: string;
    readonly type?: MessageType;
  } = {},
): Stanza {
  const xml = `<message from='${from}' to='${to}' type='${type}'>${content}</message>`;
  const bytes = new TextEncoder().encode(xml);
  return { kind: "message", type, from: parseJid(from), to: parseJid(to), bytes };
}

function isUserHost(domain: string): boolean {
  return domain === "example.com" || domain === "example.org";
}

class Fixture {
  readonly outcomes: string[] = [];
  readonly asked: string[] = [];
  /** The answer of the roster. */
  isContact = false;
  readonly ends = new SilentEnds({
    hasRosters: (domain) => domain === "example.com",
    isUserHost,
    refusals: new DiscreetRefusals({
      maySee: (asker, account) => {
        this.asked.push(`${asker.text} ${account.text}`);
        return Promise.resolve(this.isContact);
      },
      isUserHost,
      budget: new FairShares(),
      clock: new ManualClock(),
    }),
  });

  readonly #outcome = {
    refused: (condition: string) => void this.outcomes.push(condition),
    dropped: () => void this.outcomes.push("dropped"),
  };

  take(stanza: Stanza): Promise<void> | undefined {
    return this.ends.take(stanza, this.#outcome);
  }

  takeWithoutRoom(stanza: Stanza): Promise<void> | undefined {
    return this.ends.takeWithoutRoom(stanza, this.#outcome);
  }
}

Deno.test("SilentEnds tells only those who see the presence that a chat state found nobody", async () => {
  for (const [isContact, outcome] of [[true, "service-unavailable"], [false, "dropped"]] as const) {
    const fixture = new Fixture();
    fixture.isContact = isContact;
    await fixture.take(message(CHAT_STATE));
    await fixture.take(message(CHAT_STATE, { type: "normal", to: `${BOB}/gone` }));
    assert.deepEqual(fixture.outcomes, [outcome, outcome]);
    assert.deepEqual(fixture.asked, Array(2).fill("alice@example.com bob@example.com"));
  }
});

/** Messages whose senders get the error at once. */
const OTHERS: readonly (readonly [what: string, stanza: Stanza])[] = [
  ["with a text", message("<body>hello</body><no-store xmlns='urn:xmpp:hints'/>")],
  ["to the sender's own account", message(CHAT_STATE, { to: "alice@example.com" })],
  ["to a host", message(CHAT_STATE, { to: "example.com" })],
  ["to a host without rosters", message(CHAT_STATE, { to: "bob@example.org" })],
  ["of a host", message(CHAT_STATE, { from: "example.org" })],
  ["of a component", message(CHAT_STATE, { from: "news.example.com" })],
  ["of type groupchat", message(CHAT_STATE, { type: "groupchat" })],
];

Deno.test("SilentEnds leaves other messages to the error that they get anyway", () => {
  for (const [what, stanza] of OTHERS) {
    const fixture = new Fixture();
    assert.equal(fixture.take(stanza), undefined, what);
    assert.deepEqual([fixture.asked, fixture.outcomes], [[], []], what);
  }
});

Deno.test("SilentEnds tells only those who see the presence that a message found no room to wait", async () => {
  const types = ["chat", "normal", "headline"] as const;
  for (const [isContact, end] of [[true, "resource-constraint"], [false, "dropped"]] as const) {
    const fixture = new Fixture();
    fixture.isContact = isContact;
    for (const type of types) {
      await fixture.takeWithoutRoom(message("<body>hello</body>", { type }));
      await fixture.takeWithoutRoom(message(CHAT_STATE, { type }));
    }
    assert.deepEqual(fixture.outcomes, Array(2 * types.length).fill(end));
  }
});

Deno.test("SilentEnds leaves a message without room to its error where no roster says who may know", () => {
  const fixture = new Fixture();
  for (const [what, stanza] of OTHERS.slice(1)) {
    assert.equal(fixture.takeWithoutRoom(stanza), undefined, what);
  }
  assert.deepEqual([fixture.asked, fixture.outcomes], [[], []]);
});

Deno.test("isForPerson() is true for texts, encrypted payloads and invitations alone", () => {
  for (
    const content of [
      "<body>hello</body>",
      "<subject>Lunch?</subject>",
      "<body xml:lang='en'> hello</body>",
      `${CHAT_STATE}<body>&lt;</body>`,
      "<encrypted xmlns='eu.siacs.conversations.axolotl'/>",
      "<x xmlns='jabber:x:conference' jid='tea@rooms.example.com'/>",
    ]
  ) assert.ok(isForPerson(message(content)), content);
  for (
    const content of [
      "",
      CHAT_STATE,
      "<body/>",
      "<body> \n</body>",
      "<subject/>",
      "<body a='&gt;x'/>",
      "<body a='>x' b=\"'>x\"></body>",
      "<body xmlns='urn:example'>x</body>",
      "<received xmlns='urn:xmpp:receipts' id='1'/>",
    ]
  ) assert.ok(!isForPerson(message(content)), content);
});
