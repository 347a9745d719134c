import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import type { FullJid, Stanza } from "../../xmpp/mod.ts";
import { parseElement, parseJid } from "../../xmpp/mod.ts";
import { verificationText, verifiedInterests } from "./caps_hash.ts";
import { ClientCaps } from "./client_caps.ts";
import { presenceOf, textOf } from "./testing/pep_fixture.ts";

const DISCO = "http://jabber.org/protocol/disco#info";
const NODE = "http://client.example";

function query(content: string): string {
  return `<query xmlns='${DISCO}'>${content}</query>`;
}

function featuresOf(...names: readonly string[]): string {
  return names.map((name) => `<feature var='${name}'/>`).join("");
}

function hashOf(content: string): string {
  const text = verificationText(parseElement(new TextEncoder().encode(query(content))))!;
  return createHash("sha1").update(text).digest("base64");
}

/** The clients of one node. */
class Clients {
  readonly clock = new ManualClock();
  readonly questions: Stanza[] = [];
  readonly interested: string[] = [];
  readonly learned: string[] = [];
  readonly caps: ClientCaps;

  constructor() {
    this.caps = new ClientCaps({
      deliver: (_to, stanza) => this.questions.push(stanza) > 0,
      interested: (jid, nodes) => this.interested.push(`${jid.text} ${[...nodes].join(" ")}`),
      learned: ({ bare }) => this.learned.push(bare.localpart),
      clock: this.clock,
      metrics: new MetricsRegistry(this.clock),
    });
  }

  online(name: string, ver: string, hash = " hash='sha-1'"): void {
    const c = `<c xmlns='http://jabber.org/protocol/caps' node='${NODE}' ver='${ver}'${hash}/>`;
    this.caps.presence(jidOf(name), presenceOf(jidOf(name).text, c));
  }

  /** Answers the oldest question to a client. */
  answer(name: string, content: string, type: "result" | "error" = "result"): boolean {
    const index = this.questions.findIndex(({ to }) => to.text === jidOf(name).text);
    ok(index >= 0, `nobody asked ${name}`);
    const [question] = this.questions.splice(index, 1);
    const id = /id='([^']+)'/.exec(textOf(question!))![1]!;
    return this.reply(name, id, query(content), type);
  }

  reply(name: string, id: string, payload: string, type: "result" | "error" = "result"): boolean {
    const from = jidOf(name);
    const text =
      `<iq from='${from.text}' to='example.com' id='${id}' type='${type}'>${payload}</iq>`;
    const to = parseJid("example.com");
    return this.caps.answered({
      kind: "iq",
      type,
      from,
      to,
      bytes: new TextEncoder().encode(text),
    });
  }

  asked(): readonly string[] {
    return this.questions.map(({ to }) => to.bare.localpart);
  }

  interests(name: string): readonly string[] | undefined {
    const found = this.caps.interests(jidOf(name));
    return found && [...found];
  }
}

function jidOf(name: string): FullJid {
  return parseJid(`${name}@example.com/r`) as FullJid; // it has a resource
}

Deno.test("verificationText() is that of the examples in XEP-0115 §5.2 and §5.3", () => {
  const simple = "<identity category='client' name='Exodus 0.9.1' type='pc'/>" + featuresOf(
    "http://jabber.org/protocol/muc",
    "http://jabber.org/protocol/disco#items",
    "http://jabber.org/protocol/disco#info",
    "http://jabber.org/protocol/caps",
  );
  strictEqual(hashOf(simple), "QgayPKawpkPSDYmwT/WM94uAlu0=");
  const field = (name: string, ...values: readonly string[]) =>
    `<field var='${name}'>${values.map((each) => `<value>${each}</value>`).join("")}</field>`;
  const complex = "<identity xml:lang='en' category='client' name='Psi 0.11' type='pc'/>" +
    "<identity xml:lang='el' category='client' name='Ψ 0.11' type='pc'/>" + featuresOf(
      "http://jabber.org/protocol/caps",
      "http://jabber.org/protocol/disco#info",
      "http://jabber.org/protocol/disco#items",
      "http://jabber.org/protocol/muc",
    ) + "<x xmlns='jabber:x:data' type='result'>" +
    "<field var='FORM_TYPE' type='hidden'><value>urn:xmpp:dataforms:softwareinfo</value></field>" +
    field("ip_version", "ipv4", "ipv6") + field("os", "Mac") + field("os_version", "10.5.1") +
    field("software", "Psi") + field("software_version", "0.11") + "</x>";
  strictEqual(hashOf(complex), "q07IKJEyjvHSyhy//CH0CxmKi8w=");
});

Deno.test("verifiedInterests() takes no answer that others could mistake for another one", () => {
  const honest = "<identity category='client' type='pc' name='Honest'/>" +
    featuresOf("urn:a", "urn:b+notify", "urn:c+notify");
  const caps = { hash: "sha-1", node: NODE, ver: hashOf(honest) };
  const interests = (content: string) =>
    verifiedInterests(parseElement(new TextEncoder().encode(query(content))), caps);
  const expected = new Set(["urn:b", "urn:c"]);
  deepStrictEqual(interests(honest), expected);
  const form = "<x xmlns='jabber:x:data' type='result'><field var='FORM_TYPE' type='hidden'>" +
    "<value>urn:b+notify</value></field><field var='urn:c+notify'/></x>";
  // Each of these makes the same text, and so has the same hash.
  for (
    const hostile of [
      "<identity category='client' type='pc' name='Honest&lt;urn:a&lt;urn:b+notify&lt;urn:c+notify'/>",
      "<identity category='client' type='pc' name='Honest&lt;urn:a'/>" +
      featuresOf("urn:b+notify", "urn:c+notify"),
      "<identity category='client' type='pc' name='Honest'/>" + featuresOf("urn:a") + form,
      "<identity category='client' type='pc' name='Honest'/>" +
      featuresOf("urn:a&lt;urn:b+notify", "urn:c+notify"),
    ]
  ) deepStrictEqual(interests(hostile), expected, hostile);
  for (
    const wrong of [
      `${honest}${featuresOf("urn:d+notify")}`,
      `${honest}${featuresOf("urn:a")}`,
      `${honest}${form}${form}`,
      "",
    ]
  ) strictEqual(interests(wrong), undefined, wrong);
});

Deno.test("ClientCaps asks one client, and believes for all what the hash confirms", () => {
  const clients = new Clients();
  const content = featuresOf("urn:a+notify", "urn:b");
  clients.online("alice", hashOf(content));
  match(
    textOf(clients.questions[0]!),
    /^<iq type='get' id='[^']+' from='example\.com' to='alice@example\.com\/r'><query /,
  );
  match(textOf(clients.questions[0]!), new RegExp(`node='${NODE}#`));
  strictEqual(clients.interests("alice"), undefined);
  strictEqual(clients.answer("alice", content), true);
  deepStrictEqual(clients.interests("alice"), ["urn:a"]);
  clients.online("bob", hashOf(content));
  deepStrictEqual(clients.interests("bob"), ["urn:a"]);
  deepStrictEqual(clients.asked(), []);
  deepStrictEqual(clients.interested, ["alice@example.com/r urn:a", "bob@example.com/r urn:a"]);
  clients.online("alice", hashOf(content));
  strictEqual(clients.interested.length, 2, "nothing new");
});

Deno.test("ClientCaps believes a wrong answer for its own client alone, and asks the next", () => {
  const clients = new Clients();
  const content = featuresOf("urn:a+notify");
  for (const name of ["mallory", "bob", "carol", "dave"]) clients.online(name, hashOf(content));
  deepStrictEqual(clients.asked(), ["mallory", "bob", "carol"], "three at once");
  clients.answer("mallory", featuresOf("urn:evil+notify"));
  deepStrictEqual(clients.interests("mallory"), ["urn:evil"]);
  strictEqual(clients.interests("bob"), undefined);
  deepStrictEqual(clients.asked(), ["bob", "carol", "dave"]);
  clients.answer("bob", "", "error");
  deepStrictEqual(clients.interests("bob"), []);
  clients.answer("dave", content);
  for (const name of ["carol", "dave"]) deepStrictEqual(clients.interests(name), ["urn:a"], name);
  clients.online("erin", hashOf(content));
  deepStrictEqual(clients.interests("erin"), ["urn:a"]);
});

Deno.test("ClientCaps asks another client where one does not answer, and takes a late answer", () => {
  const clients = new Clients();
  const content = featuresOf("urn:a+notify");
  const names = ["a", "b", "c", "d", "e"];
  for (const name of names) clients.online(name, hashOf(content));
  deepStrictEqual(clients.asked(), ["a", "b", "c"]);
  clients.clock.advance(10_000);
  deepStrictEqual(clients.asked(), ["a", "b", "c", "d", "e"]);
  clients.clock.advance(10_000);
  deepStrictEqual(clients.asked(), ["a", "b", "c", "d", "e"], "nobody twice");
  clients.answer("a", content);
  for (const name of names) deepStrictEqual(clients.interests(name), ["urn:a"], name);
});

Deno.test("ClientCaps takes an answer only from the client that was asked, to that question", () => {
  const clients = new Clients();
  const content = featuresOf("urn:a+notify");
  clients.online("alice", hashOf(content));
  clients.online("bob", "other");
  const id = /id='([^']+)'/.exec(textOf(clients.questions[0]!))![1]!;
  strictEqual(clients.reply("bob", id, query(content)), false);
  strictEqual(clients.reply("carol", id, query(content)), false);
  strictEqual(clients.reply("alice", `${id}x`, query(content)), false);
  strictEqual(clients.interests("alice"), undefined);
  strictEqual(clients.reply("alice", id, query(content)), true);
  strictEqual(clients.reply("alice", id, query(content)), false, "only once");
});

Deno.test("ClientCaps asks a client that changes its capabilities often only so many times", () => {
  const clients = new Clients();
  const change = (count: number) => {
    for (let i = 0; i < count; i++) {
      clients.online("alice", `v${clients.clock.monotonicMs()}-${i}`);
      if (clients.questions.length > 0) clients.answer("alice", "");
    }
  };
  let asked = 0;
  const answered = clients.caps.answered.bind(clients.caps);
  clients.caps.answered = (stanza) => {
    asked++;
    return answered(stanza);
  };
  change(20);
  strictEqual(asked, 5);
  clients.clock.advance(120_000);
  change(20);
  strictEqual(asked, 7);
});

Deno.test("ClientCaps asks a client that changes its capabilities while it is asked, too", () => {
  for (const before of [undefined, featuresOf("urn:a+notify")]) {
    for (const answers of [true, false]) {
      const clients = new Clients();
      if (before !== undefined) {
        clients.online("alice", hashOf(before));
        clients.answer("alice", before);
      }
      const [first, second] = [featuresOf("urn:b+notify"), featuresOf("urn:c+notify")];
      clients.online("alice", hashOf(first));
      clients.online("alice", hashOf(second));
      if (answers) clients.answer("alice", first);
      else {
        clients.questions.length = 0;
        clients.clock.advance(10_000);
      }
      deepStrictEqual(clients.asked(), ["alice"]);
      clients.answer("alice", second);
      deepStrictEqual(clients.interests("alice"), ["urn:c"]);
    }
  }
});

Deno.test("ClientCaps believes capabilities without a known hash for their own client", () => {
  const clients = new Clients();
  for (const name of ["alice", "bob"]) clients.online(name, "1.0", "");
  deepStrictEqual(clients.asked(), ["alice", "bob"]);
  clients.answer("alice", featuresOf("urn:a+notify"));
  deepStrictEqual(clients.interests("alice"), ["urn:a"]);
  strictEqual(clients.interests("bob"), undefined);
});

Deno.test("ClientCaps forgets a client that is no longer available, and one without capabilities", () => {
  const clients = new Clients();
  const content = featuresOf("urn:a+notify");
  clients.online("alice", hashOf(content));
  clients.answer("alice", content);
  const jid = jidOf("alice");
  clients.caps.presence(jid, presenceOf(jid.text));
  deepStrictEqual(clients.interests("alice"), []);
  clients.caps.presence(jid, { ...presenceOf(jid.text), type: "unavailable" });
  strictEqual(clients.interests("alice"), undefined);
  clients.online("alice", hashOf(content));
  strictEqual(clients.interested.length, 2, "it came again");
  clients.online("bob", "unknown");
  clients.caps.closed(jidOf("bob"));
  clients.clock.advance(20_000);
  clients.online("carol", "unknown");
  deepStrictEqual(clients.asked(), ["bob", "carol"]);
});

Deno.test("ClientCaps says once that the interests of a client are known, whatever they are", () => {
  const clients = new Clients();
  const content = featuresOf("urn:a+notify");
  clients.online("alice", hashOf(content));
  deepStrictEqual(clients.learned, []);
  clients.answer("alice", content);
  clients.online("alice", hashOf(featuresOf("urn:b")));
  clients.answer("alice", featuresOf("urn:b"));
  const bob = jidOf("bob");
  clients.caps.presence(bob, presenceOf(bob.text));
  clients.online("carol", "wrong");
  clients.answer("carol", content, "error");
  const dave = jidOf("dave");
  const c = `<c xmlns='http://jabber.org/protocol/caps' node='${NODE}' hash='sha-1' ` +
    `ver='${hashOf(content)}'/>`;
  clients.caps.presence(dave, presenceOf(dave.text, c), true);
  deepStrictEqual(clients.learned, ["alice", "bob", "carol", "dave"]);
  deepStrictEqual(clients.interested, ["alice@example.com/r urn:a"]);
});

Deno.test("ClientCaps keeps a thousand capabilities, those that were used last", () => {
  const clients = new Clients();
  const contents = Array.from({ length: 1_001 }, (_, i) => featuresOf(`urn:${i}+notify`));
  for (const [index, content] of contents.entries()) {
    clients.online(`user${index}`, hashOf(content));
    clients.answer(`user${index}`, content);
    if (index === 500) clients.online("again", hashOf(contents[0]!));
  }
  clients.online("first", hashOf(contents[0]!));
  deepStrictEqual(clients.interests("first"), ["urn:0"]);
  clients.online("second", hashOf(contents[1]!));
  strictEqual(clients.interests("second"), undefined);
  deepStrictEqual(clients.interests("user1"), ["urn:1"], "its own client keeps it");
});
