import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { PacedWork } from "../../base/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { AGAIN_PAYLOAD, partedPayload, readSignal } from "./presence_signal.ts";
import { ALICE, BOB, CAROL, DC2, PHONE, withAlice } from "./testing/alice_and_bob.ts";
import { item, lines, RosterFixture } from "./testing/roster_fixture.ts";

/** Returns the requests that were routed to the node of alice's tablet at dc2. */
function signalsOf(fixture: RosterFixture): Stanza[] {
  return fixture.routed.filter((stanza) =>
    stanza.to.text === `${ALICE}/tablet` && readSignal(stanza) !== undefined
  );
}

Deno.test("a contact who is removed hears nothing of sessions that are not available or hidden", async () => {
  const fixture = withAlice();
  fixture.store.put(ALICE, item(BOB, { subscription: "both" }));
  fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
  fixture.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "tablet", process: 2 }]);
  fixture.here.set(`${ALICE}/idle`, undefined);
  await fixture.changePresence(PHONE);
  const unavailable = async () => {
    fixture.sent.length = fixture.routed.length = 0;
    fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
    await fixture.enter(PHONE, "unsubscribed", BOB);
    assert.equal(signalsOf(fixture).length, 1, "the tablet's node tells of the tablet");
    return lines(fixture.sent.map(({ stanza }) => stanza)).filter((line) => line.endsWith(BOB));
  };
  assert.deepEqual(await unavailable(), [`unavailable: ${PHONE} → ${BOB}`]);
  fixture.hidden.set(PHONE, new Set([BOB]));
  assert.deepEqual(await unavailable(), []);
});

Deno.test("a node that is told of the end of a subscription ends the presence of its own session", async () => {
  const asking = withAlice();
  asking.store.put(ALICE, item(BOB, { subscription: "from" }));
  asking.elsewhere.set(ALICE, [{ host: DC2, resourcepart: "tablet", process: 2 }]);
  await asking.enter(PHONE, "unsubscribed", BOB);
  const [signal] = signalsOf(asking);
  for (const state of ["available", "not available", "hidden", "gone"]) {
    const fixture = new RosterFixture();
    fixture.elsewhere.set(BOB, [{ host: DC2, resourcepart: "x", process: 2 }]);
    await fixture.changePresence(PHONE);
    if (state !== "gone") fixture.here.set(`${ALICE}/tablet`, undefined);
    if (state === "hidden") fixture.hidden.set(`${ALICE}/tablet`, new Set([BOB]));
    if (state === "available" || state === "hidden") {
      await fixture.changePresence(`${ALICE}/tablet`);
    }
    fixture.sent.length = 0;
    // Its client does not get it. If it has moved, the request goes on to its new node.
    assert.equal(fixture.server.takes(signal!), state !== "gone");
    await immediately();
    const expected = state === "available" ? [`unavailable: ${ALICE}/tablet → ${BOB}`] : [];
    assert.deepEqual(lines(fixture.sent.map(({ stanza }) => stanza)), expected, state);
  }
});

Deno.test("a node sends directed presence again to those who ask for their own, unless a list hides it", () => {
  const fixture = withAlice();
  const ask = (session: string) => {
    const iq = element("iq", { type: "set", id: "1" });
    const addresses = { from: parseJid(BOB), to: parseJid(session) };
    return fixture.server.takes(buildStanza(iq, { ...addresses, content: AGAIN_PAYLOAD }));
  };
  assert.equal(ask(PHONE), true);
  assert.equal(ask(`${ALICE}/gone`), false);
  assert.deepEqual(fixture.repeated, [`${PHONE} ${BOB}`]);
  fixture.hidden.set(PHONE, new Set([BOB]));
  assert.equal(ask(PHONE), true);
  assert.equal(fixture.repeated.length, 1);
});

Deno.test("directed presence of people without rosters here is not asked for", async () => {
  const fixture = withAlice();
  const resources = [`${BOB}/x`, "echo.example.org/x"];
  for (const from of resources) fixture.heard(from, PHONE);
  await fixture.cutOff(DC2, 2);
  const asked = fixture.routed.filter((stanza) => readSignal(stanza)?.kind === "again");
  assert.deepEqual(lines(asked), [`set: ${ALICE} → ${BOB}/x`]);
});

Deno.test("only a session's own account tells its node of the end of a subscription", () => {
  const [bob, phone] = [parseJid(BOB), parseJid(PHONE)];
  const payload = partedPayload(parseJid(CAROL));
  const ask = (from: Jid, to: Jid, content = payload) => {
    const iq = element("iq", { type: "set", id: "1" });
    const { kind, contact } = readSignal(buildStanza(iq, { from, to, content })) ?? {};
    return kind && `${kind} ${contact!.text}`;
  };
  assert.equal(ask(phone.bare, phone), `parted ${CAROL}`);
  assert.equal(ask(bob, phone, AGAIN_PAYLOAD), `again ${BOB}`);
  assert.equal(ask(parseJid(`${BOB}/x`), phone, AGAIN_PAYLOAD), undefined, "a client");
  assert.equal(ask(phone.bare, phone, AGAIN_PAYLOAD), undefined);
  assert.equal(ask(phone, phone), undefined, "a client");
  assert.equal(ask(bob, phone), undefined);
  assert.equal(ask(phone.bare, phone.bare), undefined);
  assert.equal(ask(phone.bare, phone, payload.replace(CAROL, "@")), undefined);
  assert.equal(ask(phone.bare, phone, payload.replaceAll("parted", "other")), undefined);
  assert.equal(ask(phone.bare, phone, payload.replace("causeway", "other")), undefined);
});

Deno.test("a contact whose subscription ends while a login waits to be told hears no more of it", async () => {
  let nowMs = 0;
  const turns: (() => void)[] = [];
  const paced = new PacedWork({
    sliceMs: 1,
    nowMs: () => nowMs,
    nextTurn: (callback) => turns.push(callback),
  });
  const fixture = new RosterFixture({ paced });
  fixture.store.put(ALICE, item(BOB, { subscription: "from" }));
  fixture.store.put(BOB, item(ALICE, { subscription: "to" }));
  fixture.elsewhere.set(BOB, [{ host: "dc2.example.com", resourcepart: "x", process: 2 }]);
  await paced.run(() => void (nowMs += 5)); // this turn has no time left
  fixture.sendPresence(PHONE);
  while (paced.waiting() === 0) await immediately();
  void fixture.enter(PHONE, "unsubscribed", BOB);
  const told = () => lines([...fixture.routed, ...fixture.sent.map(({ stanza }) => stanza)]);
  while (!told().some((line) => line.startsWith("unsubscribed:"))) await immediately();
  while (turns.length > 0) turns.shift()!();
  await fixture.server.settled();
  assert.ok(!told().some((line) => line.startsWith("available:") && line.includes("bob")));
});
