import assert from "node:assert/strict";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import type { C2sFixture } from "./testing/c2s_fixture.ts";
import {
  A,
  comeBack,
  expectMessages,
  manage,
  message,
  metric,
  quiet,
  R,
  resume,
  send,
  SM,
  until,
} from "./testing/stream_management_fixture.ts";

const STREAMS = "urn:ietf:params:xml:ns:xmpp-streams";
const REFUSED = "<stream:error><not-well-formed xmlns='" + STREAMS + "'/></stream:error>";
const RESUMED = (h: number) => new RegExp(`^<resumed xmlns='${SM}' [^>]*h='${h}'[^>]*/>`);
const GIVEN_UP =
  /^<message from='alice@example.com\/home' [^>]*id='bad' type='error'><error type='modify'><not-acceptable .*?<\/message>/;

const givenUp = (fixture: C2sFixture) => metric(fixture, "xmpp_sm_given_up_total");

/** Cuts the connection, and reconnects as a client that has handled `h` stanzas. */
async function again(
  fixture: C2sFixture,
  { peer, id, h }: { readonly peer: RawPeer; readonly id: string; readonly h: number },
): Promise<RawPeer> {
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const back = await comeBack(fixture);
  back.send(resume(id, h));
  await back.expectNext(RESUMED(0));
  return back;
}

/**
 * Returns a client that has twice lost its stream with everything it was sent, and has handled `h`
 * stanzas.
 */
async function warned(fixture: C2sFixture, h: number, ...ids: string[]) {
  const managed = await manage(fixture);
  send(fixture, ...ids);
  await expectMessages(managed.peer, ...ids);
  const once = await again(fixture, { ...managed, h });
  await expectMessages(once, ...ids.slice(h));
  await once.expectNext(R);
  const peer = await again(fixture, { ...managed, peer: once, h });
  return { peer, id: managed.id };
}

Deno.test("a stanza that ends three streams alone is answered with an error, and the rest delivered", async () => {
  await using fixture = quiet();
  const bob = await fixture.login("bob", "x");
  let { peer, id } = await warned(fixture, 1, "1", "bad", "3", "4", "5");
  for (let streams = 0; streams < 3; streams++) {
    assert.equal(givenUp(fixture), 0);
    await expectMessages(peer, "bad");
    await peer.expectNext(R);
    peer = await again(fixture, { peer, id, h: 1 });
  }
  await bob.expectNext(GIVEN_UP);
  assert.equal(givenUp(fixture), 1);
  const lines = fixture.log.named("sm.given-up");
  assert.deepEqual(lines.map(({ fields }) => fields), [{
    jid: "alice@example.com/home",
    from: "bob@example.com/x",
    kind: "message",
    stanzaBytes: message("bad").stanza.bytes.length,
    streams: 3,
  }]);
  await expectMessages(peer, "3");
  await peer.expectNext(R);
  peer.send(A(2));
  await expectMessages(peer, "4", "5");
  await peer.expectNext(R);
  peer.send(A(4));
  send(fixture, "6", "7", "8");
  await expectMessages(peer, "6", "7", "8");
  assert.equal(givenUp(fixture), 1);
});

Deno.test("a stanza is not suspected when the client goes later than suspectWithinMs after it", async () => {
  await using fixture = quiet({ management: { suspectWithinMs: 2000 } });
  let { peer, id } = await warned(fixture, 0, "1", "2");
  for (let streams = 0; streams < 6; streams++) {
    await expectMessages(peer, "1");
    await peer.expectNext(R);
    fixture.clock.advance(2000);
    peer = await again(fixture, { peer, id, h: 0 });
  }
  await expectMessages(peer, "1");
  await peer.expectNext(R);
  peer.send(A(1));
  await expectMessages(peer, "2");
  assert.equal(givenUp(fixture), 0);
});

Deno.test("a stanza that the client has handled is not suspected", async () => {
  await using fixture = quiet();
  const ids = ["1", "2", "3", "4", "5", "6"];
  let { peer, id } = await warned(fixture, 0, ...ids);
  for (const [index, each] of ids.entries()) {
    await expectMessages(peer, each);
    await peer.expectNext(R);
    peer = await again(fixture, { peer, id, h: index + 1 });
  }
  assert.equal(givenUp(fixture), 0);
  assert.equal(fixture.rerouted.length, 0);
});

Deno.test("a client that was lost once still gets everything at once", async () => {
  await using fixture = quiet();
  const managed = await manage(fixture);
  send(fixture, "1", "2", "3");
  await expectMessages(managed.peer, "1", "2", "3");
  const peer = await again(fixture, { ...managed, h: 0 });
  await expectMessages(peer, "1", "2", "3");
});

Deno.test("a stanza that new sessions refuse is answered with an error at the third stream error", async () => {
  await using fixture = quiet();
  const bob = await fixture.login("bob", "x");
  for (let streams = 1; streams <= 3; streams++) {
    const { peer } = await manage(fixture);
    fixture.route(message("bad"));
    await expectMessages(peer, "bad");
    peer.send(REFUSED + "</stream:stream>");
    await peer.expectClosed();
    if (streams === 3) await bob.expectNext(GIVEN_UP);
    else {await bob.expectNext(
        /^<message [^>]*id='bad' [^>]*><error [^>]*><service-unavailable .*?<\/message>/,
      );}
  }
  assert.equal(fixture.rerouted.length, 2);
  assert.equal(givenUp(fixture), 1);
});

Deno.test("stanzas sent with a refused stanza are not suspected, and are then sent alone", async () => {
  await using fixture = quiet();
  const { peer } = await manage(fixture);
  send(fixture, "1", "bad", "3");
  await expectMessages(peer, "1", "bad", "3");
  peer.send(REFUSED);
  await peer.expectClosed();
  const next = (await manage(fixture)).peer;
  send(fixture, "1", "bad", "3");
  await expectMessages(next, "1");
  await next.expectNext(R);
  next.send(A(1));
  await expectMessages(next, "bad", "3");
  assert.equal(givenUp(fixture), 0);
});

for (
  const [what, options, error] of [
    ["an error unrelated to stanzas", {}, "conflict"],
    ["no error", {}, undefined],
    ["a refusal, where maxStreamEnds is 0,", { maxStreamEnds: 0 }, "not-well-formed"],
  ] as const
) {
  Deno.test(`a stream that ends with ${what} counts against no stanza`, async () => {
    await using fixture = quiet({ management: options });
    const text = error === undefined
      ? ""
      : `<stream:error><${error} xmlns='${STREAMS}'/></stream:error>`;
    for (let streams = 1; streams <= 4; streams++) {
      const { peer } = await manage(fixture);
      fixture.route(message("bad"));
      await expectMessages(peer, "bad");
      fixture.clock.advance(10_000);
      peer.send(`${text}</stream:stream>`);
      await peer.expectClosed();
      await until(() => fixture.rerouted.length === streams);
    }
    assert.equal(givenUp(fixture), 0);
  });
}
