import assert from "node:assert/strict";
import { randomIncarnation } from "../../base/mod.ts";
import type { TlsContextHolder } from "../../net/mod.ts";
import type { OpenLink } from "../mod.ts";
import { decodeInvalidate, FRAME_TYPE, invalidateFrames } from "../wire/mod.ts";
import { RawPeer, testHello, TestProxy } from "./testing/peers.ts";
import { TestAuthority, testEnvelope, TestNode, TestSettler } from "./testing/kit.ts";
import type { LinkLayerDeps } from "./link_layer.ts";

const DC1 = "dc1.example.com";
const N1 = `node1@${DC1}`;
const N2 = `node2@${DC1}`;

/** Makes the links of one node of dc1. */
function node(
  nodeName: string,
  tls: TlsContextHolder | undefined,
  config: Partial<LinkLayerDeps> = {},
): TestNode {
  return new TestNode(DC1, {
    tls,
    scope: "datacenter",
    identity: {
      globalHost: "example.com",
      localHost: DC1,
      hosts: new Set(["example.com", DC1]),
      nodeName,
      process: randomIncarnation(),
      datacenterId: () => "id of dc1",
    },
    ...config,
  });
}

function numbers(to: number): number[] {
  return Array.from({ length: to }, (_, i) => i + 1);
}

Deno.test("LinkLayer within a datacenter carries stanzas between its nodes, of any sender", async () => {
  using authority = await TestAuthority.create();
  await using one = node(N1, await authority.holder(DC1));
  await using two = node(N2, await authority.holder(DC1));
  await one.links.listen();
  await two.links.listen();
  one.endpoints.set(N2, [two.address]);
  two.endpoints.set(N1, [one.address]);
  one.links.start();
  two.links.start();
  const settler = new TestSettler();
  for (const i of numbers(100)) one.links.send(N2, testEnvelope(i, { settler }));
  two.links.send(N1, testEnvelope(1, { from: "robot.elsewhere.example", origin: "dc9.example" }));
  await one.until(() => settler.settled.length === 100, "all are settled");
  await one.until(() => one.received.length === 1, "the other stanza is there");
  assert.deepEqual(two.sequences, numbers(100));
  const [host] = one.links.snapshot().hosts;
  assert.deepEqual([host!.host, host!.openLinks], [N2, 1]);
  assert.equal(one.links.snapshot().incoming[0]!.node, N2);
  assert.equal(
    one.metrics.value(`outgoing_messages_total ${N2}`),
    0,
    "the mesh metrics count nothing",
  );
});

Deno.test("LinkLayer within a datacenter links back to a node that has linked to it", async () => {
  using authority = await TestAuthority.create();
  await using one = node(N1, await authority.holder(DC1));
  await using two = node(N2, await authority.holder(DC1), {
    hosts: { hosts: () => new Promise(() => {}) }, // it has not read the list yet
  });
  await one.links.listen();
  await two.links.listen();
  one.endpoints.set(N2, [two.address]);
  two.endpoints.set(N1, [one.address]);
  two.links.start();
  one.links.start();
  await two.until(() => two.links.snapshot().hosts[0]?.openLinks === 1, "it has linked back");
});

Deno.test("LinkLayer within a datacenter refuses strangers, and nodes with an unexpected name", async () => {
  using authority = await TestAuthority.create();
  await using one = node(N1, await authority.holder(DC1));
  await one.links.listen();
  one.links.start();
  const refusals = [
    [await authority.holder("dc2.example.com"), testHello(), "identity"],
    [
      await authority.holder("dc2.example.com"),
      testHello({ localHost: DC1, nodeName: N2 }),
      "identity",
    ],
    [await authority.holder(DC1), testHello({ localHost: DC1, nodeName: N1 }), "host-conflict"],
  ] as const;
  for (const [holder, hello, reason] of refusals) {
    const peer = await RawPeer.dial(one.address, holder);
    peer.send(hello);
    await peer.ended;
    assert.equal(peer.goodbye?.reason, reason);
  }
  await using two = node(N2, await authority.holder(DC1));
  two.endpoints.set("node3@dc1.example.com", [one.address]);
  two.links.start();
  await two.until(
    () => two.log.entries.some(({ fields }) => fields?.["reason"] === "identity"),
    "the dialler notices that it has reached another node",
  );
  assert.equal(two.links.snapshot().hosts[0]!.openLinks, 0);
});

Deno.test("LinkLayer within a datacenter gives back at once the stanzas that an ended node has not settled", async () => {
  using authority = await TestAuthority.create();
  await using one = node(N1, await authority.holder(DC1));
  const two = node(N2, await authority.holder(DC1));
  two.settlesAtOnce = false;
  await two.links.listen();
  const { address } = two;
  one.endpoints.set(N2, [address]);
  one.links.start();
  for (const i of numbers(3)) one.links.send(N2, testEnvelope(i));
  await two.until(() => two.received.length === 3, "it has received three");
  assert.equal(one.links.isGone(N2), false);
  await two.links.close();
  await one.until(() => one.returned.length === 3, "they came back");
  assert.deepEqual(
    one.returned,
    numbers(3).map((sequence) => ({ sequence, reason: "peer-restarted", mayBeRepeat: true })),
  );
  assert.equal(one.links.isGone(N2), true);

  await using again = node(N2, await authority.holder(DC1), { listen: [address] });
  await again.links.listen();
  await one.until(() => !one.links.isGone(N2), "another process has taken its place");
  one.links.send(N2, testEnvelope(4));
  await again.until(() => again.received.length === 1, "it gets later stanzas");
});

Deno.test("LinkLayer within a datacenter forgets a node that is not listed and not linked", async () => {
  using authority = await TestAuthority.create();
  await using one = node(N1, await authority.holder(DC1), {
    options: { hostsRefreshIntervalMs: 5 },
  });
  const two = node(N2, await authority.holder(DC1));
  await two.links.listen();
  one.endpoints.set(N2, [two.address]);
  one.links.start();
  await one.until(() => one.links.snapshot().hosts[0]?.openLinks === 1, "they are linked");
  one.endpoints.clear();
  await one.links.refresh(N2);
  assert.equal(one.links.snapshot().hosts.length, 1, "an open link counts more than the list");
  await two.links.close();
  one.links.send(N2, testEnvelope(1));
  await one.until(() => one.links.snapshot().hosts.length === 0, "it is forgotten");
  assert.deepEqual(one.returned.map(({ sequence, reason }) => [sequence, reason]), [
    [1, "peer-restarted"],
  ]);
  assert.equal(one.links.isGone(N2), false);
});

Deno.test("LinkLayer within a datacenter passes INVALIDATE on to the taker of the table's frames", async () => {
  using authority = await TestAuthority.create();
  const heard: string[] = [];
  const links: OpenLink[] = [];
  const traffic = (name: string) => ({
    accepted: (link: OpenLink) => void heard.push(`${name} accepted ${link.nodeName}`),
    dialled: (link: OpenLink) => void links.push(link),
    frame: (_link: OpenLink, type: number, bytes: Uint8Array, start: number, end: number) => {
      assert.equal(type, FRAME_TYPE.invalidate);
      heard.push(...decodeInvalidate(bytes, start, end));
    },
    ended: () => {},
  });
  await using one = node(N1, await authority.holder(DC1), { traffic: traffic("one") });
  await using two = node(N2, await authority.holder(DC1), { traffic: traffic("two") });
  await two.links.listen();
  one.endpoints.set(N2, [two.address]);
  one.links.start();
  await one.until(() => links.length === 1, "one has dialled two");
  for (const frame of invalidateFrames(["bob@example.com", "echo.example.com"])) {
    links[0]!.send(frame);
  }
  await two.until(() => heard.length === 3, "two has heard it");
  assert.deepEqual(heard, [`two accepted ${N1}`, "bob@example.com", "echo.example.com"]);
});

Deno.test("LinkLayer reports that a peer has left when the peer goes down, not when this node does", async () => {
  using authority = await TestAuthority.create();
  const ends: string[] = [];
  let links = 0;
  const traffic = (name: string) => ({
    accepted: () => void links++,
    dialled: () => void links++,
    frame: () => {},
    ended: ({ nodeName }: OpenLink, hasLeft: boolean) =>
      void ends.push(`${name}: ${nodeName} ${hasLeft ? "has left" : "is not linked"}`),
  });
  await using one = node(N1, await authority.holder(DC1), { traffic: traffic("one") });
  await using two = node(N2, await authority.holder(DC1), { traffic: traffic("two") });
  for (const each of [one, two]) await each.links.listen();
  one.endpoints.set(N2, [two.address]);
  two.endpoints.set(N1, [one.address]);
  for (const each of [one, two]) each.links.start();
  await one.until(() => links === 4, "each has dialled the other");
  await one.links.leave(0);
  await one.until(() => ends.length === 4, "all links have ended");
  assert.deepEqual(ends.toSorted(), [
    `one: ${N2} is not linked`,
    `one: ${N2} is not linked`,
    `two: ${N1} has left`,
    `two: ${N1} has left`,
  ]);
});

Deno.test("LinkLayer.reconsider() takes back the stanzas for a node that is cut off", async () => {
  using authority = await TestAuthority.create();
  const options = { rerouteFirstMs: 20 };
  await using one = node(N1, await authority.holder(DC1), { options });
  await using two = node(N2, await authority.holder(DC1));
  await two.links.listen();
  await using proxy = await TestProxy.to(two.address);
  one.endpoints.set(N2, [proxy.address]);
  one.links.start();
  two.settlesAtOnce = false;
  for (const sequence of numbers(2)) one.links.send(N2, testEnvelope(sequence));
  await two.until(() => two.received.length === 2, "they are there");
  proxy.block();
  await one.until(() => one.links.snapshot().hosts[0]!.openLinks === 0, "the link is down");
  const failed = () => one.log.entries.filter(({ event }) => event === "link.unreachable").length;
  await one.until(() => failed() > 0, "an attempt to connect has failed");
  assert.deepEqual(one.returned, []);
  one.links.send(N2, testEnvelope(3));
  one.links.reconsider(N2);
  await one.until(() => one.returned.length > 0, "all comes back");
  const reason = "peer-restarted" as const;
  assert.deepEqual(one.returned, [
    { sequence: 1, reason, mayBeRepeat: true },
    { sequence: 2, reason, mayBeRepeat: true },
    { sequence: 3, reason, mayBeRepeat: false },
  ]);
});
