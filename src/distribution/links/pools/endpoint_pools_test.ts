import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock, MATH_RANDOM } from "../../../base/mod.ts";
import { MemoryLogger, PacedLog } from "../../../observe/mod.ts";
import { TestMetrics, TestNode } from "../testing/kit.ts";
import { TestProxy } from "../testing/peers.ts";
import { CallPace } from "../connection/call_pace.ts";
import type { EndpointPool } from "./endpoint_pool.ts";
import { EndpointPools } from "./endpoint_pools.ts";
import { InboundLanes } from "../lanes/inbound_lanes.ts";
import type { Lane } from "../lanes/lane.ts";
import { LinkMetrics } from "../link_metrics.ts";
import { resolveLinksOptions } from "../links_options.ts";
import { MeshHosts } from "../connection/mesh_hosts.ts";
import type { EndpointAddress } from "../ports.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const REFRESH_MS = 1_000;
const REFRESH_EMPTY_MS = 100;
const COLLECT_MS = 500;
const CONNECTIONS = 2;

/** The endpoints of dc2 as dc1 knows them, behind proxies that the test can close. */
class World implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly log = new MemoryLogger();
  readonly lives = new PacedLog(this.log, this.clock, 64);
  readonly pools: EndpointPools;
  /** The table's list, or the error with which it fails. */
  listed: readonly EndpointAddress[] | Error = [];
  asked = 0;
  /** Delays each lookup, when the test wants it. @default no delay */
  held: Promise<void> | undefined;
  isReached = false;
  readonly hopes: boolean[] = [];
  readonly closing: Lane[] = [];
  readonly #dc2: TestNode;
  readonly #proxies: readonly TestProxy[];

  private constructor(
    dc2: TestNode,
    proxies: readonly TestProxy[],
    { override, most }: {
      readonly override: readonly EndpointAddress[] | undefined;
      readonly most: number;
    },
  ) {
    this.#dc2 = dc2;
    this.#proxies = proxies;
    let lanes = 0;
    const options = resolveLinksOptions({
      connectionsPerEndpoint: CONNECTIONS,
      endpointRefreshIntervalMs: REFRESH_MS,
      endpointRefreshIntervalWhenEmptyMs: REFRESH_EMPTY_MS,
      disabledGcIntervalMs: COLLECT_MS,
      maxDatacenterEndpoints: most,
      // Time passes in leaps here. They must not look like silence, nor cause a new attempt.
      silenceTimeoutMs: 1e9,
      pingIntervalMs: 1e8,
      reconnectFirstMs: 1e9,
      reconnectMaxMs: 1e9,
    });
    const isComponentDomain = () => false;
    this.pools = new EndpointPools(DC2, {
      override,
      isReached: () => this.isReached,
      shared: {
        scope: "mesh",
        identity: {
          globalHost: "example.com",
          localHost: DC1,
          hosts: new Set(["example.com", DC1]),
          nodeName: `node1@${DC1}`,
          process: 1,
          datacenterId: () => "id of dc1",
        },
        options,
        tls: undefined,
        events: { received() {}, returned() {}, pressure() {} },
        traffic: undefined,
        endpoints: { endpoints: (host) => this.#answer(host) },
        calls: new CallPace(this.clock),
        inbound: new InboundLanes(options),
        mesh: new MeshHosts({
          globalHost: "example.com",
          localHost: DC1,
          hosts: [],
          isComponentDomain,
          isOwnProcess: () => false,
        }),
        unproven: undefined,
        metrics: new LinkMetrics(new TestMetrics()),
        clock: this.clock,
        random: MATH_RANDOM,
        log: this.log,
        lives: this.lives,
        nextLane: () => ++lanes,
      },
    }, {
      reachChanged: (link) => this.pools.reachChanged(link),
      opened() {},
      closed() {},
      restarted() {},
      levelChanged() {},
      slows: () => () => {},
      listed: (isNewHope) => void this.hopes.push(isNewHope),
      closing: (lane) => void this.closing.push(lane),
    });
  }

  /** Makes a world of so many `endpoints`; none of them lets a connection through. */
  static async create(
    options: { readonly endpoints?: number; readonly override?: boolean; readonly most?: number } =
      {},
  ): Promise<World> {
    const dc2 = new TestNode(DC2, { tls: undefined });
    await dc2.links.listen();
    const proxies = await Promise.all(
      Array.from({ length: options.endpoints ?? 0 }, () => TestProxy.to(dc2.address)),
    );
    for (const proxy of proxies) proxy.block();
    const override = options.override === true ? proxies.map(({ address }) => address) : undefined;
    return new World(dc2, proxies, { override, most: options.most ?? 100 });
  }

  address(which: number): EndpointAddress {
    return this.#proxies[which]!.address;
  }

  /** Lists these endpoints in the table, and refreshes. */
  async list(...which: readonly number[]): Promise<void> {
    this.listed = which.map((each) => this.address(each));
    await this.pools.refresh();
  }

  pool(which: number): EndpointPool | undefined {
    const { port } = this.address(which);
    return [...this.pools.all].find(({ address }) => address.port === port);
  }

  /** Returns the first lane of an endpoint. */
  lane(which: number): Lane {
    return this.pool(which)!.links[0]!.lane;
  }

  /**
   * State of each endpoint in order, such as `enabled 2/2 open`; undefined for one that does not
   * exist.
   */
  get shown(): readonly (string | undefined)[] {
    return this.#proxies.map((_, which) => {
      const pool = this.pool(which);
      if (pool === undefined) return undefined;
      const open = pool.links.filter(({ isOpen }) => isOpen).length;
      return `${pool.state} ${open}/${pool.links.length} open`;
    });
  }

  async letThrough(which: number): Promise<void> {
    await this.#untilCalled(which);
    this.#proxies[which]!.unblock();
    for (const link of this.pool(which)!.links) link.connect();
    await this.until(() => this.pool(which)!.links.every(({ isOpen }) => isOpen), "links are open");
  }

  async shut(which: number): Promise<void> {
    this.#proxies[which]!.block();
    await this.#untilCalled(which);
  }

  until(isMet: () => boolean, what: string): Promise<void> {
    return this.#dc2.until(isMet, what);
  }

  /** Lets `byMs` pass, and ticks the pools. */
  async tick(byMs: number): Promise<void> {
    this.clock.advance(byMs);
    await immediately(); // a list read meanwhile is applied
    this.pools.tick(this.clock.monotonicMs());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.pools.stop("leaving", "the test is over");
    await this.until(() => {
      this.clock.advance(1_000); // closing has a time limit
      this.pools.tick(this.clock.monotonicMs());
      return this.pools.hasEnded;
    }, "all connections have ended");
    await Promise.all(this.#proxies.map((proxy) => proxy[Symbol.asyncDispose]()));
    await this.#dc2[Symbol.asyncDispose]();
  }

  async #answer(host: string): Promise<readonly EndpointAddress[]> {
    assert.equal(host, DC2);
    this.asked++;
    const { listed } = this;
    await this.held;
    if (listed instanceof Error) throw listed;
    return listed;
  }

  /** Waits until no link of the endpoint is being made, and no open link has died. */
  async #untilCalled(which: number): Promise<void> {
    const hasFailed = () => this.pool(which)!.links.every(({ phase }) => phase === "waiting");
    await this.until(hasFailed, `endpoint ${which} has been called`);
  }
}

Deno.test("EndpointPools.refresh() links to each new endpoint, and reports new hope once", async () => {
  await using world = await World.create({ endpoints: 2 });
  await world.list();
  await world.list(0);
  await world.list(0, 1);
  const [first] = world.pool(0)!.links;
  await world.list(1, 0);
  assert.deepEqual(world.shown, ["enabled 0/2 open", "enabled 0/2 open"]);
  assert.equal(world.pool(0)!.links[0], first, "the earlier link stays");
  assert.deepEqual(world.hopes, [false, true, false, false]);
});

Deno.test("EndpointPools.refresh() dials override's endpoints without reading the table", async () => {
  await using world = await World.create({ endpoints: 1, override: true });
  await world.pools.refresh();
  assert.deepEqual([world.shown, world.asked], [["enabled 0/2 open"], 0]);
});

Deno.test("an endpoint that vanishes is disabled, keeps its open links, and is enabled when listed again", async () => {
  await using world = await World.create({ endpoints: 2 });
  await world.list(0, 1);
  await world.letThrough(0);
  const lane = world.lane(0);
  await world.list(1);
  assert.deepEqual(world.shown, ["disabled 2/2 open", "enabled 0/2 open"]);
  assert.equal(lane.isEnabled, false);
  await world.tick(COLLECT_MS);
  assert.deepEqual(
    world.shown,
    ["disabled 2/2 open", "enabled 0/2 open"],
    "the first endpoint's links live",
  );
  await world.list(0);
  assert.deepEqual(world.shown, ["enabled 2/2 open", "disabled 0/2 open"]);
  assert.equal(world.lane(0), lane);
  assert.equal(lane.isEnabled, true);
  assert.deepEqual(world.closing, []);
});

Deno.test("a disabled endpoint is closed once all its links are dead, at the collector's next round", async () => {
  await using world = await World.create({ endpoints: 1 });
  await world.list(0);
  await world.letThrough(0);
  await world.list();
  await world.shut(0);
  const lanes = [...world.pools.lanes()];
  await world.tick(COLLECT_MS - 1);
  assert.deepEqual(world.shown, ["disabled 0/2 open"]);
  assert.deepEqual(world.closing, []);
  await world.tick(1);
  assert.deepEqual(world.shown, [undefined]);
  assert.deepEqual(world.closing, lanes);
  await world.list(0);
  assert.deepEqual(world.shown, ["enabled 0/2 open"]);
  assert.ok(!lanes.includes(world.lane(0)), "an endpoint that appears again has new lanes");
});

Deno.test("endpoints that come and go all the time write a bounded number of lines, and how many there were", async () => {
  await using world = await World.create({ endpoints: 2 });
  for (let i = 0; i < 200; i++) await world.list(i % 2);
  const lines = (event: string) => world.log.named(event);
  assert.equal(lines("endpoint.enabled").length, 64);
  assert.equal(lines("endpoint.disabled").length, 64);
  world.clock.advance(60_000);
  world.lives.flush();
  assert.equal(lines("endpoint.enabled").at(-1)?.fields["count"], 198 - 64);
});

Deno.test("EndpointPools.connect() calls enabled endpoints at once, and no others", async () => {
  await using world = await World.create({ endpoints: 2 });
  await world.list(0, 1);
  await world.shut(0);
  await world.shut(1);
  await world.list(1);
  world.pools.connect();
  const phases = [0, 1].map((which) => world.pool(which)!.links.map(({ phase }) => phase));
  assert.deepEqual(phases, [["waiting", "waiting"], ["dialling", "dialling"]]);
});

Deno.test("EndpointPools.bestLane() prefers lanes that are enabled and not gone, then live, then with few senders", async () => {
  await using world = await World.create({ endpoints: 2 });
  assert.equal(world.pools.bestLane(), undefined);
  await world.list(0, 1);
  await world.shut(0);
  await world.shut(1);
  const [one, other] = [world.lane(0), world.lane(1)];
  const rest = [...world.pools.lanes()].filter((lane) => lane !== one && lane !== other);
  type Standing = Partial<Pick<Lane, "isEnabled" | "isLive" | "isGone" | "senders">>;
  const set = (lane: Lane, standing: Standing) =>
    Object.assign(lane, { isEnabled: true, isLive: false, isGone: false, senders: 0 }, standing);
  for (const lane of rest) set(lane, { isEnabled: false });
  const cases: readonly (readonly [better: Standing, worse: Standing])[] = [
    [{ isLive: true, senders: 9 }, {}],
    [{ senders: 9 }, { isGone: true }],
    [{}, { isEnabled: false, isLive: true }],
    [{ isEnabled: false, isLive: true, senders: 9 }, { isGone: true }],
    [{ isGone: true }, { isEnabled: false }],
    [{ isLive: true, senders: 1 }, { isLive: true, senders: 2 }],
  ];
  for (const [better, worse] of cases) {
    for (const [winner, loser] of [[one, other], [other, one]] as const) {
      set(winner, better);
      set(loser, worse);
      const what = `${JSON.stringify(better)} before ${JSON.stringify(worse)}`;
      assert.equal(world.pools.bestLane(), winner, what);
    }
  }
  for (const lane of [one, other]) set(lane, { isEnabled: false });
  assert.equal(world.pools.bestLane(), undefined, "all endpoints are disabled and dead");
  for (const lane of world.pools.lanes()) set(lane, {});
});

Deno.test("EndpointPools.markGone() marks all links of an endpoint that are not live", async () => {
  await using world = await World.create({ endpoints: 2 });
  await world.list(0, 1);
  await world.shut(0);
  await world.shut(1);
  const [first, second] = world.pool(0)!.links;
  second!.lane.isLive = true;
  world.pools.markGone(first!);
  const gone = [...world.pools.lanes()].filter(({ isGone }) => isGone);
  second!.lane.isLive = false;
  assert.deepEqual(gone, [first!.lane]);
});

Deno.test("EndpointPools.isGone is true while every enabled endpoint refuses", async () => {
  await using world = await World.create({ endpoints: 2 });
  assert.equal(world.pools.isGone, false, "no endpoint is known");
  await world.list(0, 1);
  await world.shut(0);
  await world.shut(1);
  const links = world.pool(0)!.links;
  for (const link of links) {
    assert.equal(world.pools.isGone, false);
    link.lane.isGone = true;
    world.pools.reachChanged(link);
  }
  assert.equal(world.pools.isGone, false);
  await world.list(0);
  assert.equal(world.pools.isGone, true, "a disabled endpoint does not count");
  links[0]!.lane.isLive = true;
  world.pools.reachChanged(links[0]!);
  assert.deepEqual([world.pools.isGone, world.pools.openLinks], [false, 1]);
  links[0]!.lane.isLive = false;
  world.pools.reachChanged(links[0]!);
  assert.deepEqual([world.pools.isGone, world.pools.openLinks], [true, 0]);
  await world.list();
  assert.equal(world.pools.isGone, false, "no endpoint is enabled");
});

Deno.test("EndpointPools.isGone stays true when the endpoints of a process that has ended vanish", async () => {
  await using world = await World.create({ endpoints: 1 });
  await world.list(0);
  await world.shut(0);
  await world.list();
  assert.equal(world.pools.isGone, false, "they may be silent only");
  for (const lane of world.pools.lanes()) lane.isGone = true;
  assert.equal(world.pools.isGone, true);
});

Deno.test("EndpointPools.isNowhere() is true when each endpoint refuses, or is another process's", async () => {
  await using world = await World.create({ endpoints: 2 });
  const other = 7;
  assert.equal(world.pools.isNowhere(other), false, "no endpoint is known");
  await world.list(0, 1);
  await world.letThrough(1);
  const { lastProcess } = world.pool(1)!.links[0]!;
  const lanes = world.pool(0)!.links.map(({ lane }) => lane);
  assert.equal(world.pools.isNowhere(other), false, "one endpoint is silent");
  lanes[0]!.isGone = true;
  assert.equal(world.pools.isNowhere(other), false, "only one of the links is known to be gone");
  for (const lane of lanes) lane.isGone = true;
  assert.equal(world.pools.isNowhere(other), true);
  assert.equal(
    world.pools.isNowhere(lastProcess),
    false,
    "the process listens at the second endpoint",
  );
  await world.list(1);
  assert.equal(
    world.pools.isNowhere(other),
    true,
    "an endpoint that is no longer listed counts too",
  );
  for (const lane of lanes) lane.isGone = false;
});

Deno.test("EndpointPools keeps its endpoints while the table fails, and logs that once", async () => {
  await using world = await World.create({ endpoints: 1 });
  await world.list(0);
  const unknown = () => world.log.named("endpoints.unknown").length;
  for (const [failures, round] of [[1, 1], [1, 2], [2, 3]] as const) {
    if (round === 3) await world.list(0); // the table works again: the next failure is news
    world.listed = new Error("Redis is away");
    await world.pools.refresh();
    assert.deepEqual([world.shown, unknown()], [["enabled 0/2 open"], failures]);
  }
});

Deno.test("EndpointPools.refresh() reads the table once for simultaneous callers", async () => {
  await using world = await World.create();
  const { promise, resolve } = Promise.withResolvers<void>();
  world.held = promise;
  const both = [world.pools.refresh(), world.pools.refresh()];
  resolve();
  await Promise.all(both);
  assert.equal(world.asked, 1);
  await world.pools.refresh();
  assert.equal(world.asked, 2);
});

Deno.test("EndpointPools refreshes after the interval, sooner while no endpoint is listed or linked", async () => {
  await using world = await World.create({ endpoints: 1 });
  const cases = [
    { listed: [], isReached: true, afterMs: REFRESH_EMPTY_MS },
    { listed: [0], isReached: false, afterMs: REFRESH_EMPTY_MS },
    { listed: [0], isReached: true, afterMs: REFRESH_MS },
  ];
  for (const { listed, isReached, afterMs } of cases) {
    world.isReached = isReached;
    await world.list(...listed);
    const { asked } = world;
    world.clock.advance(afterMs - 1);
    assert.equal(world.asked, asked);
    world.clock.advance(1);
    assert.equal(world.asked, asked + 1);
    await immediately(); // the list is applied
  }
});

Deno.test("EndpointPools.refreshSoon() brings the next refresh forward, and never delays it", async () => {
  await using world = await World.create({ endpoints: 1 });
  world.isReached = true;
  await world.list(0);
  await world.shut(0);
  const timers = world.clock.pendingTimers;
  world.pools.refreshSoon();
  assert.equal(world.clock.pendingTimers, timers, "one timer for each destination");
  world.clock.advance(REFRESH_EMPTY_MS - 1);
  world.pools.refreshSoon();
  assert.equal(world.asked, 1);
  world.clock.advance(1);
  assert.equal(world.asked, 2);
});

Deno.test("EndpointPools.stop() ends the links, ignores a pending list, and refreshes no more", async () => {
  await using world = await World.create({ endpoints: 1 });
  await world.list(0);
  await world.letThrough(0);
  const { promise, resolve } = Promise.withResolvers<void>();
  world.held = promise;
  world.listed = [];
  const refreshing = world.pools.refresh();
  world.pools.stop("leaving", "it ends");
  resolve();
  await refreshing;
  world.pools.refreshSoon();
  assert.deepEqual([world.pools.isStopped, world.pool(0)?.state], [true, "enabled"]);
  await world.until(() => world.pools.hasEnded, "its links have ended");
  assert.equal(world.pools.openLinks, 0);
  world.clock.advance(REFRESH_MS);
  assert.equal(world.asked, 2);
});

Deno.test("EndpointPools keeps to its bound of endpoints; one that is no longer listed makes room", async () => {
  await using world = await World.create({ endpoints: 4, most: 2 });
  await world.list(0, 1, 2, 3);
  assert.deepEqual(world.shown, ["enabled 0/2 open", "enabled 0/2 open", undefined, undefined]);
  await world.list(0, 1, 2);
  const lines = () => world.log.named("datacenter.limit").map(({ fields }) => fields);
  assert.deepEqual(lines(), [{ host: DC2, limit: "endpoints", bound: 2 }], "said once");
  await world.list(1);
  assert.deepEqual(world.shown[0], "disabled 0/2 open");
  await world.list(1, 3);
  assert.deepEqual(world.shown, [undefined, "enabled 0/2 open", undefined, "enabled 0/2 open"]);
});
