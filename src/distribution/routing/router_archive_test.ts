import assert from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import { conditionOf, FakeLink, fromLink, stanza } from "./testing/router_fixture.ts";
import { TestTracer } from "./testing/test_tracer.ts";
import {
  acceptForAbsent,
  ALICE,
  ArchiveFixture,
  BOB,
  message,
  request,
} from "./testing/archive_fixture.ts";

Deno.test("Router delivers a message once its recipient's archive has it, and keeps the sender's order", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 1);
  fixture.router.accept(request("2"));
  fixture.router.accept(message("3"), client, 3);
  await fixture.settled();
  assert.deepEqual(fixture.ids, []);
  const noted = ["1 sender", "1 recipient", "3 sender"];
  assert.deepEqual(fixture.archive.noted, noted, "it looks ahead");
  await fixture.end("3 sender");
  assert.deepEqual(fixture.ids, []);
  await fixture.end("1 recipient");
  assert.deepEqual(fixture.ids, ["1", "2"]);
  await fixture.end("3 recipient");
  assert.deepEqual(fixture.ids, ["1", "2", "3"]);
  assert.deepEqual(client.settled, [3], "the archive of its sender does not have the first one");
  await fixture.end("1 sender");
  assert.deepEqual(client.settled, [3, 1]);
  assert.equal(fixture.archive.noted.length, 4, "nothing is archived twice");
  fixture.close();
});

Deno.test("Router has a message archived before sessions here get its carbon", async () => {
  const rows: readonly [to: string, type: "chat" | "normal", priority: number | undefined][] = [
    [`${BOB}/dc2`, "normal", 0],
    [`${BOB}/dc2`, "chat", -1],
    [BOB, "chat", undefined],
  ];
  for (const [to, type, priority] of rows) {
    const fixture = new ArchiveFixture();
    fixture.isHere();
    fixture.copiesToDevices = true;
    fixture.sessions.set(BOB, { isHere: true, isResourceHere: false, priority });
    for (const jid of [BOB, `${BOB}/dc2`]) fixture.cache.set(jid, "dc2.example.com");
    fixture.local.set(`${BOB}/dc2`, "delivered"); // the carbon
    fixture.spread.set(BOB, [
      { host: "dc1.example.com", resourcepart: "dc1" },
      { host: "dc2.example.com", resourcepart: "dc2" },
    ]);
    fixture.router.accept(stanza(ALICE, to, { type, id: "1" }));
    await fixture.end("1 sender");
    assert.deepEqual([fixture.ids, fixture.sent.length], [[], 0], `${type} to ${to}`);
    await fixture.end("1 recipient");
    assert.deepEqual([fixture.ids, fixture.sent.length], [["1"], 1], `${type} to ${to}`);
    fixture.close();
  }
});

Deno.test("Router delivers a message within the call by which its archive ends it", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  for (const id of ["1", "2"]) fixture.router.accept(message(id));
  fixture.received(fromLink(stanza("carol@example.com/x", BOB, { type: "chat", id: "in" })));
  for (const id of ["1", "2"]) await fixture.end(`${id} sender`);
  // Nothing may come between: the archive ends the next one at once.
  for (const [at, id] of ["in", "1", "2"].entries()) {
    fixture.archive.end(`${id} recipient`);
    assert.deepEqual(fixture.ids, ["in", "1", "2"].slice(0, at + 1));
  }
  await fixture.settled();
  fixture.close();
});

Deno.test("Router gives a message a place in its recipient's archive at its turn, and none before", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  fixture.router.accept(message("1"));
  fixture.router.accept(request("iq"));
  fixture.router.accept(message("2"));
  fixture.router.accept(stanza(ALICE, "alice@example.com", { type: "chat", id: "own" }));
  const carol = stanza("carol@example.com/x", BOB, { type: "chat", id: "in" });
  fixture.received(fromLink(carol));
  const expected = ["1 sender", "1 recipient", "2 sender", "in recipient"];
  assert.deepEqual(fixture.archive.noted, expected);
  for (const side of ["1 sender", "2 sender", "in recipient"]) await fixture.end(side);
  await fixture.end("1 recipient");
  assert.deepEqual(fixture.archive.noted, [...expected, "2 recipient"]);
  assert.deepEqual(fixture.ids, ["in", "1", "iq"]);
  fixture.close();
});

Deno.test("Router has both archives begin at once with messages from a session here to one address here", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  for (const id of ["1", "2", "3"]) fixture.router.accept(message(id));
  const both = ["1", "2", "3"].flatMap((id) => [`${id} sender`, `${id} recipient`]);
  assert.deepEqual(fixture.archive.noted, both);
  for (const name of both) await fixture.end(name);
  assert.deepEqual(fixture.ids, ["1", "2", "3"]);
  fixture.close();
});

Deno.test("Router has the recipient's archive take messages from one session to one address at once", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  const from = (sender: string, id: string, sequence: number) => {
    const sent = stanza(sender, BOB, { kind: "message", type: "chat", id });
    fixture.received(fromLink(sent, { sequence }));
  };
  const [carol, dave] = ["carol@example.com/x", "dave@example.com/x"];
  from(carol, "c1", 1);
  from(carol, "c2", 2);
  from(dave, "d1", 3);
  from(carol, "c3", 4);
  const iq = stanza(carol, `${BOB}/x`, { kind: "iq", type: "get", id: "iq" });
  fixture.received(fromLink(iq, { sequence: 5 }));
  from(carol, "c4", 6);
  const all = ["c1", "c2", "d1", "c3"].map((id) => `${id} recipient`);
  assert.deepEqual(fixture.archive.noted, all, "the last one waits for a request");
  fixture.cache.delete(BOB);
  await fixture.end("c1 recipient");
  assert.deepEqual(fixture.ids, ["c1"]);
  await fixture.end("c2 recipient");
  await fixture.end("d1 recipient");
  fixture.cache.set(BOB, "dc1.example.com");
  await fixture.end("c3 recipient");
  assert.deepEqual(fixture.ids, ["c1", "c2", "d1", "c3", "iq"]);
  assert.deepEqual(fixture.archive.noted, [...all, "c4 recipient"]);
  from(carol, "c5", 7);
  fixture.cache.delete(BOB);
  from(carol, "c6", 8);
  fixture.cache.set(BOB, "dc1.example.com");
  fixture.unplaced.add(BOB);
  from(carol, "c7", 9);
  const begun = [...all, "c4 recipient", "c5 recipient"];
  assert.deepEqual(fixture.archive.noted, begun, "those behind it need a lookup");
  await fixture.end("c4 recipient");
  assert.equal(fixture.ids.at(-1), "c4");
  fixture.close();
});

Deno.test("Router settles a message that went on too early once the archives have it", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  const client = new FakeLink();
  fixture.router.accept(message("1"), client, 7);
  for (const side of ["sender", "recipient"]) {
    fixture.archive.goOn(`1 ${side}`);
    await fixture.settled();
  }
  assert.deepEqual([fixture.ids, client.settled], [["1"], []]);
  await fixture.end("1 recipient");
  assert.deepEqual(client.settled, []);
  await fixture.end("1 sender");
  assert.deepEqual(client.settled, [7]);
  fixture.close();
});

Deno.test("Router has the recipient's archive take a message where it may be delivered", async () => {
  const fixture = new ArchiveFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(message("there"));
  await fixture.end("there sender");
  assert.deepEqual(fixture.sentTo("dc2.example.com"), ["there"]);
  fixture.cache.delete(BOB);
  fixture.router.accept(message("nobody"));
  await fixture.end("nobody sender");
  await fixture.end("nobody absent");
  fixture.isHere();
  const carol = stanza("carol@example.com/x", BOB, { kind: "message", type: "chat", id: "in" });
  fixture.received(fromLink(carol));
  const desk = stanza(ALICE, `${BOB}/gone`, { kind: "message", type: "normal", id: "gone" });
  fixture.received(fromLink(desk, { sequence: 2 }));
  await fixture.settled();
  assert.deepEqual(fixture.archive.noted, [
    "there sender",
    "nobody sender",
    "nobody absent",
    "in recipient",
  ]);
  await fixture.end("in recipient");
  assert.ok(fixture.ids.includes("in"));
  fixture.close();
});

Deno.test("Router.acceptForSessions() gives a message one id, by which the archive has it once", async () => {
  const fixture = new ArchiveFixture();
  const room = "room@muc.example.com/witch";
  const places = [[`${BOB}/phone`, "dc2.example.com"], [`${BOB}/desk`, "dc3.example.com"]] as const;
  for (const [jid, host] of places) fixture.cache.set(jid, host);
  const messages = places.map(([jid, host]) =>
    stanza(room, jid, { kind: "message", type: "chat", id: host })
  );
  const settled: number[] = [];
  fixture.router.acceptForSessions(messages, { settle: (number) => void settled.push(number) });
  fixture.router.accept(stanza(room, places[0][0], { kind: "message", type: "chat", id: "later" }));
  await fixture.settled();
  const [phone, desk, later] = fixture.sent.map(({ envelope }) => envelope);
  assert.deepEqual(
    fixture.sent.map(({ host, envelope }) => [envelope.stanza.to.text, host]),
    [...places, places[0]],
  );
  assert.deepEqual([desk!.process, desk!.sequence], [phone!.process, phone!.sequence]);
  assert.notEqual(later!.sequence, phone!.sequence);
  for (const [index, envelope] of [phone!, desk!].entries()) {
    assert.equal(settled.length, index);
    envelope.settle();
    await fixture.end(`${places[index]![1]} sender`);
  }
  assert.equal(settled.length, 2);
  fixture.close();
});

Deno.test("Router settles a message that finds nobody once the archive has it, or answers it", async () => {
  for (const isKept of [true, false]) {
    const fixture = new ArchiveFixture();
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    await fixture.end("1 absent", isKept);
    fixture.clock.advance(1_000);
    await fixture.settled();
    assert.deepEqual([fixture.archive.asked, client.settled], [["1"], []]);
    if (isKept) fixture.archive.outcomes[0]!.kept(true);
    else fixture.archive.outcomes[0]!.refused("internal-server-error");
    await fixture.settled();
    const expected = isKept ? [] : ["internal-server-error"];
    assert.deepEqual(fixture.delivered.map(conditionOf), expected);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router takes a refused message back from the archive that had begun with it", async () => {
  for (const isStored of [false, true]) {
    const fixture = new ArchiveFixture();
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    fixture.archive.goOn("1 absent"); // the database is away
    await fixture.settled();
    fixture.clock.advance(1_000);
    await fixture.settled();
    assert.deepEqual(fixture.archive.asked, ["1"]);
    if (isStored) await fixture.end("1 absent");
    fixture.archive.outcomes[0]!.refused("internal-server-error");
    await fixture.settled();
    assert.deepEqual(fixture.archive.takenBack, isStored ? [] : ["1 absent"]);
    const expected = isStored ? [] : ["internal-server-error"];
    assert.deepEqual(fixture.delivered.map(conditionOf), expected);
    if (!isStored) await fixture.end("1 absent", false);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router gives no error for a message that the archive has, though the client does not take it", async () => {
  for (const isStored of [true, false]) {
    const fixture = new ArchiveFixture();
    fixture.isHere();
    fixture.local.set(BOB, "resource-constraint"); // it reads too slowly
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    await fixture.end("1 recipient", isStored);
    const errors = isStored ? [] : ["resource-constraint"];
    assert.deepEqual(fixture.delivered.map(conditionOf), errors);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router.drain() hands a message on that its sender's archive has begun with", async () => {
  const fixture = new ArchiveFixture();
  fixture.handedOn = [];
  fixture.router.accept(message("1"));
  const drained = fixture.router.drain();
  await fixture.settled();
  assert.deepEqual(fixture.handedOn, ["1"], "bob is nowhere");
  fixture.router.accept(message("2"));
  await fixture.settled();
  assert.deepEqual(fixture.archive.noted.filter((name) => name.endsWith("sender")), [
    "1 sender",
    "2 sender",
  ]);
  assert.deepEqual(fixture.handedOn, ["1", "2"], "it follows the first one");
  await drained;
  fixture.close();
});

Deno.test("Router archives messages that bounced before their recipient gets them, in order", async () => {
  for (const isStored of [true, false]) {
    const fixture = new ArchiveFixture();
    for (const id of ["1", "2"]) {
      fixture.router.accept(message(id));
      await fixture.end(`${id} sender`);
      // The account may not be known yet, or the database may not tell.
      await fixture.end(`${id} absent`, isStored);
    }
    fixture.isHere();
    fixture.router.revealed(parseJid(BOB));
    await fixture.settled();
    if (!isStored) {
      assert.deepEqual(fixture.ids, [], "they wait for the archive");
      fixture.clock.advance(1_000);
      assert.deepEqual(fixture.archive.asked, [], "they use up no retries");
      fixture.router.accept(message("3"));
      await fixture.end("3 sender");
      assert.deepEqual(fixture.archive.noted.slice(4, 6), ["1 recipient", "2 recipient"]);
      await fixture.end("2 recipient");
      assert.deepEqual(fixture.ids, []);
      await fixture.end("1 recipient");
      assert.deepEqual(fixture.ids, ["1", "2"]);
      await fixture.end("3 recipient");
    }
    assert.deepEqual(fixture.ids, isStored ? ["1", "2"] : ["1", "2", "3"]);
    assert.equal(fixture.router.bouncing, 0);
    fixture.close();
  }
});

Deno.test("Router archives a message that came back and was held again before its recipient gets it", async () => {
  const fixture = new ArchiveFixture();
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.router.accept(message("1"));
  await fixture.end("1 sender");
  fixture.cache.delete(BOB);
  fixture.router.accept(message("2"));
  await fixture.end("2 sender");
  await fixture.end("2 absent", false);
  fixture.router.returned(fixture.sent[0]!.envelope, "peer-gone");
  fixture.isHere();
  await fixture.settled();
  assert.deepEqual(fixture.ids, []);
  await fixture.end("1 absent");
  assert.deepEqual(fixture.ids, []);
  await fixture.end("2 recipient");
  assert.deepEqual(fixture.ids, ["1", "2"]);
  fixture.close();
});

Deno.test("Router archives a message that it delivered before it knew that there is an account", async () => {
  for (const isStored of [true, false]) {
    const fixture = new ArchiveFixture();
    const client = new FakeLink();
    fixture.router.accept(message("1"), client, 7);
    await fixture.end("1 sender");
    fixture.archive.goOn("1 absent"); // the database has not answered for a second
    fixture.isHere();
    fixture.router.revealed(parseJid(BOB));
    await fixture.settled();
    fixture.archive.goOn("1 absent");
    await fixture.settled();
    assert.deepEqual(fixture.ids, ["1"]);
    assert.deepEqual(client.settled, []);
    await fixture.end("1 absent", isStored);
    if (!isStored) {
      assert.deepEqual(client.settled, []);
      await fixture.end("1 recipient");
    }
    const noted = ["1 sender", "1 absent", ...isStored ? [] : ["1 recipient"]];
    assert.deepEqual(fixture.archive.noted, noted);
    assert.deepEqual(client.settled, [7]);
    fixture.close();
  }
});

Deno.test("Router takes a message to where its recipient is once the archive has it", async () => {
  const fixture = new ArchiveFixture();
  fixture.isHere();
  fixture.router.accept(message("1"));
  await fixture.end("1 sender");
  fixture.cache.set(BOB, "dc2.example.com");
  fixture.sessions.delete(BOB);
  fixture.local.delete(BOB);
  fixture.archive.here.clear();
  await fixture.end("1 recipient");
  assert.deepEqual([fixture.ids, fixture.sentTo("dc2.example.com")], [[], ["1"]]);
  fixture.close();
});

for (const known of [null, "dc2.example.com"]) {
  Deno.test(`Router delivers a local user's message here after the archive, with ${known} for the name in the table`, async () => {
    const fixture = new ArchiveFixture();
    const bob = "bob@dc1.example.com";
    fixture.sessions.set(bob, { isHere: true, isResourceHere: false, priority: 0 });
    fixture.local.set(bob, "delivered");
    fixture.archive.here.add(bob);
    fixture.cache.set(bob, known);
    fixture.router.accept(stanza(ALICE, bob, { kind: "message", type: "chat", id: "1" }));
    await fixture.end("1 sender");
    await fixture.end("1 recipient");
    assert.deepEqual([fixture.ids, fixture.sent.length, fixture.router.bouncing], [["1"], 0, 0]);
    fixture.close();
  });
}

Deno.test("Router has a message wait offline with its id in the archive, or without an archive", async () => {
  const cases = [
    { how: "stored", waits: "stamped", settled: [7] },
    { how: "blocked", waits: undefined, settled: [7] },
    { how: "service-unavailable", waits: "<message", settled: [] },
    { how: "internal-server-error", waits: undefined, settled: [7] },
  ] as const;
  for (const { how, waits, settled } of cases) {
    const fixture = new ArchiveFixture();
    const tracer = fixture.tracer = new TestTracer();
    const kept: string[] = [];
    fixture.offline = {
      keep: ({ bytes }, _sentAtMs, { refused }) => {
        kept.push(new TextDecoder().decode(bytes));
        if (how === "stored") refused("resource-constraint");
        return true;
      },
      refuse: () => false,
    };
    const client = await acceptForAbsent(fixture);
    const outcome = fixture.archive.outcomes[0]!;
    if (how === "stored" || how === "blocked") outcome.kept(how === "stored");
    else outcome.refused(how);
    await fixture.settled();
    assert.equal(kept.length, waits === undefined ? 0 : 1, how);
    assert.ok(waits === undefined || kept[0]!.startsWith(waits), how);
    assert.deepEqual(client.settled, settled, how);
    const error = how === "internal-server-error" ? [how] : [];
    assert.deepEqual(fixture.delivered.map(conditionOf), error, "what the archive has is accepted");
    const isNoted = tracer.take().some((step) => step.includes("stored archive"));
    assert.equal(isNoted, how === "stored", how);
    fixture.close();
  }
});
