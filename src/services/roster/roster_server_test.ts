import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock, PacedWork } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import {
  buildStanza,
  CLIENT_NAMESPACE,
  element,
  parseElement,
  parseJid,
  stanzaElement,
} from "../../xmpp/mod.ts";
import { HostServices } from "../mod.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";
import { ALICE, BOB, CAROL, DOWN, PHONE, query, withAlice } from "./testing/alice_and_bob.ts";
import { fullJid, item, lines, RosterFixture } from "./testing/roster_fixture.ts";

Deno.test("a roster set is pushed to all sessions of the account, in every datacenter", async () => {
  const fixture = withAlice();
  assert.equal(await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" })), "empty");
  assert.deepEqual(lines(fixture.routed).toSorted(), [
    `push ${BOB} none: ${ALICE} → ${ALICE}/laptop`,
    `push ${BOB} none: ${ALICE} → ${PHONE}`,
  ]);
  const pushes = fixture.routed.map((stanza) => stanzaElement(stanza));
  assert.equal(new Set(pushes.map((push) => push.attribute("id"))).size, 2);
  assert.equal(fixture.store.item(ALICE, BOB)?.name, "Bob");
});

Deno.test("a roster set that changes nothing is pushed, and leaves the version as it is", async () => {
  const fixture = withAlice();
  await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" }));
  const before = await fixture.store.find(ALICE, BOB);
  const [first] = fixture.routed.splice(0).map((push) => stanzaElement(push).elements[0]!);
  assert.equal(await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" })), "empty");
  assert.deepEqual(await fixture.store.find(ALICE, BOB), before);
  assert.deepEqual(lines(fixture.routed).toSorted(), [
    `push ${BOB} none: ${ALICE} → ${ALICE}/laptop`,
    `push ${BOB} none: ${ALICE} → ${PHONE}`,
  ]);
  const [second] = fixture.routed.map((push) => stanzaElement(push).elements[0]!);
  assert.equal(second!.attribute("ver"), first!.attribute("ver"));
});

Deno.test("a push reaches only clients that have asked for the roster", async () => {
  const fixture = withAlice();
  await fixture.ask(PHONE, "set", query({ jid: BOB }));
  const push = fixture.routed.find(({ to }) => to.text === PHONE)!;
  assert.equal(fixture.server.isUnwantedPush(push), true);
  await fixture.ask(PHONE, "get", query());
  assert.equal(fixture.server.isUnwantedPush(push), false);
  fixture.server.closed(fullJid(PHONE));
  assert.equal(fixture.server.isUnwantedPush(push), true);
  const other = buildStanza(
    element("iq", { type: "set", id: "1" }, element("block", { xmlns: "urn:xmpp:blocking" })),
    { from: parseJid(ALICE), to: parseJid(PHONE) },
  );
  assert.equal(fixture.server.isUnwantedPush(other), false);
});

Deno.test("a roster at its bound takes no further contact, and changes of those in it", async () => {
  const fixture = withAlice(new RosterFixture({ maxItems: 1 }));
  await fixture.ask(PHONE, "set", query({ jid: BOB }));
  assert.deepEqual(await fixture.ask(PHONE, "set", query({ jid: CAROL })), {
    error: "resource-constraint",
  });
  assert.equal(await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" })), "empty");
  fixture.routed.length = 0;
  await fixture.enter(PHONE, "subscribe", CAROL);
  assert.deepEqual(lines(fixture.routed), [`error: ${CAROL} → ${PHONE}`]);
  assert.equal(fixture.store.item(ALICE, CAROL), undefined);
});

Deno.test("a client that knows a version gets what has changed since, after an empty answer", async () => {
  const fixture = withAlice();
  for (const jid of [BOB, CAROL]) fixture.store.put(ALICE, item(jid));
  const get = (ver: string) =>
    fixture.ask(PHONE, "get", element("query", { xmlns: ROSTER_NAMESPACE, ver }));
  assert.equal(await get("2"), "empty");
  assert.equal(await get("1"), "empty");
  assert.deepEqual(fixture.routed, [], "the result goes first");
  fixture.clock.advance(1);
  assert.deepEqual(lines(fixture.routed), [`push ${CAROL} none: ${ALICE} → ${PHONE}`]);
  const whole = await get("7");
  assert.ok(typeof whole === "object" && "written" in whole);
  const roster = parseElement(new TextEncoder().encode(whole.written), CLIENT_NAMESPACE);
  assert.equal(roster.attribute("ver"), "2");
  assert.equal(roster.elements.length, 2);
});

Deno.test("a client that missed a push does not hear of a version that has what it missed", async () => {
  const fixture = withAlice(new RosterFixture({ maxItems: 10 }));
  fixture.store.put(ALICE, item(BOB));
  const versions = () =>
    fixture.routed.splice(0).filter(({ to }) => to.text === PHONE)
      .map((push) => stanzaElement(fixture.server.asTold(push)).elements[0]!.attribute("ver"));
  await fixture.ask(PHONE, "get", element("query", { xmlns: ROSTER_NAMESPACE, ver: "" }));
  await fixture.ask(PHONE, "set", query({ jid: BOB, name: "1" }));
  assert.deepEqual(versions(), ["2"]);
  fixture.store.put(ALICE, item(CAROL)); // its push is lost
  await fixture.ask(PHONE, "set", query({ jid: BOB, name: "2" }));
  assert.deepEqual(versions(), ["2"]);
  assert.equal(
    await fixture.ask(PHONE, "get", element("query", { xmlns: ROSTER_NAMESPACE, ver: "2" })),
    "empty",
  );
  fixture.clock.advance(1);
  assert.deepEqual(lines(fixture.routed), [
    `push ${CAROL} none: ${ALICE} → ${PHONE}`,
    `push ${BOB} none: ${ALICE} → ${PHONE}`,
  ]);
  assert.deepEqual(versions(), ["3", "4"]);
});

/** Delivers the pushes that were routed to alice's phone; returns those that its client gets. */
function delivered(fixture: RosterFixture): readonly string[] {
  const pushes = fixture.routed.splice(0).filter(({ to }) => to.text === PHONE);
  return lines(pushes.filter((push) => !fixture.server.takes(push)));
}

Deno.test("a roster answer is not older than a push that its client got before it", async () => {
  const gate = Promise.withResolvers<void>();
  let pieces = 0;
  const paced = new PacedWork();
  const fixture = withAlice(
    new RosterFixture({
      paced: {
        run: async <T>(piece: () => T | Promise<T>) => {
          if (++pieces === 2) await gate.promise; // between the read and the answer
          return await paced.run(piece);
        },
        task: () => paced.task(),
      },
    }),
  );
  fixture.store.put(ALICE, item(BOB, { isAsking: true }));
  const asked = fixture.ask(PHONE, "get", query());
  while (pieces < 2) await immediately();
  await fixture.take(BOB, "subscribed", ALICE);
  assert.ok(delivered(fixture).includes(`push ${BOB} to: ${ALICE} → ${PHONE}`));
  gate.resolve();
  const answer = await asked;
  assert.ok(typeof answer === "object" && "written" in answer);
  assert.match(answer.written, /subscription='to'/);
  assert.doesNotMatch(answer.written, /ask=/);
  assert.equal(pieces, 3);
});

Deno.test("a roster is read a few times at the most while its client gets pushes", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB));
  await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" }));
  const push = fixture.routed.find(({ to }) => to.text === PHONE)!;
  const { store } = fixture;
  const read = store.read.bind(store);
  let reads = 0;
  store.read = async (owner) => {
    reads++;
    const roster = await read(owner);
    assert.equal(fixture.server.takes(push), false);
    return roster;
  };
  const answer = await fixture.ask(PHONE, "get", query());
  assert.ok(typeof answer === "object" && "written" in answer);
  assert.equal(reads, 5);
});

Deno.test("a client that knows a version keeps the push that came between answer and older changes", async () => {
  const fixture = withAlice();
  for (const jid of [BOB, CAROL]) fixture.store.put(ALICE, item(jid, { isAsking: true }));
  const known = element("query", { xmlns: ROSTER_NAMESPACE, ver: "0" });
  assert.equal(await fixture.ask(PHONE, "get", known), "empty");
  await fixture.take(BOB, "subscribed", ALICE);
  assert.ok(delivered(fixture).includes(`push ${BOB} to: ${ALICE} → ${PHONE}`));
  fixture.clock.advance(1);
  assert.deepEqual(delivered(fixture), [`push ${CAROL} none: ${ALICE} → ${PHONE}`]);
});

Deno.test("an item that was never there cannot be removed", async () => {
  const fixture = withAlice();
  const remove = query({ jid: BOB, subscription: "remove" });
  assert.deepEqual(await fixture.ask(PHONE, "set", remove), { error: "item-not-found" });
  fixture.store.put(ALICE, item(BOB, { isListed: false, request: new Uint8Array(1) }));
  assert.deepEqual(await fixture.ask(PHONE, "set", remove), { error: "item-not-found" });
});

Deno.test("a contact that is added while the account is deleted is not left to the name's next owner", async () => {
  const fixture = withAlice();
  fixture.store.beforeWrite = () => fixture.former.add(PHONE);
  assert.deepEqual(await fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" })), {
    error: "registration-required",
  });
  assert.equal(fixture.store.item(ALICE, BOB), undefined);
});

Deno.test("a session whose account is deleted meanwhile changes no contact of the name's next owner", async () => {
  for (const change of [{ name: "Late" }, { subscription: "remove" }]) {
    for (const when of ["find", "write"] as const) {
      const fixture = withAlice();
      const { store } = fixture;
      store.put(ALICE, item(BOB, { name: "Bob" }));
      const original = store[when].bind(store) as (...asked: unknown[]) => Promise<never>;
      store[when] = async (...asked: unknown[]) => {
        store[when] = original;
        const answer = await original(...asked);
        fixture.former.add(PHONE);
        await store.removeAll(ALICE);
        store.put(ALICE, item(BOB, { name: "Robert", subscription: "both" }));
        return answer;
      };
      assert.deepEqual(await fixture.ask(PHONE, "set", query({ jid: BOB, ...change })), {
        error: "registration-required",
      });
      assert.equal(store.item(ALICE, BOB)?.name, "Robert", `${JSON.stringify(change)} ${when}`);
    }
  }
});

Deno.test("a change is applied to what another node has written meanwhile", async () => {
  const fixture = withAlice();
  let races = 3;
  fixture.store.beforeWrite = () => {
    if (races-- > 0) fixture.store.put(ALICE, item(CAROL, { name: `${races}` }));
  };
  const asked = fixture.ask(PHONE, "set", query({ jid: BOB, name: "Bob" }));
  for (let i = 0; i < 50; i++) {
    await Promise.resolve();
    fixture.clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve));
  }
  assert.equal(await asked, "empty");
  assert.equal(fixture.store.item(ALICE, BOB)?.name, "Bob");
  assert.equal(fixture.store.item(ALICE, CAROL)?.name, "0");
});

Deno.test("nothing is remembered of a client that asks for the roster and is not here", async () => {
  const fixture = withAlice();
  await fixture.ask(`${ALICE}/elsewhere`, "get", query());
  await fixture.ask(PHONE, "get", query());
  const push = (to: string) =>
    buildStanza(element("iq", { type: "set", id: "1" }, query()), {
      from: parseJid(ALICE),
      to: parseJid(to),
    });
  assert.equal(fixture.server.isUnwantedPush(push(PHONE)), false);
  assert.equal(fixture.server.isUnwantedPush(push(`${ALICE}/elsewhere`)), true);
});

Deno.test("the changes of one client are made in their order, however slow the first one is", async () => {
  const fixture = withAlice();
  const services = new HostServices({
    software: { name: "test", version: "1" },
    publicDomains: () => Promise.resolve([]),
    reply: () => {},
    metrics: new MetricsRegistry(new ManualClock()),
    services: fixture.server.services,
  });
  const client = parseJid(PHONE);
  const set = (name: string) => {
    const iq = element("iq", { type: "set", id: name }, query({ jid: BOB, name }));
    assert.equal(services.handle(buildStanza(iq, { from: client, to: client.bare })), "delivered");
  };
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.store.answersAfter = promise;
  set("first");
  fixture.store.answersAfter = undefined;
  set("second");
  await new Promise((done) => setTimeout(done));
  resolve();
  await services.close();
  assert.equal(fixture.store.item(ALICE, BOB)?.name, "second");
});

Deno.test("an account that is deleted leaves its contacts, who are told of it first", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "both" }));
  fixture.store.put(ALICE, item(CAROL, { isAsking: true }));
  fixture.store.put(CAROL, item(ALICE, { request: new Uint8Array(1), isListed: false }));
  fixture.store.put(ALICE, item("dave@elsewhere.example", { subscription: "to" }));
  fixture.here.set(`${BOB}/x`, undefined);
  await fixture.changePresence(PHONE);
  fixture.routed.length = fixture.sent.length = 0;
  await fixture.server.leave(parseJid(ALICE));
  await fixture.server.settled();
  const { subscription, isAsking } = fixture.store.item(BOB, ALICE)!;
  assert.deepEqual([subscription, isAsking], ["none", false]);
  assert.equal(fixture.store.item(CAROL, ALICE)?.request, undefined, "her request is taken back");
  const told = lines(fixture.routed);
  for (
    const line of [
      `push ${ALICE} from: ${BOB} → ${BOB}/x`,
      `unsubscribed: ${ALICE} → ${BOB}/x`,
      `push ${ALICE} none: ${BOB} → ${BOB}/x`,
      `unsubscribe: ${ALICE} → ${BOB}/x`,
      `unsubscribe: ${ALICE} → dave@elsewhere.example`,
    ]
  ) assert.ok(told.includes(line), `${line} of\n${told.join("\n")}`);
  const presences = lines(fixture.sent.map(({ stanza }) => stanza));
  assert.ok(presences.includes(`unavailable: ${PHONE} → ${BOB}`), presences.join());
});

Deno.test("an account is not left while the database fails", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.store.failure = DOWN;
  await assert.rejects(fixture.server.leave(parseJid(ALICE)), { code: "storage/unreachable" });
});
