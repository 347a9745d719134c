import assert from "node:assert/strict";
import { ScramExchange } from "../../../harness/clients/scram.ts";
import { ManualClock } from "../../base/mod.ts";
import type { EdgeRatesOptions } from "../stream/edge_rates.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import { parseJid } from "../jid/jid_parser.ts";
import type { StanzaType } from "../stanza/stanza.ts";
import {
  bind,
  C2sFixture,
  HEADER,
  passwordOf,
  plainOf,
  SASL,
  SASL2,
} from "./testing/c2s_fixture.ts";
import type { FixtureOptions } from "./testing/c2s_fixture.ts";
import {
  agentXml,
  authenticateXml,
  BIND2,
  bind2Xml,
  enter,
  failure2Xml,
  NO_FEATURES,
  offered,
  success2Xml,
  UNBOUND_FEATURES,
} from "./testing/sasl2_fixture.ts";
import {
  A,
  expectEnd,
  expectMessages,
  FAILED,
  message,
  metric,
  quiet,
  R,
  resume,
  SM,
  until,
} from "./testing/stream_management_fixture.ts";

const ALICE = "alice@example.com";
const INSTALLATION = "d4565fa7-4d72-4749-b3d3-740edbf87770";
const DIGITS = "[0-9a-f]{16}";

Deno.test("a client logs in by SASL2, and binds by RFC 6120 without a new header", async () => {
  await using fixture = new C2sFixture();
  const alice = await offered(fixture);
  await alice.exchange(authenticateXml("alice"), success2Xml(ALICE) + UNBOUND_FEATURES);
  assert.equal(await bind(alice, "home"), `${ALICE}/home`);
  const labels = { edge: "c2s", mechanism: "PLAIN" };
  assert.equal(fixture.metrics.value("xmpp_auth_successes_total", labels), 1);
});

for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1"] as const) {
  Deno.test(`<success/> of SASL2 has the server's last message of ${mechanism}`, async () => {
    await using fixture = new C2sFixture();
    const alice = await offered(fixture);
    const scram = new ScramExchange(mechanism, {
      localpart: "alice",
      password: passwordOf("alice"),
    });
    const first = `<initial-response>${scram.first()}</initial-response>`;
    const [, challenge] = await alice.exchange(
      `<authenticate xmlns='${SASL2}' mechanism='${mechanism}'>${first}</authenticate>`,
      /^<challenge xmlns='urn:xmpp:sasl:2'>([^<]+)<\/challenge>/,
    );
    const [, data] = await alice.exchange(
      `<response xmlns='${SASL2}'>${scram.final(challenge!)}</response>`,
      new RegExp(
        `^<success xmlns='${SASL2}'><additional-data>([^<]+)</additional-data>` +
          `<authorization-identifier>${ALICE}</authorization-identifier></success>`,
      ),
    );
    scram.verify(data!);
    await alice.expectNext(UNBOUND_FEATURES);
  });
}

Deno.test("<authenticate/> without an initial response is answered with an empty challenge", async () => {
  await using fixture = new C2sFixture();
  const alice = await offered(fixture);
  await alice.exchange(
    `<authenticate xmlns='${SASL2}' mechanism='PLAIN'>${bind2Xml("<tag>x</tag>")}</authenticate>`,
    `<challenge xmlns='${SASL2}'/>`,
  );
  await alice.exchange(
    `<response xmlns='${SASL2}'>${btoa("\0alice\0ecila")}</response>`,
    new RegExp(`^<success [^>]*><authorization-identifier>${ALICE}/x/${DIGITS}<`),
  );
});

Deno.test("<bind/> of XEP-0386 binds together with the login", async () => {
  await using fixture = new C2sFixture();
  const alice = await offered(fixture, { chunkBytes: 1 });
  alice.send(authenticateXml("alice", bind2Xml("<tag>Awesome &amp; XMPP</tag>")));
  const [, jid] = await alice.expectNext(
    new RegExp(
      `^<success xmlns='${SASL2}'><authorization-identifier>` +
        `(${ALICE}/Awesome &amp; XMPP/${DIGITS})</authorization-identifier>` +
        `<bound xmlns='${BIND2}'/></success>${NO_FEATURES}`,
    ),
  );
  assert.deepEqual(fixture.opened, [jid!.replace("&amp;", "&")]);
  await alice.exchange(`<message to='${jid}' id='m'/>`, /^<message [^>]*id='m'[^>]*\/>/);
});

/** Tags of a client, and the beginning of the resource that follows. */
const TAGS: readonly [what: string, tag: string, prefix: string][] = [
  ["no tag", "", ""],
  ["an empty tag", "<tag/>", ""],
  ["a tag of another namespace", "<tag xmlns='x:y'>x</tag>", ""],
  ["a tag that no resource may have", "<tag>a&#x7f;b</tag>", ""],
  ["a tag that leaves no room", `<tag>${"x".repeat(1010)}</tag>`, ""],
  ["a tag as long as there is room for", `<tag>${"x".repeat(1006)}</tag>`, `${"x".repeat(1006)}/`],
  ["an overlong tag", `<tag>${"x".repeat(17_000)}</tag>`, ""],
  ["a tag with a slash", "<tag>a/b</tag>", "a/b/"],
];

for (const [what, tag, prefix] of TAGS) {
  Deno.test(`<bind/> of XEP-0386 with ${what} binds ${prefix === "" ? "digits" : "the tag"}`, async () => {
    await using fixture = new C2sFixture();
    const { jid } = await enter(await offered(fixture), "alice", { inBind: tag });
    assert.match(jid, new RegExp(`^${ALICE}/${prefix}${DIGITS}$`));
    assert.deepEqual(fixture.opened, [jid]);
  });
}

Deno.test("a client with the same id replaces its session, and others do not", async () => {
  await using fixture = new C2sFixture();
  const asClient = (id: string, inBind = "<tag>x</tag>") => ({ inBind, besides: agentXml(id) });
  const older = await offered(fixture);
  const { jid } = await enter(older, "alice", asClient(INSTALLATION));
  assert.ok(!jid.includes(INSTALLATION));
  const newer = await offered(fixture);
  const again = await enter(newer, "alice", asClient(INSTALLATION.toUpperCase()));
  assert.equal(again.jid, jid);
  await expectEnd(older, "<conflict ");

  const ids = [
    "d4565fa7-4d72-4749-b3d3-740edbf87771",
    "d4565fa7-4d72-1749-b3d3-740edbf87770", // not random
    "1",
    "1",
  ];
  const jids = [jid];
  for (const id of ids) {
    jids.push((await enter(await offered(fixture), "alice", asClient(id))).jid);
  }
  jids.push((await enter(await offered(fixture), "alice", asClient(INSTALLATION, ""))).jid);
  assert.equal(new Set(jids).size, jids.length);
  const bob = await enter(await offered(fixture), "bob", asClient(INSTALLATION));
  assert.notEqual(bob.jid.split("/")[2], jid.split("/")[2]);
});

Deno.test("<enable/> in <bind/> turns stream management on, from the answer on", async () => {
  await using fixture = quiet();
  const alice = await offered(fixture);
  const enable = `<enable xmlns='${SM}' resume='true' max='7'/>`;
  const { jid, bound } = await enter(alice, "alice", { inBind: enable });
  assert.match(
    bound,
    new RegExp(`^<enabled xmlns='${SM}' id='[0-9a-f-]+' resume='true' max='7'/>$`),
  );
  await alice.expectNext(NO_FEATURES);
  await alice.exchange(R, A(0));
  await alice.exchange(`<message to='${jid}' id='m'/>`, /^<message [^>]*id='m'[^>]*\/>/);
  await alice.exchange(A(1) + R, A(1));
  await alice.exchange(`<enable xmlns='${SM}'/>`, FAILED("unexpected-request"));
});

for (const hasCarbons of [true, false]) {
  Deno.test(`<enable/> in <bind/> ${hasCarbons ? "turns carbons on" : "is ignored where there are no carbons"}`, async () => {
    await using fixture = quiet({ hasCarbons: (domain) => hasCarbons && domain === "example.com" });
    const alice = fixture.connect();
    alice.send(HEADER);
    const offer = "<feature var='urn:xmpp:carbons:2'/>";
    const features = await alice.expect("</stream:features>");
    assert.equal(features.input.includes(offer), hasCarbons);
    const enable = `<enable xmlns='${SM}'/><enable xmlns='urn:xmpp:carbons:2'/>`;
    const { bound } = await enter(alice, "alice", { inBind: enable });
    assert.equal(bound, `<enabled xmlns='${SM}'/>`);
    await enter(await offered(fixture), "alice");
    const wants = fixture.registry.ofAccount(ALICE).map((session) => session.hasCarbons);
    assert.deepEqual(wants, [hasCarbons, false]);
  });
}

for (const maxHeldPresence of [3, 0]) {
  Deno.test(`<inactive/> in <bind/> ${maxHeldPresence > 0 ? "holds presence back from the first on" : "is ignored where there is no client state indication"}`, async () => {
    await using fixture = new C2sFixture({ maxHeldPresence });
    const alice = fixture.connect();
    alice.send(HEADER);
    const features = await alice.expect("</stream:features>");
    const offer = "<feature var='urn:xmpp:csi:0'/>";
    assert.equal(features.input.includes(offer), maxHeldPresence > 0);
    const inBind = "<inactive xmlns='urn:xmpp:csi:0'/>";
    const { jid, bound } = await enter(alice, "alice", { inBind });
    assert.equal(bound, "");
    const deliver = (kind: "presence" | "message", type: StanzaType, content: string) => {
      const [from, to] = [parseJid("bob@example.com/x"), parseJid(jid)];
      const bytes = new TextEncoder().encode(
        `<${kind} from='${from.text}' to='${to.text}'>${content}</${kind}>`,
      );
      assert.equal(fixture.registry.deliver({ kind, type, from, to, bytes }), "delivered");
    };
    deliver("presence", "available", "<show>away</show>");
    deliver("presence", "available", "<show>dnd</show>");
    deliver("message", "normal", "<body>x</body>");
    const { input } = await alice.expect("</message>");
    const shows = [...input.matchAll(/<show>(\w+)</g)].map(([, show]) => show);
    assert.deepEqual(shows, maxHeldPresence > 0 ? ["dnd"] : ["away", "dnd"]);
  });
}

Deno.test("a client that has bound by SASL2 may enable stream management later", async () => {
  await using fixture = quiet();
  const alice = await offered(fixture);
  await enter(alice, "alice");
  await alice.expectNext(`<stream:features><sm xmlns='${SM}'/></stream:features>`);
  await alice.exchange(`<enable xmlns='${SM}'/>`, `<enabled xmlns='${SM}'/>`);
});

Deno.test("a failure of ours behind the password ends the stream alone", async () => {
  let isFailing = true;
  const failing = () => {
    if (isFailing) throw new Error("a bug");
    return [];
  };
  await using fixture = new C2sFixture({ accountFeatures: failing });
  const alice = await offered(fixture);
  alice.send(authenticateXml("alice"));
  await expectEnd(alice, "<internal-server-error ");
  assert.equal(fixture.log.named("c2s.auth.broken").length, 1);
  isFailing = false;
  const bob = await offered(fixture);
  await enter(bob, "bob");
});

/** Logs in with stream management; returns the id to resume by. */
async function managed(fixture: C2sFixture, user = "alice") {
  const peer = await offered(fixture);
  const enable = `<enable xmlns='${SM}' resume='true'/>`;
  const { jid, bound } = await enter(peer, user, { inBind: enable });
  await peer.expectNext(NO_FEATURES);
  return { peer, jid, id: /id='([^']+)'/.exec(bound)![1]! };
}

Deno.test("<resume/> in <authenticate/> resumes, and everything missed follows the features", async () => {
  await using fixture = quiet();
  const { peer, jid, id } = await managed(fixture);
  peer.send(`<message to='${jid}' id='own'/>`);
  await peer.expect(/id='own'[^>]*\/>/);
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  for (const each of ["1", "2"]) fixture.route(message(each, jid));
  const again = await offered(fixture);
  // A bind request is left out of account, because the session has its resource.
  const asked = resume(id, 1) + bind2Xml("<tag>new</tag>");
  await again.exchange(
    authenticateXml("alice", asked),
    success2Xml(jid, `<resumed xmlns='${SM}' previd='${id}' h='1'/>`) + NO_FEATURES,
  );
  await expectMessages(again, "1", "2");
  again.send(A(3) + R);
  await again.expect(A(1));
  assert.deepEqual(fixture.opened, [jid]);
  assert.equal(metric(fixture, "xmpp_sm_resumed_total"), 1);
});

Deno.test("a login by SASL2 tells the features of the account, bound or resumed", async () => {
  await using fixture = quiet({
    accountFeatures: () => ["roster-versions", "pre-approval"],
    maxHeldPresence: 10,
  });
  const features = "<stream:features><csi xmlns='urn:xmpp:csi:0'/>" +
    "<ver xmlns='urn:xmpp:features:rosterver'/><sub xmlns='urn:xmpp:features:pre-approval'/>" +
    "</stream:features>";
  const peer = await offered(fixture);
  const enable = `<enable xmlns='${SM}' resume='true'/>`;
  const { jid, bound } = await enter(peer, "alice", { inBind: enable });
  await peer.expectNext(features);
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const id = /id='([^']+)'/.exec(bound)![1]!;
  const again = await offered(fixture);
  await again.exchange(
    authenticateXml("alice", resume(id, 0)),
    success2Xml(jid, `<resumed xmlns='${SM}' previd='${id}' h='0'/>`) + features,
  );
});

Deno.test("<resume/> that fails is told in <success/>, and the client binds together with it", async () => {
  await using fixture = quiet();
  const { peer, jid, id } = await managed(fixture);
  // The stream of somebody else, and none at all.
  for (const previd of [id, "1-00000000000000000000000000000000"]) {
    const bob = await offered(fixture);
    const { bound } = await bob.exchange(
      authenticateXml("bob", resume(previd, 0) + bind2Xml(`<enable xmlns='${SM}'/>`)),
      new RegExp(
        `^<success xmlns='${SASL2}'><authorization-identifier>bob@example.com/${DIGITS}` +
          `</authorization-identifier>${RegExp.escape(FAILED("item-not-found"))}` +
          `<bound xmlns='${BIND2}'>(?<bound><enabled xmlns='${SM}'/>)</bound></success>`,
      ),
    ).then((match) => match.groups!);
    assert.ok(bound);
    await bob.expectNext(NO_FEATURES);
  }
  await peer.exchange(R, A(0));
  assert.deepEqual(fixture.opened[0], jid);
  assert.equal(fixture.opened.length, 3);
});

Deno.test("<resume/> that fails without <bind/> leaves the client to bind by RFC 6120", async () => {
  await using fixture = quiet();
  const cases: readonly [string, string][] = [
    [resume("1-00000000000000000000000000000000", 0), FAILED("item-not-found")],
    [`<resume xmlns='${SM}' h='0'/>`, FAILED("bad-request")],
    [`<resume xmlns='${SM}' previd='x' h='-1'/>`, FAILED("bad-request")],
  ];
  for (const [request, failed] of cases) {
    const alice = await offered(fixture);
    await alice.exchange(authenticateXml("alice", request), success2Xml(ALICE, failed));
    await alice.expect("</stream:features>");
    assert.match(await bind(alice), new RegExp(`^${ALICE}/`));
  }
});

Deno.test("<resume/> with an h that is too high ends the stream, and the session stays", async () => {
  await using fixture = quiet();
  const { peer, id } = await managed(fixture);
  const again = await offered(fixture);
  again.send(authenticateXml("alice", resume(id, 99)));
  await expectEnd(again, /<handled-count-too-high [^>]*h='99'/);
  await peer.exchange(R, A(0));
});

Deno.test("stream management that is off is refused in <success/>, and the login holds", async () => {
  await using fixture = new C2sFixture();
  const alice = await offered(fixture);
  const asked = resume("x", 0) + bind2Xml(`<enable xmlns='${SM}'/>`);
  const failed = FAILED("feature-not-implemented");
  await alice.exchange(
    authenticateXml("alice", asked),
    new RegExp(
      `^<success [^>]*><authorization-identifier>${ALICE}/${DIGITS}</authorization-identifier>` +
        `${RegExp.escape(failed)}<bound [^>]*>${RegExp.escape(failed)}</bound></success>`,
    ),
  );
  await alice.expectNext(NO_FEATURES);
});

Deno.test("a login by SASL2 ignores what it does not know", async () => {
  await using fixture = new C2sFixture();
  const alice = await offered(fixture);
  const { bound } = await enter(alice, "alice", {
    inBind: "<enable xmlns='urn:xmpp:carbons:2'/><inactive xmlns='urn:xmpp:csi:0'/><tag>x</tag>",
    besides: "<fast xmlns='urn:xmpp:fast:0'/><request-token xmlns='urn:xmpp:fast:0'/><resume/>",
  });
  assert.equal(bound, "");
  assert.match(fixture.opened[0]!, /\/x\//);
});

Deno.test("a login that finds no room for a session succeeds without <bound/>", async () => {
  await using fixture = new C2sFixture({ maxSessionsPerAccount: 1 });
  await fixture.login("alice", "home");
  const second = await offered(fixture);
  await second.exchange(
    authenticateXml("alice", bind2Xml()),
    success2Xml(ALICE) + UNBOUND_FEATURES,
  );
  await second.exchange(
    "<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></iq>",
    /^<iq type='error' id='b'><error type='wait'><resource-constraint /,
  );
});

/** Logins that fail: the stream goes on. */
const FAILURES: readonly [what: string, text: string, condition: string][] = [
  ["a wrong password", authenticateXml("alice", "", { password: "wrong" }), "not-authorized"],
  ["no account", authenticateXml("nobody", "", { password: "wrong" }), "not-authorized"],
  [
    "an unknown mechanism",
    authenticateXml("alice").replace("PLAIN", "HT-SHA-256-NONE"),
    "invalid-mechanism",
  ],
  ["no mechanism", authenticateXml("alice").replace(" mechanism='PLAIN'", ""), "invalid-mechanism"],
  [
    "another's authzid",
    authenticateXml("alice", "", { authzid: "bob@example.com" }),
    "invalid-authzid",
  ],
  [
    "text that is no base64",
    authenticateXml("alice").replace(/>[^<]+</, ">!<"),
    "incorrect-encoding",
  ],
  [
    "text that is too long",
    authenticateXml("alice").replace(/>[^<]+</, `>${"YWJj".repeat(4097)}<`),
    "malformed-request",
  ],
  ["a <response/> to nothing", `<response xmlns='${SASL2}'/>`, "malformed-request"],
  ["an <abort/> of nothing", `<abort xmlns='${SASL2}'/>`, "aborted"],
];

for (const [what, text, condition] of FAILURES) {
  Deno.test(`a login by SASL2 with ${what} fails with ${condition}, and nothing is bound`, async () => {
    await using fixture = new C2sFixture();
    const alice = await offered(fixture);
    const asked = text.replace("</authenticate>", `${bind2Xml()}</authenticate>`);
    await alice.exchange(asked, failure2Xml(condition));
    assert.deepEqual(fixture.opened, []);
    await alice.exchange(authenticateXml("alice"), success2Xml(ALICE));
  });
}

Deno.test("<abort/> ends an exchange of SASL2", async () => {
  await using fixture = new C2sFixture();
  const alice = await offered(fixture);
  const authenticate = `<authenticate xmlns='${SASL2}' mechanism='PLAIN'/>`;
  await alice.exchange(authenticate, `<challenge xmlns='${SASL2}'/>`);
  await alice.exchange(`<abort xmlns='${SASL2}'/>`, failure2Xml("aborted"));
  await alice.exchange(authenticateXml("alice"), success2Xml(ALICE));
});

Deno.test("a login by SASL2 must be of the account that the header names", async () => {
  await using fixture = new C2sFixture();
  const from = (jid: string) => HEADER.replace("<stream:stream ", `<stream:stream from='${jid}' `);
  for (const jid of ["alice@example.com", "ALICE@example.com/phone", "example.com"]) {
    const alice = await offered(fixture, { header: from(jid) });
    await alice.exchange(authenticateXml("alice"), success2Xml(ALICE));
  }
  const mallory = await offered(fixture, { header: from("bob@example.com") });
  await mallory.exchange(authenticateXml("alice", bind2Xml()), failure2Xml("invalid-authzid"));
  assert.deepEqual(fixture.opened, []);
});

/** Elements that end the stream, each after what was sent before. */
const OUT_OF_PLACE: readonly [what: string, before: string, text: string, condition: string][] = [
  [
    "a <response/> of the other profile",
    `<authenticate xmlns='${SASL2}' mechanism='PLAIN'/>`,
    `<response xmlns='${SASL}'/>`,
    "unsupported-stanza-type",
  ],
  [
    "an <abort/> of the other profile",
    `<auth xmlns='${SASL}' mechanism='PLAIN'/>`,
    `<abort xmlns='${SASL2}'/>`,
    "unsupported-stanza-type",
  ],
  [
    "a stanza during the login",
    `<authenticate xmlns='${SASL2}' mechanism='PLAIN'/>`,
    "<message/>",
    "not-authorized",
  ],
  ["another login", authenticateXml("alice"), authenticateXml("bob"), "unsupported-stanza-type"],
  [
    "another login behind a bound resource",
    authenticateXml("alice", bind2Xml()),
    authenticateXml("bob"),
    "unsupported-stanza-type",
  ],
  ["<next/>", "", `<next xmlns='${SASL2}' task='x'/>`, "unsupported-stanza-type"],
];

for (const [what, before, text, condition] of OUT_OF_PLACE) {
  Deno.test(`${what} ends a stream with SASL2 with ${condition}`, async () => {
    await using fixture = new C2sFixture();
    const peer = await offered(fixture);
    peer.send(before + text);
    await expectEnd(peer, `<${condition} `);
  });
}

Deno.test("attempts by both SASL profiles count together", async () => {
  await using fixture = new C2sFixture({ limits: { maxAuthFailures: 3 } });
  const mallory = await offered(fixture);
  const wrong = { password: "wrong" };
  await mallory.exchange(authenticateXml("alice", "", wrong), failure2Xml("not-authorized"));
  await mallory.exchange(
    plainOf("alice", "wrong"),
    `<failure xmlns='${SASL}'><not-authorized/></failure>`,
  );
  await mallory.exchange(authenticateXml("alice", "", wrong), failure2Xml("not-authorized"));
  await expectEnd(mallory, "<policy-violation ");
});

/** Bounds that a login by SASL2 runs into, as one by RFC 6120 does. */
const BOUNDS: readonly [limit: string, rates: EdgeRatesOptions, password: string][] = [
  ["login-rate", { loginsPerAddress: { perSec: 1, burst: 1 } }, passwordOf("alice")],
  ["failed-logins", { failedLoginsPerAccount: { perSec: 1, burst: 1 } }, "wrong"],
];

for (const [limit, rates, password] of BOUNDS) {
  Deno.test(`a login by SASL2 counts towards ${limit}`, async () => {
    const clock = new ManualClock();
    const options: FixtureOptions = { clock, rates: new EdgeRates(rates, clock) };
    await using fixture = new C2sFixture(options);
    const remote = fixture.connectFrom("192.0.2.1:1");
    remote.send(HEADER);
    await remote.expect("</stream:features>");
    await remote.exchange(
      authenticateXml("alice", "", { password: "wrong" }),
      failure2Xml("not-authorized"),
    );
    await remote.exchange(
      authenticateXml("alice", bind2Xml(), { password }),
      failure2Xml("temporary-auth-failure"),
    );
    assert.equal(metric(fixture, "xmpp_limit_hits_total", { edge: "c2s", limit }), 1);
    assert.deepEqual(fixture.opened, []);
  });
}

Deno.test("bytes of a login by SASL2 count towards maxUnauthenticatedBytes", async () => {
  await using fixture = new C2sFixture({ limits: { maxUnauthenticatedBytes: 2000 } });
  const mallory = await offered(fixture);
  mallory.send(authenticateXml("alice", `<x xmlns='x:y'>${"x".repeat(2000)}</x>`));
  await expectEnd(mallory, "<policy-violation ");
});

Deno.test("SASL2 is neither offered nor taken where it is off", async () => {
  await using fixture = new C2sFixture({ sasl2: false });
  for (const text of [authenticateXml("alice"), `<abort xmlns='${SASL2}'/>`]) {
    const peer = fixture.connect();
    peer.send(HEADER);
    const features = await peer.expect(/<stream:features>.*<\/stream:features>/s);
    assert.ok(!features[0].includes(SASL2));
    peer.send(text);
    await expectEnd(peer, "<unsupported-stanza-type ");
  }
});

Deno.test("SASL2 is offered only once TLS is there, where TLS is required", async () => {
  await using fixture = new C2sFixture();
  const peer = fixture.connect({ isEncrypted: false });
  peer.send(HEADER);
  const features = await peer.expect(/<stream:features>.*<\/stream:features>/s);
  assert.ok(!features[0].includes(SASL2));
  await peer.exchange(authenticateXml("alice"), failure2Xml("encryption-required"));
});
