import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../../base/testing/random_runs.ts";
import { MucClient } from "./testing/muc_client.ts";
import { ALICE, field, MucWorld } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

const HOSTS = ["dc1.example.com", "dc2.example.com", "dc3.example.com"];
/** Sessions: bob has two devices. */
const SESSIONS = [ALICE, "bob@example.com/b", "bob@example.com/p", "carol@example.com/c"];
const NICKS = ["bard", "cat", "druid"];
/** Milliseconds that each event takes. */
const EVENT_MS = 50;
/** Looks after which all nodes agree: those that take longest begin when a session has come. */
const LOOKS = 15;

/** Something that happens. Sessions, nicknames and nodes are given by their places in the lists. */
type Event =
  | { readonly kind: "enter"; readonly session: number; readonly nick: number }
  | { readonly kind: "leave"; readonly session: number }
  | { readonly kind: "move"; readonly session: number; readonly to: number }
  | { readonly kind: "slow" | "fast"; readonly from: number; readonly to: number }
  | { readonly kind: "pass"; readonly ms: number };

const SESSION = fc.nat(SESSIONS.length - 1);
const NODE = fc.nat(HOSTS.length - 1);

const EVENT: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("enter"),
      session: SESSION,
      nick: fc.nat(NICKS.length - 1),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("leave"), session: SESSION }) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("move"), session: SESSION, to: NODE }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constantFrom("slow", "fast"), from: NODE, to: NODE }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("pass"), ms: fc.constantFrom(1, 100, 1_000) }),
  },
) as fc.Arbitrary<Event>;

/** A room with clients that move between three nodes. */
class Moves {
  readonly #world: MucWorld;
  readonly #clients: readonly MucClient[];

  constructor(world: MucWorld) {
    this.#world = world;
    this.#clients = SESSIONS.map((jid, i) => new MucClient(jid, world.nodes[i % 3]!));
  }

  async act(event: Event): Promise<void> {
    const { nodes, slow, clock } = this.#world;
    const client = this.#clients["session" in event ? event.session : 0]!;
    switch (event.kind) {
      case "enter":
        await client.enter(NICKS[event.nick]!);
        break;
      case "leave":
        await client.leave();
        break;
      case "move":
        client.move(nodes[event.to]!);
        break;
      case "slow":
      case "fast": {
        const link = `${nodes[event.from]!.process} ${nodes[event.to]!.process}`;
        if (event.kind === "fast") this.#world.speedUp(link);
        else if (!slow.has(link)) slow.set(link, []);
        break;
      }
      case "pass":
        clock.advance(event.ms);
    }
    await this.#settle();
    clock.advance(EVENT_MS);
  }

  async #settle(): Promise<void> {
    await this.#world.settled();
    for (const client of this.#clients) client.read(this.#world.nodes);
  }

  /** Lets everything come, and returns what all clients in the room, and new ones, are shown. */
  async finish(): Promise<readonly (readonly [string, unknown])[]> {
    for (const link of [...this.#world.slow.keys()]) this.#world.speedUp(link);
    await this.#world.look(LOOKS);
    await this.#settle();
    const watchers = this.#world.nodes.map((node, i) =>
      new MucClient(`watch@example.com/${i}`, node)
    );
    for (const watcher of watchers) await watcher.enter("watch");
    await this.#settle();
    for (const watcher of watchers) watcher.read();
    return [...watchers, ...this.#clients.filter(({ nick }) => nick !== undefined)]
      .map(({ jid, shown }) => [jid, Object.fromEntries([...shown].toSorted())]);
  }

  /** Sessions that were told to have left a room, though they had not. */
  get thrownOut(): string {
    return this.#clients.filter(({ thrownOut }) => thrownOut > 0).map(({ jid }) => jid).join(" ");
  }

  /** Nicknames that clients believe to have, with their accounts. */
  get believed(): Readonly<Record<string, string>> {
    const all = this.#clients.flatMap(({ nick, jid }) =>
      nick === undefined ? [] : [[nick, jid.split("/")[0]!] as const]
    );
    return Object.fromEntries([...all, ["watch", "watch@example.com"] as const].toSorted());
  }
}

/** Plays events in a new room, and compares what everybody is shown in the end with who is there. */
async function play(events: readonly Event[]): Promise<void> {
  await using world = await MucWorld.open(HOSTS);
  const [one] = world.nodes as [MucNode];
  const owner = "owner@example.com/o";
  const fields = field("muc#roomconfig_persistentroom", "1") +
    field("muc#roomconfig_whois", "anyone");
  await one.make(owner, "owner", fields);
  await one.leave(owner, "owner");
  const moves = new Moves(world);
  for (const event of events) await moves.act(event);
  const shown = await moves.finish();
  strictEqual(moves.thrownOut, "");
  for (const [jid, seen] of shown) deepStrictEqual(seen, moves.believed, jid);
}

function enter(session: number, nick: number): Event {
  return { kind: "enter", session, nick };
}

function leave(session: number): Event {
  return { kind: "leave", session };
}

/** A session comes to a node: 0 is that of dc1. */
function move(session: number, to: number): Event {
  return { kind: "move", session, to };
}

function slow(from: number, to: number): Event {
  return { kind: "slow", from, to };
}

function fast(from: number, to: number): Event {
  return { kind: "fast", from, to };
}

const CASES: Readonly<Record<string, readonly Event[]>> = {
  "a session leaves at a node that has not heard of its seat, and goes back": [
    ...[slow(2, 1), move(0, 2), enter(0, 1), move(0, 1), leave(0), move(0, 2)],
  ],
  "a session leaves at a node that has not heard of its seat, whose turn comes twice": [
    ...[slow(0, 1), enter(0, 0), move(0, 1), leave(0), move(0, 0), move(0, 1)],
  ],
  "a session leaves, and two other nodes have taken over its seat one after the other": [
    ...[enter(1, 1), slow(2, 1), move(1, 2), move(1, 1), leave(1), move(1, 0)],
  ],
  "a session leaves a seat that a third node takes over": [
    ...[enter(1, 1), slow(2, 1), move(1, 0), move(1, 2), move(1, 1), leave(1), move(1, 0)],
  ],
  "a session enters again at a node that had taken over the seat which it left": [
    ...[enter(1, 0), slow(1, 0), leave(1), move(1, 0), enter(1, 1)],
  ],
  "a session enters again under a nickname that its old seat keeps from somebody else": [
    ...[enter(0, 0), slow(0, 1), leave(0), slow(1, 0), move(0, 1), enter(3, 0), fast(0, 1)],
    enter(0, 0),
  ],
  "an occupant is shown to a session that enters again, and so is who was renamed": [
    ...[enter(0, 1), slow(0, 1), leave(0), enter(2, 1), move(0, 1), enter(0, 2)],
  ],
  "the old node of a session hears late of those who come, go and move": [
    ...[enter(1, 0), slow(1, 0), enter(0, 1), move(1, 0), move(0, 1), move(1, 1), leave(0)],
  ],
  "the old node of a session hears late of somebody who had its nickname": [
    ...[move(0, 1), slow(1, 0), enter(0, 1), leave(0), enter(1, 1), move(1, 2), move(1, 0)],
    move(1, 1),
  ],
  "a session comes back to a node whose seat of it nobody has taken over": [
    ...[move(1, 2), enter(1, 0), slow(1, 0), move(1, 1), move(1, 0), enter(3, 1), move(1, 1)],
  ],
  "a session takes another nickname at a node that has not heard who took over its seat": [
    ...[slow(0, 1), move(0, 1), enter(0, 0), move(0, 0), move(0, 1), enter(0, 2), move(0, 0)],
  ],
  "a session was shown a nickname that its new node never sees": [
    ...[enter(1, 0), slow(1, 2), enter(1, 1), enter(0, 0), move(0, 2), move(1, 2), move(1, 0)],
  ],
  "two nodes take over one seat": [
    ...[slow(1, 0), enter(0, 0), slow(1, 2), move(0, 1), move(0, 2)],
  ],
  "a node hears that a seat is gone before it hears of the node that has taken it over": [
    ...[slow(0, 1), slow(2, 1), enter(0, 1), move(0, 2), move(0, 1), fast(0, 1)],
  ],
  "a node takes over a seat whose nickname somebody had before": [
    ...[slow(1, 2), move(3, 2), enter(1, 2), enter(3, 2), move(3, 0)],
  ],
};

for (const [name, events] of Object.entries(CASES)) {
  Deno.test(`clients are shown who is in their room when ${name}`, () => play(events));
}

Deno.test("clients that move between nodes are shown who is in their room", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(EVENT, { minLength: 20, maxLength: 40 }), play),
    randomRuns(40),
  );
});
