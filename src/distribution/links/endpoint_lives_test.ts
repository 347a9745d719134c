import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { testEnvelope, TestNode } from "./testing/kit.ts";
import { TestProxy } from "./testing/peers.ts";
import type { EndpointAddress } from "./ports.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const ENDPOINTS = 3;
const CONNECTIONS = 2;
/** Milliseconds of the manual clock after which endpoints are read again, and collected. */
const INTERVAL_MS = 100;

/** An event of the test; `which` is the number of an endpoint, `tick` only lets time pass. */
type Happening = {
  readonly kind: "appear" | "vanish" | "die" | "revive" | "tick";
  readonly which: number;
};

const HAPPENING: fc.Arbitrary<Happening> = fc.record({
  kind: fc.constantFrom("appear", "appear", "vanish", "vanish", "die", "revive", "tick"),
  which: fc.nat(ENDPOINTS - 1),
});

Deno.test("LinkLayer binds no sender to a disabled endpoint if there is another, and leaks no pool", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(HAPPENING, { maxLength: 12 }), async (happenings) => {
      await using world = await World.create();
      for (const happening of happenings) {
        world.happens(happening);
        await world.settle();
        world.checkPools();
        world.checkNewSender();
      }
      await world.checkEnd();
    }),
    { numRuns: 60 },
  );
});

/**
 * A node of dc1 with a manual clock, and one of dc2 behind endpoints that come and go. The expected
 * state is worked out beside it: an endpoint exists while it is listed, and after that for as long
 * as the connections that it had then live.
 */
class World implements AsyncDisposable {
  readonly #clock = new ManualClock();
  readonly #dc1: TestNode;
  readonly #dc2: TestNode;
  readonly #proxies: readonly TestProxy[];
  readonly #listed = new Set<number>();
  readonly #dead = new Set<number>();
  /** Endpoints that are no longer listed, and open all the time since. */
  readonly #keptOpen = new Set<number>();
  #senders = 0;

  private constructor(dc2: TestNode, proxies: readonly TestProxy[]) {
    this.#dc2 = dc2;
    this.#proxies = proxies;
    this.#dc1 = new TestNode(DC1, {
      tls: undefined,
      listen: [],
      clock: this.#clock,
      endpoints: { endpoints: () => Promise.resolve(this.#addresses()) },
      hosts: { hosts: () => Promise.resolve([DC2]) },
      options: {
        connectionsPerEndpoint: CONNECTIONS,
        endpointRefreshIntervalMs: INTERVAL_MS,
        endpointRefreshIntervalWhenEmptyMs: INTERVAL_MS,
        disabledGcIntervalMs: INTERVAL_MS,
        // Time passes in leaps here, which must not look like silence.
        silenceTimeoutMs: 1e9,
        pingIntervalMs: 1e8,
      },
    });
  }

  static async create(): Promise<World> {
    const dc2 = new TestNode(DC2, { tls: undefined });
    await dc2.links.listen();
    const proxies = await Promise.all(
      Array.from({ length: ENDPOINTS }, () => TestProxy.to(dc2.address)),
    );
    const world = new World(dc2, proxies);
    await world.#dc1.links.listen();
    world.#dc1.links.start();
    await world.settle();
    return world;
  }

  happens({ kind, which }: Happening): void {
    switch (kind) {
      case "appear":
        this.#listed.add(which);
        this.#keptOpen.delete(which);
        break;
      case "vanish":
        if (this.#listed.delete(which) && !this.#dead.has(which)) this.#keptOpen.add(which);
        break;
      case "die":
        this.#dead.add(which);
        this.#keptOpen.delete(which);
        this.#proxies[which]!.block();
        break;
      case "revive":
        this.#dead.delete(which);
        this.#proxies[which]!.unblock();
        break;
      case "tick":
        break;
      default:
        kind satisfies never;
    }
  }

  /** Lets dc1 read the list, collect, and connect or notice that it cannot. */
  async settle(): Promise<void> {
    for (let round = 0; round < 3; round++) {
      this.#clock.advance(INTERVAL_MS);
      await immediately(); // the list is applied
      await this.#dc1.until(() => this.#isAtRest(), "dc1 has come to rest", 3000);
    }
    await this.#dc1.until(
      () => {
        if (this.#isConnected()) return true;
        this.#clock.advance(1); // so that links between two attempts try again
        return false;
      },
      "dc1 is connected to all listed endpoints that live",
      3000,
    );
  }

  /**
   * Checks that exactly the expected endpoints exist, in their expected states, and open if alive.
   */
  checkPools(): void {
    const wanted = this.#proxies.flatMap((_, which) => {
      if (!this.#listed.has(which) && !this.#keptOpen.has(which)) return [];
      const open = this.#dead.has(which) ? 0 : CONNECTIONS;
      return [{ which, state: this.#listed.has(which) ? "enabled" : "disabled", open }];
    });
    const found = this.#endpoints().map(({ which, state, lanes }) => ({
      which,
      state,
      open: lanes.filter((lane) => lane.state === "open").length,
    }));
    assert.deepEqual(found.toSorted((one, other) => one.which - other.which), wanted);
  }

  /**
   * Checks the lane of a new sender: of an enabled open endpoint, else an enabled one, else an open
   * one.
   */
  checkNewSender(): void {
    const before = this.#endpoints();
    const parked = this.#host?.parkedItems ?? 0;
    const number = ++this.#senders;
    const from = `alice@example.com/${number}`;
    this.#dc1.links.send(DC2, testEnvelope(number, { from }));
    const chosen = this.#endpoints().find(({ which, senders }) =>
      senders > (before.find((each) => each.which === which)?.senders ?? 0)
    );
    const isAlive = (which: number) => !this.#dead.has(which);
    const choices = [
      [...this.#listed].filter(isAlive),
      [...this.#listed],
      [...this.#keptOpen],
    ].find((set) => set.length > 0);
    if (choices === undefined) assert.equal(this.#host?.parkedItems, parked + 1);
    else assert.ok(choices.includes(chosen?.which ?? -1), `chosen: ${chosen?.which} of ${choices}`);
  }

  /**
   * Checks that with all endpoints back every stanza arrives, and that closing closes every
   * connection.
   */
  async checkEnd(): Promise<void> {
    for (let which = 0; which < ENDPOINTS; which++) {
      this.happens({ kind: "revive", which });
      this.happens({ kind: "appear", which });
    }
    await this.settle();
    this.checkPools();
    const isThere = (number: number) => this.#dc2.sequences.includes(number);
    const all = Array.from({ length: this.#senders }, (_, index) => index + 1);
    await this.#dc2.until(() => all.every(isThere), "everything has arrived");
    assert.deepEqual(this.#dc1.returned, []);
    const fresh = this.#dc2.received.filter(({ mayBeRepeat }) => !mayBeRepeat);
    assert.equal(new Set(fresh).size, fresh.length, "an unmarked stanza comes once");
    await this.#close();
    assert.deepEqual(this.#proxies.map(({ count }) => count), this.#proxies.map(() => 0));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#close();
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await this.#dc2[Symbol.asyncDispose]();
  }

  /** Closes dc1, moving the clock at which `close` looks now and then. */
  async #close(): Promise<void> {
    let isClosed = false;
    const closing = this.#dc1.links.close().then(() => {
      isClosed = true;
    });
    await this.#dc1.until(() => {
      this.#clock.advance(10);
      return isClosed;
    }, "dc1 has closed all its links");
    await closing;
    const isQuiet = () => this.#proxies.every(({ count }) => count === 0);
    await this.#dc1.until(isQuiet, "no connection is left at any endpoint");
  }

  get #host() {
    return this.#dc1.links.snapshot().hosts[0];
  }

  #addresses(): readonly EndpointAddress[] {
    return [...this.#listed].map((which) => this.#proxies[which]!.address);
  }

  /** Endpoints that dc1 knows now, by number. */
  #endpoints() {
    const names = this.#proxies.map(({ address }) => `${address.host}#${address.port}`);
    return (this.#host?.endpoints ?? []).map((endpoint) => ({
      which: names.indexOf(endpoint.endpoint),
      state: endpoint.state,
      lanes: endpoint.lanes,
      senders: endpoint.lanes.reduce((sum, { senders }) => sum + senders, 0),
    }));
  }

  /** True when no connection is being made, and none is held that has died. */
  #isAtRest(): boolean {
    return this.#endpoints().every(({ which, lanes }) =>
      lanes.every(({ state }) =>
        state === "idle" || state === "waiting" || (state === "open" && !this.#dead.has(which))
      )
    );
  }

  #isConnected(): boolean {
    return this.#isAtRest() &&
      this.#endpoints().every(({ which, state, lanes }) =>
        state !== "enabled" || this.#dead.has(which) ||
        lanes.every((lane) => lane.state === "open")
      );
  }
}
