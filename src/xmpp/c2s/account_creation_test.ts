import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import type { AccountCreation } from "./c2s_stream_deps.ts";
import type { CreationOutcome } from "./negotiation_events.ts";
import { authenticate, C2sFixture, HEADER, plainOf } from "./testing/c2s_fixture.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";

/** A maker of accounts that records its calls. */
class Maker implements AccountCreation {
  readonly made: string[] = [];
  outcome: CreationOutcome = "made";
  /** Set to make it wait. */
  gate: Promise<void> | undefined;

  mayCreate(host: string): boolean {
    return host === "example.com";
  }

  async create(
    { username, password, host }: { username: string; password: string; host: string },
  ): Promise<CreationOutcome> {
    await this.gate;
    this.made.push(`${username}@${host} ${password}`);
    return this.outcome;
  }
}

const query = (content: string, type = "set", id = "r1") =>
  `<iq type='${type}' id='${id}'><query xmlns='jabber:iq:register'>${content}</query></iq>`;
const ACCOUNT = query("<username>dave &amp; co</username><password>se&lt;cret</password>");

/** Sends a text, and waits for what matches. */
async function ask(peer: RawPeer, text: string, pattern: string | RegExp): Promise<string> {
  peer.send(text);
  return (await peer.expect(pattern))[0];
}

function open(peer: RawPeer): Promise<string> {
  return ask(peer, HEADER, /<stream:features>.*<\/stream:features>/);
}

Deno.test("C2sStream lets a client make an account inside TLS, and log in then", async () => {
  const creation = new Maker();
  await using fixture = new C2sFixture({ creation });
  const peer = fixture.connect();
  assert.match(await open(peer), /<register xmlns='http:\/\/jabber.org\/features\/iq-register'\/>/);
  await ask(
    peer,
    query("", "get", "r0"),
    /type='result' id='r0' from='example.com'>.*<username\/><password\/><\/query><\/iq>/,
  );
  const gate = Promise.withResolvers<void>();
  creation.gate = gate.promise;
  peer.send(ACCOUNT + query("<username>erin</username>", "set", "r2"));
  gate.resolve();
  await peer.expectNext("<iq id='r1' from='example.com' type='result'/>");
  await peer.expectNext(
    /<iq id='r2' [^>]*type='error'><error type='modify'><not-acceptable .*<\/iq>/,
  );
  assert.deepEqual(creation.made, ["dave & co@example.com se<cret"]);
  await ask(peer, plainOf("alice"), "<success");
});

Deno.test("C2sStream answers with the error that making the account gave", async () => {
  const creation = new Maker();
  creation.outcome = "conflict";
  await using fixture = new C2sFixture({ creation });
  const peer = fixture.connect();
  await open(peer);
  await ask(peer, ACCOUNT, /id='r1'.*type='error'.*<conflict .*<\/iq>/);
});

Deno.test("C2sStream ends the stream of a client that may not make an account", async () => {
  for (
    const [what, options, isEncrypted] of [
      ["registration is off", {}, true],
      ["no TLS", { creation: new Maker(), allowPlaintext: true }, false],
    ] as const
  ) {
    await using fixture = new C2sFixture(options);
    const peer = fixture.connect({ isEncrypted });
    assert.doesNotMatch(await open(peer), /iq-register/, what);
    await ask(peer, ACCOUNT, "<not-authorized ");
    await peer.expectClosed();
  }
});

Deno.test("C2sStream takes no more than ten requests to make an account", async () => {
  await using fixture = new C2sFixture({ creation: new Maker() });
  const peer = fixture.connect();
  await open(peer);
  for (let i = 0; i < 10; i++) await ask(peer, query("", "get", `r${i}`), "</iq>");
  await ask(peer, ACCOUNT, "<policy-violation ");
});

Deno.test("C2sStream counts an attempt to make an account for the rate of logins", async () => {
  const creation = new Maker();
  const rates = new EdgeRates({ loginsPerAddress: { perSec: 0.001, burst: 1 } }, new ManualClock());
  await using fixture = new C2sFixture({ creation, rates });
  const peer = fixture.connectFrom("192.0.2.1:1");
  await open(peer);
  await ask(peer, ACCOUNT, "type='result'/>");
  await ask(peer, ACCOUNT, /<resource-constraint .*<\/iq>/);
  assert.equal(creation.made.length, 1);
});

Deno.test("C2sStream refuses a request to make an account once its client is logged in", async () => {
  await using fixture = new C2sFixture({ creation: new Maker() });
  const peer = fixture.connect();
  await authenticate(peer, "alice");
  await ask(peer, ACCOUNT, "<not-authorized ");
});

Deno.test("C2sStream survives an outcome for which there is no answer", async () => {
  const creation = new Maker();
  creation.outcome = Symbol("bug") as unknown as CreationOutcome; // nothing can write it
  await using fixture = new C2sFixture({ creation });
  const peer = fixture.connect();
  await open(peer);
  await ask(peer, ACCOUNT, "<internal-server-error ");
});
