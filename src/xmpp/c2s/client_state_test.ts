import assert from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { C2sFixture, HEADER, plainOf, SASL } from "./testing/c2s_fixture.ts";
import { comeBack, expectEnd, manage, resume, until } from "./testing/stream_management_fixture.ts";

const CSI = "urn:xmpp:csi:0";
const ACTIVE = `<active xmlns='${CSI}'/>`;
const INACTIVE = `<inactive xmlns='${CSI}'/>`;
const OFFERED = `<csi xmlns='${CSI}'/>`;
const PHONE = "alice@example.com/phone";
const OPTIONS = { maxHeldPresence: 3 };

/** Delivers to alice's phone: presence of a contact's resource, or a message. */
function deliver(fixture: C2sFixture, kind: "presence" | "message", name: string): void {
  const from = parseJid(`${name}@example.com/x`);
  const content = kind === "message" ? `<body>${name}</body>` : "";
  const type = kind === "message" ? "chat" : "available";
  const attributes = `from='${from.text}' to='${PHONE}'` +
    (kind === "message" ? " type='chat'" : "");
  const bytes = new TextEncoder().encode(`<${kind} ${attributes}>${content}</${kind}>`);
  const stanza: Stanza = { kind, type, from, to: parseJid(PHONE), bytes };
  assert.equal(fixture.registry.deliver(stanza), "delivered");
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
