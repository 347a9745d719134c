import assert from "node:assert/strict";
import { FairShares } from "../../base/mod.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { authenticate, bind, C2sFixture, HEADER, plainOf, SASL } from "./testing/c2s_fixture.ts";
import { comeBack, expectEnd, manage, resume, until } from "./testing/stream_management_fixture.ts";

const CSI = "urn:xmpp:csi:0";
const ACTIVE = `<active xmlns='${CSI}'/>`;
const INACTIVE = `<inactive xmlns='${CSI}'/>`;
const OFFERED = `<csi xmlns='${CSI}'/>`;
const PHONE = "alice@example.com/phone";
const OPTIONS = { maxHeldPresence: 3 };

/** Delivers to alice's phone: presence of a contact's resource, or a message. */
function deliver(
  fixture: C2sFixture,
  kind: "presence" | "message",
  name: string,
  { to = PHONE, status = "", outcome = "delivered" } = {},
): void {
  const from = parseJid(`${name}@example.com/x`);
  const content = kind === "message" ? `<body>${name}</body>` : `<status>${status}</status>`;
  const type = kind === "message" ? "chat" : "available";
  const attributes = `from='${from.text}' to='${to}'` +
    (kind === "message" ? " type='chat'" : "");
  const bytes = new TextEncoder().encode(`<${kind} ${attributes}>${content}</${kind}>`);
  const stanza: Stanza = { kind, type, from, to: parseJid(to), bytes };
  assert.equal(fixture.registry.deliver(stanza), outcome);
}

/** Waits until the server has read what the client has sent: the server answers in order. */
async function settled(
  peer: Awaited<ReturnType<C2sFixture["login"]>>,
  id: string,
): Promise<string> {
  const set =
    `<iq type='set' id='${id}'><session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>`;
  peer.send(set);
  const { input, index } = await peer.expect(new RegExp(`<iq [^>]*id=['"]${id}['"][^>]*/>`));
  return input.slice(0, index);
}

function sendersIn(text: string): string[] {
  return [...text.matchAll(/<(presence|message) [^>]*from=['"](\w+)@/g)].map(([, kind, name]) =>
    `${kind} ${name}`
  );
}

Deno.test("client state indication is offered after authentication, where it is on", async () => {
  for (const maxHeldPresence of [3, 0]) {
    await using fixture = new C2sFixture({ maxHeldPresence });
    const alice = fixture.connect();
    alice.send(HEADER);
    assert.ok(!(await alice.expect("</stream:features>")).input.includes(OFFERED));
    await alice.exchange(plainOf("alice"), `<success xmlns='${SASL}'/>`);
    alice.send(HEADER);
    const { input } = await alice.expect("</stream:features>");
    assert.equal(input.includes(OFFERED), maxHeldPresence > 0);
  }
});

Deno.test("a session holds presence back while its client is inactive, and sends it once it is active", async () => {
  await using fixture = new C2sFixture(OPTIONS);
  const alice = await fixture.login("alice", "phone");
  alice.send(INACTIVE + INACTIVE);
  await settled(alice, "s1");
  deliver(fixture, "presence", "bob");
  deliver(fixture, "presence", "carol");
  deliver(fixture, "presence", "bob");
  alice.send(ACTIVE + ACTIVE);
  assert.deepEqual(sendersIn(await settled(alice, "s2")), ["presence carol", "presence bob"]);
  deliver(fixture, "presence", "dave");
  assert.deepEqual(sendersIn(await settled(alice, "s3")), ["presence dave"]);
});

Deno.test("a message to an inactive client goes at once, behind the presence that was held back", async () => {
  await using fixture = new C2sFixture(OPTIONS);
  const alice = await fixture.login("alice", "phone");
  alice.send(INACTIVE);
  await settled(alice, "s1");
  deliver(fixture, "presence", "bob");
  deliver(fixture, "message", "bob");
  deliver(fixture, "presence", "carol");
  const { input } = await alice.expect("</message>");
  assert.deepEqual(sendersIn(input), ["presence bob", "message bob"]);
  alice.send(ACTIVE);
  assert.deepEqual(sendersIn(await settled(alice, "s2")), ["presence carol"]);
});

Deno.test("more presence than a session may hold back goes to the client, in its order", async () => {
  await using fixture = new C2sFixture(OPTIONS);
  const alice = await fixture.login("alice", "phone");
  alice.send(INACTIVE);
  await settled(alice, "s1");
  for (const name of ["u1", "u2", "u3", "u4"]) deliver(fixture, "presence", name);
  const sent = sendersIn((await alice.expect(/u4@[^>]*>/)).input);
  assert.deepEqual(sent, ["presence u1", "presence u2", "presence u3", "presence u4"]);
});

Deno.test("sessions hold no more presence back than their budget allows, and give it back as they end", async () => {
  const budget = new FairShares({ maxItems: 1 });
  await using fixture = new C2sFixture({ ...OPTIONS, heldPresence: budget });
  const alice = await fixture.login("alice", "phone");
  const bob = await fixture.login("bob", "phone");
  for (const client of [alice, bob]) {
    client.send(INACTIVE);
    await settled(client, "s1");
  }
  deliver(fixture, "presence", "u1");
  assert.equal(budget.items, 1);
  deliver(fixture, "presence", "u3", { to: "bob@example.com/phone" });
  assert.deepEqual(sendersIn((await bob.expect("</presence>")).input), ["presence u3"]);
  alice.send(ACTIVE);
  assert.deepEqual(sendersIn(await settled(alice, "s2")), ["presence u1"]);
  assert.equal(budget.items, 0);
  deliver(fixture, "presence", "u4", { to: "bob@example.com/phone" });
  assert.equal(budget.items, 1);
  bob.close();
  await bob.expectClosed();
  assert.deepEqual([budget.items, budget.bytes], [0, 0]);
});

Deno.test("presence that was held back and finds no room behind what the client has not read is counted", async () => {
  const limits = { maxPendingBytes: 16_384, maxStanzaBytes: 10_000 };
  await using fixture = new C2sFixture({ ...OPTIONS, limits });
  const alice = fixture.connect({ highWaterBytes: 1 });
  await authenticate(alice, "alice");
  await bind(alice, "phone");
  alice.send(INACTIVE);
  await settled(alice, "s1");
  alice.connection.pause();
  const status = "x".repeat(8_000);
  for (const name of ["u1", "u2", "u3"]) deliver(fixture, "presence", name, { status });
  const hits = () =>
    fixture.metrics.value("xmpp_limit_hits_total", { edge: "c2s", limit: "held-presence" });
  assert.equal(hits(), 0);
  deliver(fixture, "message", "u4");
  assert.equal(hits(), 1);
  alice.connection.resume();
  const { input } = await alice.expect("</message>");
  assert.deepEqual(sendersIn(input), ["presence u1", "presence u2", "message u4"]);
});

Deno.test("presence that was held back is kept when the connection is lost, and goes to the client that resumes", async () => {
  await using fixture = new C2sFixture({ ...OPTIONS, management: {} });
  const { peer: alice, id } = await manage(fixture, "alice", "phone");
  alice.send(INACTIVE);
  await settled(alice, "s1");
  deliver(fixture, "presence", "bob");
  alice.close();
  const session = fixture.registry.ofAccount("alice@example.com")[0]!;
  await until(() => session.isHibernating);
  const again = await comeBack(fixture);
  again.send(resume(id, 1));
  await again.expect(/<presence [^>]*from=['"]bob@/);
  deliver(fixture, "presence", "carol");
  await again.expect(/<presence [^>]*from=['"]carol@/);
});

Deno.test("a client that says something else about its state, or where it is off, is refused", async () => {
  await using on = new C2sFixture(OPTIONS);
  const alice = await on.login("alice", "phone");
  alice.send(`<asleep xmlns='${CSI}'/>`);
  await expectEnd(alice, "<unsupported-stanza-type ");
  await using off = new C2sFixture();
  const bob = await off.login("bob", "phone");
  bob.send(INACTIVE);
  await expectEnd(bob, "<unsupported-stanza-type ");
});
