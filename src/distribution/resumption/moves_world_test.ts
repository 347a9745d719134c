import assert from "node:assert/strict";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { randomRuns } from "../../base/testing/random_runs.ts";
import type { RawPeer } from "../../xmpp/stream/testing/raw_peer.ts";
import { a, ALICE, envelopeOf, resume, TestNode } from "./testing/nodes.ts";
import { TestLink } from "./testing/test_link.ts";
import type { World } from "./testing/nodes.ts";

const NODES = [0, 1, 2] as const;
/** Milliseconds between two moves: any less, and a session may move on before it has come. */
const PAUSES_MS = [50, 100, 300, 1_000] as const;

/** Something that happens; `at` is one of the nodes that have the session, or still pass stanzas on. */
type Event =
  | {
    readonly kind: "move";
    readonly to: number;
    readonly isCut: boolean;
    readonly pauseMs: number;
  }
  | { readonly kind: "deliver"; readonly at: number }
  /** A message to the account comes to one node as itself, and to the others as copies. */
  | { readonly kind: "spread"; readonly at: number; readonly areLate: readonly boolean[] }
  | { readonly kind: "arrive" | "acknowledge" | "settle" };

const EVENT: fc.Arbitrary<Event> = fc.oneof(
  fc.record({
    kind: fc.constant("move"),
    to: fc.nat(2),
    isCut: fc.boolean(),
    pauseMs: fc.constantFrom(...PAUSES_MS),
  }),
  fc.record({ kind: fc.constant("deliver"), at: fc.nat(2) }),
  fc.record({
    kind: fc.constant("spread"),
    at: fc.nat(2),
    areLate: fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
  }),
  fc.record({ kind: fc.constantFrom("arrive", "acknowledge", "settle") }),
);

/** Three linked nodes, and a client that takes its session from one to another. */
class Moves {
  readonly #world: World = { clock: new ManualClock(), claims: new Map() };
  readonly #nodes = NODES.map((at) => new TestNode(at + 1, this.#world));
  /** Arrivals of stanzas that take longer than others. */
  readonly #late: (() => void)[] = [];
  #id = "";
  #peer: RawPeer | undefined;
  /** Characters of the present stream that the client has read. */
  #read = 0;
  /** Stanzas that the client has handled: its own presence is the first. */
  #handled = 1;
  readonly sent: string[] = [];
  readonly got: string[] = [];
  readonly settled = new Set<string>();

  async begin(): Promise<void> {
    const [one, two, three] = this.#nodes as [TestNode, TestNode, TestNode];
    for (const [from, to] of [[one, two], [one, three], [two, three]] as const) {
      new TestLink(from, to);
    }
    const { peer, id } = await one.enterAvailable();
    this.#peer = peer;
    this.#id = id;
  }

  async act(event: Event): Promise<void> {
    switch (event.kind) {
      case "move":
        if (event.isCut) this.#peer!.cut();
        await this.#move(this.#nodes[event.to]!);
        return await this.#pass(event.pauseMs);
      case "deliver":
        return this.#deliver(this.#nodeAt(event.at));
      case "spread":
        return this.#spread(this.#nodeAt(event.at), event.areLate);
      case "arrive":
        return this.#late.shift()?.();
      case "acknowledge":
        return this.#acknowledge();
      case "settle":
        return await settle();
      default:
        return event satisfies never;
    }
  }

  /** Lets everything arrive, and the client take and acknowledge it. */
  async finish(): Promise<void> {
    for (const arrive of this.#late.splice(0)) arrive();
    await this.#pass(6_000);
    // A client whose streams have often ended gets a few stanzas at a time.
    for (let turn = 0; turn < 12; turn++) {
      this.#acknowledge();
      await this.#pass(50);
    }
    const ends = this.#nodes.map((node) => node.end());
    await this.#pass(100);
    await Promise.all(ends);
  }

  async #move(node: TestNode): Promise<void> {
    const peer = await node.greet();
    this.#take();
    const before = peer.unread.length;
    peer.send(resume(this.#id, this.#handled));
    while (!peer.unread.includes("<resumed ")) {
      assert.ok(!/<failed |<stream:error/.test(peer.unread), peer.unread);
      await this.#pass(50);
    }
    this.#peer = peer;
    this.#read = before;
  }

  /** Takes what the client was sent. */
  #take(): void {
    const { unread } = this.#peer!;
    for (const [, id] of unread.slice(this.#read).matchAll(/<message [^>]*id='(\w+)'/g)) {
      this.got.push(id!);
      this.#handled++;
    }
    this.#read = unread.length;
  }

  #acknowledge(): void {
    this.#take();
    this.#peer!.send(a(this.#handled));
  }

  #nodeAt(at: number): TestNode {
    const all = this.#nodes.filter(({ session }) => session !== undefined);
    return all[at % all.length]!;
  }

  #deliver(node: TestNode): void {
    const id = this.#next();
    const envelope = envelopeOf(id, this.sent.length, { settle: () => this.settled.add(id) });
    node.registry.deliver(envelope.stanza, envelope);
  }

  #spread(first: TestNode, areLate: readonly boolean[]): void {
    const id = this.#next();
    const sequence = this.sent.length;
    for (const [at, node] of this.#nodes.entries()) {
      if (node.session === undefined) continue;
      const arrive = () => this.#arrive(node, id, { sequence, isCopy: node !== first });
      if (areLate[at] === true) this.#late.push(arrive);
      else arrive();
    }
  }

  #arrive(
    node: TestNode,
    id: string,
    { sequence, isCopy }: { readonly sequence: number; readonly isCopy: boolean },
  ): void {
    if (node.session === undefined) {
      // The session has left: the message goes where it is, and a copy is dropped.
      if (!isCopy) this.#arrive(this.#nodeAt(0), id, { sequence, isCopy });
      return;
    }
    const fate = isCopy ? undefined : { settle: () => this.settled.add(id) };
    const envelope = envelopeOf(id, sequence, fate, ALICE);
    envelope.isCopy = isCopy;
    const isRepeat = node.memory.hasDelivered(envelope, true);
    node.memory.noteDelivered(envelope);
    if (!isRepeat) node.registry.deliver(envelope.stanza, envelope);
    if (!envelope.isKept) envelope.settle();
  }

  #next(): string {
    const id = `m${this.sent.length + 1}`;
    this.sent.push(id);
    return id;
  }

  async #pass(forMs: number): Promise<void> {
    for (let left = forMs; left > 0; left -= 50) {
      await settle();
      this.#world.clock.advance(50);
    }
    await settle();
  }
}

/** Lets all frames in memory arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

Deno.test("a session that is taken from node to node gets each message once, whatever comes where", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(EVENT, { minLength: 20, maxLength: 40 }), async (events) => {
      const moves = new Moves();
      await moves.begin();
      for (const event of events) await moves.act(event);
      await moves.finish();
      assert.deepEqual(moves.got.toSorted(), moves.sent.toSorted());
      assert.deepEqual([...moves.settled].toSorted(), moves.sent.toSorted());
    }),
    randomRuns(50),
  );
});
