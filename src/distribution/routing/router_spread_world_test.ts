import assert from "node:assert/strict";
import fc from "fast-check";
import { Envelope } from "../envelope.ts";
import type { OwnSessions } from "./ports.ts";
import { conditionOf, idOf, RouterFixture, stanza } from "./testing/router_fixture.ts";

const ALICE = "alice@example.com/x";
const BOB = "bob@example.com";

/**
 * State of bob's client at one datacenter. `slow`: available, and takes nothing; `gone`: the table still
 * has it.
 */
type Device = "none" | "gone" | "silent" | "negative" | "available" | "slow";
/** Fate of a stanza on a lane: `again` means that it arrives, and comes back all the same. */
type Passage = "arrives" | "returns" | "again";

interface Sent {
  readonly to: "account" | "resource" | "own";
  readonly type: "chat" | "normal" | "headline";
  readonly isResent: boolean;
  /** Place of the datacenter of the resource, or of bob's sending client. */
  readonly at: number;
}

/** State of the node of one datacenter. */
interface Node {
  /** False: nothing may bounce there. */
  readonly hasRoom: boolean;
  /** False: it has not looked up where bob is. */
  readonly knowsBob: boolean;
}

/** Three or four datacenters with real routers. Alice is at the first, bob at several. */
class SpreadWorld {
  readonly fixtures: RouterFixture[];
  readonly settled = new Map<string, number>();
  readonly #hosts: readonly string[];
  readonly #passages: Passage[];

  constructor(
    readonly devices: readonly Device[],
    readonly nodes: readonly Node[],
    passages: readonly Passage[],
  ) {
    const hosts = this.#hosts = devices.map((_, i) => `dc${i}.example.com`);
    this.#passages = [...passages];
    this.fixtures = hosts.map((localHost, i) =>
      new RouterFixture(
        {
          ...(!nodes[i]!.hasRoom && { bounce: { maxItems: 0 } }),
          // One that does not know the other datacenters sends it back to where it entered.
          messageTtl: 2 * hosts.length,
          domains: {
            globalHost: "example.com",
            localHost,
            hosts: new Set(["example.com", localHost]),
            isOtherLocalHost: (domain) => domain !== localHost && hosts.includes(domain),
          },
        },
        undefined,
        i + 1,
      )
    );
    for (const [i, fixture] of this.fixtures.entries()) this.#furnish(fixture, i);
  }

  #furnish(fixture: RouterFixture, at: number): void {
    const spread = this.#hosts.filter((_, i) => this.devices[i] !== "none")
      .map((host) => ({ host, resourcepart: host }));
    fixture.table.set(ALICE, this.#hosts[0]!);
    if (at === 0) fixture.local.set(ALICE, "delivered");
    if (spread.length > 1) fixture.spread.set(BOB, spread);
    if (!this.nodes[at]!.knowsBob) fixture.unplaced.add(BOB);
    fixture.table.set(BOB, spread.at(-1)!.host);
    for (const { host } of spread) fixture.table.set(`${BOB}/${host}`, host);
    const device = this.devices[at]!;
    fixture.local.set(BOB, outcomeOf(device));
    if (device === "none" || device === "gone") return;
    const resource = `${BOB}/${this.#hosts[at]}`;
    fixture.local.set(resource, device === "slow" ? "resource-constraint" : "delivered");
    const isAvailable = device === "available" || device === "slow";
    const priority = isAvailable ? 0 : device === "negative" ? -1 : undefined;
    const own: OwnSessions = { isHere: true, isResourceHere: false, priority };
    fixture.sessions.set(BOB, own);
  }

  send(id: string, { to, type, isResent, at }: Sent): void {
    const from = to === "own" ? `${BOB}/${this.#hosts[at]}` : ALICE;
    const recipient = to === "resource" ? `${BOB}/${this.#hosts[at]}` : BOB;
    const fixture = this.fixtures[to === "own" ? at : 0]!;
    fixture.router.accept(
      stanza(from, recipient, { type, id }),
      { settle: () => void this.settled.set(id, (this.settled.get(id) ?? 0) + 1) },
      1,
      isResent ? "resent" : "ordinary",
    );
  }

  /** Lets all stanzas come to their ends. */
  async run(): Promise<void> {
    for (let idle = 0; idle < 12;) {
      for (const fixture of this.fixtures) await fixture.settled();
      if (this.#pass()) {
        idle = 0;
        continue;
      }
      idle++;
      for (const { clock } of this.fixtures) clock.advance(2_000);
    }
  }

  /** Takes what is on each lane to its end. */
  #pass(): boolean {
    let hasPassed = false;
    for (const [i, fixture] of this.fixtures.entries()) {
      for (const { host, envelope } of fixture.sent.splice(0)) {
        hasPassed = true;
        const passage = this.#passages.pop() ?? "arrives";
        const fate = { settle: () => passage === "again" || envelope.settle() };
        const arriving = new Envelope({ ...envelope }, fate, 1);
        if (passage !== "returns") {
          this.fixtures[this.#hosts.indexOf(host)]!.received(arriving, this.#hosts[i]!);
        }
        if (passage === "arrives") continue;
        if (passage === "again") envelope.mayBeRepeat = true;
        fixture.router.returned(envelope, "peer-restarted");
      }
    }
    return hasPassed;
  }

  /** Numbers of deliveries of a message in each datacenter. */
  deliveries(id: string): number[] {
    return this.fixtures.map(({ delivered }) =>
      delivered.filter((each) => each.type !== "error" && idOf(each) === id).length
    );
  }

  errors(id: string): string[] {
    return this.fixtures.flatMap(({ delivered }) =>
      delivered.filter((each) => each.type === "error" && idOf(each) === id).map(conditionOf)
    );
  }

  close(): void {
    for (const fixture of this.fixtures) fixture.close();
  }
}

function outcomeOf(device: Device) {
  if (device === "available") return "delivered";
  return device === "slow" ? "resource-constraint" : "no-session";
}

/** Numbers of times that each datacenter is to deliver a message. */
function takersOf({ to, at }: Sent, devices: readonly Device[]): readonly number[] {
  if (to === "resource" && (devices[at] ?? "none") !== "none") {
    return devices.map((device, i) => i === at && device !== "slow" ? 1 : 0);
  }
  return devices.map((device) => device === "available" ? 1 : 0);
}

const DEVICES = fc.array(
  fc.constantFrom<Device>("none", "gone", "silent", "negative", "available", "slow"),
  { minLength: 2, maxLength: 4 },
).filter((devices) => devices.filter((device) => device !== "none").length > 1);

const NODES = fc.array(fc.record<Node>({ hasRoom: fc.boolean(), knowsBob: fc.boolean() }), {
  minLength: 4,
  maxLength: 4,
});

const SENT = fc.record<Sent>({
  to: fc.constantFrom("account", "resource", "own"),
  type: fc.constantFrom("chat", "normal", "headline"),
  isResent: fc.boolean(),
  at: fc.nat({ max: 3 }),
});

Deno.test("Routers deliver a message once at each datacenter where somebody can get it, else answer it once", async () => {
  await fc.assert(
    fc.asyncProperty(
      DEVICES,
      fc.array(SENT, { minLength: 1, maxLength: 4 }),
      fc.array(fc.constantFrom<Passage>("arrives", "arrives", "returns", "again"), {
        maxLength: 12,
      }),
      NODES,
      async (devices, messages, passages, nodes) => {
        const world = new SpreadWorld(devices, nodes, passages);
        try {
          // The fixture delivers to the account what is for a resource that is gone: right for chat.
          const used = messages.filter(({ to, type, at }) => {
            const device = devices[at] ?? "none";
            return to === "account" || (device !== "none" && device !== "gone") ||
              (to === "resource" && type === "chat" && device === "none");
          });
          for (const [i, message] of used.entries()) world.send(`m${i}`, message);
          await world.run();
          for (const [i, message] of used.entries()) {
            const id = `m${i}`;
            const takers = takersOf(message, devices);
            assert.deepEqual(world.deliveries(id), takers, `deliveries of ${id}`);
            const errors = world.errors(id).length;
            if (takers.includes(1)) assert.equal(errors, 0, `errors of ${id}`);
            // Errors for bob's own clients are none of this test, nor those that headlines have.
            else if (message.to !== "own" && message.type !== "headline") {
              // Each of two that are the same is answered.
              assert.ok(
                passages.includes("again") ? errors > 0 : errors === 1,
                `${errors} of ${id}`,
              );
            }
            assert.equal(world.settled.get(id), 1, `${id} is settled`);
          }
        } finally {
          world.close();
        }
      },
    ),
    { numRuns: 200 },
  );
});
