import assert from "node:assert/strict";
import { FairShares, ManualClock } from "../../base/mod.ts";
import { dial, listen } from "../../net/mod.ts";
import type { Listener } from "../../net/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../observe/mod.ts";
import {
  conditionOf,
  idOf,
  OWN_PROCESS,
  RouterFixture,
} from "../../distribution/routing/testing/router_fixture.ts";
import { MessageArchive } from "../../services/archive/mod.ts";
import type { ArchivedMessage, ArchiveOutcome, ArchiveStore } from "../../storage/mod.ts";
import { authenticate, bind, C2sFixture } from "../../xmpp/c2s/testing/c2s_fixture.ts";
import { TestDelivery } from "../../xmpp/c2s/testing/delivery.ts";
import type { RawPeer } from "../../xmpp/stream/testing/raw_peer.ts";
import { Pressure } from "../pressure.ts";

export const [ALICE, BOB] = ["alice@example.com/home", "bob@example.com/home"];
/** Bytes of a message: a few hundred fill a share of what may wait for a store that is late. */
export const TEXT = "x".repeat(4_000);
/** Bytes of messages that make a sender's queue long, and of the chunks that are read by then. */
export const MOST_BYTES = 1_048_576 + 4 * 65_536;

/**
 * A node's edge, router and archives. Clients come over TCP, and the database answers when the test
 * says so.
 */
export class World implements AsyncDisposable {
  readonly pressure = new Pressure();
  readonly budget = new FairShares();
  readonly #metrics = new MetricsRegistry(new ManualClock());
  readonly #archiveClock = new ManualClock();
  readonly archive: MessageArchive;
  readonly routed: RouterFixture;
  readonly edge: C2sFixture;
  /** Messages that the node has read from clients. */
  readonly read: string[] = [];
  readonly #batches: (() => void)[] = [];
  #isFast = false;
  #listener!: Listener;

  constructor() {
    this.archive = this.#makeArchive();
    const lookup = new FairShares();
    const routed = new RouterFixture({}, { lookup, bounce: lookup }, OWN_PROCESS, this.archive);
    this.routed = routed;
    for (const jid of [ALICE, BOB]) {
      routed.cache.set(jid, "dc1.example.com");
      routed.local.set(jid, "delivered");
      const account = jid.slice(0, jid.indexOf("/"));
      routed.sessions.set(account, { isHere: true, isResourceHere: true, priority: 0 });
    }
    routed.onPressure = (sender, isOver) => this.pressure.changed(sender, isOver);
    this.edge = new C2sFixture({
      allowPlaintext: true,
      management: { ackFreq: 1_000_000 },
      events: {
        opened: () => Promise.resolve(),
        closed: (jid) => {
          this.pressure.gone(jid.text);
          return Promise.resolve();
        },
      },
      sink: {
        accept: (stanza, source, fate, number) => {
          this.pressure.saw(source);
          if (stanza.kind === "message") this.read.push(idOf(stanza));
          routed.router.accept(stanza, fate, number);
        },
      },
    });
    routed.onDelivered = (stanza) => this.edge.route(new TestDelivery(stanza, undefined, 0));
  }

  static async open(): Promise<World> {
    const world = new World();
    world.#listener = await listen({ host: "127.0.0.1", port: 0 }, {
      accepted: (connection) => world.edge.listener.accept(connection),
    });
    return world;
  }

  async connect(user: string): Promise<RawPeer> {
    const { port } = this.#listener;
    const peer = this.edge.play(await dial({ host: "127.0.0.1", port }));
    await authenticate(peer, user);
    return peer;
  }

  async login(user: string): Promise<RawPeer> {
    const peer = await this.connect(user);
    await bind(peer, "home");
    return peer;
  }

  advance(byMs: number): void {
    for (const clock of [this.#archiveClock, this.routed.clock]) clock.advance(byMs);
  }

  /** Makes the database take all that waits for it, and all that comes. */
  becomesFast(): void {
    this.#isFast = true;
    for (const answer of this.#batches.splice(0)) answer();
  }

  /** Makes a client flood bob until the node no longer reads from it, while the database hangs. */
  async flood(alice: RawPeer, count: number): Promise<void> {
    for (let id = 1; id <= count; id++) send(alice, id);
    await until(() => this.pressure.heldBack === 1);
    this.advance(1_000); // the store is late: what it has begun with goes on
    await until(() => this.archive.waiting === 1);
    assert.equal(this.pressure.heldBack, 1);
  }

  /** Ids of messages that bob got, and of those that alice got an error for. */
  get ends(): { readonly arrived: readonly string[]; readonly refused: readonly string[] } {
    const of = (jid: string) => this.routed.delivered.filter(({ to }) => to.text === jid);
    const errors = of(ALICE).filter(({ type }) => type === "error");
    assert.ok(errors.every((error) => conditionOf(error) === "resource-constraint"));
    const messages = of(BOB).filter(({ kind, type }) => kind === "message" && type === "chat");
    return { arrived: messages.map(idOf), refused: errors.map(idOf) };
  }

  #makeArchive(): MessageArchive {
    const store = {
      searchesText: false,
      append: (messages: readonly ArchivedMessage[]) => {
        const { promise, resolve } = Promise.withResolvers<readonly ArchiveOutcome[]>();
        const answer = () => resolve(messages.map(() => "stored" as const));
        if (this.#isFast) answer();
        else this.#batches.push(answer);
        return promise;
      },
    };
    return new MessageArchive({
      hosts: new Map([["example.com", {
        defaultLimit: 50,
        maxLimit: 50,
        hasChatMarkers: false,
        hasGroupchats: false,
        hasStanzaIds: true,
        isSearched: false,
        maxAgeMs: Infinity,
      }]]),
      storeOf: () => store as unknown as ArchiveStore, // messages are only added
      existing: () => Promise.resolve(new Map([["alice", "0a"], ["bob", "0b"]])),
      refusalsFor: () => Promise.resolve(() => false),
      here: () => "somebody",
      creationHere: () => "0c",
      isContact: () => Promise.resolve(false),
      isUserHost: (domain) => domain === "example.com",
      budget: this.budget,
      metrics: this.#metrics,
      logger: SILENT_LOGGER,
      clock: this.#archiveClock,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.becomesFast();
    this.pressure.thaw();
    await this.#listener.close();
    await this.edge[Symbol.asyncDispose]();
    await this.routed.router.idle();
    await this.archive.close();
    this.routed.close();
    this.#metrics.close();
  }
}

export function send(peer: RawPeer, id: number | string): void {
  peer.send(`<message id='${id}' type='chat' to='${BOB}'><body>${TEXT}</body></message>`);
}

/** Sends a request that needs no archive, and gets it back. */
export async function ping(peer: RawPeer, jid: string, id: string): Promise<void> {
  peer.send(`<presence id='${id}' to='${jid}'/>`);
  await peer.expect(`id='${id}'`);
}

export async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

export async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn();
}
