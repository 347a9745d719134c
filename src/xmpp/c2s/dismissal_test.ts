import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import type { RawPeer } from "../stream/testing/raw_peer.ts";
import { EdgeRates } from "../stream/edge_rates.ts";
import type { Fate } from "../stanza/fate.ts";
import type { FixtureOptions } from "./testing/c2s_fixture.ts";
import { C2sFixture, HEADER } from "./testing/c2s_fixture.ts";

const SM = "urn:xmpp:sm:3";
const FOOTER = "</stream:stream>";
const SHUTDOWN =
  "<stream:error><system-shutdown xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error>" +
  FOOTER;
const WITHIN_MS = 1000;

/** Builds a message to a nonexistent user. */
const message = (id: string) => `<message to='zoe@example.com' id='${id}'/>`;

/** Returns a fixture whose clock stands still until moved. */
function quiet(options: FixtureOptions = {}): C2sFixture & { clock: ManualClock } {
  // Made with the clock that its type claims.
  return new C2sFixture({ clock: new ManualClock(), ...options }) as C2sFixture & {
    clock: ManualClock;
  };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 50; i++) await Promise.resolve();
}

/** Returns the ids of the accepted messages. */
function messages(fixture: C2sFixture): string[] {
  return fixture.accepted.filter(({ kind }) => kind === "message").map(({ bytes }) =>
    / id='([^']*)'/.exec(new TextDecoder().decode(bytes))![1]!
  );
}

/** Dismisses all clients; the result of `hearOut` follows later. */
async function dismiss(fixture: C2sFixture): Promise<{ readonly heardOut: Promise<number> }> {
  await fixture.listener.dismiss("system-shutdown");
  return { heardOut: fixture.listener.hearOut(WITHIN_MS) };
}

async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  let isOver = false;
  void promise.then(() => {
    isOver = true;
  });
  await settle();
  return isOver;
}

Deno.test("C2sListener.dismiss() takes what a client writes until the client ends its stream", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  const { heardOut } = await dismiss(fixture);
  await alice.expectNext(SHUTDOWN);
  alice.send(message("1"));
  await settle();
  assert.deepEqual(messages(fixture), ["1"]);
  assert.equal(await hasEnded(heardOut), false);
  alice.send(`${message("2")}${FOOTER}${message("3")}`);
  assert.equal(await heardOut, 0);
  assert.deepEqual(messages(fixture), ["1", "2"]);
  assert.equal(await alice.expectClosed(), "", "nothing after our end");
  assert.deepEqual(
    fixture.closed,
    ["alice@example.com/home"],
    "once, and before hearOut had finished",
  );
});

Deno.test("C2sListener.dismiss() takes what was unread while the client was held back", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  alice.send(message("1"));
  await settle();
  const [source] = fixture.sources;
  source!.pause();
  alice.send(`${message("2")}${message("3")}${FOOTER}`);
  await settle();
  assert.deepEqual(messages(fixture), ["1"]);
  const { heardOut } = await dismiss(fixture);
  assert.equal(await hasEnded(heardOut), false, "still held back");
  source!.resume();
  assert.equal(await heardOut, 0);
  assert.deepEqual(messages(fixture), ["1", "2", "3"]);
});

Deno.test("C2sListener.hearOut() cuts a client that goes on writing, and a silent one", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  const bob = await fixture.login("bob", "home");
  const { heardOut } = await dismiss(fixture);
  for (const peer of [alice, bob]) await peer.expectNext(SHUTDOWN);
  for (let i = 0; i < 10; i++) {
    alice.send(message(`${i}`));
    await settle();
    fixture.clock.advance(WITHIN_MS / 10 - (i === 9 ? 1 : 0));
  }
  assert.equal(await hasEnded(heardOut), false);
  fixture.clock.advance(1);
  assert.equal(await heardOut, 2);
  alice.send(message("late"));
  for (const peer of [alice, bob]) assert.equal(await peer.expectClosed(), "");
  assert.equal(messages(fixture).length, 10);
});

Deno.test("C2sListener.dismiss() keeps the connection until the last stanza is settled", async () => {
  const fates: { readonly fate: Fate | undefined; readonly number: number }[] = [];
  await using fixture = quiet({
    sink: { accept: (_stanza, _source, fate, number = 0) => void fates.push({ fate, number }) },
  });
  const alice = await fixture.login("alice", "home");
  alice.send(message("1"));
  await settle();
  const { heardOut } = await dismiss(fixture);
  alice.send(`${message("2")}${message("3")}${FOOTER}`);
  assert.equal(await hasEnded(heardOut), false);
  assert.deepEqual(
    fates.map(({ fate }) => fate?.isSentOnce),
    [undefined, true, true],
    "nobody sends them again",
  );
  const [, first, second] = fates;
  second!.fate!.settle(second!.number);
  assert.equal(await hasEnded(heardOut), false);
  assert.equal(alice.isClosed, false);
  first!.fate!.held!(first!.number);
  assert.equal(await heardOut, 0);
  await alice.expectNext(SHUTDOWN);
  assert.equal(await alice.expectClosed(), "");
});

Deno.test("C2sListener.hearOut() also cuts a client whose last stanza is never settled", async () => {
  await using fixture = quiet({ sink: { accept() {} } });
  const alice = await fixture.login("alice", "home");
  const { heardOut } = await dismiss(fixture);
  alice.send(message("1"));
  await settle();
  fixture.clock.advance(WITHIN_MS - 1);
  alice.send(FOOTER);
  await settle();
  fixture.clock.advance(1);
  assert.equal(await heardOut, 1);
  await alice.expect(SHUTDOWN);
  await alice.expectClosed();
});

Deno.test("C2sListener.hearOut() does not wait for a client whose connection is gone", async () => {
  await using fixture = quiet();
  const [alice, bob] = [await fixture.login("alice", "home"), await fixture.login("bob", "home")];
  const { heardOut } = await dismiss(fixture);
  alice.cut();
  bob.close();
  assert.equal(await heardOut, 0);
  assert.deepEqual(fixture.closed, ["alice@example.com/home", "bob@example.com/home"]);
});

Deno.test("C2sListener.dismiss() ends streams without a session at once", async () => {
  await using fixture = quiet();
  const stranger = fixture.connect();
  stranger.send(HEADER);
  await stranger.expect("</stream:features>");
  const { heardOut } = await dismiss(fixture);
  assert.equal(await heardOut, 0);
  await stranger.expectNext(SHUTDOWN);
  await stranger.expectClosed();
});

Deno.test("C2sListener.dismiss() takes maxLateBytes from a client, and not one more", async () => {
  const text = message("1");
  for (const surplus of [0, 1]) {
    await using fixture = quiet({ limits: { maxLateBytes: text.length + FOOTER.length } });
    const alice = await fixture.login("alice", "home");
    const { heardOut } = await dismiss(fixture);
    alice.send(text);
    await settle();
    alice.send(" ".repeat(surplus) + message("2").slice(0, FOOTER.length));
    assert.equal(await hasEnded(heardOut), surplus === 1);
    const hits = { edge: "c2s", limit: "late-bytes" };
    assert.equal(fixture.metrics.value("xmpp_limit_hits_total", hits), surplus);
    assert.deepEqual(messages(fixture), ["1"]);
    alice.close();
    assert.equal(await heardOut, 0);
    await alice.expect(SHUTDOWN);
    assert.equal(await alice.expectClosed(), "");
  }
});

Deno.test("C2sListener.dismiss() sends a last <a/> to a managed client, and takes nothing more from it", async () => {
  await using fixture = quiet({ management: {} });
  const alice = await fixture.login("alice", "home");
  await alice.exchange(`<enable xmlns='${SM}'/>`, `<enabled xmlns='${SM}'/>`);
  alice.send(message("1"));
  await alice.expectNext(/<message .*<\/message>/);
  const { heardOut } = await dismiss(fixture);
  alice.send(`${message("2")}${FOOTER}`);
  assert.equal(await heardOut, 0);
  await alice.expectNext(`<a xmlns='${SM}' h='1'/>${SHUTDOWN}`);
  await alice.expectClosed();
  assert.deepEqual(messages(fixture), ["1"], "she sends the second one again");
});

Deno.test("C2sSession takes nothing after an <enable/> that it can no longer answer", async () => {
  await using fixture = quiet({ management: {} });
  const alice = await fixture.login("alice", "home");
  const { heardOut } = await dismiss(fixture);
  alice.send(`${message("1")}<r xmlns='${SM}'/><enable xmlns='${SM}'/>${message("2")}`);
  assert.equal(await heardOut, 0);
  await alice.expectNext(SHUTDOWN);
  assert.equal(await alice.expectClosed(), "");
  assert.deepEqual(messages(fixture), ["1"]);
});

Deno.test("C2sSession passes on no presence after its end, except subscriptions", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  alice.send("<presence/><presence to='bob@example.com'/>");
  await alice.expect("<presence ");
  const { heardOut } = await dismiss(fixture);
  fixture.accepted.length = 0;
  alice.send(
    "<presence/><presence to='carol@example.com'/><presence to='bob@example.com' type='unavailable'/>" +
      "<presence to='bob@example.com/x' type='subscribe'/><presence type='unavailable'/>" + FOOTER,
  );
  assert.equal(await heardOut, 0);
  assert.deepEqual(fixture.accepted.map(({ type, to }) => `${type} ${to.text}`), [
    "subscribe bob@example.com",
  ]);
});

for (
  const [what, text] of [
    ["a forged from", "<message from='bob@example.com' to='zoe@example.com'/>"],
    ["something unknown", "<nonsense xmlns='x'/>"],
    ["no XML", "<<"],
  ] as const
) {
  Deno.test(`C2sListener.hearOut() reads a client until ${what} and no further`, async () => {
    await using fixture = quiet();
    const alice = await fixture.login("alice", "home");
    const { heardOut } = await dismiss(fixture);
    alice.send(message("1"));
    await settle();
    alice.send(`${text}${message("2")}`);
    assert.equal(await heardOut, 0);
    assert.deepEqual(messages(fixture), ["1"]);
    await alice.expectNext(SHUTDOWN);
    assert.equal(await alice.expectClosed(), "", "no other error after our end");
  });
}

Deno.test("C2sSession writes nothing after its end, whatever the client asks", async () => {
  await using fixture = quiet();
  const alice = await fixture.login("alice", "home");
  const { heardOut } = await dismiss(fixture);
  await alice.expectNext(SHUTDOWN);
  alice.send(
    "<message to='@'/><iq type='set' id='s' to='example.com'>" +
      "<session xmlns='urn:ietf:params:xml:ns:xmpp-session'/></iq>" + message("1"),
  );
  await settle();
  fixture.clock.advance(WITHIN_MS);
  assert.equal(await heardOut, 1);
  assert.equal(await alice.expectClosed(), "");
});

Deno.test("C2sSession keeps to its rate while hearOut reads it, and leaves no timer", async () => {
  const clock = new ManualClock();
  await using fixture = quiet({
    clock,
    rates: new EdgeRates({ stanzasPerAccount: { perSec: 10, burst: 1 } }, clock),
  });
  const alice = await fixture.login("alice", "home");
  const { heardOut } = await dismiss(fixture);
  await sendApart(alice, 5);
  assert.deepEqual(messages(fixture), ["0", "1"], "one at once, and the one that was too many");
  clock.advance(100);
  await settle();
  assert.deepEqual(messages(fixture), ["0", "1", "2"]);
  clock.advance(WITHIN_MS - 100);
  assert.equal(await heardOut, 1);
});

/** Sends messages, each in a chunk of its own. */
async function sendApart(peer: RawPeer, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    peer.send(message(`${i}`));
    await settle();
  }
}
