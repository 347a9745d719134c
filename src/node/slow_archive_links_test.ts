import assert from "node:assert/strict";
import { FairShares } from "../base/mod.ts";
import { TestNode } from "../distribution/links/testing/kit.ts";
import {
  conditionOf,
  idOf,
  RouterFixture,
} from "../distribution/routing/testing/router_fixture.ts";
import { dial, listen } from "../net/mod.ts";
import type { Listener } from "../net/mod.ts";
import { parseJid } from "../xmpp/mod.ts";
import { authenticate, bind, C2sFixture } from "../xmpp/c2s/testing/c2s_fixture.ts";
import type { RawPeer } from "../xmpp/stream/testing/raw_peer.ts";
import { Pressure } from "./pressure.ts";
import { ALICE, BOB, send, TEXT, turn, until, World } from "./testing/slow_archive_world.ts";

const [DC1, DC2] = ["dc1.example.com", "dc2.example.com"];
const CAROL = "carol@example.com/home";
/** Messages on their way to dc1 when dc2 hears that their sender is to be slowed: the link's credit. */
const MOST_AHEAD = Math.ceil(4_194_304 / TEXT.length);

/**
 * alice and carol are at dc2, bob is at dc1, and the archive of dc1 is slow. A real lane leads each way.
 */
class Worlds implements AsyncDisposable {
  readonly near: World;
  readonly pressure = new Pressure();
  readonly far: RouterFixture;
  /** Ids of messages that bob got, and of those that came back as errors, by their senders. */
  readonly arrived: Readonly<Record<string, string[]>> = { [ALICE]: [], [CAROL]: [] };
  readonly refused: Readonly<Record<string, string[]>> = { [ALICE]: [], [CAROL]: [] };
  /** Messages that dc2 has read from clients. */
  read = 0;
  readonly #edge: C2sFixture;
  readonly #nodes: readonly TestNode[];
  #listener!: Listener;

  constructor(near: World) {
    this.near = near;
    const lookup = new FairShares();
    const far = this.far = new RouterFixture(
      {
        domains: {
          globalHost: "example.com",
          localHost: DC2,
          hosts: new Set(["example.com", DC2]),
          roomDomains: new Set(),
          isOtherLocalHost: (domain) => domain === DC1,
        },
      },
      { lookup, bounce: lookup },
      7,
    );
    far.cache.set(BOB, DC1);
    for (const jid of [ALICE, CAROL]) {
      near.routed.cache.set(jid, DC2);
      near.routed.local.delete(jid);
      far.cache.set(jid, DC2);
      far.local.set(jid, "delivered");
    }
    near.routed.sessions.delete(parseJid(ALICE).bare.text);
    const node = (host: string, routed: RouterFixture, pressure: Pressure) =>
      new TestNode(host, {
        tls: undefined,
        events: {
          received: (envelope, from) => routed.received(envelope, from),
          returned: (envelope, reason) => routed.router.returned(envelope, reason),
          pressure: (sender, isOver) => pressure.changed(sender, isOver),
        },
      });
    const nodes = [node(DC1, near.routed, near.pressure), node(DC2, far, this.pressure)] as const;
    this.#nodes = nodes;
    near.routed.onSent = (host, envelope) => nodes[0].links.send(host, envelope);
    far.onSent = (host, envelope) => nodes[1].links.send(host, envelope);
    near.routed.onDelivered = (stanza) => {
      if (stanza.type === "chat") this.arrived[stanza.from.text]!.push(idOf(stanza));
    };
    far.onDelivered = (stanza) => {
      if (stanza.type !== "error") return;
      assert.equal(conditionOf(stanza), "resource-constraint");
      this.refused[stanza.to.text]!.push(idOf(stanza));
    };
    this.#edge = new C2sFixture({
      allowPlaintext: true,
      management: { ackFreq: 1_000_000 },
      sink: {
        accept: (stanza, source, fate, number) => {
          this.pressure.saw(source);
          if (stanza.kind === "message") this.read++;
          far.router.accept(stanza, fate, number);
        },
      },
    });
  }

  static async open(): Promise<Worlds> {
    const worlds = new Worlds(await World.open());
    const [dc1, dc2] = worlds.#nodes as [TestNode, TestNode];
    for (const each of [dc1, dc2]) await each.links.listen();
    dc1.endpoints.set(DC2, [dc2.address]);
    dc2.endpoints.set(DC1, [dc1.address]);
    for (const each of [dc1, dc2]) each.links.start();
    const isUp = () =>
      worlds.#nodes.every(({ links }) => links.snapshot().hosts[0]?.openLinks === 1);
    await dc1.until(isUp, "the links are up");
    worlds.#listener = await listen({ host: "127.0.0.1", port: 0 }, {
      accepted: (connection) => worlds.#edge.listener.accept(connection),
    });
    return worlds;
  }

  async login(user: string): Promise<RawPeer> {
    const { port } = this.#listener;
    const peer = this.#edge.play(await dial({ host: "127.0.0.1", port }));
    await authenticate(peer, user);
    await bind(peer, "home");
    return peer;
  }

  /** Stanzas that the lanes hold. */
  get held(): number {
    return this.#nodes.reduce((sum, { links }) => sum + links.items, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.near.becomesFast();
    this.pressure.thaw();
    await this.#listener.close();
    await this.#edge[Symbol.asyncDispose]();
    await this.far.router.idle();
    await this.near[Symbol.asyncDispose]();
    for (const { links } of this.#nodes) await links.close();
    this.far.close();
  }
}

/** Makes alice flood bob until the archive of dc1 has no room, and dc2 no longer reads from her. */
async function flood({ near, pressure }: Worlds, alice: RawPeer, count: number): Promise<void> {
  const settle = async () => {
    for (let i = 0; i < 20; i++) await turn();
  };
  send(alice, 0);
  await until(() => near.archive.pending === 1);
  near.advance(1_000); // the store is late from now on
  await settle();
  for (let id = 1; id < count; id++) send(alice, id);
  await until(() => near.archive.waiting === 1 && pressure.heldBack === 1);
  await settle();
}

Deno.test("a client that floods a slow archive of another datacenter is not read, and others are", async () => {
  await using worlds = await Worlds.open();
  const { near, pressure, arrived, refused } = worlds;
  const [alice, carol] = [await worlds.login("alice"), await worlds.login("carol")];
  const count = 3_000;
  await flood(worlds, alice, count);
  const { read } = worlds;
  assert.ok(read < count / 2, `${read} of ${count} messages are read`);
  assert.ok(near.routed.router.queued <= MOST_AHEAD, `${near.routed.router.queued} are queued`);
  carol.send(`<presence to='${BOB}' id='there'/>`); // the same lane
  await until(() => near.routed.delivered.some((stanza) => idOf(stanza) === "there"));
  send(carol, "carol");
  await until(() => worlds.held >= 1 && worlds.read === read + 1);
  assert.deepEqual(refused[ALICE], []);
  assert.equal(pressure.heldBack, 1);
  near.becomesFast();
  await until(() => arrived[ALICE]!.length === count);
  assert.deepEqual(arrived[ALICE], Array.from({ length: count }, (_, id) => `${id}`));
  await until(() => worlds.held === 0 && pressure.heldBack === 0);
  assert.deepEqual(arrived[CAROL], ["carol"]);
  assert.deepEqual(refused, { [ALICE]: [], [CAROL]: [] });
  assert.equal(near.budget.bytes, 0);
});

Deno.test("a client that floods a slow archive of another datacenter is answered after five seconds", async () => {
  await using worlds = await Worlds.open();
  const { near, pressure, arrived, refused } = worlds;
  const alice = await worlds.login("alice");
  const count = 1_500;
  await flood(worlds, alice, count);
  const { read } = worlds;
  near.advance(4_750);
  for (let i = 0; i < 20; i++) await turn();
  assert.deepEqual([refused[ALICE], worlds.read], [[], read]);
  near.advance(250);
  await until(() => refused[ALICE]!.length > 0);
  // Those that the link's credit had kept at dc2 wait in turn, before she is read on.
  for (let rounds = 0; worlds.read === read && rounds < 4; rounds++) {
    await until(() => worlds.read > read || near.archive.waiting === 1);
    near.advance(5_000);
  }
  await until(() => worlds.read > read);
  near.becomesFast();
  await until(() => arrived[ALICE]!.length + refused[ALICE]!.length === count);
  assert.equal(new Set([...arrived[ALICE]!, ...refused[ALICE]!]).size, count);
  const inOrder = (ids: readonly string[]) => ids.toSorted((a, b) => Number(a) - Number(b));
  for (const ids of [arrived[ALICE]!, refused[ALICE]!]) assert.deepEqual(ids, inOrder(ids));
  await until(() => worlds.held === 0 && pressure.heldBack === 0);
});
