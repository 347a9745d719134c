import assert from "node:assert/strict";
import { friendlyPorts } from "./friendly_ports.ts";

Deno.test("friendlyPorts() never gives two datacenters the same port, nor one that is taken", () => {
  // Whatever else this machine runs: each port is 0 or the one that people expect, and can be had.
  const all = [0, 1, 2].map((datacenter) => friendlyPorts({ datacenter, node: 0 }));
  const expected = [[5222, 5223, 5224, 5347, 8088], [5232, 5233, 5234, 5348, 8089]];
  for (const [index, ports] of expected.entries()) {
    const { starttls, direct, none, component, admin } = all[index]!;
    for (const [which, port] of [starttls, direct, none, component, admin].entries()) {
      assert.ok(port === 0 || port === ports[which], `${port}`);
    }
  }
  const [first] = all;
  if (first!.starttls === 0) return; // taken by something else: that is the other half of the claim
  using _holder = Deno.listen({ hostname: "127.0.0.1", port: first!.starttls });
  assert.equal(friendlyPorts({ datacenter: 0, node: 0 }).starttls, 0);
});

Deno.test("friendlyPorts() leaves a datacenter's other nodes to the system", () => {
  const ports = friendlyPorts({ datacenter: 0, node: 1 });
  assert.deepEqual([...new Set(Object.values(ports).flat())], [0]);
});
