import assert from "node:assert/strict";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import { stanzaId } from "../stanza/stanza_attributes.ts";
import { bind } from "./testing/c2s_fixture.ts";
import {
  A,
  comeBack,
  expectEnd,
  expectMessages,
  FAILED,
  HOME,
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

Deno.test("a resumed client gets what it missed, in order and once", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  peer.send("<message id='m1' to='carol@example.com'/>");
  await peer.expectNext(/^<message [^>]*type='error'>.*?<\/message>/);
  send(fixture, "1", "2");
  await expectMessages(peer, "1", "2");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  assert.deepEqual(fixture.closed, []);
  const [three] = send(fixture, "3");
  const again = await comeBack(fixture);
  // It has handled the error and the first message.
  await again.exchange(resume(id, 2), `<resumed xmlns='${SM}' previd='${id}' h='1'/>`);
  await expectMessages(again, "2", "3");
  await again.expectNext(R);
  again.send(A(4) + R);
  await again.expectNext(A(1));
  assert.ok(three!.isSettled);
  again.send("<message id='m2' to='carol@example.com'/>");
  await again.expect("</message>");
  await again.exchange(R, A(2));
  assert.equal(metric(fixture, "xmpp_sm_resumed_total"), 1);
  assert.deepEqual(fixture.opened, [HOME]);
});

Deno.test("a client gets a stanza as its node has made it for it, also when it gets it again", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  const lent = message("lent");
  const { stanza: told } = message("told");
  assert.equal(fixture.registry.deliver(told, lent), "delivered");
  await expectMessages(peer, "told");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='0'/>`);
  await expectMessages(again, "told");
  again.send(A(1));
  await until(() => lent.isSettled);
});

Deno.test("a stream that is still open is closed when its session is resumed", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  send(fixture, "1");
  await expectMessages(peer, "1");
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='0'/>`);
  await expectMessages(again, "1");
  await expectEnd(peer, "<conflict ");
  send(fixture, "2");
  await again.expectNext(R);
  await expectMessages(again, "2");
  assert.deepEqual([fixture.opened, fixture.closed], [[HOME], []]);
});

Deno.test("another account learns nothing of a stream, and the session stays", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  const mallory = await comeBack(fixture, "bob");
  await mallory.exchange(resume(id, 0), FAILED("item-not-found"));
  await bind(mallory, "x");
  await peer.exchange(R, A(0));
  peer.send("</stream:stream>");
  await peer.expectClosed();
  const bob = await comeBack(fixture, "bob");
  await bob.exchange(resume(id, 0), FAILED("item-not-found"));
  const failures = (reason: string) => metric(fixture, "xmpp_sm_resume_failures_total", { reason });
  assert.deepEqual([failures("other-account"), failures("unknown")], [1, 1]);
});

Deno.test("a stream id of another server is answered item-not-found, and the client binds", async () => {
  await using here = quiet();
  await using there = quiet();
  const { peer, id } = await manage(there);
  const alice = await comeBack(here);
  await alice.exchange(resume(id, 0), FAILED("item-not-found"));
  assert.equal(await bind(alice, "home"), HOME);
  await peer.exchange(R, A(0));
});

Deno.test("a resume with too high an h ends that stream, and the session keeps waiting", async () => {
  await using fixture = quiet();
  const { peer, id } = await manage(fixture);
  send(fixture, "1");
  await expectMessages(peer, "1");
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const liar = await comeBack(fixture);
  liar.send(resume(id, 2));
  await expectEnd(liar, `<handled-count-too-high xmlns='${SM}' h='2' send-count='1'/>`);
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='0'/>`);
  await expectMessages(again, "1");
});

Deno.test("a resumed client gets an h that covers every accepted stanza, so that it repeats none", async () => {
  await using fixture = quiet({ sink: { accept: () => {} } });
  const { peer, id } = await manage(fixture);
  peer.send(`<message to='b@x'/><message to='b@x'/>${R}`);
  await peer.expectNext(A(0));
  peer.cut();
  await until(() => metric(fixture, "xmpp_sm_hibernating_sessions") === 1);
  const again = await comeBack(fixture);
  await again.exchange(resume(id, 0), `<resumed xmlns='${SM}' previd='${id}' h='2'/>`);
  assert.equal(metric(fixture, "xmpp_sm_unprotected_total"), 2);
  await again.exchange(R, A(2));
});

Deno.test("the h of an ended session is reported for staleHMs only", async () => {
  await using fixture = quiet({ management: { staleHMs: 1000 } });
  const { peer, id } = await manage(fixture);
  peer.send("<message to='carol@example.com'/></stream:stream>");
  await peer.expectClosed();
  const early = await comeBack(fixture);
  fixture.clock.advance(999);
  await early.exchange(resume(id, 0), FAILED("item-not-found", " h='1'"));
  fixture.clock.advance(1);
  await early.exchange(resume(id, 0), FAILED("item-not-found"));
});

Deno.test("a client that failed to resume counts as resending for a while", async () => {
  await using fixture = quiet();
  const isResending = async (peer: RawPeer, id: string) => {
    peer.send(`<message to='nobody@example.com' id='${id}'/>`);
    await until(() => fixture.accepted.some((stanza) => stanzaId(stanza) === id));
    return fixture.sources.at(-1)?.isResending;
  };
  const fresh = await fixture.login("bob", "home");
  assert.equal(await isResending(fresh, "1"), false);
  const peer = await comeBack(fixture);
  await peer.exchange(resume("0".repeat(32), 0), FAILED("item-not-found"));
  await bind(peer, "desk");
  assert.equal(await isResending(peer, "2"), true);
  await fixture.clock.advanceAsync(60_000);
  assert.equal(await isResending(peer, "3"), false);
});

Deno.test("without resumption a lost connection ends the session at once", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  await alice.exchange(`<enable xmlns='${SM}'/>`, `<enabled xmlns='${SM}'/>`);
  send(fixture, "1");
  await expectMessages(alice, "1");
  alice.cut();
  await until(() => fixture.rerouted.length === 1);
  assert.deepEqual(fixture.closed, [HOME]);
});
