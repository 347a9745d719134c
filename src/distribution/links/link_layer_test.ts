import assert from "node:assert/strict";
import type { Envelope, OpenLink } from "../mod.ts";
import { ackFrame, contextFrame, decodeContext, FRAME_TYPE, stanzaFrame } from "../wire/mod.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import { rawListener, RawPeer, testHello } from "./testing/peers.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";

function numbers(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

Deno.test("LinkLayer carries stanzas both ways over TLS, in order, and settles them", async () => {
  using authority = await TestAuthority.create();
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1) });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc1.links.listen();
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc2.endpoints.set(DC1, [dc1.address]);
  dc1.links.start();
  dc2.links.start();
  const settler = new TestSettler();
  for (const i of numbers(1, 1000)) dc1.links.send(DC2, testEnvelope(i, { settler }));
  dc2.links.send(DC1, testEnvelope(1, { from: "bob@example.com/desk", origin: DC2 }));
  await dc1.until(() => settler.settled.length === 1000, "all are settled");
  await dc1.until(() => dc1.received.length === 1, "the answer is there");
  assert.deepEqual(dc2.sequences, numbers(1, 1000));
  assert.deepEqual(settler.settled, numbers(1, 1000));
  const first = dc2.received[0]!;
  assert.equal(first.stanza.from.text, "alice@example.com/phone");
  assert.equal(first.origin, DC1);
  assert.equal(first.ttl, 4);
  assert.equal(dc1.metrics.value(`outgoing_messages_total ${DC2}`), 1000);
  assert.equal(dc2.metrics.value(`incoming_messages_total ${DC1}`), 1000);
  assert.equal(dc2.metrics.value(`incoming_transfer_time_seconds ${DC1}`), 1000);
  assert.equal(dc2.metrics.value(`incoming_first_packet_total ${DC1}`), 1);
  assert.equal(dc2.metrics.value("incoming_established_total"), 1);
  assert.equal(dc1.metrics.value(`outgoing_established_total ${DC2}`), 1);
  assert.ok(dc1.metrics.value(`outgoing_queue_time_seconds ${DC2}`) > 0);
  assert.equal(dc1.links.snapshot().hosts[0]!.endpoints[0]!.lanes[0]!.items, 0);
});

Deno.test("LinkLayer.remove() ends the attempts to link to a datacenter, and gives back its stanzas", async () => {
  await using dc1 = new TestNode("dc1.example.com", { tls: undefined });
  await using dc2 = new TestNode("dc2.example.com", { tls: undefined });
  await Promise.all([dc1.links.listen(), dc2.links.listen()]);
  dc1.endpoints.set("dc2.example.com", [dc2.address]);
  dc1.links.start();
  dc1.links.learn("dc2.example.com");
  dc1.links.learn("dc9.example.com");
  dc1.links.send("dc9.example.com", testEnvelope(1));
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "dc2 is linked");
  dc1.links.remove("dc2.example.com");
  dc1.links.remove("dc8.example.com");
  assert.equal(dc1.links.isOtherLocalHost("dc9.example.com"), true);
  dc1.links.remove("dc9.example.com");
  const hosts = dc1.links.snapshot().hosts.map(({ host }) => host);
  assert.deepEqual(hosts, ["dc2.example.com"], "a linked datacenter stays");
  assert.equal(dc1.links.isOtherLocalHost("dc9.example.com"), false);
  assert.deepEqual(dc1.returned.map(({ reason }) => reason), ["peer-gone"]);
});

Deno.test("LinkLayer measures one wait for each stanza that it counts", async () => {
  await using dc1 = new TestNode("dc1.example.com", { tls: undefined });
  await using dc2 = new TestNode("dc2.example.com", { tls: undefined });
  await Promise.all([dc1.links.listen(), dc2.links.listen()]);
  dc1.endpoints.set("dc2.example.com", [dc2.address]);
  dc1.links.start();
  for (let number = 1; number <= 100; number++) {
    dc1.links.send("dc2.example.com", testEnvelope(number));
  }
  await dc2.until(() => dc2.received.length === 100, "all are there");
  for (const name of ["outgoing_messages_total", "outgoing_queue_time_seconds"]) {
    assert.equal(dc1.metrics.value(`${name} dc2.example.com`), 100, name);
  }
});

Deno.test("LinkLayer takes a domain for a local host once it has proven that, not on a peer's claim", async () => {
  using authority = await TestAuthority.create();
  const [bank, stranger] = ["bank.example.net", "stranger.example.net"];
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1) });
  await using dc2 = new TestNode(bank, { tls: await authority.holder(bank) });
  await Promise.all([dc1.links.listen(), dc2.links.listen()]);
  const raw = await RawPeer.dial(dc1.address, await authority.holder(DC2));
  const forged = (number: number) =>
    stanzaFrame(testEnvelope(number, { from: `ceo@${bank}`, origin: bank }), number);
  raw.send(testHello());
  for (const host of [bank, stranger]) {
    dc1.links.call(host);
    dc1.links.send(host, testEnvelope(1));
    assert.equal(dc1.links.isOtherLocalHost(host), false, host);
  }
  raw.send(forged(1));
  await dc1.until(() => dc1.metrics.value(`incoming_refused_total ${DC2}`) === 1, "it is refused");
  for (const host of [bank, stranger]) {
    dc1.endpoints.set(host, [dc2.address]);
    dc1.links.call(host);
  }
  await dc1.until(() => dc1.links.isOtherLocalHost(bank), "the bank has proven it");
  await dc1.until(
    () => dc1.metrics.value(`outgoing_dials_failed_total ${stranger}`) > 0,
    "nobody else",
  );
  assert.equal(dc1.links.isOtherLocalHost(stranger), false);
  raw.send(forged(2));
  await dc1.until(() => dc1.received.length === 1, "its stanza has come another way");
  raw.close();
  await raw.ended;
});

Deno.test("LinkLayer.isNowhere() is true for a process that linked to us and died before we linked to it", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined });
  const dc2 = new TestNode(DC2, { tls: undefined });
  await Promise.all([dc1.links.listen(), dc2.links.listen()]);
  const { address, process } = dc2;
  dc2.endpoints.set(DC1, [dc1.address]);
  dc2.links.start();
  await dc1.until(() => dc1.links.isOtherLocalHost(DC2), "dc2 is linked");
  dc1.endpoints.set(DC2, [address]);
  await dc2.links.close();
  assert.equal(dc1.links.isNowhere(DC2, process), false, "no endpoint was dialled yet");
  dc1.links.call(DC2);
  await dc1.until(() => dc1.links.isNowhere(DC2, process), "its endpoint refuses");
  assert.equal(dc1.links.hasEnded(DC2, process), false, "no link has reached the process there");
  await using again = new TestNode(DC2, { tls: undefined, listen: [address] });
  await again.links.listen();
  await dc1.until(() => !dc1.links.isNowhere(DC2, again.process), "another process has its place");
});

Deno.test("LinkLayer.remove() keeps a datacenter that is linked to us", async () => {
  await using dc1 = new TestNode(DC1, { tls: undefined });
  await using dc2 = new TestNode(DC2, { tls: undefined });
  await Promise.all([dc1.links.listen(), dc2.links.listen()]);
  dc2.endpoints.set(DC1, [dc1.address]);
  dc1.links.call(DC2); // its endpoint refuses
  dc2.links.start();
  await dc1.until(() => dc1.links.isOtherLocalHost(DC2), "dc2 is linked");
  dc1.links.remove(DC2);
  assert.equal(dc1.links.isOtherLocalHost(DC2), true);
});

Deno.test("LinkLayer tells the next node of a stanza's trace before the stanza comes", async () => {
  const contexts: string[] = [];
  const traffic = {
    accepted() {},
    dialled() {},
    frame() {},
    ended() {},
    context: ({ host }: OpenLink, buffer: Uint8Array, start: number, end: number) => {
      const { sequence, spanId } = decodeContext(buffer, start, end);
      contexts.push(`${host} ${sequence} ${spanId} behind ${dc2.received.length}`);
    },
  };
  await using dc1 = new TestNode(DC1, { tls: undefined, listen: [] });
  await using dc2: TestNode = new TestNode(DC2, { tls: undefined, traffic });
  await dc2.links.listen();
  dc1.endpoints.set(DC2, [dc2.address]);
  dc1.links.start();
  for (let sequence = 1; sequence <= 3; sequence++) dc1.links.send(DC2, traced(sequence));
  await dc2.until(() => dc2.received.length === 3, "all are there");
  assert.deepEqual(contexts, [1, 2, 3].map((sequence) => `${DC1} ${sequence} ${SPAN} behind 0`));
});

Deno.test("LinkLayer sends no context of a trace to a peer of an older version", async () => {
  const types = async (minorVersion: number) => {
    const peers: RawPeer[] = [];
    const grant = ackFrame({ received: 0, settled: 0, creditBytes: 1 << 20, ranges: [] });
    const old = await rawListener(undefined, (peer) => {
      peers.push(peer);
      peer.greeted = ({ lane }) => peer.send(testHello({ lane, minorVersion }), grant);
    });
    await using dc1 = new TestNode(DC1, { tls: undefined, listen: [] });
    dc1.endpoints.set(DC2, [{ host: "127.0.0.1", port: old.port }]);
    dc1.links.start();
    dc1.links.send(DC2, traced(1));
    await dc1.until(() => peers[0]?.types.includes(FRAME_TYPE.stanza) === true, "the stanza comes");
    await old.close();
    await dc1.links.close();
    await Promise.all(peers.map((peer) => peer.ended));
    return peers[0]!.types.filter((type) =>
      type === FRAME_TYPE.stanza || type === FRAME_TYPE.context
    );
  };
  assert.deepEqual(await types(4), [FRAME_TYPE.stanza]);
  assert.deepEqual(await types(5), [FRAME_TYPE.context, FRAME_TYPE.stanza]);
});

const SPAN = "cd".repeat(8);

function traced(sequence: number): Envelope {
  const envelope = testEnvelope(sequence);
  const context = { traceId: "ab".repeat(16), spanId: SPAN };
  const carried = contextFrame({ process: 77, sequence, isSampled: true, ...context });
  envelope.trace = { carried, note() {}, settled() {} };
  return envelope;
}
