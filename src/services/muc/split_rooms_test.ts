import { deepStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { randomRuns } from "../../base/testing/random_runs.ts";
import { MucClient } from "./testing/muc_client.ts";
import { COVEN, field, MucWorld } from "./testing/muc_world.ts";
import type { MucNode } from "./testing/muc_world.ts";

const HOSTS = ["dc1.example.com", "dc2.example.com", "dc3.example.com"];
/** Sessions and the places of their nodes: carol has two devices. */
const SESSIONS = [
  ["alice@example.com/a", 0],
  ["bob@example.com/b", 0],
  ["carol@example.com/c", 1],
  ["carol@example.com/d", 2],
  ["dave@example.com/d", 2],
] as const;
const NICKS = ["bard", "cat", "druid"];
/** Looks at least from the last moment of a split to its end: each takes a second. */
const SPLIT_LOOKS = 7;
/** Looks after which all nodes agree. */
const LOOKS = 16;

/** Something that happens. Sessions, nicknames and nodes are given by their places in the lists. */
type Event =
  | { readonly kind: "enter"; readonly session: number; readonly nick: number }
  | { readonly kind: "leave" | "say"; readonly session: number }
  | { readonly kind: "cut"; readonly from: number; readonly to: number }
  | { readonly kind: "heal" | "expire" }
  | { readonly kind: "database"; readonly node: number; readonly isDown: boolean }
  | { readonly kind: "look"; readonly times: number };

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
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("leave"), session: SESSION }) },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("say"), session: SESSION }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("cut"), from: NODE, to: NODE }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom("heal", "expire") }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("database"),
      node: NODE,
      isDown: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("look"), times: fc.integer({ min: 1, max: 4 }) }),
  },
) as fc.Arbitrary<Event>;

/** A room with clients at three nodes that lose each other, and the database. */
class Splits {
  readonly #world: MucWorld;
  readonly #clients: readonly MucClient[];
  /** Messages that the room had taken when a client came. */
  readonly #since = new Map<MucClient, number>();
  /** Messages that the room has taken. */
  readonly said: string[] = [];
  #count = 0;

  constructor(world: MucWorld) {
    this.#world = world;
    this.#clients = SESSIONS.map(([jid, at]) => new MucClient(jid, world.nodes[at]!));
  }

  async act(event: Event): Promise<void> {
    const { nodes, cut } = this.#world;
    const client = this.#clients["session" in event ? event.session : 0]!;
    switch (event.kind) {
      case "enter": {
        const wasIn = client.nick !== undefined;
        await this.#during(client.enter(NICKS[event.nick]!));
        if (!wasIn) this.#since.set(client, this.said.length);
        break;
      }
      case "leave":
        await this.#during(client.leave());
        break;
      case "say":
        await this.#during(this.#say(client));
        break;
      case "cut":
        if (event.from !== event.to) {
          cut.add([HOSTS[event.from]!, HOSTS[event.to]!].toSorted().join(" "));
        }
        break;
      case "heal":
        await this.#heal();
        break;
      case "expire":
        this.#world.isLeaseOver = true;
        break;
      case "database":
        nodes[event.node]!.isStoreDown = event.isDown;
        break;
      case "look":
        await this.#world.look(event.times);
    }
    await this.#read();
    this.#world.clock.advance(50);
  }

  /** Heals all, and returns what each client in the room is shown. */
  async finish(): Promise<ReadonlyMap<MucClient, unknown>> {
    await this.#heal();
    for (const node of this.#world.nodes) node.isStoreDown = false;
    await this.#world.look(LOOKS);
    await this.#read();
    return new Map(
      this.present.map((each) => [each, Object.fromEntries([...each.shown].toSorted())]),
    );
  }

  /** Ends the split. Shorter ones lose no news: those wait in lanes. */
  async #heal(): Promise<void> {
    const { cut } = this.#world;
    if (cut.size > 0) await this.#world.look(SPLIT_LOOKS);
    cut.clear();
    this.#world.isLeaseOver = false;
  }

  get present(): readonly MucClient[] {
    return this.#clients.filter(({ nick }) => nick !== undefined);
  }

  /** Nicknames that clients believe to have, with their accounts. */
  get believed(): Readonly<Record<string, string>> {
    const all = this.present.map(({ nick, jid }) => [nick!, jid.split("/")[0]!] as const);
    return Object.fromEntries(all.toSorted());
  }

  /** Messages that a client is to have got since it came. */
  dueTo(client: MucClient): readonly string[] {
    return this.said.slice(this.#since.get(client));
  }

  async #say(client: MucClient): Promise<void> {
    if (client.nick === undefined) return;
    const text = `${++this.#count}`;
    client.lastError = undefined;
    await client.node.say(client.jid, text);
    client.read();
    if (client.lastError === undefined) this.said.push(text);
  }

  /** Lets time pass until something is done. */
  async #during(done: Promise<void>): Promise<void> {
    let isDone = false;
    void done.finally(() => isDone = true);
    for (let i = 0; i < 20; i++) {
      for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
      if (isDone) break;
      this.#world.clock.advance(500);
    }
    await done;
  }

  async #read(): Promise<void> {
    await this.#world.settled();
    for (const client of this.#clients) client.read();
  }
}

/** Plays events in a new room, and compares what everybody sees and has got in the end. */
async function play(events: readonly Event[]): Promise<void> {
  await using world = await MucWorld.open(HOSTS);
  const [one] = world.nodes as [MucNode];
  const owner = "owner@example.com/o";
  const fields = field("muc#roomconfig_persistentroom", "1") +
    field("muc#roomconfig_whois", "anyone");
  await one.make(owner, "owner", fields);
  await one.leave(owner, "owner");
  const splits = new Splits(world);
  for (const event of events) await splits.act(event);
  const shown = await splits.finish();
  for (const [client, seen] of shown) {
    strictEqual(client.thrownOut, 0, client.jid);
    deepStrictEqual(seen, splits.believed, client.jid);
    const due = new Set(splits.dueTo(client));
    const got = client.texts.filter((text) => due.has(text));
    deepStrictEqual(sorted(got), sorted([...due]), client.jid);
  }
  const stored = await world.store.messages(COVEN, { limit: 200 });
  const texts = stored.map(({ stanza }) => /<body>(.*?)</.exec(stanza)![1]!);
  deepStrictEqual(sorted(texts), sorted(splits.said));
}

function sorted(texts: readonly string[]): readonly string[] {
  return texts.toSorted((one, other) => Number(one) - Number(other));
}

Deno.test("who shares a nickname that its other device gives up has another one if somebody had it before", () =>
  play([
    { kind: "cut", from: 0, to: 1 },
    { kind: "enter", session: 2, nick: 1 },
    { kind: "enter", session: 0, nick: 0 },
    { kind: "heal" },
    { kind: "enter", session: 0, nick: 1 },
    { kind: "enter", session: 3, nick: 1 },
    { kind: "enter", session: 2, nick: 0 },
  ]));

Deno.test("all sides agree on the occupants and the messages of a room after splits", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(EVENT, { minLength: 20, maxLength: 40 }), play),
    randomRuns(20),
  );
});
