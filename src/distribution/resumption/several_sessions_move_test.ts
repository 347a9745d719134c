import assert from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../../base/testing/random_runs.ts";
import { ALICE } from "./testing/nodes.ts";
import type { SentMessage } from "./testing/routed_world.ts";
import { RoutedWorld } from "./testing/routed_world.ts";
import { WanderingClient } from "./testing/wandering_client.ts";
import {
  causeTrouble,
  isTrouble,
  NODE,
  NODES,
  SENDER,
  WORLD_EVENTS,
} from "./testing/world_events.ts";
import type { Pass, Trouble } from "./testing/world_events.ts";

const RESOURCES = ["home", "desk", "phone"];

/** Something that happens; numbers that are too high begin anew. */
type Event =
  | {
    readonly kind: "move";
    readonly client: number;
    readonly to: number;
    readonly isCut: boolean;
    /** Milliseconds after which the client turns away when it has got no answer. */
    readonly patienceMs: number;
  }
  | { readonly kind: "write"; readonly sender: number; readonly client: number | undefined }
  | Trouble
  | Pass
  | { readonly kind: "quit" | "acknowledge"; readonly client: number }
  /** Without a priority the client becomes unavailable. */
  | { readonly kind: "presence"; readonly client: number; readonly priority: number | undefined };

const CLIENT = fc.nat(RESOURCES.length - 1);

const EVENT: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("move"),
      client: CLIENT,
      to: NODE,
      isCut: fc.boolean(),
      patienceMs: fc.constantFrom(25, 50, 300, 6_000),
    }),
  },
  {
    weight: 10,
    arbitrary: fc.record({
      kind: fc.constant("write"),
      sender: SENDER,
      client: fc.option(CLIENT, { freq: 1, nil: undefined }),
    }),
  },
  ...WORLD_EVENTS,
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("quit"), client: CLIENT }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("acknowledge"), client: CLIENT }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("presence"),
      client: CLIENT,
      priority: fc.constantFrom(undefined, -1, 0, 5),
    }),
  },
);

interface Plan {
  readonly lookupMs: number;
  readonly clients: number;
  /** True while all links are fast and whole. */
  readonly isCalm: boolean;
  /** Nodes that may die while they are not. */
  readonly deaths: number;
  readonly arePrompt: readonly boolean[];
  readonly events: readonly Event[];
}

const PLAN: fc.Arbitrary<Plan> = fc.record({
  lookupMs: fc.constantFrom(0, 25, 75),
  clients: fc.constantFrom(2, 3),
  isCalm: fc.boolean(),
  deaths: fc.nat(1),
  arePrompt: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  events: fc.array(EVENT, { minLength: 5, maxLength: 30 }),
});

/** Clients of one account that wander over nodes whose links are slow or cut. */
class SeveralMoves {
  readonly world: RoutedWorld;
  readonly clients: readonly WanderingClient[];
  readonly #isCalm: boolean;
  #deaths: number;
  /** Clients that have moved or changed their priority: what others leave may come to them late. */
  readonly #restless = new Set<WanderingClient>();
  /** Sessions that were there when a message was written to them, or to their account. */
  readonly #due = new Map<string, (readonly string[])[]>();
  /** Sender and recipient of each message. */
  readonly #pairs = new Map<string, string>();

  constructor({ lookupMs, clients, isCalm, deaths, arePrompt }: Plan) {
    this.#deaths = isCalm ? 0 : deaths;
    this.#isCalm = isCalm;
    this.world = new RoutedWorld(NODES, lookupMs);
    this.clients = RESOURCES.slice(0, clients).map((name, at) => {
      const client = new WanderingClient(this.world, name);
      client.isPrompt = arePrompt[at]!;
      return client;
    });
  }

  async play({ events }: Plan): Promise<void> {
    await this.world.pass(100);
    for (const [at, client] of this.clients.entries()) {
      await client.login(this.world.nodes[at]!);
      await this.world.pass(100);
    }
    for (const event of events) await this.#act(event);
    await this.#finish();
  }

  async #act(event: Event): Promise<void> {
    const { world } = this;
    const { nodes } = world;
    if (isTrouble(event)) {
      if (this.#isCalm) return;
      world.note(JSON.stringify(event));
    }
    switch (event.kind) {
      case "move": {
        const client = this.#client(event.client);
        const node = nodes[event.to]!;
        if (node.isDead) return;
        this.#restless.add(client);
        if (client.hasQuit) await client.login(node);
        else await client.move(node, event.isCut, event.patienceMs);
        return this.#take();
      }
      case "write":
        return this.#write(event.sender, event.client);
      case "delay":
      case "cut":
      case "hang":
        return causeTrouble(world, event);
      case "die":
        if (this.#deaths-- > 0) causeTrouble(world, event);
        return;
      case "pass":
        return await world.pass(event.forMs, () => this.#take());
      case "quit":
        return this.#client(event.client).quit();
      case "acknowledge": {
        const client = this.#client(event.client);
        client.take();
        return client.acknowledge();
      }
      case "presence":
        return this.#sendPresence(this.#client(event.client), event.priority);
      default:
        return event satisfies never;
    }
  }

  #client(number: number): WanderingClient {
    return this.clients[number % this.clients.length]!;
  }

  #take(): void {
    for (const client of this.clients) client.take();
  }

  #write(sender: number, client: number | undefined): void {
    const to = client === undefined ? undefined : this.#client(client);
    const id = this.world.write(sender, to?.jid ?? ALICE);
    if (id === undefined) return;
    this.#pairs.set(id, `${sender} ${to?.jid ?? ALICE}`);
    // A session that moves may miss what other sessions get, while nodes learn late of its place.
    if (to === undefined && !this.#isCalm) return;
    // Of several at one node, those of the highest priority get it.
    const isForAll = this.clients.every(({ priority }) => priority === 0);
    if (to === undefined && !isForAll) return;
    const sessions = (to === undefined ? this.clients : [to]).filter(({ hasQuit }) => !hasQuit);
    this.#due.set(id, sessions.map((each) => each.sessions.at(-1)!));
  }

  /** Sends presence of a client. Others may get the messages to the account that are on their way. */
  #sendPresence(client: WanderingClient, priority: number | undefined): void {
    if (client.priority === priority) return;
    this.#restless.add(client);
    client.sendPresence(priority);
    for (const id of this.#due.keys()) {
      if (this.#pairs.get(id)!.endsWith(` ${ALICE}`)) this.#due.delete(id);
    }
  }

  /** Lets everything arrive, and the clients take and acknowledge it. */
  async #finish(): Promise<void> {
    const { world, clients } = this;
    world.heal();
    world.note("finish");
    for (const client of clients) {
      client.isPrompt = true;
      this.#sendPresence(client, 0);
    }
    await world.pass(8_000, () => this.#take());
    for (const client of clients) {
      for (let tries = 0; tries < 8 && !client.isConnected; tries++) {
        const node = world.living[tries % world.living.length]!;
        if (client.hasQuit) await client.login(node);
        else await client.move(node, true, 6_000);
      }
    }
    // A client whose streams have often ended gets a few stanzas at a time.
    for (let turn = 0; turn < 12; turn++) {
      this.#take();
      for (const client of clients) client.acknowledge();
      await world.pass(1_000, () => this.#take());
    }
    await world.end();
  }

  check(): void {
    const { world, clients } = this;
    const got = clients.flatMap(({ sessions }) => sessions).flat();
    for (const [id, message] of world.sent) {
      assert.ok(message.isSettled || message.at.isDead, `${id} is not settled`);
      if (world.refused.has(id) || world.withdrawn.has(id)) continue;
      assert.ok(got.includes(id) || isSentAgain(message), `${id} is lost`);
      if (!message.at.isDead) this.#checkIsComplete(id);
    }
    for (const session of clients.flatMap(({ sessions }) => sessions)) {
      for (const id of session) {
        assert.equal(session.filter((each) => each === id).length, 1, `${id} came twice`);
      }
    }
    if (this.#isCalm) this.#checkOrder();
  }

  /** Checks that a message has come to each session that was there, and is still. */
  #checkIsComplete(id: string): void {
    for (const client of this.clients) {
      const session = client.sessions.at(-1)!;
      if (this.#due.get(id)?.includes(session) !== true) continue;
      assert.ok(session.includes(id), `${id} has not come to ${client.jid}`);
    }
  }

  /**
   * Checks that a client that has stayed as it was has got each sender's messages in order. They are not
   * in order when one overtakes others that wait for a link, on the way back from another session.
   */
  #checkOrder(): void {
    for (const client of this.clients) {
      if (this.#restless.has(client) || client.sessions.length > 1) continue;
      const last = new Map<string, number>();
      for (const id of client.sessions[0]!) {
        const [pair, number] = [this.#pairs.get(id)!, Number(id.slice(1))];
        assert.ok(number > (last.get(pair) ?? 0), `${id} is out of order at ${client.jid}`);
        last.set(pair, number);
      }
    }
  }
}

/** True for a message that its sender sends again, as its node has died. */
function isSentAgain({ at, isCovered }: SentMessage): boolean {
  return at.isDead && !isCovered;
}

async function playAndCheck(plan: Plan): Promise<void> {
  const moves = new SeveralMoves(plan);
  await moves.play(plan);
  try {
    moves.check();
  } catch (thrown) {
    throw new Error(`${(thrown as Error).message}\n${moves.world.story.join("\n")}`);
  }
}

Deno.test("a message that a session has beside a copy of it goes to another one when it ends", async () => {
  await playAndCheck({
    lookupMs: 75,
    clients: 2,
    isCalm: true,
    deaths: 0,
    arePrompt: [false, false, false],
    events: [
      { kind: "presence", client: 0, priority: 5 },
      { kind: "move", client: 0, to: 1, isCut: false, patienceMs: 300 },
      { kind: "write", sender: 0, client: undefined },
      { kind: "write", sender: 1, client: undefined },
      { kind: "move", client: 0, to: 1, isCut: false, patienceMs: 25 },
      { kind: "quit", client: 0 },
      { kind: "move", client: 0, to: 1, isCut: false, patienceMs: 25 },
    ],
  });
});

Deno.test("sessions of one account that move get each message for them once", async () => {
  await fc.assert(
    fc.asyncProperty(PLAN, playAndCheck),
    randomRuns(25),
  );
});
