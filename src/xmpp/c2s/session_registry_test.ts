import assert from "node:assert/strict";
import { FullJid } from "../jid/jid.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza, StanzaKind, StanzaType } from "../stanza/stanza.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import { TestDelivery } from "./testing/delivery.ts";
import type { LocalSession } from "./local_session.ts";
import { SessionRegistry } from "./session_registry.ts";

class FakeSession implements LocalSession {
  isHibernating = false;
  isManaged = false;
  isGiven = false;
  origin: LocalSession["origin"];
  readonly isConfidential = true;
  hasCarbons = false;
  loneUntilMs = 0;
  /** Stanzas that the session kept when it lost its place. */
  givenBack: Stanza[] | undefined;
  readonly jid: FullJid;
  priority: number | undefined;
  lastPresence = undefined;
  readonly directed = [];
  isOpen = true;
  isFull = false;
  ended: StreamErrorCondition | undefined;
  readonly received: Stanza[] = [];

  constructor(jid: string, priority?: number) {
    const parsed = parseJid(jid);
    assert(parsed instanceof FullJid);
    this.jid = parsed;
    this.priority = priority;
  }

  opened(): void {
    this.received.length = 0;
  }

  send(stanza: Stanza): boolean {
    if (this.isFull) return false;
    this.received.push(stanza);
    return true;
  }

  giveBack(): void {
    this.givenBack = this.received.splice(0);
  }

  end(condition: StreamErrorCondition): void {
    this.ended = condition;
    this.isOpen = false;
  }
}

/** Callbacks that record their calls, and take as long as the test wants. */
class NotedEvents {
  readonly calls: string[] = [];
  gate: Promise<void> = Promise.resolve();

  async opened(jid: FullJid): Promise<void> {
    this.calls.push(`opening ${jid.resourcepart}`);
    await this.gate;
    this.calls.push(`opened ${jid.resourcepart}`);
  }

  async closed(jid: FullJid): Promise<void> {
    this.calls.push(`closing ${jid.resourcepart}`);
    await this.gate;
    this.calls.push(`closed ${jid.resourcepart}`);
  }
}

function registryWith(events = new NotedEvents(), maxSessionsPerAccount?: number) {
  const asked: Stanza[] = [];
  const registry = new SessionRegistry({
    events,
    accountIq: (stanza) => {
      asked.push(stanza);
      return "delivered";
    },
    isRoomDomain: (domainpart) => domainpart === "rooms.example.com",
    ...(maxSessionsPerAccount === undefined ? {} : { maxSessionsPerAccount }),
  });
  return { registry, events, asked };
}

function stanzaTo(to: string, kind: StanzaKind, type: StanzaType): Stanza {
  return {
    kind,
    type,
    from: parseJid("bob@example.com/x"),
    to: parseJid(to),
    bytes: new Uint8Array(0),
  };
}

const BARE = "alice@example.com";
const GONE = "alice@example.com/gone";

/** high and twin have priority 5, low 1, away −1; idle never sent presence. */
const TABLE: readonly (readonly [
  to: string,
  kind: StanzaKind,
  type: StanzaType,
  outcome: string,
  receivers: string,
])[] = [
  [BARE, "message", "normal", "delivered", "high twin"],
  [BARE, "message", "chat", "delivered", "high twin"],
  [BARE, "message", "headline", "delivered", "high twin low"],
  [BARE, "message", "groupchat", "service-unavailable", ""],
  [BARE, "message", "error", "ignored", ""],
  [BARE, "presence", "available", "delivered", "high twin low away"],
  [BARE, "presence", "unavailable", "delivered", "high twin low away"],
  [BARE, "presence", "subscribe", "delivered", "high twin low away"],
  [BARE, "presence", "subscribed", "delivered", "high twin low away"],
  [BARE, "presence", "unsubscribe", "delivered", "high twin low away"],
  [BARE, "presence", "unsubscribed", "delivered", "high twin low away"],
  [BARE, "presence", "probe", "ignored", ""],
  [BARE, "presence", "error", "ignored", ""],
  [BARE, "iq", "get", "delivered", "account"],
  [BARE, "iq", "set", "delivered", "account"],
  [BARE, "iq", "result", "ignored", ""],
  [BARE, "iq", "error", "ignored", ""],
  ...(["low", "away", "idle"] as const).flatMap((resource) =>
    ([
      ["message", "normal"],
      ["message", "chat"],
      ["message", "headline"],
      ["message", "groupchat"],
      ["message", "error"],
      ["presence", "available"],
      ["presence", "unavailable"],
      ["presence", "error"],
      ["iq", "get"],
      ["iq", "set"],
      ["iq", "result"],
      ["iq", "error"],
    ] as const).map(([kind, type]) =>
      [`${BARE}/${resource}`, kind, type, "delivered", resource] as const
    )
  ),
  [`${BARE}/low`, "presence", "subscribe", "delivered", "high twin low away"],
  [`${BARE}/low`, "presence", "probe", "ignored", ""],
  [GONE, "message", "normal", "no-session", ""],
  [GONE, "message", "chat", "delivered", "high twin"],
  [GONE, "message", "headline", "no-session", ""],
  [GONE, "message", "groupchat", "no-session", ""],
  [GONE, "message", "error", "ignored", ""],
  [GONE, "presence", "available", "ignored", ""],
  [GONE, "presence", "unavailable", "ignored", ""],
  [GONE, "presence", "subscribe", "delivered", "high twin low away"],
  [GONE, "presence", "probe", "ignored", ""],
  [GONE, "iq", "get", "no-session", ""],
  [GONE, "iq", "set", "no-session", ""],
  [GONE, "iq", "result", "ignored", ""],
  [GONE, "iq", "error", "ignored", ""],
  ["carol@example.com", "message", "chat", "no-session", ""],
  ["carol@example.com", "message", "headline", "no-session", ""],
  ["carol@example.com", "message", "groupchat", "service-unavailable", ""],
  ["carol@example.com", "message", "error", "ignored", ""],
  ["carol@example.com", "iq", "get", "delivered", "account"],
  ["carol@example.com", "iq", "set", "delivered", "account"],
  ["carol@example.com", "iq", "result", "ignored", ""],
  ["carol@example.com/x", "message", "chat", "no-session", ""],
  ["carol@example.com/x", "message", "error", "no-session", ""],
];

for (const [to, kind, type, outcome, receivers] of TABLE) {
  Deno.test(`SessionRegistry.deliver() gives ${kind} ${type} for ${to} to [${receivers}]`, async () => {
    const { registry, asked } = registryWith();
    const sessions = [
      new FakeSession(`${BARE}/high`, 5),
      new FakeSession(`${BARE}/twin`, 5),
      new FakeSession(`${BARE}/low`, 1),
      new FakeSession(`${BARE}/away`, -1),
      new FakeSession(`${BARE}/idle`),
    ];
    for (const session of sessions) assert.equal(await registry.open(session), "opened");
    assert.equal(registry.deliver(stanzaTo(to, kind, type)), outcome);
    const reached = sessions.filter((session) => session.received.length > 0)
      .map((session) => session.jid.resourcepart);
    if (asked.length > 0) reached.push("account");
    assert.equal(reached.join(" "), receivers);
  });
}

Deno.test("SessionRegistry.deliver() gives other sessions what an ended session had not acknowledged", async () => {
  const { registry } = registryWith();
  const other = new FakeSession(`${BARE}/other`, 0);
  await registry.open(other);
  for (const type of ["normal", "headline", "groupchat"] as const) {
    const stanza = stanzaTo(GONE, "message", type);
    const delivery = new TestDelivery(stanza);
    delivery.isRerouted = true;
    const outcome = registry.deliver(stanza, delivery);
    assert.equal(outcome, type === "normal" ? "delivered" : "no-session", type);
  }
  assert.deepEqual(other.received.map(({ type }) => type), ["normal"]);
});

Deno.test("SessionRegistry.deliver() finds no resource when none is available", async () => {
  const { registry } = registryWith();
  await registry.open(new FakeSession(`${BARE}/idle`));
  await registry.open(new FakeSession(`${BARE}/away`, -1));
  assert.equal(registry.deliver(stanzaTo(BARE, "message", "chat")), "no-session");
  assert.equal(registry.deliver(stanzaTo(GONE, "message", "chat")), "no-session");
  assert.equal(registry.deliver(stanzaTo(BARE, "message", "headline")), "ignored");
});

Deno.test("SessionRegistry.deliver() refuses a stanza for a session that does not read", async () => {
  const { registry } = registryWith();
  const session = new FakeSession(`${BARE}/a`, 0);
  await registry.open(session);
  session.isFull = true;
  assert.equal(registry.deliver(stanzaTo(`${BARE}/a`, "message", "chat")), "resource-constraint");
  assert.equal(registry.deliver(stanzaTo(BARE, "message", "chat")), "resource-constraint");
});

Deno.test("SessionRegistry reports a session as reachable, and again once it is available", async () => {
  const reachable: string[] = [];
  const registry = new SessionRegistry({
    events: {
      opened: () => Promise.resolve(),
      closed: () => Promise.resolve(),
      reachable: (jid) => void reachable.push(jid.resourcepart),
    },
    accountIq: () => "delivered",
  });
  const session = new FakeSession(`${BARE}/a`);
  await registry.open(session);
  registry.becameAvailable(session);
  assert.deepEqual(reachable, ["a", "a"]);
});

Deno.test("SessionRegistry.open() ends the older session, and makes the calls one after another", async () => {
  const { registry, events } = registryWith();
  const [older, newer] = [new FakeSession(`${BARE}/a`), new FakeSession(`${BARE}/a`)];
  assert.equal(await registry.open(older), "opened");
  assert.equal(await registry.open(newer), "opened");
  await registry.close(older);
  assert.equal(older.ended, "conflict");
  assert.equal(newer.ended, undefined);
  assert.equal(registry.find(newer.jid), newer);
  assert.equal(registry.count, 1);
  assert.deepEqual(events.calls, [
    "opening a",
    "opened a",
    "closing a",
    "closed a",
    "opening a",
    "opened a",
  ]);
});

Deno.test("SessionRegistry.open() gives the place to the last of many simultaneous sessions", async () => {
  const { registry, events } = registryWith();
  const all = Array.from({ length: 4 }, () => new FakeSession(`${BARE}/a`));
  await Promise.all(all.map((session) => registry.open(session)));
  assert.equal(registry.find(all[3]!.jid), all[3]);
  assert.deepEqual(all.map((session) => session.ended), [
    "conflict",
    "conflict",
    "conflict",
    undefined,
  ]);
  const steps = events.calls.map((call) => call.split(" ")[0]);
  for (let i = 0; i < steps.length; i += 2) {
    assert.equal(steps[i + 1], steps[i] === "opening" ? "opened" : "closed");
  }
  assert.equal(steps.at(-1), "opened");
});

Deno.test("SessionRegistry.open() does not reach a session before the callback has resolved", async () => {
  const events = new NotedEvents();
  const gate = Promise.withResolvers<void>();
  events.gate = gate.promise;
  const { registry } = registryWith(events);
  const session = new FakeSession(`${BARE}/a`, 0);
  const opening = registry.open(session);
  assert.equal(registry.deliver(stanzaTo(`${BARE}/a`, "message", "chat")), "no-session");
  gate.resolve();
  assert.equal(await opening, "opened");
  assert.equal(registry.deliver(stanzaTo(`${BARE}/a`, "message", "chat")), "delivered");
});

for (const isRefused of [false, true]) {
  Deno.test(
    `SessionRegistry.open() gives a session from elsewhere stanzas from the start, and ${
      isRefused ? "none once it is refused" : "each once"
    }`,
    async () => {
      const opening = Promise.withResolvers<StanzaErrorCondition | undefined>();
      const registry = new SessionRegistry({
        events: {
          opened: () => Promise.resolve(),
          opening: () => opening.promise,
          closed: () => Promise.resolve(),
        },
        accountIq: () => "delivered",
      });
      const session = new FakeSession(`${BARE}/home`, 0);
      session.origin = { process: 1, askedMs: 0 };
      const got: Stanza[] = [];
      session.send = (stanza) => got.push(stanza) > 0;
      const outcome = registry.open(session);
      const stanzas = [BARE, `${BARE}/home`].map((to) => stanzaTo(to, "message", "chat"));
      for (const each of stanzas) assert.equal(registry.deliver(each), "delivered");
      assert.deepEqual(got, stanzas);
      assert.equal(registry.find(session.jid), undefined, "it has no place yet");
      opening.resolve(isRefused ? "not-allowed" : undefined);
      assert.equal(await outcome, isRefused ? "not-allowed" : "opened");
      for (const each of stanzas) {
        assert.equal(registry.deliver(each), isRefused ? "no-session" : "delivered");
      }
      assert.equal(got.length, isRefused ? 2 : 4);
      assert.equal(registry.ofAccount(BARE).length, isRefused ? 0 : 1);
    },
  );
}

Deno.test("SessionRegistry.open() gives a session from elsewhere no place while a client logs in with its full JID", async () => {
  const { registry } = registryWith();
  const coming = new FakeSession(`${BARE}/a`, 0);
  coming.origin = { process: 1, askedMs: 0 };
  const login = new FakeSession(`${BARE}/a`, 0);
  const outcomes = [registry.open(login), registry.open(coming)];
  assert.deepEqual(await Promise.all(outcomes), ["opened", "conflict"]);
  assert.equal(login.isOpen, true);
  assert.deepEqual(registry.ofAccount(BARE), [login]);
  login.isGiven = true;
  assert.equal(await registry.open(coming), "opened", "what has moved away is older");
});

Deno.test("SessionRegistry.displaced() ends a session, also one from elsewhere that gets its place", async () => {
  const opened = Promise.withResolvers<void>();
  const registry = new SessionRegistry({
    events: { opened: () => opened.promise, closed: () => Promise.resolve() },
    accountIq: () => "delivered",
  });
  const coming = new FakeSession(`${BARE}/a`, 0);
  coming.origin = { process: 1, askedMs: 0 };
  const outcome = registry.open(coming);
  await Promise.resolve();
  registry.displaced(coming.jid);
  opened.resolve();
  assert.equal(await outcome, "gone");
  assert.equal(coming.ended, "conflict");
  const here = new FakeSession(`${BARE}/a`, 0);
  assert.equal(await registry.open(here), "opened");
  registry.displaced(here.jid);
  assert.equal(here.ended, "conflict");
});

Deno.test("SessionRegistry.open() closes a session whose client left meanwhile", async () => {
  const events = new NotedEvents();
  const gate = Promise.withResolvers<void>();
  events.gate = gate.promise;
  const { registry } = registryWith(events);
  const session = new FakeSession(`${BARE}/a`, 0);
  const opening = registry.open(session);
  session.isOpen = false;
  gate.resolve();
  assert.equal(await opening, "gone");
  assert.equal(registry.count, 0);
  assert.equal(events.calls.at(-1), "closed a");
});

Deno.test("SessionRegistry.open() ends hibernating sessions only if that makes room, and as many as it takes", async () => {
  const { registry } = registryWith();
  const open = async (resource: string, isHibernating = false) => {
    const session = new FakeSession(`${BARE}/${resource}`);
    session.isHibernating = isHibernating;
    return { session, outcome: await registry.open(session) };
  };
  await open("phone");
  const asleep = [await open("a", true), await open("b", true)].map(({ session }) => session);
  registry.change({ maxSessionsPerAccount: 1 });
  assert.equal((await open("new")).outcome, "resource-constraint");
  assert.deepEqual(asleep.map(({ isOpen }) => isOpen), [true, true]);
  registry.change({ maxSessionsPerAccount: 2 });
  assert.equal((await open("new")).outcome, "opened");
  assert.deepEqual(asleep.map(({ isOpen }) => isOpen), [false, false]);
});

Deno.test("SessionRegistry.open() accepts maxSessionsPerAccount sessions and not one more", async () => {
  const { registry, events } = registryWith(new NotedEvents(), 2);
  const results = await Promise.all(
    ["a", "b", "c"].map((resource) => registry.open(new FakeSession(`${BARE}/${resource}`))),
  );
  assert.deepEqual(results.toSorted(), ["opened", "opened", "resource-constraint"]);
  assert.equal(await registry.open(new FakeSession(`${BARE}/d`)), "resource-constraint");
  assert.equal(await registry.open(new FakeSession(`${BARE}/a`)), "opened");
  assert.equal(await registry.open(new FakeSession("bob@example.com/a")), "opened");
  const balance = events.calls.filter((call) => call.startsWith("opened")).length -
    events.calls.filter((call) => call.startsWith("closed")).length;
  assert.equal(balance, registry.count);
});

Deno.test("SessionRegistry.change() holds for sessions that open next", async () => {
  const { registry } = registryWith(new NotedEvents(), 2);
  const open = (resource: string) => registry.open(new FakeSession(`${BARE}/${resource}`));
  assert.deepEqual([await open("a"), await open("b")], ["opened", "opened"]);
  registry.change({ maxSessionsPerAccount: 1 });
  assert.deepEqual([await open("c"), registry.count], ["resource-constraint", 2]);
  registry.change({ maxSessionsPerAccount: 3 });
  assert.equal(await open("c"), "opened");
});

Deno.test("SessionRegistry refuses a bound on sessions that is out of range", () => {
  assert.throws(() => registryWith(new NotedEvents(), 0), RangeError);
  assert.throws(() => registryWith(new NotedEvents(), 10_001), RangeError);
});

Deno.test("SessionRegistry.closeAll() ends all sessions and waits for the callbacks", async () => {
  const { registry, events } = registryWith();
  const sessions = ["a", "b"].map((resource) => new FakeSession(`${BARE}/${resource}`));
  for (const session of sessions) {
    await registry.open(session);
    const end = session.end.bind(session);
    session.end = (condition) => {
      end(condition);
      void registry.close(session);
    };
  }
  await registry.closeAll("system-shutdown");
  assert.deepEqual(sessions.map((session) => session.ended), [
    "system-shutdown",
    "system-shutdown",
  ]);
  assert.equal(registry.count, 0);
  assert.deepEqual(events.calls.filter((call) => call.startsWith("closed")).toSorted(), [
    "closed a",
    "closed b",
  ]);
});

Deno.test("SessionRegistry.close() lets a managed session keep new stanzas until the callbacks resolve", async () => {
  const events = new NotedEvents();
  const registry = new SessionRegistry({ events, accountIq: () => "ignored" });
  const [kept, plain] = [new FakeSession(`${BARE}/kept`, 1), new FakeSession(`${BARE}/plain`, 0)];
  kept.isManaged = true;
  for (const session of [kept, plain]) assert.equal(await registry.open(session), "opened");
  const gate = Promise.withResolvers<void>();
  events.gate = gate.promise;
  for (const session of [kept, plain]) session.end("conflict");
  const closed = [kept, plain].map((session) => registry.close(session));
  assert.deepEqual([registry.find(kept.jid), registry.find(plain.jid)], [undefined, undefined]);
  const late = stanzaTo(`${BARE}/kept`, "message", "chat");
  assert.equal(registry.deliver(late), "delivered");
  assert.equal(registry.deliver(stanzaTo(`${BARE}/plain`, "message", "groupchat")), "no-session");
  gate.resolve();
  await Promise.all(closed);
  assert.deepEqual(kept.givenBack, [late]);
  assert.equal(registry.deliver(stanzaTo(`${BARE}/kept`, "message", "chat")), "no-session");
});

Deno.test("SessionRegistry.open() lets the older session return its stanzas, then begins", async () => {
  const events = new NotedEvents();
  const registry = new SessionRegistry({ events, accountIq: () => "ignored" });
  const older = new FakeSession(`${BARE}/one`);
  older.isManaged = true;
  await registry.open(older);
  const gate = Promise.withResolvers<void>();
  events.gate = gate.promise;
  const newer = new FakeSession(`${BARE}/one`);
  const opening = registry.open(newer);
  const closing = registry.close(older); // its own end asks for it too
  const late = stanzaTo(`${BARE}/one`, "message", "chat");
  assert.equal(registry.deliver(late), "delivered");
  gate.resolve();
  assert.equal(await opening, "opened");
  await closing;
  assert.deepEqual(older.givenBack, [late]);
  assert.equal(registry.find(newer.jid), newer);
  assert.deepEqual(events.calls.slice(-4), [
    "closing one",
    "closed one",
    "opening one",
    "opened one",
  ]);
});

Deno.test("SessionRegistry.open() does not count ended sessions against the account's bound", async () => {
  const events = new NotedEvents();
  const options = { events, accountIq: () => "ignored" as const, maxSessionsPerAccount: 1 };
  const registry = new SessionRegistry(options);
  const older = new FakeSession(`${BARE}/old`);
  older.isManaged = true;
  await registry.open(older);
  older.end("conflict");
  assert.equal(await registry.open(new FakeSession(`${BARE}/new`)), "opened");
});

Deno.test("SessionRegistry tells an account's sessions that they are no longer alone", async () => {
  const { registry } = registryWith();
  const phone = new FakeSession("bob@example.com/phone");
  const laptop = new FakeSession("bob@example.com/laptop");
  await registry.open(phone);
  phone.loneUntilMs = 5_000;
  await registry.open(laptop);
  assert.deepEqual([phone.loneUntilMs, laptop.loneUntilMs], [0, 0]);
});

Deno.test("deliver() keeps from a session what its owner does not want, and tells nobody", async () => {
  const refused = new Set(["a@b.c/one"]);
  const registry = new SessionRegistry({
    events: new NotedEvents(),
    accountIq: () => "ignored",
    refuses: ({ text }) => refused.has(text),
  });
  const [one, two] = [new FakeSession("a@b.c/one", 1), new FakeSession("a@b.c/two", 1)];
  for (const session of [one, two]) await registry.open(session);
  assert.equal(registry.deliver(stanzaTo("a@b.c", "message", "chat")), "delivered");
  assert.deepEqual([one.received.length, two.received.length], [0, 1]);
  assert.equal(registry.deliver(stanzaTo("a@b.c/one", "message", "chat")), "ignored");
  assert.equal(registry.deliver(stanzaTo("a@b.c/one", "presence", "available")), "ignored");
  assert.equal(registry.deliver(stanzaTo("a@b.c/one", "iq", "result")), "ignored");
  for (const type of ["get", "set"] as const) {
    assert.equal(registry.deliver(stanzaTo("a@b.c/one", "iq", type)), "hidden");
  }
  refused.add("a@b.c/two");
  assert.equal(registry.deliver(stanzaTo("a@b.c", "message", "chat")), "ignored");
  assert.deepEqual([one.received.length, two.received.length], [0, 1]);
});

Deno.test("open() refuses a session whose opening fails, and reports its end", async () => {
  const events = Object.assign(new NotedEvents(), {
    opening: () => Promise.resolve("internal-server-error" as const),
  });
  const registry = new SessionRegistry({ events, accountIq: () => "ignored" });
  assert.equal(await registry.open(new FakeSession("a@b.c/one")), "internal-server-error");
  assert.equal(registry.count, 0);
  assert.deepEqual(events.calls.at(-1), "closed one");
});

Deno.test("SessionRegistry gives a room's message for an account to all resources but negative ones", async () => {
  const { registry } = registryWith();
  const [desk, phone, away] = [["desk", 5], ["phone", 0], ["away", -1]].map(([name, priority]) =>
    new FakeSession(`${BARE}/${name}`, priority as number)
  ) as [FakeSession, FakeSession, FakeSession];
  for (const each of [desk, phone, away]) await registry.open(each);
  const from = parseJid("room@rooms.example.com/bob@example.com");
  const message = { ...stanzaTo(BARE, "message", "groupchat"), from };
  assert.equal(registry.deliver(message), "delivered");
  assert.deepEqual([desk, phone, away].map(({ received }) => received.length), [1, 1, 0]);
  assert.equal(registry.deliver({ ...message, to: parseJid("nobody@example.com") }), "no-session");
});

Deno.test("SessionRegistry gives no other session what a room has sent to one that is gone", async () => {
  const { registry } = registryWith();
  const desk = new FakeSession(`${BARE}/desk`, 5);
  await registry.open(desk);
  const from = parseJid("room@rooms.example.com/bard");
  const whisper = { ...stanzaTo(`${BARE}/phone`, "message", "chat"), from };
  assert.equal(registry.deliver(whisper), "no-session");
  assert.deepEqual(desk.received, []);
  assert.equal(registry.deliver({ ...whisper, to: desk.jid }), "delivered");
});

Deno.test("SessionRegistry holds 1000 sessions of one account where it may, and reaches each of them", async () => {
  const events = { opened: async () => {}, closed: async () => {} };
  const registry = new SessionRegistry({
    events,
    accountIq: () => "delivered",
    maxSessionsPerAccount: 1000,
  });
  const sessions = Array.from(
    { length: 1000 },
    (_, i) => new FakeSession(`${BARE}/device${i}`, i % 10),
  );
  const outcomes = await Promise.all(sessions.map((session) => registry.open(session)));
  assert.deepEqual(new Set(outcomes), new Set(["opened"]));
  assert.equal(await registry.open(new FakeSession(`${BARE}/late`, 0)), "resource-constraint");
  assert.equal(registry.ofAccount(BARE).length, 1000);

  const counts = () => sessions.map(({ received }) => received.splice(0).length);
  assert.equal(registry.deliver(stanzaTo(BARE, "message", "chat")), "delivered");
  assert.deepEqual(counts(), sessions.map(({ priority }) => priority === 9 ? 1 : 0));
  assert.equal(registry.deliver(stanzaTo(BARE, "presence", "available")), "delivered");
  assert.deepEqual(counts(), sessions.map(() => 1));
  assert.equal(registry.deliver(stanzaTo(`${BARE}/device777`, "iq", "get")), "delivered");
  assert.deepEqual(counts(), sessions.map((_, i) => i === 777 ? 1 : 0));

  await Promise.all(sessions.slice(1).map((session) => registry.close(session)));
  assert.deepEqual(registry.ofAccount(BARE), [sessions[0]]);
});

Deno.test("SessionRegistry counts the account's sessions elsewhere once the new one is known there", async () => {
  let elsewhere = 0;
  const events = new NotedEvents();
  const registry = new SessionRegistry({
    events: Object.assign(events, { elsewhere: () => elsewhere }),
    accountIq: () => "delivered",
    maxSessionsPerAccount: 3,
  });
  const desk = new FakeSession(`${BARE}/desk`, 0);
  assert.equal(await registry.open(desk), "opened");
  elsewhere = 2;
  assert.equal(await registry.open(new FakeSession(`${BARE}/phone`, 0)), "resource-constraint");
  assert.deepEqual(events.calls.slice(-2), ["closing phone", "closed phone"]);
  assert.ok(desk.isOpen);
  assert.equal(await registry.open(new FakeSession(`${BARE}/desk`, 0)), "opened", "in its place");
  elsewhere = 1;
  assert.equal(await registry.open(new FakeSession(`${BARE}/phone`, 0)), "opened");
});
