import assert from "node:assert/strict";
import { C2sFixture, expectOnly } from "./testing/c2s_fixture.ts";

const ERROR = "xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'";

Deno.test("ClientStanzas stamps its full JID over a from of its own", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  const stamped =
    "<message from='alice@example.com/home' xml:lang='en' id='m' to='alice@example.com/home'/>";
  for (
    const from of [
      "",
      " from='alice@example.com'",
      " from='alice@example.com/home'",
      " from='ALICE@Example.Com/home'",
    ]
  ) {
    await alice.exchange(`<message id='m'${from} to='alice@example.com/home'/>`, stamped);
  }
});

for (const from of ["bob@example.com", "alice@example.com/work", "example.com", "", "@"]) {
  Deno.test(`ClientStanzas ends a stream that claims to be [${from}]`, async () => {
    await using fixture = new C2sFixture();
    const mallory = await fixture.login("alice", "home");
    mallory.send(`<message from='${from}' to='bob@example.com'/>`);
    await mallory.expectNext(
      "<stream:error><invalid-from xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>",
    );
    assert.equal(await mallory.expectClosed(), "</stream:stream>");
    assert.equal(fixture.accepted.length, 0);
  });
}

Deno.test("ClientStanzas takes a message or iq without to for the account", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  alice.send("<message id='m'/><iq type='get' id='i'><query xmlns='some:thing'/></iq>");
  await alice.expectNext(
    "<message from='alice@example.com' to='alice@example.com/home' id='m' type='error'>",
  );
  await alice.expect(`</message>`);
  await alice.expectNext(
    "<iq from='alice@example.com' to='alice@example.com/home' id='i' type='error'>",
  );
  assert.deepEqual(fixture.accepted.map(({ to }) => to.text), [
    "alice@example.com",
    "alice@example.com",
  ]);
});

const REFUSED: readonly [what: string, stanza: string, condition: string][] = [
  ["an invalid to", "<message id='x' to='@example.com'/>", "jid-malformed"],
  ["an iq without type", "<iq id='x' to='bob@example.com'/>", "bad-request"],
  ["an iq of unknown type", "<iq id='x' type='put' to='bob@example.com'/>", "bad-request"],
  ["presence of unknown type", "<presence id='x' type='invisible'/>", "bad-request"],
  ["a subscription for nobody", "<presence id='x' type='subscribe'/>", "bad-request"],
  ["a priority of 128", "<presence id='x'><priority>128</priority></presence>", "bad-request"],
  [
    "a priority that is no number",
    "<presence id='x'><priority>x</priority></presence>",
    "bad-request",
  ],
];

for (const [what, stanza, condition] of REFUSED) {
  Deno.test(`ClientStanzas answers ${what} with ${condition}`, async () => {
    await using fixture = new C2sFixture();
    const alice = await fixture.login("alice", "home");
    await alice.exchange(
      stanza,
      new RegExp(
        "^<(message|iq|presence) from='alice@example.com' to='alice@example.com/home' id='x' " +
          `type='error'><error type='\\w+'><${condition} ${ERROR}/></error></\\1>`,
      ),
    );
    await expectOnly(alice, "alice@example.com/home");
  });
}

Deno.test("ClientStanzas never answers an error or a result, however broken", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  alice.send(
    "<message type='error' to='@'/><iq type='result' to='@' id='r'/><presence type='error'/>",
  );
  await expectOnly(alice, "alice@example.com/home");
});

Deno.test("ClientStanzas allows a client no second resource", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  for (const to of ["", " to='example.com'", " to='alice@example.com'"]) {
    await alice.exchange(
      `<iq type='set' id='b'${to}><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>` +
        "<resource>work</resource></bind></iq>",
      /^<iq [^>]*id='b' type='error'><error type='cancel'><not-allowed [^>]*\/><\/error><\/iq>$/,
    );
  }
});

Deno.test("ClientStanzas answers the session request of old clients", async () => {
  await using fixture = new C2sFixture();
  const alice = await fixture.login("alice", "home");
  for (const to of ["", " to='example.com'", " to='alice@example.com'"]) {
    await alice.exchange(
      `<iq type='set' id='s&amp;1'${to}>` +
        "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>",
      "<iq type='result' id='s&amp;1' from='alice@example.com' to='alice@example.com/home'/>",
    );
  }
});
