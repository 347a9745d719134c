import assert from "node:assert/strict";
import type { Jid } from "../jid/jid.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { buildStanza, stanzaElement } from "../stanza/stanza_builder.ts";
import { element } from "../xml/xml_element.ts";
import { C2sFixture, expectOnly } from "./testing/c2s_fixture.ts";
import { until } from "./testing/stream_management_fixture.ts";

Deno.test("SessionPresence shares presence among the account's resources", async () => {
  await using fixture = new C2sFixture();
  const home = await fixture.login("alice", "home");
  const work = await fixture.login("alice", "work");
  const presenceOf = (resource: string, rest: string) =>
    `<presence from='alice@example.com/${resource}' to='alice@example.com' xml:lang='en'${rest}`;

  await home.exchange("<presence/>", presenceOf("home", "/>"));
  work.send("<presence><show>dnd</show><priority>-3</priority></presence>");
  const busy = presenceOf("work", "><show>dnd</show><priority>-3</priority></presence>");
  await home.expectNext(busy);
  await work.expectNext(busy);
  await work.expectNext(presenceOf("home", "/>"));
  await expectOnly(work, "alice@example.com/work");

  const priorities = [...fixture.registry.sessions()].map(({ priority }) => priority);
  assert.deepEqual(priorities, [0, -3]);

  home.send("<presence type='unavailable'><status>lunch</status></presence>");
  const gone = presenceOf("home", " type='unavailable'><status>lunch</status></presence>");
  await work.expectNext(gone);
  await home.expectNext(gone);
  // A resource that is not available receives no more presence.
  work.send("<presence/>");
  await work.expectNext(presenceOf("work", "/>"));
  await expectOnly(home, "alice@example.com/home");
});

Deno.test("SessionPresence sends unavailable for a client that vanishes", async () => {
  await using fixture = new C2sFixture();
  const home = await fixture.login("alice", "home");
  const work = await fixture.login("alice", "work");
  await work.exchange("<presence/>", /<presence [^>]*\/>/);
  await home.exchange("<presence/>", /<presence [^>]*\/>/);
  await home.expectNext(/<presence [^>]*\/>/);
  await work.expectNext(/<presence [^>]*\/>/);
  home.cut();
  await work.expectNext(
    "<presence type='unavailable' from='alice@example.com/home' to='alice@example.com'/>",
  );
  await expectOnly(work, "alice@example.com/work");
});

Deno.test("SessionPresence sends its end to recipients of directed presence", async () => {
  await using fixture = new C2sFixture();
  const bob = await fixture.login("bob", "home");
  const alice = await fixture.login("alice", "home");
  const gone =
    "<presence type='unavailable' from='alice@example.com/home' to='bob@example.com/home'/>";
  alice.send("<presence to='bob@example.com/home'/>");
  await bob.expectNext(/<presence [^>]*to='bob@example.com\/home'[^>]*\/>/);
  alice.send("<presence to='bob@example.com/home' type='unavailable'/>");
  await bob.expectNext(/<presence [^>]*type='unavailable'[^>]*\/>/);
  alice.send("<presence to='bob@example.com/home'/>");
  await bob.expectNext(/<presence [^>]*\/>/);
  alice.send("<presence type='unavailable'><status>off</status></presence>");
  await bob.expectNext(/<presence [^>]*type='unavailable'[^>]*><status>off<\/status><\/presence>/);
  alice.send("<presence to='bob@example.com/home'/>");
  await bob.expectNext(/<presence [^>]*\/>/);
  alice.cut();
  await bob.expectNext(gone);
  await expectOnly(bob, "bob@example.com/home");
});

Deno.test("SessionPresence remembers maxDirectedPresence entities and refuses one more", async () => {
  await using fixture = new C2sFixture({ maxDirectedPresence: 2 });
  const alice = await fixture.login("alice", "home");
  alice.send(
    "<presence id='1' to='a@example.com'/><presence id='2' to='b@example.com'/>" +
      "<presence id='3' to='a@example.com'/><presence id='4' to='c@example.com'/>",
  );
  await alice.expectNext(
    "<presence from='c@example.com' to='alice@example.com/home' id='4' type='error'>" +
      "<error type='wait'><resource-constraint xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>" +
      "</presence>",
  );
  assert.equal(fixture.accepted.length, 3);
  alice.send("<presence to='a@example.com' type='unavailable'/><presence to='c@example.com'/>");
  await expectOnly(alice, "alice@example.com/home");
  alice.close();
  await alice.expectClosed();
  const farewells = fixture.accepted.filter(({ type }) => type === "unavailable").slice(1);
  assert.deepEqual(farewells.map(({ to }) => to.text), ["b@example.com", "c@example.com"]);
});

Deno.test("SessionPresence sends subscriptions from account to account", async () => {
  await using fixture = new C2sFixture();
  const bob = await fixture.login("bob", "home");
  await bob.exchange("<presence/>", /<presence [^>]*\/>/);
  const alice = await fixture.login("alice", "home");
  alice.send("<presence type='subscribe' id='s' to='bob@example.com/home'/>");
  await bob.expectNext(
    "<presence from='alice@example.com' to='bob@example.com' xml:lang='en' type='subscribe' id='s'/>",
  );
  const [stanza] = fixture.accepted;
  assert.deepEqual([stanza?.from.text, stanza?.to.text], ["alice@example.com", "bob@example.com"]);
});

Deno.test("SessionPresence sends the end of a presence with the time of its beginning", async () => {
  const told: Stanza[] = [];
  const events = {
    opened: () => Promise.resolve(),
    closed: () => Promise.resolve(),
    presence: (presence: Stanza) => void told.push(presence),
  };
  await using fixture = new C2sFixture({ events });
  for (const end of ["cut", "unavailable"]) {
    told.length = fixture.accepted.length = 0;
    const beganUs = fixture.clock.wallUs();
    const alice = await fixture.login("alice", "home");
    await alice.exchange("<presence/>", /<presence [^>]*\/>/);
    fixture.clock.advance!(1_000);
    alice.send("<presence to='room@example.com/x'/>");
    await until(() => fixture.accepted.length > 0);
    const directedUs = fixture.clock.wallUs();
    fixture.clock.advance!(1_000);
    if (end === "cut") alice.cut();
    else alice.send("<presence type='unavailable'/>");
    await until(() => told.length === 2 && fixture.accepted.length > 1);
    assert.deepEqual(told.map(({ sinceUs }) => sinceUs), [beganUs, beganUs]);
    assert.equal(fixture.accepted.at(-1)!.sinceUs, directedUs);
  }
});

Deno.test("SessionPresence tells the account's resources nothing that is outdated", async () => {
  const events = {
    opened: () => Promise.resolve(),
    closed: () => Promise.resolve(),
    isNews: ({ from, type }: Stanza) => !(from.text.endsWith("/home") && type === "unavailable"),
  };
  await using fixture = new C2sFixture({ events });
  const home = await fixture.login("alice", "home");
  const work = await fixture.login("alice", "work");
  await work.exchange("<presence/>", /<presence [^>]*\/>/);
  await home.exchange("<presence/>", /<presence [^>]*\/>/);
  await work.expectNext(/<presence [^>]*home[^>]*\/>/);
  home.cut();
  await until(() => fixture.registry.count === 1);
  await expectOnly(work, "alice@example.com/work");
});

Deno.test("SessionPresence sends presence with what the server adds to it, and anew on demand", async () => {
  let added = "one";
  await using fixture = new C2sFixture({
    events: {
      opened: () => Promise.resolve(),
      closed: () => Promise.resolve(),
      completed: (presence) => {
        const x = element("x", { xmlns: "urn:x" }, added);
        const { from, to } = presence;
        const { name, attributes, children } = stanzaElement(presence);
        return buildStanza(element(name, attributes, ...children, x), { from, to });
      },
    },
  });
  const home = await fixture.login("alice", "home");
  const session = fixture.registry.ofAccount("alice@example.com")[0]!;
  session.repeatPresence!();
  await home.exchange(
    "<presence><show>away</show></presence>",
    /<presence [^>]*><show>away<\/show><x xmlns='urn:x'>one<\/x><\/presence>$/,
  );
  added = "two";
  session.repeatPresence!();
  await home.expectNext(/<presence [^>]*><show>away<\/show><x xmlns='urn:x'>two<\/x><\/presence>$/);
  home.send("<presence type='unavailable'/>");
  await home.expectNext(/<presence [^>]*type='unavailable'[^>]*\/>$/);
  session.repeatPresence!();
  await expectOnly(home, "alice@example.com/home");
});

Deno.test("SessionPresence sends directed presence again as it was, to one account and its resources", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  const session = fixture.registry.ofAccount("alice@example.com")[0]!;
  const [bob, carol] = ["bob@example.com", "carol@example.com"].map((text) => parseJid(text));
  const again = (account: Jid) => {
    const before = fixture.accepted.length;
    session.repeatDirected!(account);
    return fixture.accepted.slice(before);
  };
  assert.deepEqual(again(bob!), []);
  for (const to of [bob!.text, `${bob!.text}/x`, carol!.text, `${bob!.text}/y`]) {
    alice.send(`<presence to='${to}'><status>for ${to}</status></presence>`);
  }
  alice.send(`<presence to='${bob!.text}/y' type='unavailable'/>`);
  await until(() => fixture.accepted.length === 5);
  const [first, second] = fixture.accepted;
  const atUs = fixture.clock.wallUs();
  fixture.clock.advance!(1_000);
  const told = again(bob!);
  assert.deepEqual(told.map(({ to }) => to.text), [bob!.text, `${bob!.text}/x`]);
  assert.deepEqual(told.map(({ bytes }) => bytes), [first!.bytes, second!.bytes]);
  assert.ok(told.every(({ sinceUs }) => sinceUs === atUs), "it has been so since then");
  alice.send("<presence type='unavailable'/>");
  await until(() => fixture.accepted.at(-1)?.type === "unavailable");
  assert.deepEqual(again(bob!), []);
});
