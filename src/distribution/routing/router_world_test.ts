import assert from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../../base/testing/random_runs.ts";
import { stanza } from "./testing/router_fixture.ts";
import type { Place } from "./testing/moving_accounts.ts";
import { OrderWorld } from "./testing/order_world.ts";

const BOB = "bob@example.com";
/** Two resources, in our datacenter alone. */
const ERIN = "erin@example.com";
const DC2 = "dc2.example.com";
const DC3 = "dc3.example.com";
const SENDERS = ["alice@example.com/a", "carol@example.com/c", "room@muc.example.com/x"];
const RECIPIENTS = [`${BOB}/b`, BOB, ERIN];
const NODES: ReadonlySet<string> = new Set(["n2", "n3"]);
const SHAPES = [
  { kind: "message" },
  { kind: "message" },
  { kind: "message", type: "headline" },
  { kind: "iq", type: "get" },
  { kind: "iq", type: "result" },
  { kind: "presence", type: "unavailable" },
] as const;

const step = fc.record({
  kind: fc.constantFrom(
    ...[
      "send",
      "send",
      "send",
      "send",
      "receive",
      "move",
      "move",
      "learn",
      "learn",
      "forget",
      "lose",
    ],
    ...["reveal", "work", "work", "restart", "gone", "kill", "expire"],
    ...["acknowledge", "turn", "clock", "gate", "drain"],
  ),
  of: fc.nat({ max: 3 }),
  to: fc.constantFrom(0, 0, 0, 0, 1, 2),
  place: fc.nat({ max: 5 }),
  shape: fc.constantFrom(0, 0, 0, 1, 2, 3, 4, 5),
  ms: fc.nat({ max: 300 }),
});
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

const world = fc.record({
  places: fc.constantFrom<readonly Place[]>(
    ["here", "n2", "n3", "nobody"],
    ["n2", "n3"],
    [DC2, "nobody"],
    ["n2", "nobody"],
    ["here", "n2", "n3", DC2, DC3, "nobody"],
  ),
  keepsStanzas: fc.boolean(),
  isNarrow: fc.boolean(),
  mayDrain: fc.boolean(),
});

/** Does one step, but for a drain. */
async function act(
  world: OrderWorld,
  { kind, of, to, place, shape, ms }: Step,
  places: readonly Place[],
  id: string,
): Promise<void> {
  const recipient = RECIPIENTS[to]!;
  const account = to === 2 ? ERIN : BOB;
  const peers = world.busyPeers;
  const peer = peers[of % peers.length] ?? "n2";
  const isNode = NODES.has(peer);
  // A host answers a request to an account itself: it is no matter of order.
  const form = to > 0 && SHAPES[shape]!.kind === "iq" ? SHAPES[0] : SHAPES[shape]!;
  switch (kind) {
    case "send":
      return world.send(stanza(SENDERS[of % 3]!, recipient, { ...form, id }));
    case "receive":
      return world.receive(stanza("zoe@example.com/z", recipient, { ...form, id }), DC2);
    case "move": {
      const own = to === 2 ? (["here", "n2", "n3", "nobody"] as const) : places;
      world.move(account, to === 2 ? `${of % 2}` : "b", own[place % own.length]!);
      if (ms < 200) world.learn(account); // mostly it hears of it at once
      return;
    }
    case "learn":
      return world.learn(account);
    case "forget":
      return world.forget(account);
    case "lose":
      world.lose(account);
      return world.forget(account);
    case "reveal":
      return world.reveal(account);
    case "work":
      return world.work(peer, place);
    case "restart":
      return world.giveBack(peer, isNode ? "node-gone" : "peer-restarted");
    case "gone":
      return world.giveBack(peer, isNode ? "node-gone" : "peer-gone");
    case "expire":
      return ms < 60 ? world.giveBack(peer, "expired") : undefined;
    case "kill":
      return world.kill(of % 2 === 0 ? "n2" : "n3");
    case "acknowledge":
      return world.acknowledge();
    case "turn":
      return await world.settled();
    case "clock":
      return world.clock.advance(ms);
    case "gate":
      return world.toggleGate();
  }
}

function assertFates(world: OrderWorld): void {
  let unseen = 0;
  for (const entry of world.ledger.values()) {
    assert.equal(entry.settled + entry.leftOpen, 1, `one fate: ${JSON.stringify(entry)}`);
    const seen = entry.deliveries + entry.errors + entry.repeats;
    assert.ok(seen <= 1, `seen once: ${JSON.stringify(entry)}`);
    if (seen === 0 && entry.leftOpen === 0) unseen++;
  }
  assert.equal(world.drops - world.returnedCopies, unseen, "all that vanished was counted");
}

/**
 * A stanza is overtaken only in the cases that docs/promises.md names. A copy may find a resource
 * that had the stanza at another node and has moved since.
 */
function assertOrder(world: OrderWorld): void {
  const latest = new Map<string, number>();
  const seen = new Set<string>();
  for (const { entry, resource, epoch, mayBeLate } of world.arrived) {
    const { pair, number, sentEpoch } = entry;
    const key = `${pair} ${resource}`;
    const before = latest.get(key) ?? 0;
    const isOvertaken = number < before && !seen.has(`${number} ${resource}`);
    if (epoch === sentEpoch && !mayBeLate) {
      assert.ok(!isOvertaken, `${key}: ${number} behind ${before}`);
    }
    latest.set(key, Math.max(before, number));
    seen.add(`${number} ${resource}`);
  }
}

Deno.test("Router with its datacenter keeps order and gives each stanza one fate, whatever happens when", async () => {
  await fc.assert(
    fc.asyncProperty(
      world,
      fc.array(step, { minLength: 20, maxLength: 80 }),
      async ({ places, keepsStanzas, isNarrow, mayDrain }, steps) => {
        const world = new OrderWorld({ [BOB]: ["b"], [ERIN]: ["0", "1"] }, {
          bounce: isNarrow ? 10 : 1000,
          lookup: isNarrow ? 10 : 1000,
          handover: isNarrow ? 10 : 1000,
          lane: isNarrow ? 5 : 1000,
        });
        world.keepsStanzas = keepsStanzas;
        world.move(BOB, "b", places[0]!);
        for (const [at, each] of steps.entries()) {
          if (each.kind !== "drain") await act(world, each, places, `s${at}`);
          else if (mayDrain) world.drain();
        }
        await world.end();
        assertFates(world);
        // A node that stops hands stanzas on while earlier ones are on its lanes (docs/promises.md).
        if (!world.isStopping) assertOrder(world);
        assert.deepEqual([world.router.bouncing, world.router.queued], [0, 0]);
        const { lookup, bounce } = world.budgets;
        for (const { items, bytes } of [lookup, bounce, world.handoverBudget]) {
          assert.deepEqual([items, bytes], [0, 0]);
        }
      },
    ),
    // CI plays the same worlds every time: seeds are explored apart from it (CONTRIBUTING.md). This one
    // found a stanza that left the bounce too early.
    randomRuns(2000, 2036744340),
  );
});
