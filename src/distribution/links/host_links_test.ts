import assert from "node:assert/strict";
import { setImmediate as immediately } from "node:timers/promises";
import { ManualClock, MATH_RANDOM } from "../../base/mod.ts";
import { MemoryLogger, PacedLog, SILENT_LOGGER } from "../../observe/mod.ts";
import type { Envelope, Settler } from "../mod.ts";
import { decodeStanza } from "../wire/mod.ts";
import { testEnvelope, TestMetrics, TestSettler } from "./_test_kit.ts";
import { HostLinks } from "./host_links.ts";
import { InboundLanes } from "./inbound_lanes.ts";
import type { Lane } from "./lane.ts";
import { LinkMetrics } from "./link_metrics.ts";
import type { LinkScope } from "./link_scope.ts";
import type { LinksOptions } from "./links_options.ts";
import { resolveLinksOptions } from "./links_options.ts";
import { MeshHosts } from "./mesh_hosts.ts";
import type { OutgoingLink } from "./outgoing_link.ts";
import type { EndpointAddress, ReturnReason } from "./ports.ts";

const DC1 = "dc1.example.com";
const DC2 = "dc2.example.com";
const DC3 = "dc3.example.com";
const PEER = 9;
const [ALICE, BOB, CAROL] = ["alice@example.com/a", "bob@example.com/b", "carol@example.com/c"];
const EXPIRE_MS = 12_000;
const REROUTE_MS = 1_000;
const REHOME_MS = 3_000;
const COLLECT_MS = 500;
const FAR_MS = 1e9;

interface Situation {
  readonly options?: LinksOptions;
  /** @default mesh */
  readonly scope?: LinkScope;
  /** Where somebody is. @default nobody is looked for */
  readonly whereabouts?: (to: string) => string | undefined;
}

/** All that dc1 has outgoing to dc2, whose endpoints can be called by nobody: the test plays the links. */
class World implements Disposable {
  readonly clock = new ManualClock();
  readonly metrics = new TestMetrics();
  readonly hosts: HostLinks;
  readonly pressure: string[] = [];
  /** How often the table was asked for endpoints. */
  asked = 0;
  /** What is given back is sent again at once, as when nobody knows better. */
  sendsAgain = false;
  readonly #returned: string[] = [];
  #listed: readonly EndpointAddress[] = [];

  constructor({ options, scope = "mesh", whereabouts }: Situation = {}) {
    let lanes = 0;
    const resolved = resolveLinksOptions({
      rerouteFirstMs: REROUTE_MS,
      expireAfterMs: EXPIRE_MS,
      rehomeAfterMs: REHOME_MS,
      disabledGcIntervalMs: COLLECT_MS,
      // The test lists endpoints, and calls them, when it wants to.
      endpointRefreshIntervalMs: FAR_MS,
      endpointRefreshIntervalWhenEmptyMs: FAR_MS,
      reconnectFirstMs: FAR_MS,
      reconnectMaxMs: FAR_MS,
      ...options,
    });
    const returned = (envelope: Envelope, reason: ReturnReason) => {
      const { sequence, mayBeRepeat } = envelope;
      this.#returned.push(`${sequence}${mayBeRepeat ? "?" : ""} ${reason}`);
      if (this.sendsAgain) this.hosts.send(envelope);
    };
    this.hosts = new HostLinks(DC2, {
      scope,
      identity: {
        globalHost: "example.com",
        localHost: DC1,
        hosts: new Set(["example.com", DC1]),
        nodeName: `node1@${DC1}`,
        process: 1,
        datacenterId: () => "id of dc1",
      },
      options: resolved,
      tls: undefined,
      handlers: {
        received() {},
        returned,
        pressure: (sender, isOver) => void this.pressure.push(`${sender} ${isOver}`),
        ...(whereabouts === undefined
          ? {}
          : { whereabouts: (to) => Promise.resolve(whereabouts(to.text)) }),
      },
      traffic: undefined,
      endpoints: {
        endpoints: () => {
          this.asked++;
          return Promise.resolve(this.#listed);
        },
      },
      inbound: new InboundLanes(resolved),
      mesh: new MeshHosts({
        globalHost: "example.com",
        localHost: DC1,
        hosts: [],
        isComponentDomain: () => false,
        isOwnProcess: () => false,
      }),
      unproven: undefined,
      metrics: new LinkMetrics(this.metrics),
      clock: this.clock,
      random: MATH_RANDOM,
      log: new MemoryLogger(),
      lives: new PacedLog(SILENT_LOGGER, this.clock, 64),
      nextLane: () => ++lanes,
    }, undefined);
  }

  /** The table lists these endpoints, which are called in vain. */
  async list(...which: readonly number[]): Promise<void> {
    this.#listed = which.map(addressOf);
    await this.hosts.refresh();
    await immediately();
    for (const each of which) assert.notEqual(this.link(each).phase, "dialling");
  }

  link(which: number): OutgoingLink {
    const { port } = addressOf(which);
    const pool = [...this.hosts.pools].find(({ address }) => address.port === port);
    return pool!.links[0]!; // listed before
  }

  lane(which: number): Lane {
    return this.link(which).lane;
  }

  /** The process at an endpoint has greeted; it has received what it said before. */
  up(...which: readonly number[]): void {
    for (const each of which) {
      const lane = this.lane(each);
      assert.equal(lane.resume(PEER, lane.received), "resumed");
      lane.isLive = true;
      lane.isGone = false;
      this.hosts.opened(this.link(each));
    }
  }

  /** The link to an endpoint has ended. @param isGone nobody listens there any more */
  down(which: number, isGone = false): void {
    const lane = this.lane(which);
    lane.isLive = false;
    lane.downSinceMs = this.clock.monotonicMs();
    lane.isGone ||= isGone;
    this.hosts.closed(this.link(which));
  }

  send(sequence: number, who: { from?: string; to?: string; settler?: Settler } = {}): void {
    this.hosts.send(testEnvelope(sequence, { from: ALICE, to: BOB, ...who }));
  }

  /** This many more go out to an endpoint, and `received` and `settled` come back. */
  write(which: number, count: number, received = 0, settled = 0): void {
    const lane = this.lane(which);
    for (let i = 0; i < count; i++) assert.equal(lane.flush(1, () => {}).fresh, 1);
    assert.ok(lane.acknowledge({ received, settled, creditBytes: 0, ranges: [] }));
  }

  /** What came back since the last call: its number, `?` when it may be a repeat, and the reason. */
  returned(): readonly string[] {
    return this.#returned.splice(0);
  }

  tick(byMs = 0): void {
    this.clock.advance(byMs);
    this.hosts.tick(this.clock.monotonicMs());
  }

  [Symbol.dispose](): void {
    this.hosts.stop("leaving", "the test is over");
    assert.ok(this.hosts.hasEnded);
    assert.equal(this.clock.pendingTimers, 0);
  }
}

/** Such a port there is not: calling it fails at once, without a socket. */
function addressOf(which: number): EndpointAddress {
  return { host: "127.0.0.1", port: 70_000 + which };
}

/** What a lane holds and its peer has not received, in order: `?` marks what may be a repeat. */
function held(lane: Lane): readonly string[] {
  return [...lane.unreceived()].map(({ slab, start, end }) => {
    const { sequence, mayBeRepeat } = decodeStanza(slab.bytes, start, end);
    return `${sequence}${mayBeRepeat ? "?" : ""}`;
  });
}

function numbered(reason: ReturnReason, ...sequences: readonly (number | string)[]): string[] {
  return sequences.map((sequence) => `${sequence} ${reason}`);
}

Deno.test("HostLinks.send() keeps what has no endpoint, as much as a lane, and hands it to the first", async () => {
  using world = new World({ options: { laneMaxItems: 3 } });
  for (const sequence of [1, 2, 3, 4]) world.send(sequence);
  assert.deepEqual(world.returned(), ["4 full"]);
  assert.equal(world.metrics.value(`outgoing_returned_total ${DC2}`), 1);
  assert.deepEqual([world.hosts.parkedItems, world.hosts.items], [3, 3]);
  await world.list(0);
  assert.deepEqual(held(world.lane(0)), ["1", "2", "3"], "none was sent before");
  assert.deepEqual([world.hosts.parkedItems, world.hosts.items], [0, 3]);
});

Deno.test("HostLinks.send() leaves a sender in a lane that holds something of theirs, live or not", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0);
  world.send(1);
  world.up(1);
  world.down(0);
  world.send(2);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [["1", "2"], []]);
  world.up(0);
  world.write(0, 2, 2, 2);
  world.send(3);
  assert.deepEqual(held(world.lane(0)), ["3"], "it is up: there is no reason to go");
  world.write(0, 1, 3, 3);
  world.down(0);
  world.send(4);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["4"]]);
});

Deno.test("HostLinks.send() leaves no sender to an endpoint that is not listed, once they hold nothing there", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  world.send(1);
  await world.list(1);
  world.up(1);
  world.send(2);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [["1", "2"], []]);
  world.write(0, 2, 2, 2);
  world.send(3);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["3"]]);
  assert.equal(world.hosts.senders, 1);
});

Deno.test("HostLinks forgets who has sent nothing for bindingIdleMs and has nothing here", async () => {
  using world = new World({ options: { bindingIdleMs: 2_000, tickMs: 1_000 } });
  await world.list(0);
  world.up(0);
  world.send(1);
  world.send(2, { from: CAROL });
  world.write(0, 2, 2, 1);
  world.tick(1_000);
  assert.equal(world.hosts.senders, 2);
  world.tick(1_000);
  assert.equal(world.hosts.senders, 1);
});

for (const [scope, reason] of [["mesh", "peer-gone"], ["datacenter", "peer-restarted"]] as const) {
  Deno.test(`HostLinks gives back at once, as ${reason}, what processes of a ${scope} had that have ended`, async () => {
    using world = new World({ scope });
    await world.list(0, 1);
    world.up(0);
    for (const sequence of [1, 2]) world.send(sequence);
    world.write(0, 1);
    world.down(0);
    assert.deepEqual([world.returned(), world.hosts.isGone], [[], false]);
    await world.list(0);
    world.down(0, true);
    assert.equal(world.hosts.isGone, true);
    assert.deepEqual(world.returned(), numbered(reason, "1?", 2));
  });
}

Deno.test("HostLinks takes a process for gone on all its links when it is on one", async () => {
  using world = new World({ options: { connectionsPerEndpoint: 2 } });
  await world.list(0);
  world.send(1);
  world.send(2, { from: CAROL });
  assert.deepEqual(held(world.lane(0)), ["1"], "each has a lane of their own");
  world.down(0, true);
  assert.deepEqual(world.returned(), numbered("peer-gone", 1, 2));
});

Deno.test("HostLinks.restarted() gives back what a process had that is another one now", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  for (const sequence of [1, 2, 3]) world.send(sequence);
  world.write(0, 2, 1);
  const lane = world.lane(0);
  assert.equal(lane.resume(PEER + 1, 0), "restarted");
  world.hosts.restarted(world.link(0), lane.takeForRestart());
  assert.deepEqual(world.returned(), numbered("peer-restarted", "1?", "2?", 3));
});

Deno.test("HostLinks moves what a dead, unlisted endpoint holds to one that is listed, which ends the old lane first", async () => {
  for (const isSent of [true, false]) {
    using world = new World();
    await world.list(0);
    world.up(0);
    world.send(1);
    if (isSent) world.write(0, 1);
    world.send(2);
    await world.list(1);
    assert.deepEqual(held(world.lane(1)), [], "as long as it lives it keeps what it has");
    world.down(0);
    assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], [isSent ? "1?" : "1", "2"]]);
    assert.deepEqual(world.lane(1).takeUntold(), isSent ? [world.lane(0).id] : []);
    world.send(3);
    assert.deepEqual(held(world.lane(1)).at(-1), "3", "behind what moved");
  }
});

Deno.test("HostLinks moves what waits for a process that has ended to another at once, each sender's together", async () => {
  using world = new World();
  await world.list(0);
  for (const sequence of [1, 2]) world.send(sequence);
  world.send(3, { from: CAROL });
  await world.list(0, 1, 2);
  world.down(0, true);
  const lanes = [0, 1, 2].map((which) => held(world.lane(which)));
  assert.deepEqual(lanes, [[], ["1", "2"], ["3"]]);
});

Deno.test("HostLinks moves nothing to an endpoint that is not listed, as soon as it is all the more", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0, 1);
  world.send(1);
  await world.list();
  world.down(0);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [["1"], []]);
  await world.list(1);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["1"]]);
});

Deno.test("HostLinks parks what an endpoint holds that is collected, until there is another", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  for (const sequence of [1, 2]) world.send(sequence);
  world.write(0, 1);
  await world.list();
  world.down(0);
  world.tick(COLLECT_MS);
  assert.deepEqual([[...world.hosts.pools], world.hosts.parkedItems], [[], 2]);
  world.send(3);
  await world.list(1);
  assert.deepEqual(held(world.lane(1)), ["1?", "2", "3"]);
});

Deno.test("HostLinks moves what waits for a node out of reach after rehomeAfterMs, to one that is reached", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0);
  world.send(1);
  world.down(0);
  world.tick(REHOME_MS);
  assert.deepEqual(held(world.lane(0)), ["1"], "no other is reached");
  world.up(0, 1);
  world.tick(REHOME_MS);
  assert.deepEqual([held(world.lane(0)), world.lane(0).last], [["1"], 1], "it is reached");
  world.down(0);
  world.tick(REHOME_MS - 1);
  assert.deepEqual(held(world.lane(0)), ["1"]);
  world.tick(1);
  assert.deepEqual([held(world.lane(0)), held(world.lane(1))], [[], ["1"]]);
});

Deno.test("HostLinks routes anew what waits where nobody is, ever less often, and begins anew once one was reached", async () => {
  using world = new World({ options: { expireAfterMs: 12 * REROUTE_MS } });
  world.sendsAgain = true;
  world.send(1);
  world.tick(); // it is seen to wait
  const wait = (delayMs: number) => {
    world.tick(delayMs - 1);
    assert.deepEqual(world.returned(), []);
    world.tick(1);
    assert.deepEqual(world.returned(), ["1 peer-gone"], `${delayMs}`);
  };
  for (const times of [1, 2, 3, 3]) wait(times * REROUTE_MS); // a quarter of what it takes to expire
  await world.list(0);
  world.up(0);
  for (let i = 0; i < 2; i++) world.tick(REROUTE_MS);
  await world.list();
  world.down(0);
  world.tick();
  wait(REROUTE_MS);
});

Deno.test("HostLinks.reconsider() takes back what waits for a node that is cut off, until that is settled", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  world.send(1);
  world.down(0);
  for (let i = 0; i < 3; i++) world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), [], "it may still be there");
  world.hosts.reconsider();
  world.tick();
  world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), ["1 peer-gone"]);
  world.up(0);
  world.tick();
  world.send(2);
  world.down(0);
  for (let i = 0; i < 3; i++) world.tick(REROUTE_MS);
  assert.deepEqual(world.returned(), [], "nobody waits for what has come since");
});

Deno.test("HostLinks gives all back that expireAfterMs have not brought to a link, counted from the last one", async () => {
  using world = new World();
  await world.list(0);
  world.tick(EXPIRE_MS);
  world.up(0);
  world.send(1);
  world.send(2);
  world.write(0, 1);
  world.tick(EXPIRE_MS);
  assert.deepEqual(world.returned(), [], "it is up");
  world.down(0);
  world.tick(EXPIRE_MS - 1);
  assert.deepEqual(world.returned(), []);
  world.tick(1);
  assert.deepEqual(world.returned(), numbered("expired", "1?", 2));
});

Deno.test("HostLinks lets expire what has waited for a first endpoint in vain", () => {
  using world = new World({ options: { rerouteFirstMs: FAR_MS } });
  world.tick(EXPIRE_MS);
  world.send(1);
  world.tick(EXPIRE_MS - 1);
  assert.deepEqual(world.returned(), []);
  world.tick(1);
  assert.deepEqual(world.returned(), ["1 expired"]);
});

Deno.test("HostLinks looks for endpoints again soon while none is reached, and when a link has ended", async () => {
  using world = new World({
    options: { endpointRefreshIntervalMs: 1_000, endpointRefreshIntervalWhenEmptyMs: 100 },
  });
  await world.list(0);
  const looksAfter = async (delayMs: number) => {
    const { asked } = world;
    world.clock.advance(delayMs - 1);
    assert.equal(world.asked, asked);
    world.clock.advance(1);
    assert.equal(world.asked, asked + 1);
    await immediately(); // what was read is applied
  };
  await looksAfter(100);
  world.up(0);
  await looksAfter(100); // as was settled before
  await looksAfter(1_000);
  world.down(0);
  await looksAfter(100);
});

Deno.test("HostLinks gives what waits its full time again when there is new hope", async () => {
  using world = new World({ options: { rerouteFirstMs: FAR_MS } });
  world.send(1);
  world.tick(EXPIRE_MS - 1);
  await world.list(0);
  world.tick(1);
  await world.list(0, 1); // that is not new
  world.tick(EXPIRE_MS - 2);
  assert.deepEqual(world.returned(), []);
  world.tick(1);
  assert.deepEqual(world.returned(), ["1 expired"]);
});

/** 1 has been received, 2 and 4 wait for Bob, 3 for Carol; nothing is reached any more. */
async function outOfReach(world: World): Promise<void> {
  await world.list(0);
  world.up(0);
  world.send(1, { to: BOB });
  world.write(0, 1, 1);
  for (const [sequence, to] of [[2, BOB], [3, CAROL], [4, BOB]] as const) {
    world.send(sequence, { to });
  }
  world.down(0);
  world.tick();
}

Deno.test("HostLinks looks for whom it cannot reach, and routes anew what is for those who are elsewhere", async () => {
  const asked: string[] = [];
  let bob: string | undefined;
  using world = new World({
    whereabouts: (to) => {
      asked.push(to);
      return to === BOB ? bob : DC2;
    },
  });
  await outOfReach(world);
  world.tick(REROUTE_MS - 1);
  const { last } = world.lane(0);
  for (const [place, delayMs] of [[undefined, 1], [DC2, 2 * REROUTE_MS]] as const) {
    bob = place;
    world.tick(delayMs - 1);
    assert.deepEqual(asked, []);
    world.tick(1);
    await immediately();
    assert.deepEqual(asked.splice(0), [BOB, CAROL], "each once");
    assert.deepEqual([world.returned(), world.lane(0).last], [[], last], "nothing is touched");
  }
  bob = DC3;
  world.tick(3 * REROUTE_MS);
  await immediately();
  assert.deepEqual(world.returned(), numbered("peer-gone", 2, 4));
  assert.deepEqual(
    held(world.lane(0)),
    ["1?", "3"],
    "what was received is the peer's, wherever he is",
  );
});

Deno.test("HostLinks heeds no answer that comes when somebody is reached again, or it has stopped", async () => {
  const ends: readonly ((world: World) => void)[] = [
    (world) => world.up(0),
    (world) => world.hosts.stop("leaving", "it ends"),
  ];
  for (const end of ends) {
    using world = new World({ whereabouts: () => DC3 });
    await outOfReach(world);
    world.tick(REROUTE_MS);
    end(world);
    await immediately();
    assert.deepEqual([world.returned(), held(world.lane(0))], [[], ["2", "3", "4"]]);
  }
});

Deno.test("HostLinks looks for nobody as long as it reaches one node, and for rerouteFirstMs after", async () => {
  let asked = 0;
  using world = new World({
    whereabouts: () => {
      asked++;
      return undefined;
    },
  });
  await world.list(0);
  world.up(0);
  world.send(1);
  for (let i = 0; i < 3; i++) world.tick(REROUTE_MS);
  for (const looks of [0, 1]) {
    world.down(0);
    world.tick();
    world.tick(REROUTE_MS - 1);
    assert.equal(asked, looks);
    world.tick(1);
    assert.equal(asked, looks + 1);
    world.up(0);
  }
});

Deno.test("HostLinks.giveUp() leaves to the peer what that has received, and gives back the rest and what comes", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  const own = new TestSettler();
  const fates: string[] = [];
  const others: Settler = {
    settle: () => void fates.push("settled"),
    leftOpen: () => void fates.push("left open"),
  };
  world.send(1, { settler: own });
  world.send(2, { settler: others });
  for (const sequence of [3, 4]) world.send(sequence, { settler: own });
  world.write(0, 3, 2);
  world.hosts.giveUp();
  assert.deepEqual([own.settled, fates], [[1], ["left open"]]);
  assert.deepEqual(world.returned(), numbered("leaving", "3?", 4));
  world.send(5, { settler: own });
  assert.deepEqual([world.returned(), own.settled], [["5 leaving"], [1]]);
  assert.ok(world.link(0).isStopped);
});

Deno.test("HostLinks.giveBackAll() gives back what was received too, unless we leave", async () => {
  using world = new World();
  await world.list(0);
  world.up(0);
  for (const sequence of [1, 2]) world.send(sequence);
  world.write(0, 1, 1);
  world.hosts.giveBackAll("expired");
  assert.deepEqual(world.returned(), numbered("expired", "1?", 2));
  assert.equal(world.hosts.items, 0);
});

Deno.test("HostLinks.watchHeld() looks at what its lanes hold, and at nothing that comes later", async () => {
  using world = new World();
  assert.equal(world.hosts.watchHeld()(), "gone");
  world.send(1);
  const parked = world.hosts.watchHeld();
  assert.equal(parked(), "open", "it waits for an endpoint");
  await world.list(0);
  world.up(0);
  assert.equal(parked(), "open", "it has moved to a lane");
  world.send(2);
  const held = world.hosts.watchHeld();
  world.send(3);
  world.write(0, 3, 1);
  assert.equal(parked(), "received");
  assert.equal(held(), "open");
  world.write(0, 0, 2);
  assert.equal(held(), "received", "the third has come later");
  world.down(0);
  assert.equal(held(), "open", "whether the peer lives nobody knows");
  world.up(0);
  world.write(0, 0, 2, 2);
  assert.deepEqual([parked(), held(), world.hosts.items], ["gone", "gone", 1]);
});

Deno.test("HostLinks.watchHeld() sees what goes back as gone, and follows what changes lanes", async () => {
  using world = new World();
  await world.list(0, 1);
  world.up(0);
  for (const sequence of [1, 2]) world.send(sequence);
  let times = 0;
  const moved = world.hosts.watchHeld(() => times++);
  assert.deepEqual([moved(), times], ["open", 0]);
  world.down(0);
  world.up(1);
  await world.list(1);
  assert.equal(world.hosts.items, 2);
  assert.deepEqual([moved(), moved(), times], ["open", "open", 1]);
  world.write(1, 2, 2, 2);
  assert.equal(moved(), "gone");
  world.send(3);
  const returned = world.hosts.watchHeld();
  world.hosts.giveBackAll("expired");
  assert.equal(returned(), "gone");
});

Deno.test("HostLinks slows who feeds a live lane that is over, until that is down, or has emptied or given all back", async () => {
  const options = { laneMaxItems: 8, laneHighWater: 0.5, laneLowWater: 0.25 };
  using world = new World({ options });
  await world.list(0, 1);
  world.up(0);
  const told = () => world.pressure.splice(0);
  for (const sequence of [1, 2, 3, 4]) world.send(sequence);
  assert.deepEqual(told(), []);
  world.send(5);
  assert.deepEqual(told(), [`${ALICE} true`]);
  world.send(6);
  assert.deepEqual(told(), [], "it is known");
  world.send(7, { from: CAROL });
  assert.deepEqual(told(), [`${CAROL} true`]);
  world.down(0);
  assert.deepEqual(told(), [`${ALICE} false`, `${CAROL} false`]);
  world.up(0);
  assert.deepEqual(told(), [`${ALICE} true`, `${CAROL} true`]);
  world.write(0, 7, 7, 6);
  assert.deepEqual(told(), [`${ALICE} false`, `${CAROL} false`]);
  for (const sequence of [8, 9, 10, 11]) world.send(sequence, { from: CAROL });
  assert.deepEqual(told(), [`${CAROL} true`]);
  world.hosts.giveBackAll("expired");
  assert.deepEqual(told(), [`${CAROL} false`]);
});

Deno.test("HostLinks.peerArrived() looks and calls at once, unless somebody is reached or it has stopped", async () => {
  using world = new World();
  await world.list(0);
  world.hosts.peerArrived();
  assert.deepEqual([world.asked, world.link(0).phase], [2, "dialling"]);
  await immediately();
  world.up(0);
  world.hosts.peerArrived();
  assert.equal(world.asked, 2);
  world.down(0);
  world.hosts.stop("leaving", "it ends");
  world.hosts.peerArrived();
  assert.deepEqual([world.asked, world.link(0).phase], [2, "stopped"]);
});
/** One endpoint, whose lane has sent a stanza that the peer has not said to have received. */
async function worldWithOneSent(): Promise<World> {
  const world = new World();
  await world.list(0);
  world.up(0);
  world.send(1);
  world.write(0, 1);
  return world;
}

Deno.test("HostLinks has the old lane ended first, though what it held was parked in between", async () => {
  using world = await worldWithOneSent();
  const old = world.lane(0).id;
  await world.list();
  world.down(0);
  world.tick(COLLECT_MS);
  await world.list(1);
  assert.deepEqual(held(world.lane(1)), ["1?"]);
  assert.deepEqual(world.lane(1).takeUntold(), [old]);
});

Deno.test("HostLinks has the old lane ended first, though what it held moved twice", async () => {
  using world = await worldWithOneSent();
  const old = world.lane(0).id;
  await world.list(1);
  world.down(0); // moves to 1, which is not up yet
  await world.list(2); // 1 has moved too
  world.down(1);
  assert.deepEqual(held(world.lane(2)), ["1?"]);
  assert.deepEqual(world.lane(2).takeUntold(), [old]);
});

Deno.test("HostLinks has no lane ended that has come back by itself", async () => {
  using world = await worldWithOneSent();
  await world.list(0, 1);
  world.up(1);
  world.down(0);
  world.tick(REHOME_MS);
  assert.deepEqual(held(world.lane(1)), ["1?"]);
  world.down(1); // before the peer has heard
  world.up(0);
  world.up(1);
  assert.deepEqual(world.lane(1).takeUntold(), []);
});

Deno.test("HostLinks does not have a lane end itself, when what it held comes back to it", async () => {
  using world = await worldWithOneSent();
  const old = world.lane(0);
  await world.list(1);
  world.down(0); // moves to 1, which is not up yet
  await world.list(0);
  world.down(1);
  assert.equal(world.lane(0), old);
  assert.deepEqual(held(old), ["1?"]);
  assert.deepEqual(old.takeUntold(), []);
});
