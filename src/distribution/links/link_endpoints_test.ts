import assert from "node:assert/strict";
import type { EndpointAddress } from "./ports.ts";
import { DC1, DC2, numbers } from "./testing/datacenters.ts";
import { TestAuthority, testEnvelope, TestNode } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";

Deno.test("LinkLayer holds stanzas, bounded, until a first endpoint appears", async () => {
  using authority = await TestAuthority.create();
  const options = { laneMaxItems: 5, endpointRefreshIntervalWhenEmptyMs: 20 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  for (const i of numbers(1, 6)) dc1.links.send(DC2, testEnvelope(i));
  assert.deepEqual(dc1.returned, [{ sequence: 6, reason: "full", mayBeRepeat: false }]);
  assert.equal(dc1.links.snapshot().hosts[0]!.parkedItems, 5);
  assert.deepEqual(dc1.pressure, [], "no sender is slowed for a lane that is down");
  dc1.endpoints.set(DC2, [dc2.address]);
  await dc2.until(() => dc2.received.length === 5, "they arrive once there is an endpoint");
  assert.deepEqual(dc2.sequences, numbers(1, 5));
});

Deno.test("LinkLayer enables, disables and collects endpoints, and opens new ones", async () => {
  using authority = await TestAuthority.create();
  const options = {
    disabledGcIntervalMs: 50,
    endpointRefreshIntervalMs: 20,
    endpointRefreshIntervalWhenEmptyMs: 20,
  };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using first = await TestProxy.to(dc2.address);
  await using second = await TestProxy.to(dc2.address);
  dc1.endpoints.set(DC2, [first.address]);
  dc1.links.start();
  const states = () =>
    dc1.links.snapshot().hosts[0]?.endpoints.map(({ state }) => state).join(" ") ?? "";
  const open = () => dc1.links.snapshot().hosts[0]?.openLinks;
  await dc1.until(() => open() === 1, "the first is open");
  dc1.endpoints.set(DC2, [second.address]);
  await dc1.until(() => states() === "disabled enabled" && open() === 2, "a new pool is open");
  dc1.links.send(DC2, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "it is used");
  const senders = dc1.links.snapshot().hosts[0]!.endpoints.map(({ lanes }) => lanes[0]!.senders);
  assert.deepEqual(
    senders,
    [0, 1],
    "no sender is bound to a disabled endpoint if there is another",
  );
  dc1.endpoints.set(DC2, [first.address, second.address]);
  await dc1.until(() => states() === "enabled enabled", "the first is enabled again");
  dc1.endpoints.set(DC2, [second.address]);
  await dc1.until(() => states() === "disabled enabled", "and disabled");
  first.block();
  await dc1.until(() => states() === "enabled", "and collected once it is dead");
  const events = dc1.log.entries.map(({ event }) => event).filter((e) => e.startsWith("endpoint."));
  assert.deepEqual(events, [
    "endpoint.opened",
    "endpoint.opened",
    "endpoint.disabled",
    "endpoint.enabled",
    "endpoint.disabled",
    "endpoint.closed",
  ]);
});

for (const keepsSilentHosts of [true, false]) {
  const does = keepsSilentHosts ? "forgets" : "keeps";
  const list = keepsSilentHosts ? "has those that are cut off" : "lacks those that are cut off";
  Deno.test(`LinkLayer ${does} a datacenter that is gone from a list that ${list}`, async () => {
    using authority = await TestAuthority.create();
    const endpoints = new Map<string, readonly EndpointAddress[]>();
    const hosts = { hosts: () => Promise.resolve([...endpoints.keys()]), keepsSilentHosts };
    const options = {
      disabledGcIntervalMs: 50,
      endpointRefreshIntervalMs: 20,
      endpointRefreshIntervalWhenEmptyMs: 20,
      hostsRefreshIntervalMs: 20,
    };
    await using dc1 = new TestNode(DC1, {
      tls: await authority.holder(DC1),
      endpoints: { endpoints: (host) => Promise.resolve(endpoints.get(host) ?? []) },
      hosts,
      options,
      listen: [],
    });
    await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
    await dc2.links.listen();
    endpoints.set(DC2, [dc2.address]);
    dc1.links.start();
    await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "they are linked");
    endpoints.clear();
    await dc2.links.close();
    await dc1.until(
      () => dc1.log.named("endpoint.closed").length === 1,
      "its endpoint is given up",
    );
    if (keepsSilentHosts) {
      await dc1.until(() => dc1.links.snapshot().hosts.length === 0, "it is forgotten");
      assert.equal(dc1.links.isOtherLocalHost(DC2), false);
    } else {
      // Whether it is cut off or gone cannot be told: another look at the list changes nothing.
      endpoints.set("dc3.example.com", []);
      await dc1.until(() => dc1.links.snapshot().hosts.length === 2, "the list was read again");
      assert.equal(dc1.links.isOtherLocalHost(DC2), true);
    }
  });
}

Deno.test("LinkLayer looks for hosts again and again, and connects to new ones", async () => {
  using authority = await TestAuthority.create();
  const options = { hostsRefreshIntervalMs: 20 };
  await using dc1 = new TestNode(DC1, { tls: await authority.holder(DC1), options, listen: [] });
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  dc1.endpoints.set(DC1, [dc2.address]);
  dc1.links.start();
  await dc1.links.refresh(DC2);
  assert.deepEqual(dc1.links.snapshot().hosts, [], "no link to our own local host");
  dc1.endpoints.set(DC2, [dc2.address]);
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "it is linked");
});

Deno.test("LinkLayer uses the override's endpoints instead of the table's", async () => {
  using authority = await TestAuthority.create();
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    overrides: { [DC2]: [dc2.address] },
    endpoints: { endpoints: () => Promise.reject(new Error("the table must not be read")) },
  });
  dc1.links.start();
  await dc1.until(() => dc1.links.snapshot().hosts[0]?.openLinks === 1, "it is linked");
});

Deno.test("LinkLayer keeps its links while the session table fails", async () => {
  using authority = await TestAuthority.create();
  await using dc2 = new TestNode(DC2, { tls: await authority.holder(DC2) });
  await dc2.links.listen();
  let isDown = false;
  await using dc1 = new TestNode(DC1, {
    tls: await authority.holder(DC1),
    listen: [],
    endpoints: {
      endpoints: () => isDown ? Promise.reject(new Error("down")) : Promise.resolve([dc2.address]),
    },
    hosts: { hosts: () => Promise.reject(new Error("down")) },
  });
  dc1.links.start();
  dc1.links.send(DC2, testEnvelope(1));
  await dc2.until(() => dc2.received.length === 1, "it is linked");
  isDown = true;
  await dc1.links.refresh(DC2);
  await dc1.links.refresh(DC2);
  assert.equal(dc1.links.snapshot().hosts[0]!.endpoints[0]!.state, "enabled");
  assert.equal(dc1.log.named("endpoints.unknown").length, 1);
  assert.equal(dc1.log.named("hosts.unknown").length, 1);
});
