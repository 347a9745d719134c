import assert from "node:assert/strict";
import { FriendlyPorts } from "./friendly_ports.ts";

Deno.test("FriendlyPorts never gives two datacenters the same port, nor one that is taken", () => {
  // Whatever else this machine runs: each port is 0 or the one that people expect, and can be had.
  using friendly = new FriendlyPorts();
  const all = [0, 1, 2].map((datacenter) => friendly.of({ datacenter, node: 0 }));
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
  assert.equal(friendly.of({ datacenter: 0, node: 0 }).starttls, 0);
});

Deno.test("FriendlyPorts leaves a datacenter's other nodes to the system", () => {
  using friendly = new FriendlyPorts();
  assert.deepEqual(distinct(friendly.of({ datacenter: 0, node: 1 })), [0]);
});

Deno.test("FriendlyPorts are for one cluster at a time", () => {
  using _first = new FriendlyPorts(); // or another process has them: it is the same for the second
  using second = new FriendlyPorts();
  assert.deepEqual(distinct(second.of({ datacenter: 0, node: 0 })), [0]);
});

function distinct(ports: ReturnType<FriendlyPorts["of"]>): readonly unknown[] {
  return [...new Set(Object.values(ports).flat())];
}
