import assert from "node:assert/strict";
import { Envelope } from "../distribution/mod.ts";
import type { NodeOutcome } from "../distribution/routing/mod.ts";
import { removalNotice } from "../services/accounts/mod.ts";
import type { OwnClient } from "../services/mod.ts";
import { BareJid, buildStanza, element, errorReply, FullJid, parseJid } from "../xmpp/mod.ts";
import type { LocalSession, Stanza, StanzaKind } from "../xmpp/mod.ts";
import { accountProbe } from "./account_probe.ts";
import { LocalSide } from "./local_side.ts";

function stanza(to: string, kind: StanzaKind = "message"): Stanza {
  const from = "a@example.com/x";
  return {
    kind,
    type: kind === "iq" ? "get" : "chat",
    from: parseJid(from),
    to: parseJid(to),
    bytes: new TextEncoder().encode(`<${kind} from='${from}' to='${to}' id='1'/>`),
  };
}

class Fixture {
  readonly settled: number[] = [];
  readonly handed: string[] = [];
  /** The clients that requests to services were said to come from. */
  readonly clients: (OwnClient | undefined)[] = [];
  readonly answers: { readonly reply: Stanza; readonly request: Envelope | undefined }[] = [];
  sessions: readonly Pick<LocalSession, "jid" | "lastPresence" | "priority">[] = [];
  /** The session of a full JID. */
  client: (OwnClient & Pick<LocalSession, "jid" | "priority" | "send">) | undefined;
  session: NodeOutcome = "delivered";
  /** True while the lists of all sessions keep presence from them. */
  isRefused = false;
  /** Types of the presences that were noted. */
  readonly seen: string[] = [];
  /** True while older messages for accounts are on their way. */
  isHolding = false;
  /** The IQ that a client gets instead of another. */
  told: Stanza | undefined;
  /** True while accounts have rosters. */
  hasRosters = false;
  /** Fate of notifications of personal eventing. */
  notified: "delivered" | "ignored" | undefined;
  /** Carbons of messages for other sessions; undefined while no client wants any. */
  carbons: Stanza[] | undefined;
  /** True when the session waits for its client to acknowledge. */
  keeps = false;
  service: NodeOutcome = "delivered";
  /** Messages of rooms that wait for earlier ones; undefined while none has to. */
  waiting: Envelope[] | undefined;
  /** The reaction of the service to a request. */
  whenAsked: (stanza: Stanza) => void = () => {};
  readonly local: LocalSide = new LocalSide({
    globalHost: "example.com",
    hosts: new Set(["example.com", "dc1.example.com"]),
    sessions: {
      find: () => this.client,
      deliverTo: (session, stanza, delivery) =>
        session.send(stanza, delivery) ? "delivered" : "resource-constraint",
      ofAccount: () => this.sessions,
      deliver: (stanza, delivery) => {
        this.handed.push("session");
        if (this.keeps) delivery.retain();
        return stanza.kind === "iq" ? this.local.askServices(stanza) : this.session;
      },
    },
    components: {
      find: (domain) => domain === "echo.example.com" ? {} : undefined,
      deliver: () => {
        this.handed.push("component");
        return "delivered";
      },
    },
    services: {
      handle: (stanza, client) => {
        this.handed.push("service");
        this.clients.push(client);
        this.whenAsked(stanza);
        return this.service;
      },
    },
    privacy: {
      refusesPresence: () => this.isRefused,
      takes: ({ bytes }) => new TextDecoder().decode(bytes).includes("urn:xmpp:blocking"),
    },
    accountWatch: {
      takes: ({ bytes }) => new TextDecoder().decode(bytes).includes("urn:causeway:account"),
    },
    offline: { holds: () => this.isHolding },
    rooms: { serves: (domain) => domain === "muclight.example.com", take: () => "ignored" },
    carbons: {
      received: (message) => (this.carbons?.push(message) ?? 0) > 0,
      told: (message) => (this.carbons?.push(message) ?? 0) > 0,
    },
    copyOrder: { take: (envelope) => (this.waiting?.push(envelope) ?? 0) > 0 },
    rosters: {
      serves: () => this.hasRosters,
      saw: ({ type }) => this.seen.push(type) > 0,
      refused: ({ type }) => void this.seen.push(`refused ${type}`),
      probed: (probe) => void this.handed.push(`probe of ${probe.from.text}`),
      takes: ({ to }) => to.text.endsWith("/uninterested"),
      asTold: (iq) => this.told ?? iq,
    },
    pep: {
      notified: () => this.notified,
      answered: ({ type }) => type === "result",
    },
    answer: (reply, request) => void this.answers.push({ reply, request }),
  });

  envelope(to: string, kind?: StanzaKind): Envelope {
    return new Envelope(
      {
        stanza: stanza(to, kind),
        process: 1,
        sequence: 1,
        origin: "dc1.example.com",
        sentAtUs: 0,
        ttl: 4,
        bounces: 0,
        mayBeRepeat: false,
      },
      { settle: (number) => void this.settled.push(number) },
      7,
    );
  }
}

Deno.test("LocalSide gives the carbons of a message once, whichever sessions it goes to in turn", () => {
  const fixture = new Fixture();
  fixture.keeps = true;
  const message = fixture.envelope("b@example.com/phone", "message");
  assert.equal(fixture.local.deliver(message), "delivered");
  fixture.carbons = []; // a client that wants some has come meanwhile
  for (let time = 0; time < 2; time++) assert.equal(fixture.local.deliver(message), "delivered");
  assert.equal(fixture.carbons.length, 1);
  assert.equal(fixture.handed.length, 3);
});

const PLACES: readonly (readonly [to: string, where: string | undefined])[] = [
  ["b@example.com", "session"],
  ["b@example.com/y", "session"],
  ["echo.example.com", "component"],
  ["room@echo.example.com/n", "component"],
  ["example.com", "service"],
  ["dc1.example.com/any", "service"],
  ["b@dc1.example.com", "session"],
  ["other.example.com", undefined],
];

for (const [to, where] of PLACES) {
  Deno.test(`LocalSide hands a stanza for ${to} to ${where ?? "nobody"}`, () => {
    const fixture = new Fixture();
    const outcome = fixture.local.deliver(fixture.envelope(to));
    assert.deepEqual(fixture.handed, where === undefined ? [] : [where]);
    assert.equal(outcome, where === undefined ? "no-session" : "delivered");
  });
}

Deno.test("LocalSide settles a stanza that a session took, and leaves one that nobody took", () => {
  const fixture = new Fixture();
  fixture.local.deliver(fixture.envelope("b@example.com"));
  assert.deepEqual(fixture.settled, [7]);
  fixture.session = "no-session";
  fixture.local.deliver(fixture.envelope("b@example.com"));
  assert.deepEqual(fixture.settled, [7]);
});

Deno.test("LocalSide does not settle a stanza that has a keeper, whatever its client acknowledges", () => {
  for (const outcome of ["delivered", "ignored", "no-session"] as const) {
    const fixture = new Fixture();
    fixture.session = outcome;
    fixture.keeps = outcome === "delivered";
    const told: string[] = [];
    const envelope = fixture.envelope("b@example.com", "presence");
    envelope.fate = { settle: () => told.push("settle"), stays: () => told.push("stays") };
    assert.equal(fixture.local.deliver(envelope), outcome);
    assert.deepEqual(told, outcome === "delivered" ? ["stays"] : []);
    if (outcome === "delivered") envelope.acknowledged();
    assert.equal(envelope.hasKeeper, outcome !== "delivered", "routing goes on with it");
    assert.equal(told.includes("settle"), false);
  }
});

Deno.test("LocalSide lets a service's answer take over the duty of the request, at once or later", () => {
  for (const isLater of [false, true]) {
    const fixture = new Fixture();
    let answerNow = () => {};
    fixture.whenAsked = (request) => {
      answerNow = () => fixture.local.answered(errorReply(request, "forbidden")!, request);
      if (!isLater) answerNow();
    };
    const envelope = fixture.envelope("example.com", "iq");
    fixture.local.deliver(envelope);
    if (isLater) {
      assert.deepEqual(fixture.settled, []);
      answerNow();
    }
    assert.equal(fixture.answers[0]!.request, envelope);
  }
});

Deno.test("LocalSide names the client of a request that entered here, and of no other", () => {
  const jid = parseJid("a@example.com/x") as FullJid; // it has a resource
  const client = { jid, isConfidential: true, hasCarbons: false, priority: 0, send: () => true };
  for (const to of ["example.com", "a@example.com"]) {
    const fixture = new Fixture();
    fixture.client = client;
    fixture.local.deliver(fixture.envelope(to, "iq"));
    for (const arrival of ["handed-over", "taken-back"] as const) {
      const envelope = fixture.envelope(to, "iq");
      envelope.arrived(arrival);
      fixture.local.deliver(envelope);
    }
    const envelope = fixture.envelope(to, "iq");
    envelope.arrived("link", "dc2.example.com");
    fixture.local.deliver(envelope);
    assert.deepEqual(fixture.clients, [client, undefined, undefined, undefined], to);
  }
});

Deno.test("LocalSide keeps the duty of an account's request that a service refuses", () => {
  const fixture = new Fixture();
  fixture.service = "service-unavailable";
  const envelope = fixture.envelope("b@example.com", "iq");
  assert.equal(fixture.local.deliver(envelope), "service-unavailable");
  assert.deepEqual(fixture.handed, ["session", "service"]);
  assert.deepEqual(fixture.settled, []);
});

Deno.test("LocalSide lets messages wait behind older ones that were kept, and nothing else", () => {
  const fixture = new Fixture();
  fixture.isHolding = true;
  assert.equal(fixture.local.deliver(fixture.envelope("b@example.com")), "no-session");
  assert.equal(fixture.local.deliver(fixture.envelope("b@example.com", "presence")), "delivered");
  const copy = new Envelope({ ...fixture.envelope("b@example.com"), isCopy: true });
  assert.equal(fixture.local.deliver(copy), "delivered");
  const keeper = { settle: () => {}, stays: () => {} };
  const kept = new Envelope(fixture.envelope("b@example.com"), keeper);
  assert.equal(fixture.local.deliver(kept), "delivered");
  fixture.isHolding = false;
  assert.equal(fixture.local.deliver(fixture.envelope("b@example.com")), "delivered");
});

Deno.test("LocalSide lets the client settle a stanza that its session keeps", () => {
  const fixture = new Fixture();
  const envelope = fixture.envelope("b@example.com");
  fixture.keeps = true;
  assert.equal(fixture.local.deliver(envelope), "delivered");
  assert.deepEqual(fixture.settled, []);
  envelope.acknowledged();
  assert.deepEqual(fixture.settled, [7]);
});

const BOB = new BareJid("b", "example.com");

function session(resourcepart: string, priority?: number): Fixture["sessions"][number] {
  const jid = new FullJid(BOB, resourcepart);
  const presence = buildStanza(element("presence", {}), { from: jid, to: BOB });
  return { jid, priority, lastPresence: priority === undefined ? undefined : presence };
}

Deno.test("LocalSide sends the last answer to a session at once, whatever else is on its way", () => {
  for (const isOpen of [true, false]) {
    const fixture = new Fixture();
    const sent: Stanza[] = [];
    const jid = new FullJid(BOB, "x");
    fixture.client = {
      jid,
      priority: undefined,
      isConfidential: true,
      hasCarbons: false,
      send: (stanza) => isOpen && sent.push(stanza) > 0,
    };
    const request = buildStanza(element("iq", { type: "set", id: "r1" }), { from: jid, to: BOB });
    const reply = buildStanza(element("iq", { type: "result", id: "r1" }), { from: BOB, to: jid });
    fixture.whenAsked = () => fixture.local.answered(reply, request, true);
    const envelope = fixture.envelope("b@example.com", "iq");
    envelope.stanza = request;
    fixture.local.deliver(envelope);
    assert.deepEqual(sent, isOpen ? [reply] : []);
    assert.deepEqual(fixture.answers.map(({ request }) => request), isOpen ? [] : [envelope]);
    assert.deepEqual(fixture.settled, [7], "by the answer's envelope, if there is one");
  }
});

Deno.test("LocalSide.ownSessions() lists the account's sessions here", () => {
  const fixture = new Fixture();
  const own = (to: string) => fixture.local.ownSessions(parseJid(to));
  assert.deepEqual(own("b@example.com/y"), {
    isHere: false,
    isResourceHere: false,
    priority: undefined,
  });
  fixture.sessions = [session("x", -3), session("y"), session("z", -5)];
  assert.deepEqual(own("b@example.com/y"), { isHere: true, isResourceHere: true, priority: -3 });
  assert.deepEqual(own("b@example.com"), { isHere: true, isResourceHere: false, priority: -3 });
  fixture.sessions = [session("y")];
  assert.equal(own("b@example.com").priority, undefined);
});

Deno.test("LocalSide shows the account's available resources to one on another node", () => {
  const fixture = new Fixture();
  fixture.sessions = [session("x", 1), session("y")];
  const probe = fixture.envelope("b@example.com");
  probe.stanza = accountProbe(new FullJid(BOB, "new"));
  assert.equal(fixture.local.deliver(probe), "ignored");
  assert.deepEqual(fixture.handed, []);
  assert.deepEqual(
    fixture.answers.map(({ reply, request }) => [reply.from.text, reply.to.text, request]),
    [["b@example.com/x", "b@example.com/new", undefined]],
  );
});

function presence(type: string, to: string): Stanza {
  const from = parseJid("a@example.com");
  return buildStanza(element("presence", { type: type === "available" ? undefined : type }), {
    from,
    to: parseJid(to),
  });
}

function asEnvelope(stanza: Stanza): Envelope {
  const id = { process: 1, sequence: 1, origin: "dc1.example.com", sentAtUs: 0 };
  return new Envelope({ ...id, stanza, ttl: 1, bounces: 0, mayBeRepeat: false });
}

Deno.test("LocalSide has allowed probes answered where accounts have rosters, and drops others", () => {
  const fixture = new Fixture();
  const probe = presence("probe", "b@example.com");
  fixture.local.deliver(asEnvelope(probe));
  assert.deepEqual(fixture.handed, ["session"]);
  fixture.hasRosters = true;
  assert.equal(fixture.local.deliver(asEnvelope(probe)), "ignored");
  assert.deepEqual(fixture.handed, ["session", "probe of a@example.com"]);
});

Deno.test("LocalSide gives a subscription stanza to the addressed client alone", () => {
  const fixture = new Fixture();
  fixture.hasRosters = true;
  const sent: string[] = [];
  const session = (priority: number | undefined) => ({
    jid: parseJid("b@example.com/x") as FullJid, // it has a resource
    isConfidential: true,
    hasCarbons: false,
    priority,
    send: ({ type }: Stanza) => sent.push(type) > 0,
  });
  const deliver = (type: string) =>
    fixture.local.deliver(asEnvelope(presence(type, "b@example.com/x")));
  assert.equal(deliver("subscribed"), "ignored", "the client is gone");
  fixture.client = session(undefined);
  assert.equal(deliver("subscribe"), "ignored", "it comes with the client's presence");
  assert.equal(deliver("subscribed"), "delivered");
  fixture.client = session(0);
  assert.equal(deliver("subscribe"), "delivered");
  assert.deepEqual(sent, ["subscribed", "subscribe"]);
  assert.deepEqual(fixture.handed, [], "no other client gets it");
});

Deno.test("LocalSide gives presence that privacy lists refuse to no session", () => {
  const fixture = new Fixture();
  fixture.hasRosters = true;
  fixture.isRefused = true;
  const types = ["available", "unavailable", "subscribe"];
  for (const type of types) {
    assert.equal(fixture.local.deliver(asEnvelope(presence(type, "b@example.com/x"))), "ignored");
  }
  assert.deepEqual(fixture.seen, types.map((type) => `refused ${type}`));
  assert.deepEqual(fixture.handed, []);
  fixture.isRefused = false;
  fixture.local.deliver(asEnvelope(presence("available", "b@example.com")));
  assert.deepEqual([fixture.seen.at(-1), fixture.handed], ["available", ["session"]]);
});

Deno.test("LocalSide shows no client the notice that its account was removed", () => {
  const fixture = new Fixture();
  const to = new FullJid(BOB, "x");
  assert.equal(fixture.local.deliver(asEnvelope(removalNotice(BOB, to))), "ignored");
  assert.deepEqual(fixture.handed, []);
});

Deno.test("LocalSide leaves pushes of lists to those who read the lists again first", () => {
  const fixture = new Fixture();
  const push = (namespace: string) =>
    asEnvelope(
      buildStanza(element("iq", { type: "set" }, element("block", { xmlns: namespace })), {
        from: parseJid("a@example.com"),
        to: parseJid("a@example.com/x"),
      }),
    );
  assert.equal(fixture.local.deliver(push("urn:xmpp:blocking")), "ignored");
  assert.deepEqual(fixture.handed, []);
  fixture.local.deliver(push("urn:x"));
  assert.deepEqual(fixture.handed, ["session", "service"]);
});

Deno.test("LocalSide drops roster pushes that the client does not want", () => {
  const fixture = new Fixture();
  fixture.hasRosters = true;
  const push = (to: string) =>
    asEnvelope(
      buildStanza(element("iq", { type: "set", id: "1" }), {
        from: parseJid("a@example.com"),
        to: parseJid(to),
      }),
    );
  assert.equal(fixture.local.deliver(push("a@example.com/uninterested")), "ignored");
  assert.deepEqual(fixture.handed, []);
  fixture.local.deliver(push("a@example.com/x"));
  assert.deepEqual(fixture.handed, ["session", "service"]);
  const got: Stanza[] = [];
  fixture.whenAsked = (stanza) => void got.push(stanza);
  fixture.told = stanza("a@example.com/x", "iq");
  fixture.local.deliver(push("a@example.com/x"));
  assert.deepEqual(got, [fixture.told], "with a version that leaves nothing out");
});

Deno.test("LocalSide lets personal eventing decide on headlines, and on nothing else", () => {
  const fixture = new Fixture();
  const message = (type: string) =>
    asEnvelope(
      buildStanza(element("message", { type }), {
        from: parseJid("a@example.com"),
        to: parseJid("b@example.com/x"),
      }),
    );
  fixture.notified = "ignored";
  assert.equal(fixture.local.deliver(message("headline")), "ignored");
  assert.deepEqual(fixture.handed, []);
  assert.equal(fixture.local.deliver(message("chat")), "delivered");
  fixture.notified = undefined;
  assert.equal(fixture.local.deliver(message("headline")), "delivered");
  assert.deepEqual(fixture.handed, ["session", "session"]);
});

Deno.test("LocalSide gives answers to the server's own questions to those who asked", () => {
  const fixture = new Fixture();
  const answer = buildStanza(element("iq", { type: "result", id: "1" }), {
    from: parseJid("a@example.com/x"),
    to: parseJid("example.com"),
  });
  assert.equal(fixture.local.deliver(asEnvelope(answer)), "delivered");
  assert.deepEqual(fixture.handed, []);
});

Deno.test("LocalSide.deliver() lets messages of rooms wait for earlier ones, and settles them later", () => {
  const fixture = new Fixture();
  const fromRoom = (type: Stanza["type"] = "groupchat") => {
    const envelope = fixture.envelope("b@example.com");
    const from = parseJid("coven@muclight.example.com/a@example.com");
    envelope.stanza = { ...envelope.stanza, type, from };
    return envelope;
  };
  fixture.waiting = [];
  assert.equal(fixture.local.deliver(fromRoom()), "delivered");
  assert.deepEqual(
    [fixture.handed.splice(0).length, fixture.waiting.length],
    [1, 0],
    "nobody is here",
  );
  fixture.settled.length = 0;
  fixture.sessions = [{ jid: parseJid("b@example.com/x") as FullJid }] as LocalSession[];
  const waits = fromRoom();
  assert.equal(fixture.local.deliver(waits), "delivered");
  assert.deepEqual([fixture.handed, fixture.settled], [[], []]);
  assert.equal(waits.isHeldForOrder, true);
  fixture.local.deliver(fromRoom("error"));
  fixture.local.deliver(fixture.envelope("b@example.com"));
  assert.deepEqual([fixture.handed.length, fixture.waiting.length], [2, 1], "others do not wait");
  assert.equal(fixture.local.deliverLate(fixture.waiting[0]!), true);
  assert.equal(fixture.settled.length, 3);
  for (const outcome of ["no-session", "ignored"] as const) {
    fixture.session = outcome;
    assert.equal(fixture.local.deliverLate(fromRoom()), false, "the caller settles it");
  }
  assert.equal(fixture.settled.length, 3);
});

Deno.test("LocalSide.deliverTo() gives a session a copy of a message that waits, which is settled with it", () => {
  for (const [priority, keeps] of [[0, true], [0, false], [-1, true], [undefined, true]] as const) {
    const fixture = new Fixture();
    const copies: Envelope[] = [];
    const jid = parseJid("b@example.com/phone") as FullJid;
    fixture.client = {
      jid,
      priority,
      hasCarbons: false,
      isConfidential: true,
      send: (_, delivery) => {
        if (keeps) delivery!.retain();
        return copies.push(delivery as Envelope) > 0;
      },
    };
    const message = fixture.envelope("b@example.com");
    message.stanza = { ...message.stanza, type: "groupchat" };
    fixture.local.deliverTo(jid, message);
    assert.equal(
      copies.length,
      priority === 0 ? 1 : 0,
      "it gets what other sessions of it would get",
    );
    assert.ok(copies.every((copy) => copy.isCopyOf(message)));
    message.settle();
    const isOpen = priority === 0 && keeps;
    assert.deepEqual(fixture.settled, isOpen ? [] : [7]);
    for (const copy of copies) if (isOpen) copy.acknowledged();
    assert.deepEqual(fixture.settled, [7]);
  }
});
