import assert from "node:assert/strict";
import fc from "fast-check";
import { ManualClock } from "../../base/mod.ts";
import { MetricsRegistry } from "../../observe/mod.ts";
import { deliveryRule, parseJid } from "../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { Envelope } from "../envelope.ts";
import { DatacenterSide } from "./datacenter_side.ts";
import type { Locations, NodeOutcome, OwnSessions, Placement } from "./ports.ts";
import { Router } from "./router.ts";
import { idOf, stanza } from "./testing/router_fixture.ts";

const [ALICE, BOB] = ["alice@example.com/x", "bob@example.com"];
const HOSTS = ["dc0.example.com", "dc1.example.com", "dc2.example.com"] as const;
/** Local hosts of the nodes, by their places. */
const NODES = HOSTS.flatMap((host) => [host, host]);

/** Fate of a stanza on a lane to another datacenter: `again` means that it arrives, and comes back. */
type Passage = "arrives" | "returns" | "again";

/** A session of bob, with carbons and stream management. */
interface Device {
  readonly name: string;
  /** Place of its node. */
  readonly at: number;
  readonly priority: number;
  /** Messages that it has not acknowledged. */
  readonly unacknowledged: Envelope[];
  /** Copies that it was given: `message` or `carbon`, and the id of the message. */
  readonly given: string[];
}

/**
 * Three datacenters of two nodes each, with real routers and local sides. alice writes from all of them.
 * bob's devices move between them, all of which know where each is.
 */
class CarbonWorld {
  /** The newest login last. */
  devices: readonly Device[] = [];
  /** Those that have ended, too. */
  readonly all: Device[] = [];
  /** Ids of the messages for which alice got an error. */
  readonly errors: string[] = [];
  readonly #routers: readonly Router[];
  readonly #clocks: ManualClock[] = [];
  readonly #metrics: MetricsRegistry[] = [];
  /** Stanzas on lanes, with the places of the nodes at their ends. */
  readonly #lanes: { readonly from: number; readonly to: number; readonly envelope: Envelope }[] =
    [];

  readonly #passages: Passage[];

  constructor(passages: readonly Passage[]) {
    this.#passages = [...passages];
    this.#routers = NODES.map((localHost, at) => this.#routerAt(localHost, at));
  }

  #routerAt(localHost: string, at: number): Router {
    const clock = new ManualClock();
    const metrics = new MetricsRegistry(new ManualClock());
    this.#clocks.push(clock);
    this.#metrics.push(metrics);
    const domains = {
      globalHost: "example.com",
      localHost,
      hosts: new Set(["example.com", localHost]),
      isOtherLocalHost: (domain: string) =>
        domain !== localHost && HOSTS.some((host) => host === domain),
    };
    const carbons = { copies: ({ type }: Stanza) => type === "chat" };
    const neighbour = NODES.findIndex((host, place) => host === localHost && place !== at);
    const send = (to: number, envelope: Envelope) =>
      void this.#lanes.push({ from: at, to, envelope });
    const router: Router = new Router({ domains }, {
      process: at + 1,
      clock,
      metrics,
      random: { unit: () => 0.5 },
      carbons,
      outbound: { send: (host, envelope) => send(nodeOf(host, envelope), envelope) },
      locations: this.#locations(),
      local: new DatacenterSide({
        domains,
        node: {
          servesDomain: () => false,
          ownSessions: (to) => this.#sessionsOf(to, at),
          deliver: (envelope) => this.#deliver(envelope, at),
        },
        placements: {
          hasNeighbours: true,
          neighbours: [`${neighbour}`],
          placements: ({ bare }) => bare.text === BOB ? this.#placementsAt(neighbour) : [],
          isUnplaced: () => false,
          locate: () => Promise.resolve(localHost),
        },
        handover: {
          send: (_, envelope) => send(neighbour, envelope),
          isGone: () => false,
          isGivenUp: () => false,
          reconsider: () => {},
        },
        returned: (envelope, reason) => router.returned(envelope, reason),
        carbons,
        metrics,
      }),
    });
    return router;
  }

  #placementsAt(at: number): readonly Placement[] {
    return this.#devicesAt(at).map(({ name, priority }) => ({
      node: `${at}`,
      resourcepart: name,
      priority,
    }));
  }

  #locations(): Locations {
    const find = ({ text, bare }: Jid) => {
      if (bare.text !== BOB) return HOSTS[0];
      const device = this.devices.find(({ name }) => text === `${BOB}/${name}`) ??
        this.devices.at(-1);
      return device && NODES[device.at];
    };
    return {
      cached: (jid) => find(jid) ?? null,
      locate: (jid) => Promise.resolve(find(jid)),
      locateAgain: (jids) => Promise.resolve(jids.map(find)),
      spread: () => {
        const places = this.devices.map(({ name, at }) => ({
          host: NODES[at]!,
          resourcepart: name,
        }));
        return new Set(places.map(({ host }) => host)).size > 1 ? places : [];
      },
      learn: () => false,
      isUnplaced: () => false,
      forget: () => {},
      expire: () => {},
    };
  }

  #devicesAt(at: number): readonly Device[] {
    return this.devices.filter((device) => device.at === at);
  }

  #sessionsOf(to: Jid, at: number): OwnSessions {
    const own = to.bare.text === BOB ? this.#devicesAt(at) : [];
    return {
      isHere: own.length > 0,
      isResourceHere: own.some(({ name }) => to.text === `${BOB}/${name}`),
      priority: own.length > 0 ? Math.max(...own.map(({ priority }) => priority)) : undefined,
    };
  }

  #deliver(envelope: Envelope, at: number): NodeOutcome {
    const { stanza, isCarbon, isCopy, isRerouted } = envelope;
    if (stanza.to.bare.text !== BOB) {
      this.errors.push(idOf(stanza));
      envelope.settle();
      return "delivered";
    }
    const own = this.#devicesAt(at);
    const named = own.find(({ name }) => stanza.to.text === `${BOB}/${name}`);
    const rule = deliveryRule(stanza, named !== undefined, isRerouted);
    const takers = isCarbon ? [] : own.filter((device) => {
      return rule === "resource" ? device === named : device.priority >= 0;
    });
    for (const { given, unacknowledged } of takers) {
      given.push(`message ${idOf(stanza)}`);
      unacknowledged.push(envelope);
      envelope.retain();
    }
    if (takers.length === 0 && !isCopy) return "no-session";
    const others = own.filter((device) => !takers.includes(device));
    if (others.length > 0 && !envelope.isTold) {
      for (const { given } of others) given.push(`carbon ${idOf(stanza)}`);
      envelope.isTold = !isCarbon;
    } else if (takers.length === 0) return "no-session";
    if (takers.length === 0) envelope.settle();
    return "delivered";
  }

  send(id: string, from: number, name: string | undefined): void {
    const to = name === undefined ? BOB : `${BOB}/${name}`;
    this.#routers[from]!.accept(stanza(ALICE, to, { id }), { settle: () => {} }, 1);
  }

  /** Logs a device in, again if it is logged in. Its earlier session then ends. */
  login(name: string, at: number, priority: number): void {
    const before = this.devices.find((device) => device.name === name);
    const device = { name, at, priority, unacknowledged: [], given: [] };
    this.devices = [...this.devices.filter((each) => each !== before), device];
    this.all.push(device);
    for (const router of this.#routers) router.revealed(parseJid(BOB));
    if (before !== undefined) this.#giveBack(before);
  }

  logout(name: string): void {
    const left = this.devices.find((device) => device.name === name);
    this.devices = this.devices.filter((device) => device !== left);
    if (left !== undefined) this.#giveBack(left);
  }

  #giveBack({ at, unacknowledged }: Device): void {
    for (const envelope of unacknowledged.splice(0)) {
      if (envelope.abandoned()) this.#routers[at]!.returned(envelope, "unacknowledged");
    }
  }

  acknowledge(name: string): void {
    const device = this.devices.find((each) => each.name === name);
    for (const envelope of device?.unacknowledged.splice(0) ?? []) envelope.acknowledged();
  }

  /** Lets all that is on lanes arrive. */
  async pass(): Promise<void> {
    for (;;) {
      await new Promise((resolve) => setImmediate(resolve));
      if (this.#lanes.length === 0) return;
      for (const { from, to, envelope } of this.#lanes.splice(0)) {
        const isHandover = NODES[from] === NODES[to];
        const passage = isHandover ? "arrives" : this.#passages.pop() ?? "arrives";
        const settle = () => passage === "again" || envelope.settle();
        const arriving = new Envelope({ ...envelope }, { settle, leftOpen: () => {} }, 1);
        if (isHandover) arriving.arrived("handed-over");
        else arriving.arrived("link", NODES[from]!);
        if (passage !== "returns") this.#routers[to]!.route(arriving);
        if (passage === "arrives") continue;
        if (passage === "again") envelope.mayBeRepeat = true;
        this.#routers[from]!.returned(envelope, "peer-restarted");
      }
    }
  }

  /** Lets everything come to its end. */
  async end(): Promise<void> {
    for (let retry = 0; retry < 8; retry++) {
      await this.pass();
      for (const clock of this.#clocks) clock.advance(2_000);
    }
    for (const metrics of this.#metrics) metrics.close();
  }
}

/** Returns the place of the node to which the lane of a sender to another datacenter goes. */
function nodeOf(host: string, { process }: Envelope): number {
  return NODES.findIndex((each) => each === host) + process % 2;
}

type Step =
  | { readonly kind: "send"; readonly from: number; readonly to: string | undefined }
  | {
    readonly kind: "login";
    readonly name: string;
    readonly at: number;
    readonly priority: number;
  }
  | { readonly kind: "logout" | "acknowledge"; readonly name: string }
  | { readonly kind: "pass" };

const NAME = fc.constantFrom("desk", "phone", "tablet");
const PLACE = fc.nat({ max: NODES.length - 1 });
const STEP: fc.Arbitrary<Step> = fc.oneof(
  fc.record({
    kind: fc.constant("send" as const),
    from: PLACE,
    to: fc.option(NAME, { nil: undefined }),
  }),
  fc.record({
    kind: fc.constant("login" as const),
    name: NAME,
    at: PLACE,
    priority: fc.constantFrom(0, 0, -1),
  }),
  fc.record({ kind: fc.constantFrom("logout" as const, "acknowledge" as const), name: NAME }),
  fc.record({ kind: fc.constant("pass" as const) }),
);

const PASSAGES = fc.array(fc.constantFrom<Passage>("arrives", "returns", "again"), {
  maxLength: 10,
});

const login = (name: string, at: number, priority: number): Step => ({
  kind: "login",
  name,
  at,
  priority,
});
/** Steps that were found at random, each with what went wrong. */
const EXAMPLES: [Step[], Passage[]][] = [
  // The newest login is where the message entered, which it never came back to.
  [[
    login("desk", 0, 0),
    { kind: "send", from: 5, to: undefined },
    { kind: "pass" },
    login("phone", 0, -1),
    login("desk", 2, -1),
    login("phone", 4, 0),
  ], []],
  // Of a datacenter whose devices all have negative priorities one node alone had the carbon.
  [[
    login("tablet", 5, -1),
    login("phone", 4, -1),
    login("desk", 0, 0),
    { kind: "send", from: 0, to: undefined },
  ], []],
];

Deno.test("Routers give each device a message and its carbon once at the most, and one of them to those that stay", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { maxLength: 14 }), PASSAGES, async (steps, passages) => {
      const world = new CarbonWorld(passages);
      const present = new Map<string, readonly Device[]>();
      for (const [i, step] of steps.entries()) {
        if (step.kind === "send") {
          present.set(`${i}`, world.devices);
          world.send(`${i}`, step.from, step.to);
        } else if (step.kind === "login") world.login(step.name, step.at, step.priority);
        else if (step.kind === "pass") await world.pass();
        else world[step.kind](step.name);
      }
      await world.end();
      for (const { name, given } of world.all) {
        assert.equal(new Set(given).size, given.length, `${name}: ${given}`);
      }
      const { priority = -1 } = world.devices.at(-1) ?? {};
      if (priority >= 0) assert.deepEqual(world.errors, [], "the newest device gets what bounces");
      // A message that comes back may go to other places than those that had it first.
      if (passages.length > 0) return;
      for (const [id, devices] of present) {
        // One that nobody gets comes back to its sender.
        if (!world.all.some(({ given }) => given.includes(`message ${id}`))) continue;
        for (const device of devices.filter((each) => world.devices.includes(each))) {
          const isGiven = device.given.some((each) => each.endsWith(` ${id}`));
          assert.ok(isGiven, `${device.name} lacks ${id}`);
        }
      }
    }),
    { numRuns: 300, examples: EXAMPLES },
  );
});
