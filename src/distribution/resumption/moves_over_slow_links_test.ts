import assert from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../../base/testing/random_runs.ts";
import { ALICE, HOME } from "./testing/nodes.ts";
import { RoutedWorld } from "./testing/routed_world.ts";
import { WanderingClient } from "./testing/wandering_client.ts";
import { causeTrouble, NODE, NODES, SENDER, WORLD_EVENTS } from "./testing/world_events.ts";
import type { Pass, Trouble } from "./testing/world_events.ts";

/** Something that happens; numbers that are too high begin anew. */
type Event =
  | {
    readonly kind: "move";
    readonly to: number;
    readonly isCut: boolean;
    /** Milliseconds after which the client turns away when it has got no answer. */
    readonly patienceMs: number;
  }
  | { readonly kind: "write"; readonly sender: number; readonly isToAccount: boolean }
  | Trouble
  | Pass
  | { readonly kind: "acknowledge" };

const EVENT: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("move"),
      to: NODE,
      isCut: fc.boolean(),
      patienceMs: fc.constantFrom(50, 300, 6_000),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("write"),
      sender: SENDER,
      isToAccount: fc.boolean(),
    }),
  },
  ...WORLD_EVENTS,
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("acknowledge") }) },
);

interface Plan {
  readonly lookupMs: number;
  readonly isPrompt: boolean;
  /** Nodes that may die. */
  readonly deaths: number;
  readonly events: readonly Event[];
}

const PLAN: fc.Arbitrary<Plan> = fc.record({
  lookupMs: fc.constantFrom(0, 25, 75),
  isPrompt: fc.boolean(),
  deaths: fc.nat(1),
  events: fc.array(EVENT, { minLength: 10, maxLength: 40 }),
});

/** A client that wanders over nodes whose links are slow or cut. */
class SlowMoves {
  readonly world: RoutedWorld;
  readonly client: WanderingClient;
  #deaths: number;

  constructor({ lookupMs, isPrompt, deaths }: Plan) {
    this.world = new RoutedWorld(NODES, lookupMs);
    this.client = new WanderingClient(this.world);
    this.client.isPrompt = isPrompt;
    this.#deaths = deaths;
  }

  async play({ events }: Plan): Promise<void> {
    await this.world.pass(100);
    await this.client.login(this.world.nodes[0]!);
    for (const event of events) await this.#act(event);
    await this.#finish();
  }

  async #act(event: Event): Promise<void> {
    const { world, client } = this;
    const { nodes } = world;
    if (event.kind !== "write" && event.kind !== "move") world.note(JSON.stringify(event));
    switch (event.kind) {
      case "move": {
        const node = nodes[event.to]!;
        if (!node.isDead) await client.move(node, event.isCut, event.patienceMs);
        return;
      }
      case "write":
        return void world.write(event.sender, event.isToAccount ? ALICE : HOME);
      case "delay":
      case "cut":
      case "hang":
        return causeTrouble(world, event);
      case "die":
        if (this.#deaths-- > 0) causeTrouble(world, event);
        return;
      case "pass":
        return await world.pass(event.forMs, () => client.take());
      case "acknowledge":
        client.take();
        return client.acknowledge();
      default:
        return event satisfies never;
    }
  }

  /** Lets everything arrive, and the client take and acknowledge it. */
  async #finish(): Promise<void> {
    const { world, client } = this;
    world.heal();
    world.note("finish");
    client.isPrompt = true;
    await world.pass(8_000, () => client.take());
    for (let tries = 0; tries < 4 && !client.isConnected; tries++) {
      await client.move(world.living[tries % world.living.length]!, true, 6_000);
    }
    // A client whose streams have often ended gets a few stanzas at a time.
    for (let turn = 0; turn < 12; turn++) {
      client.take();
      client.acknowledge();
      await world.pass(1_000, () => client.take());
    }
    await world.end();
  }

  check(): void {
    const { world, client } = this;
    const got = client.sessions.flat();
    for (const [id, message] of world.sent) {
      const isSentAgain = message.at.isDead && !message.isCovered;
      const isAnswered = world.refused.has(id) || world.withdrawn.has(id);
      assert.ok(got.includes(id) || isAnswered || isSentAgain, `${id} is lost`);
      assert.ok(message.isSettled || message.at.isDead, `${id} is not settled`);
    }
    for (const session of client.sessions) {
      for (const id of session) {
        assert.equal(session.filter((each) => each === id).length, 1, `${id} came twice`);
      }
    }
  }
}

Deno.test("a client that moves over slow and broken links gets each message once", async () => {
  await fc.assert(
    fc.asyncProperty(PLAN, async (plan) => {
      const moves = new SlowMoves(plan);
      await moves.play(plan);
      try {
        moves.check();
      } catch (thrown) {
        throw new Error(`${(thrown as Error).message}\n${moves.world.story.join("\n")}`);
      }
    }),
    randomRuns(25),
  );
});

Deno.test("a message for the account comes once when the node dies that a session had it from, two moves ago", async () => {
  const plan: Plan = {
    lookupMs: 0,
    isPrompt: false,
    deaths: 1,
    events: [
      { kind: "write", sender: 0, isToAccount: false },
      { kind: "write", sender: 1, isToAccount: true },
      { kind: "move", to: 1, isCut: false, patienceMs: 50 },
      { kind: "move", to: 2, isCut: false, patienceMs: 50 },
      { kind: "die", at: 0, learnMs: 0 },
      { kind: "pass", forMs: 50 },
      { kind: "cut", one: 0, other: 0, learnMs: [0, 0], healMs: 100 },
      { kind: "pass", forMs: 50 },
    ],
  };
  const moves = new SlowMoves(plan);
  await moves.play(plan);
  moves.check();
});
