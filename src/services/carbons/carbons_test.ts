import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import {
  buildStanza,
  FullJid,
  isAsItSays,
  parseElement,
  parseJid,
  stanzaElement,
} from "../../xmpp/mod.ts";
import type { Stanza, StanzaType } from "../../xmpp/mod.ts";
import { BroughtCarbon, carbonOf, isEligible } from "./carbon.ts";
import { Carbons } from "./carbons.ts";
import type { CarbonSession } from "./carbons.ts";

const ALICE = "alice@example.com";
const BOB = "bob@example.com";
const BODY = "<body>hi</body>";

function message(
  { from = `${ALICE}/phone`, to = BOB, type = "chat" as StanzaType, content = BODY, id = "1" } = {},
): Stanza {
  const text = `<message from='${from}' to='${to}' type='${type}' id='${id}'>${content}</message>`;
  const bytes = new TextEncoder().encode(text);
  return { kind: "message", type, from: parseJid(from), to: parseJid(to), bytes };
}

/** Sessions of accounts at one node, with what each was sent: `direction id`. */
class World {
  readonly got: string[] = [];
  readonly elsewhere: Stanza[] = [];
  /** Messages that bring their carbons along, while the nodes elsewhere make those. */
  readonly brought: Stanza[] = [];
  makesCarbons = false;
  isElsewhere = false;
  /** Resource whose owner wants no message from bob. */
  deaf: string | undefined;
  /** True while no session takes any more. */
  isSlow = false;
  isOn = true;
  readonly #sessions: CarbonSession[] = [];
  readonly clock = new ManualClock();
  readonly #metrics = new MetricsRegistry(this.clock);
  readonly carbons = new Carbons({
    isOn: (host) => this.isOn && host === "example.com",
    isUsedHere: () => this.#sessions.some(({ hasCarbons }) => hasCarbons),
    ofAccount: (account) => this.#sessions.filter(({ jid }) => jid.bare.text === account),
    refuses: ({ resourcepart }, { from }) => resourcepart === this.deaf && from.bare.text === BOB,
    mayBeElsewhere: () => this.isElsewhere,
    sendElsewhere: (carbon) => void this.elsewhere.push(carbon),
    sendSentElsewhere: (sent, sequence, wrapped) => {
      assert.equal(sequence, 7);
      if (this.makesCarbons) return void this.brought.push(sent);
      const carbon = wrapped();
      if (carbon !== undefined) this.elsewhere.push(carbon);
    },
    clock: this.clock,
    metrics: this.#metrics,
  });

  logIn(text: string, hasCarbons: boolean, priority: number | undefined = 0): void {
    const jid = parseJid(text);
    assert.ok(jid instanceof FullJid);
    const send = (stanza: Stanza) => {
      assert.ok(isAsItSays(stanza));
      const [wrapper] = parseElement(stanza.bytes, "jabber:client").elements;
      assert.equal(stanza.from.text, jid.bare.text);
      assert.equal(stanza.to.text, text);
      if (this.isSlow) return false;
      this.got.push(`${jid.resourcepart} ${wrapper!.name}`);
      return true;
    };
    this.#sessions.push({ jid, priority, hasCarbons, send });
  }

  /** Received carbons counted as given. */
  async given(): Promise<number> {
    const text = await this.#metrics.prometheus();
    return Number(/causeway_carbons_total\{direction="received"\} (\d+)/.exec(text)?.[1]);
  }

  [Symbol.dispose](): void {
    this.#metrics.close();
  }
}

Deno.test("isEligible() copies conversations, and nothing that says otherwise", () => {
  const rows: readonly [StanzaType, string, boolean][] = [
    ["chat", BODY, true],
    ["chat", "<active xmlns='http://jabber.org/protocol/chatstates'/>", true],
    ["normal", BODY, true],
    ["normal", "<received xmlns='urn:xmpp:receipts' id='1'/>", true],
    ["normal", "<x xmlns='jabber:x:data' type='form'/>", false],
    ["headline", BODY, false],
    ["groupchat", BODY, false],
    ["error", BODY, false],
    ["chat", `${BODY}<private xmlns='urn:xmpp:carbons:2'/>`, false],
    ["chat", `${BODY}<no-copy xmlns='urn:xmpp:hints'/>`, false],
    ["chat", `${BODY}<no-store xmlns='urn:xmpp:hints'/>`, true],
    ["chat", "<received xmlns='urn:xmpp:carbons:2'/>", false],
    ["chat", "<c:private xmlns:c='urn:xmpp:carbons:2'/>", false],
    ["chat", `<private xmlns='other'/>${BODY}`, true],
  ];
  for (const [type, content, expected] of rows) {
    for (const direction of ["sent", "received"] as const) {
      assert.equal(isEligible(message({ type, content }), direction), expected, content);
    }
  }
  const fromRoom = message({ content: `${BODY}<x xmlns='http://jabber.org/protocol/muc#user'/>` });
  assert.equal(isEligible(fromRoom, "received"), false);
  assert.equal(isEligible(fromRoom, "sent"), true);
});

Deno.test("carbonOf() wraps the very message, in its namespace", () => {
  const inner = message({ content: "<body>&lt;é</body><x xmlns='jabber:x:oob'/>" });
  const carbon = carbonOf("received", inner, parseJid(BOB))!;
  assert.ok(isAsItSays(carbon));
  const [received] = parseElement(carbon.bytes, "jabber:client").elements;
  assert.deepEqual([received!.name, received!.namespace], ["received", "urn:xmpp:carbons:2"]);
  const [forwarded] = received!.elements;
  assert.deepEqual([forwarded!.name, forwarded!.namespace], ["forwarded", "urn:xmpp:forward:0"]);
  const [copied] = forwarded!.elements;
  assert.deepEqual(
    copied,
    parseElement(
      new TextEncoder().encode(
        new TextDecoder().decode(inner.bytes).replace("<message", "<message xmlns='jabber:client'"),
      ),
    ),
  );
});

Deno.test("carbonOf() gives nothing for a message nested too deeply to be wrapped", () => {
  const deep = (levels: number) =>
    message({ content: "<a>".repeat(levels) + "</a>".repeat(levels) });
  assert.ok(carbonOf("sent", deep(200), parseJid(ALICE)) !== undefined);
  assert.equal(carbonOf("sent", deep(248), parseJid(ALICE)), undefined);
});

Deno.test("Carbons of a sent message go to the sender's other sessions that want them", () => {
  using world = new World();
  world.logIn(`${ALICE}/phone`, true);
  world.logIn(`${ALICE}/laptop`, true);
  world.logIn(`${ALICE}/tablet`, false);
  world.carbons.sent(message(), {}, 7);
  assert.deepEqual(world.got, ["laptop sent"]);
  assert.equal(world.elsewhere.length, 0);
  world.isElsewhere = true;
  world.carbons.sent(message(), {}, 7);
  assert.deepEqual(world.elsewhere.map(({ from, to }) => [from.text, to.text]), [[ALICE, ALICE]]);
});

Deno.test("Carbons of a sent message are not wrapped where other nodes make them", () => {
  using world = new World();
  world.logIn(`${ALICE}/phone`, true);
  world.isElsewhere = true;
  world.makesCarbons = true;
  world.carbons.sent(message(), {}, 7);
  world.carbons.sent(message({ content: `${BODY}<private xmlns='urn:xmpp:carbons:2'/>` }), {}, 7);
  world.carbons.sent(message({ content: `${BODY}<no-copy xmlns='urn:xmpp:hints'/>` }), {}, 7);
  assert.deepEqual([world.brought.length, world.elsewhere.length], [1, 0]);
  world.logIn(`${ALICE}/laptop`, true);
  world.carbons.sent(message({ id: "2" }), {}, 7);
  assert.deepEqual(world.got, ["laptop sent"]);
  assert.equal(world.brought.length, 2);
});

Deno.test("Carbons of a sent message leave out those who get it themselves", () => {
  using world = new World();
  world.logIn(`${ALICE}/phone`, true);
  world.logIn(`${ALICE}/laptop`, true);
  world.logIn(`${ALICE}/tablet`, true);
  world.carbons.sent(message({ to: `${ALICE}/laptop` }), {}, 7);
  assert.deepEqual(world.got, ["tablet sent"]);
  world.carbons.sent(message({ to: ALICE }), {}, 7);
  assert.deepEqual(world.got, ["tablet sent"]);
});

Deno.test("Carbons of a received message go to those who did not get it", () => {
  using world = new World();
  world.logIn(`${BOB}/phone`, true, 5);
  world.logIn(`${BOB}/laptop`, true, 1);
  world.logIn(`${BOB}/watch`, true, -1);
  world.logIn(`${BOB}/web`, true, undefined);
  world.logIn(`${BOB}/old`, false, 1);
  world.carbons.received(message({ to: BOB }));
  assert.deepEqual(world.got.splice(0), ["laptop received", "watch received", "web received"]);
  world.carbons.received(message({ to: `${BOB}/laptop` }));
  assert.deepEqual(world.got.splice(0), ["phone received", "watch received", "web received"]);
  // From the account itself: its session here was given it as sent.
  world.carbons.received(message({ from: `${BOB}/phone`, to: `${BOB}/laptop` }));
  assert.deepEqual(world.got, []);
});

Deno.test("Carbons of a note to the account itself go to those who did not get it, but not to its writer", () => {
  using world = new World();
  for (const [resource, priority] of [["phone", 5], ["laptop", 1], ["watch", -1]] as const) {
    world.logIn(`${BOB}/${resource}`, true, priority);
  }
  for (const from of ["phone", "laptop"]) {
    const note = message({ from: `${BOB}/${from}`, to: BOB });
    world.carbons.sent(note, {}, 7);
    assert.deepEqual(world.got.splice(0), []);
    assert.equal(world.carbons.copies(note), true);
    world.carbons.received(note);
    const others = ["laptop received", "watch received"];
    assert.deepEqual(world.got.splice(0), from === "phone" ? others : others.slice(1));
    // Another node gives its own sessions theirs, whoever got the note.
    world.carbons.told(note);
    assert.equal(world.got.includes(`${from} received`), false);
    assert.equal(world.got.splice(0).length, 2);
  }
});

Deno.test("Carbons from other nodes go to every session that wants them", () => {
  using world = new World();
  world.logIn(`${BOB}/phone`, true);
  world.logIn(`${BOB}/old`, false);
  assert.equal(world.carbons.told(message({ to: `${BOB}/elsewhere` })), true);
  assert.equal(
    world.carbons.told(carbonOf("sent", message({ from: `${BOB}/x` }), parseJid(BOB))!),
    true,
  );
  assert.deepEqual(world.got, ["phone received", "phone sent"]);
  assert.equal(world.carbons.told(message({ to: `${ALICE}/x` })), false);
  assert.equal(
    world.carbons.told(message({ to: `${BOB}/phone` })),
    false,
    "it follows the session",
  );
});

Deno.test("Carbons of a sent message from other nodes leave out the device that gets it itself", () => {
  using world = new World();
  for (const resource of ["phone", "o'ne"]) world.logIn(`${ALICE}/${resource}`, true);
  for (const type of ["chat", "normal"] as const) {
    const sent = message({ from: `${ALICE}/x`, to: `${ALICE}/phone`, type });
    const carbon = carbonOf("sent", sent, parseJid(ALICE))!;
    const inOtherWords = buildStanza(stanzaElement(carbon), { from: carbon.from, to: carbon.to });
    for (const each of [carbon, inOtherWords, BroughtCarbon.of(sent)!]) {
      assert.equal(world.carbons.told(each), true);
      assert.deepEqual(world.got.splice(0), ["o'ne sent"]);
    }
  }
});

Deno.test("Carbons remember a lone sender, until another session is known", () => {
  using world = new World();
  world.logIn(`${ALICE}/phone`, true);
  const sender: { loneUntilMs?: number } = {};
  world.carbons.sent(message(), sender, 7);
  assert.ok(sender.loneUntilMs! > world.clock.monotonicMs());
  world.logIn(`${ALICE}/laptop`, true);
  sender.loneUntilMs = 0; // as the registry does
  world.carbons.sent(message(), sender, 7);
  assert.deepEqual(world.got, ["laptop sent"]);
  assert.equal(sender.loneUntilMs, 0);
});

Deno.test("no copy of a message goes to a session whose owner does not want that message", () => {
  using world = new World();
  for (const resource of ["phone", "laptop", "tablet"]) world.logIn(`${ALICE}/${resource}`, true);
  world.deaf = "laptop";
  const received = message({ from: `${BOB}/x`, to: `${ALICE}/phone` });
  assert.equal(world.carbons.received(received), true);
  assert.deepEqual(world.got.splice(0), ["tablet received"]);
  assert.equal(world.carbons.told(received), true);
  assert.deepEqual(world.got.splice(0), ["tablet received"]);
  world.carbons.received(message({ from: "carol@example.com/x", to: `${ALICE}/phone` }));
  assert.deepEqual(world.got, ["laptop received", "tablet received"]);
});

Deno.test("BroughtCarbon is the same carbon as a node of the message's datacenter would have sent", () => {
  for (const type of ["chat", "normal"] as const) {
    const sent = message({ from: `${ALICE}/x`, type });
    const brought = BroughtCarbon.of(sent)!;
    assert.ok(brought instanceof BroughtCarbon);
    const { kind, from, to, bytes } = carbonOf("sent", sent, parseJid(ALICE))!;
    assert.deepEqual([brought.kind, brought.type, brought.from, brought.to], [
      kind,
      type,
      from,
      to,
    ]);
    assert.deepEqual(brought.bytes, bytes);
  }
  const deep = (levels: number) =>
    BroughtCarbon.of(message({ content: "<a>".repeat(levels) + "</a>".repeat(levels) }));
  assert.ok(isAsItSays(deep(200)!));
  assert.equal(deep(248), undefined);
});

Deno.test("Carbons gives a carbon that a message has brought to the sessions that want it", () => {
  using world = new World();
  world.logIn(`${ALICE}/phone`, true);
  world.logIn(`${ALICE}/o'ne`, true);
  world.logIn(`${ALICE}/tablet`, false);
  for (const from of [`${ALICE}/x`, `${ALICE}/y`]) {
    assert.equal(world.carbons.told(BroughtCarbon.of(message({ from }))!), true);
  }
  assert.deepEqual(world.got, ["phone sent", "o'ne sent", "phone sent", "o'ne sent"]);
  world.isOn = false;
  assert.equal(world.carbons.told(BroughtCarbon.of(message({ from: `${ALICE}/x` }))!), false);
});

Deno.test("Carbons from other nodes are given only if they are carbons, and the host has any", () => {
  using world = new World();
  world.logIn(`${BOB}/phone`, true);
  const sent = carbonOf("sent", message({ from: `${BOB}/x` }), parseJid(BOB))!;
  const others: readonly Stanza[] = [
    message({ to: `${BOB}/elsewhere`, type: "headline" }),
    message({ to: BOB, content: `${BODY}<private xmlns='urn:xmpp:carbons:2'/>` }),
    message({ from: BOB, to: BOB }),
    message({ from: `${BOB}/x`, to: `${BOB}/x` }),
  ];
  for (const stanza of others) assert.equal(world.carbons.told(stanza), false);
  world.isOn = false; // the session came from a node where they are on
  for (const stanza of [sent, message({ to: `${BOB}/elsewhere` })]) {
    assert.equal(world.carbons.told(stanza), false);
  }
  assert.deepEqual(world.got, []);
});

Deno.test("Carbons that a slow session does not take are not counted as given", async () => {
  using world = new World();
  world.logIn(`${BOB}/phone`, true);
  world.logIn(`${BOB}/laptop`, true);
  world.isSlow = true;
  assert.equal(world.carbons.received(message({ to: `${BOB}/laptop` })), false);
  assert.equal(await world.given(), 0);
  world.isSlow = false;
  assert.equal(world.carbons.received(message({ to: `${BOB}/laptop` })), true);
  assert.equal(await world.given(), 1);
});

/** bob's answer to a message of alice's phone. */
function errorFrom(from: string, id = "1"): Stanza {
  return message({ from, to: `${ALICE}/phone`, type: "error", content: "<error/>", id });
}

Deno.test("Carbons of an error go along with those of the message that it answers, once", () => {
  using world = new World();
  for (const resource of ["phone", "laptop", "tablet"]) {
    world.logIn(`${ALICE}/${resource}`, resource !== "tablet");
  }
  world.isElsewhere = true;
  assert.equal(world.carbons.received(errorFrom(BOB)), false, "it answers nothing");
  world.carbons.sent(message(), {}, 7);
  world.carbons.sent(message({ type: "headline", id: "2" }), {}, 7);
  world.got.length = world.elsewhere.length = 0;
  for (
    const other of [errorFrom(`${BOB}/x`), errorFrom(BOB, "2"), errorFrom("carol@example.com")]
  ) {
    assert.equal(world.carbons.received(other), false);
  }
  assert.equal(world.carbons.received(errorFrom(BOB)), true);
  assert.deepEqual(world.got.splice(0), ["laptop received"]);
  const [carbon] = world.elsewhere;
  assert.deepEqual([carbon!.type, carbon!.from.text, carbon!.to.text], ["error", ALICE, ALICE]);
  assert.equal(world.carbons.received(errorFrom(BOB)), false, "once");
  assert.deepEqual([world.got, world.elsewhere.length], [[], 1]);
});

Deno.test("Carbons of an error come to the account's sessions at other nodes that want it", () => {
  using world = new World();
  for (const resource of ["laptop", "tablet"]) world.logIn(`${ALICE}/${resource}`, true);
  const carbon = carbonOf("received", errorFrom(BOB), parseJid(ALICE))!;
  world.deaf = "tablet";
  assert.equal(world.carbons.told(carbon), true);
  assert.deepEqual(world.got.splice(0), ["laptop received"]);
  const chat = carbonOf("received", message({ from: BOB, to: `${ALICE}/phone` }), parseJid(ALICE))!;
  const others = [
    chat,
    { ...chat, type: "error" as const },
    message({ from: ALICE, to: ALICE, type: "error" }),
  ];
  for (const other of others) assert.equal(world.carbons.told(other), false);
  assert.deepEqual(world.got, []);
});

Deno.test("Carbons remember at least ten thousand messages that an error may answer", () => {
  using world = new World();
  for (const resource of ["phone", "laptop"]) world.logIn(`${ALICE}/${resource}`, true);
  const isCopied = (id: string) => world.carbons.received(errorFrom(BOB, id));
  const send = (count: number, start: string) => {
    for (let i = 0; i < count; i++) world.carbons.sent(message({ id: `${start}${i}` }), {}, 7);
  };
  const long = "x".repeat(200);
  for (const id of ["first", "second", long]) world.carbons.sent(message({ id }), {}, 7);
  send(9_999, "a");
  assert.deepEqual(["first", long, "a0", "a9998"].map(isCopied), [true, false, true, true]);
  send(10_001, "b");
  assert.deepEqual(["second", "a1", "b0", "b10000"].map(isCopied), [false, false, true, true]);
});

Deno.test("Carbons know an id again that an answer writes in another way", () => {
  using world = new World();
  for (const resource of ["phone", "laptop"]) world.logIn(`${ALICE}/${resource}`, true);
  const isCopied = (id: string) => world.carbons.received(errorFrom(BOB, id));
  const rows = [["a&amp;b", "a&#38;b"], ["&#97;1", "a1"], ["b2", "&#x62;2"], ["é", "&#233;"]];
  for (const [sent, answered] of rows) {
    world.carbons.sent(message({ id: sent! }), {}, 7);
    assert.deepEqual([`${answered}x`, answered!, answered!].map(isCopied), [false, true, false]);
  }
  const long = "&lt;".repeat(128);
  for (const id of [long, `${long}x`]) world.carbons.sent(message({ id }), {}, 7);
  assert.deepEqual([long, `${long}x`].map(isCopied), [true, false]);
});
