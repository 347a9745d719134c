import assert from "node:assert/strict";
import {
  decodeHave,
  detailsFrames,
  FRAME_TYPE,
  haveFrame,
  queueFrame,
  sessionFrame,
} from "../wire/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { a, expectMessages, failed, HOME, message, resume, TestNode } from "./testing/nodes.ts";
import { TestLink } from "./testing/test_link.ts";
import { Nodes, settle, sleepAt } from "./testing/linked_nodes.ts";

Deno.test("a datacenter that claims another's process number cannot end or see its transfers", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1", "m2");
  const again = await two.resume(id, 0);
  await expectMessages(again, "m1", "m2");
  await nodes.pass(200);
  const forged = new TestLink(three, one, new Map([[three, two.process]]));
  const link = forged.endOf(one);
  const have = { transfer: 1, received: 2, settled: 2 };
  for (const step of ["more", "taken", "decline"] as const) {
    const frame = haveFrame({ ...have, step });
    one.traffic.frame(link, FRAME_TYPE.have, frame, 0, frame.length);
  }
  nodes.between.cut();
  await nodes.pass(200);
  assert.deepEqual(forged.sent, [], "the transfer does not go on over its link");
  forged.cut(true);
  await nodes.pass(200);
  assert.deepEqual([one.settled, one.rerouted], [[], []]);
  nodes.link(one, two);
  again.send(a(2));
  await nodes.pass(1_000);
  assert.deepEqual([one.settled, one.rerouted], [[1, 2], []]);
});

Deno.test("a session is asked for nowhere when two datacenters claim its process", async () => {
  await using nodes = new Nodes(3);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const forged = new TestLink(three, two, new Map([[three, one.process]]));
  const asked = await two.greet();
  await asked.exchange(resume(id, 0), failed());
  assert.deepEqual([nodes.between.sent, forged.sent], [[], []], "its id is sent to no node");
  forged.cut();
  const again = await two.resume(id, 0);
  await expectMessages(again, "m1");
});

Deno.test("a session of our own datacenter is asked for there, even if another claims its process", async () => {
  await using nodes = new Nodes(3, [{ host: "dc1.example.com" }, { host: "dc1.example.com" }]);
  const [one, two, three] = nodes.all as [TestNode, TestNode, TestNode];
  const id = await sleepAt(one, "m1");
  const forged = new TestLink(three, two, new Map([[three, one.process]]));
  const again = await two.resume(id, 0);
  await expectMessages(again, "m1");
  assert.deepEqual(forged.sent, []);
});

Deno.test("another account gets no session, and no information", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  const bob = await two.greet("bob");
  await bob.exchange(resume(id, 0), failed());
  assert.equal(one.session?.isHibernating, false);
});

Deno.test("a session of a local-host user is given to no other datacenter", async () => {
  const asked: string[] = [];
  const mayHave = (account: string, host: string) => asked.push(`${account} ${host}`) < 1;
  await using nodes = new Nodes(2, [{ mayHave }]);
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  const alice = await two.greet();
  await alice.exchange(resume(id, 0), failed());
  assert.equal(one.session?.isHibernating, false);
  assert.deepEqual(asked, ["alice@example.com dc2.example.com"]);
});

Deno.test("a client that claims to have handled too much loses its stream, and not its session", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { peer, id } = await one.enter();
  one.deliver("m1");
  await expectMessages(peer, "m1");
  const again = await two.greet();
  again.send(resume(id, 2));
  assert.match(await again.expectClosed(), /<handled-count-too-high [^>]*h='2' send-count='1'/);
  assert.equal(one.session?.isHibernating, false);
});

Deno.test("a stanza whose sender the other node must not speak for is refused", async () => {
  await using nodes = new Nodes();
  const [one, two] = nodes.all as [TestNode, TestNode];
  const id = await sleepAt(one);
  one.registry.deliver(message("forged", "eve@forged.example/x"));
  one.deliver("m1");
  const again = await two.resume(id, 0);
  await expectMessages(again, "m1");
  assert.equal(two.metric("causeway_resumed_elsewhere_refused_total"), 1);
});

/** Asks at `two`, and lets the test answer for `one`, whose own answers are lost. */
async function imitate(nodes: Nodes, answers: readonly Uint8Array[]): Promise<string> {
  const [one, two] = nodes.all as [TestNode, TestNode];
  const { id } = await one.enter();
  nodes.between.drops = (from) => from === one;
  const again = await two.greet();
  again.send(resume(id, 0));
  await settle();
  const link = nodes.between.endOf(two);
  for (const frame of answers) two.traffic.frame(link, frame[4]!, frame, 0, frame.length);
  await nodes.pass(6_000);
  return again.unread;
}

const SESSION = {
  transfer: 1,
  jid: HOME,
  received: 0,
  covered: 0,
  acknowledged: 0,
  resumeTimeoutMs: 1_000,
  resendingMs: 0,
  lang: "",
  priority: undefined,
  presence: new Uint8Array(0),
  hasCarbons: false,
  isNewlyAvailable: false,
  isExact: true,
};

function queueOf(number: number, to = HOME): Uint8Array {
  const stanza = { ...message("m"), to: parseTo(to) };
  const fields = {
    stanza,
    process: 9,
    sequence: 1,
    origin: "dc9.example.com",
    sentAtUs: 0,
    ttl: 1,
    bounces: 0,
    mayBeRepeat: false,
  };
  return queueFrame({
    transfer: 1,
    isEnd: true,
    isCaughtUp: false,
    areArchived: false,
    stanzas: [{ number, fields }],
  });
}

function parseTo(text: string) {
  return { ...message("m"), to: parseJid(text) }.to;
}

for (
  const [what, answers] of [
    ["the session of another account", [sessionFrame({ ...SESSION, jid: "bob@example.com/x" })]],
    ["a session without a resource", [sessionFrame({ ...SESSION, jid: "alice@example.com" })]],
    ["a queue before the session", [queueOf(1)]],
    ["a queue with a gap", [sessionFrame(SESSION), queueOf(2)]],
    ["a stanza for somebody else", [sessionFrame(SESSION), queueOf(1, "bob@example.com/x")]],
  ] as const
) {
  Deno.test(`a node that sends ${what} is refused`, async () => {
    await using nodes = new Nodes();
    const unread = await imitate(nodes, answers);
    assert.match(unread, /<failed .*<item-not-found /);
    assert.equal(nodes.all[1]!.session, undefined);
  });
}

Deno.test("a session with 16384 details is taken, and none with more", async () => {
  const directed = (count: number) =>
    Array.from(
      { length: count },
      (_, i) => ({ kind: "directed" as const, jid: `a@b.example/${i}` }),
    );
  for (const [count, answered] of [[16_384, "commit"], [16_385, "decline"]] as const) {
    await using nodes = new Nodes();
    const steps: string[] = [];
    nodes.between.heard = (frame) => {
      if (frame[4] === FRAME_TYPE.have) steps.push(decodeHave(frame, 0, frame.length).step);
    };
    const empty = {
      transfer: 1,
      isEnd: true,
      isCaughtUp: false,
      areArchived: false,
      stanzas: [],
    };
    await imitate(nodes, [
      sessionFrame(SESSION),
      ...detailsFrames(1, directed(count)),
      queueFrame(empty),
    ]);
    assert.equal(steps[0], answered, `${count}`);
  }
});
