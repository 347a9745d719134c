import { FairShares, ManualClock } from "../../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../../observe/mod.ts";
import { FullJid, parseJid } from "../../../xmpp/mod.ts";
import type { Fate, Jid, Stanza } from "../../../xmpp/mod.ts";
import { Envelope } from "../../envelope.ts";
import type { ReturnReason } from "../../mod.ts";
import { DatacenterSide } from "../datacenter_side.ts";
import type { NodeOutcome, Placement } from "../ports.ts";
import { DATACENTERS, DC1, MovingAccounts } from "./moving_accounts.ts";
import type { Place } from "./moving_accounts.ts";
import { Router } from "../router.ts";
import { idOf, OWN_PROCESS, PEER_PROCESS } from "./router_fixture.ts";

/** Domain of a component of this node. */
const COMPONENT = "muc.example.com";

/** A stanza, or a copy of it, that has reached a resource. */
export interface Arrival {
  readonly entry: Entry;
  readonly resource: string;
  /** Number of times that the recipient had changed datacenters by then, as far as this node knew. */
  readonly epoch: number;
  /**
   * True when later stanzas may have come before it: in the cases that docs/promises.md excepts from
   * order, besides a change of datacenters.
   */
  readonly mayBeLate: boolean;
}

/** A stanza of the world, with all that has become of it. */
export interface Entry {
  readonly id: string;
  /** Sender and recipient within whose stanzas order is promised. */
  readonly pair: string;
  readonly number: number;
  readonly sentEpoch: number;
  /** True once a peer has passed it back to this node, as its recipient had moved here. */
  isPassedBack: boolean;
  /** True once its recipient has gone to and fro without acknowledging it. */
  hasMissed: boolean;
  /** Times that it was delivered, besides copies. */
  deliveries: number;
  errors: number;
  /** Times that a peer dropped it, as it had delivered it before. */
  repeats: number;
  settled: number;
  leftOpen: number;
}

/** A stanza on a lane to another node or datacenter. */
interface Parcel {
  readonly envelope: Envelope;
  /** True once it was written, so that the peer may have it. */
  isSent: boolean;
}

/** Bounds of a world's queues. */
export interface WorldBounds {
  readonly bounce: number;
  readonly lookup: number;
  readonly handover: number;
  /** Stanzas on one lane, besides owed errors. */
  readonly lane: number;
}

/**
 * One node of dc1 with its real router and its real local side, among fakes: the session table, two
 * more nodes of dc1, two more datacenters, the lanes to all four, and sessions of accounts that move
 * between all of them. What this node believes about an account may be older than the truth.
 *
 * The peers are as correct as can be: one that has nobody to deliver to keeps the stanza, and
 * passes it on to where its recipient turns up.
 */
export class OrderWorld {
  readonly clock = new ManualClock();
  readonly ledger = new Map<string, Entry>();
  /** Stanzas that have reached a resource, in order. */
  readonly arrived: Arrival[] = [];
  /** Stanzas and copies that were counted as dropped. */
  drops = 0;
  /** Copies that came back from a lane: the router drops them. */
  returnedCopies = 0;
  /** True when the recipient's session uses stream management, and acknowledges by `acknowledge`. */
  keepsStanzas = false;
  readonly router: Router;
  readonly budgets = { lookup: new FairShares(), bounce: new FairShares() };
  readonly handoverBudget = new FairShares();
  readonly #metrics = new MetricsRegistry(new ManualClock());
  readonly #accounts: MovingAccounts;
  readonly #lanes = new Map<string, Parcel[]>();
  readonly #gone = new Set<string>();
  /** Ids of the stanzas that a peer has delivered. */
  readonly #memory = new Map<string, Set<string>>();
  /** Stanzas that sessions here keep, by account. */
  readonly #kept = new Map<string, Envelope[]>();
  readonly #bounds: WorldBounds;
  /** Stanzas that a peer has passed back to this node and that are not settled, by the peer. */
  readonly #passedBack = new Map<string, Set<Entry>>();
  /** By account, the last stanza that had been sent when its sessions were at several nodes. */
  readonly #spreadAt = new Map<string, number>();
  /** By account, the last stanza that had been sent when a session, or its node, ended or moved. */
  readonly #leftAt = new Map<string, number>();
  /** Stanzas that followed their recipient here and then away, unacknowledged; by account. */
  readonly #following = new Map<string, Entry[]>();
  #number = 0;
  #drained: Promise<void> | undefined;
  #isClosing = false;

  /** @param accounts resources of each account, by bare JID; nobody is logged in yet */
  constructor(accounts: Readonly<Record<string, readonly string[]>>, bounds: WorldBounds) {
    this.#bounds = bounds;
    const moving = this.#accounts = new MovingAccounts(accounts);
    const domains = {
      globalHost: "example.com",
      localHost: DC1,
      hosts: new Set(["example.com", DC1]),
      isOtherLocalHost: (domain: string) => DATACENTERS.has(domain),
    };
    const gone = this.#gone;
    const local = new DatacenterSide({
      domains,
      node: {
        servesDomain: (domain) => domain === COMPONENT,
        deliver: (envelope) => this.#deliver(envelope),
        ownSessions: (to) => moving.ownSessions(to),
      },
      placements: {
        hasNeighbours: true,
        get neighbours() {
          return ["n2", "n3"];
        },
        placements: (jid) => this.#placements(jid),
        isUnplaced: (jid) => moving.isUnplaced(jid),
        locate: (jid) => moving.locate(jid),
      },
      handover: {
        send: (node, envelope) => this.#append(node, envelope),
        isGone: (node) => gone.has(node),
        isGivenUp: () => false,
        reconsider: () => {},
      },
      returned: (envelope, reason) => this.router.returned(envelope, reason),
      metrics: this.#metrics,
      budget: this.handoverBudget,
    }, { maxWaiting: bounds.handover });
    this.router = new Router({
      domains,
      bounce: { maxItems: bounds.bounce },
      maxQueued: bounds.lookup,
    }, {
      process: OWN_PROCESS,
      clock: this.clock,
      metrics: this.#metrics,
      log: { ...SILENT_LOGGER, debug: () => void this.drops++ },
      budget: this.budgets,
      random: { unit: () => 0.5 },
      outbound: { send: (host, envelope) => this.#append(host, envelope) },
      locations: moving,
      local,
    });
  }

  /** Makes a client or component of this node send a stanza. */
  send(stanza: Stanza): void {
    const entry = this.#enter(stanza);
    this.router.accept(stanza, { settle: () => void entry.settled++ }, entry.number);
  }

  /** Has `host` pass a stanza on that entered there. */
  receive(stanza: Stanza, host: string): void {
    const entry = this.#enter(stanza);
    const fate: Fate = {
      settle: () => void entry.settled++,
      leftOpen: () => void entry.leftOpen++,
    };
    const envelope = new Envelope(
      {
        stanza,
        process: PEER_PROCESS,
        sequence: entry.number,
        origin: host,
        sentAtUs: this.clock.wallUs(),
        ttl: 3,
        bounces: 0,
        mayBeRepeat: false,
      },
      fate,
      entry.number,
    );
    envelope.arrived("link", host);
    this.router.route(envelope);
  }

  /** Moves a session. A session here gives back what its client has not acknowledged. */
  move(account: string, resource: string, place: Place): void {
    const from = this.#accounts.sessionsOf(account).get(resource)!;
    if (from === place) return;
    this.#gone.delete(place);
    this.#accounts.move(account, resource, place);
    if (from !== "nobody") this.#leftAt.set(account, this.#number);
    if (place === "here") {
      for (const entry of this.#following.get(account) ?? []) entry.hasMissed = true;
    }
    if (from !== "here" && place !== "here") return;
    const known = this.#accounts.learnAll(account);
    // First of all, as a node does: a session leaves and gives back at once.
    this.#giveBackKept(account);
    for (const jid of known) this.router.revealed(jid);
  }

  /** Makes the session table lose its entries of the account, as by FLUSHALL. */
  lose(account: string): void {
    this.#accounts.lose(account);
  }

  /** Makes this node learn where the account's sessions are. */
  learn(account: string): void {
    this.#accounts.restore(account);
    for (const jid of this.#accounts.learnAll(account)) this.router.revealed(jid);
  }

  /** Makes this node hear that something has changed about the account, but not what. */
  reveal(account: string): void {
    this.router.revealed(parseJid(account));
  }

  /** Makes this node forget what it knows about the account. */
  forget(account: string): void {
    this.#accounts.forgetAll(account);
  }

  /** Makes lookups wait, or ends their wait. */
  toggleGate(): void {
    this.#accounts.toggleGate();
  }

  /** Peers for which something is on a lane. */
  get busyPeers(): readonly string[] {
    return [...this.#lanes].filter(([, lane]) => lane.length > 0).map(([peer]) => peer);
  }

  /** Makes a peer handle the first `most` stanzas of its lane; it keeps those that find nobody. */
  work(peer: string, most: number): void {
    const lane = this.#lanes.get(peer);
    if (lane === undefined || this.#gone.has(peer)) return;
    /** By pair, the number of the first stanza that the peer keeps. */
    const stuck = new Map<string, number>();
    for (const parcel of lane.slice(0, most)) {
      parcel.isSent = true;
      const { envelope } = parcel;
      const { pair, number } = this.#entryOf(envelope);
      if (number >= (stuck.get(pair) ?? Infinity)) continue;
      if (!this.#handleAt(peer, envelope)) stuck.set(pair, number);
      else if (lane.includes(parcel)) lane.splice(lane.indexOf(parcel), 1);
    }
  }

  /** Makes the lane to a peer give back all that it holds. */
  giveBack(peer: string, reason: ReturnReason): void {
    if (this.#hasPassedBack(peer)) return; // the peer lives, and has passed on what it got
    for (const { envelope, isSent } of this.#lanes.get(peer)?.splice(0) ?? []) {
      const returned = new Envelope({ ...envelope, mayBeRepeat: envelope.mayBeRepeat || isSent });
      returned.adoptDuty(envelope);
      if (envelope.isCopy) this.returnedCopies++;
      else if (reason === "node-gone") this.#leftAt.set(envelope.stanza.to.bare.text, this.#number);
      this.router.returned(returned, reason);
    }
  }

  /** Ends the process of a node: its sessions are gone, and its lane gives back what it holds. */
  kill(node: "n2" | "n3"): void {
    if (this.#hasPassedBack(node)) return;
    for (const account of this.#accounts.accounts) {
      for (const [resource, place] of this.#accounts.sessionsOf(account)) {
        if (place === node) this.move(account, resource, "nobody");
      }
    }
    this.#gone.add(node);
    this.#memory.delete(node);
    this.giveBack(node, "node-gone");
  }

  /** Makes all clients here acknowledge what they were sent. */
  acknowledge(): void {
    for (const [account, kept] of [...this.#kept]) {
      this.#kept.delete(account);
      for (const envelope of kept) {
        this.#arrive(envelope, "here");
        envelope.acknowledged();
      }
    }
  }

  /** Lets promise callbacks run. */
  async settled(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Begins to stop this node; more may come in behind that. */
  drain(): void {
    this.#drained ??= this.router.drain();
  }

  /** True when this node stops. */
  get isStopping(): boolean {
    return this.#drained !== undefined;
  }

  /** Brings everything to its end: peers answer what finds nobody. */
  async end(): Promise<void> {
    if (this.#accounts.isGated) this.toggleGate();
    for (let round = 0; round < 24; round++) {
      this.#isClosing = round > 8;
      await this.settled();
      this.clock.advance(700);
      for (const account of this.#accounts.accounts) this.learn(account);
      this.acknowledge();
      for (const peer of this.#lanes.keys()) this.work(peer, Infinity);
      // A node that stops drains its router after each step of its stop.
      if (this.#isClosing && this.isStopping) await this.router.drain();
    }
    await this.#drained;
    await this.settled();
    this.#metrics.close();
  }

  /** Makes the account's sessions here, if the last has gone, give back what they keep. */
  #giveBackKept(account: string): void {
    if ([...this.#accounts.sessionsOf(account).values()].includes("here")) return;
    const kept = this.#kept.get(account) ?? [];
    this.#kept.delete(account);
    const entries = kept.map((envelope) => this.#entryOf(envelope));
    this.#following.set(account, entries.filter(({ isPassedBack }) => isPassedBack));
    for (const envelope of kept) {
      if (envelope.abandoned()) this.router.returned(envelope, "unacknowledged");
    }
  }

  #enter(stanza: Stanza): Entry {
    const entry: Entry = {
      id: idOf(stanza),
      pair: pairOf(stanza),
      number: ++this.#number,
      sentEpoch: this.#accounts.epochOf(stanza.to.bare.text),
      isPassedBack: false,
      hasMissed: false,
      deliveries: 0,
      errors: 0,
      repeats: 0,
      settled: 0,
      leftOpen: 0,
    };
    this.ledger.set(entry.id, entry);
    return entry;
  }

  #entryOf({ stanza }: Envelope): Entry {
    return this.ledger.get(idOf(stanza))!;
  }

  /** Notes accounts whose sessions are at several nodes of this datacenter, as it believes. */
  #placements(jid: Jid): readonly Placement[] {
    const placed = this.#accounts.placements(jid);
    const nodes = new Set(placed.map(({ node }) => node));
    if (this.#accounts.moves(jid) && this.#accounts.ownSessions(jid).isHere) nodes.add("here");
    if (nodes.size > 1) this.#spreadAt.set(jid.bare.text, this.#number);
    return placed;
  }

  #append(destination: string, envelope: Envelope): void {
    let lane = this.#lanes.get(destination);
    if (lane === undefined) this.#lanes.set(destination, lane = []);
    if (lane.length >= this.#bounds.lane && !envelope.isOwed) {
      if (envelope.isCopy) this.returnedCopies++;
      this.router.returned(envelope, "full");
    } else lane.push({ envelope, isSent: false });
  }

  /** False when the peer keeps the stanza, as its recipient is nowhere. */
  #handleAt(peer: string, envelope: Envelope): boolean {
    const { stanza } = envelope;
    if (this.#memory.get(peer)?.has(idOf(stanza)) === true) {
      if (!envelope.isCopy) this.#entryOf(envelope).repeats++;
      envelope.settle();
    } else if (envelope.isCopy) {
      this.#arrive(envelope, peer as Place);
      envelope.settle();
    } else if (!this.#accounts.moves(stanza.to)) this.#answered(envelope);
    else {
      const place = this.#accounts.placeOf(stanza.to, peer);
      if (place === "nobody" && !this.#isClosing) return false;
      if (place === "nobody") this.#answered(envelope);
      else if (place === "here") return this.#passBack(peer, envelope);
      else if (this.#isBehindPassedBack(peer, envelope)) return false;
      else {
        this.#arrive(envelope, place);
        envelope.settle();
      }
    }
    return true;
  }

  #hasPassedBack(peer: string): boolean {
    return (this.#passedBack.get(peer)?.size ?? 0) > 0;
  }

  /** True when the peer waits for an earlier stanza's fate: it keeps order as this node does. */
  #isBehindPassedBack(peer: string, envelope: Envelope): boolean {
    const { pair, number } = this.#entryOf(envelope);
    for (const each of this.#passedBack.get(peer) ?? []) {
      if (each.pair === pair && each.number < number) return true;
    }
    return false;
  }

  /** Makes a peer pass a stanza on to this node, where its recipient is by now. */
  #passBack(peer: string, envelope: Envelope): boolean {
    const isNode = !DATACENTERS.has(peer);
    if (!isNode && envelope.ttl === 0) {
      this.#answered(envelope);
      return true;
    }
    const entry = this.#entryOf(envelope);
    let away = this.#passedBack.get(peer);
    if (away === undefined) this.#passedBack.set(peer, away = new Set());
    away.add(entry);
    const done = () => away.delete(entry);
    const passed = new Envelope({ ...envelope, ttl: envelope.ttl - (isNode ? 0 : 1) }, {
      settle: () => {
        done();
        envelope.settle();
      },
      leftOpen: () => {
        done();
        entry.leftOpen++;
      },
    });
    entry.isPassedBack = true;
    if (isNode) passed.arrived("handed-over");
    else passed.arrived("link", peer);
    this.router.route(passed);
    return true;
  }

  #answered(envelope: Envelope): void {
    const entry = this.#entryOf(envelope);
    entry.errors++;
    envelope.settle();
  }

  /** Delivers to the resources that the recipient has at a place. */
  #arrive(envelope: Envelope, at: Place): void {
    const { stanza, isCopy } = envelope;
    const entry = this.#entryOf(envelope);
    if (!isCopy) entry.deliveries++;
    if (at !== "here") this.#remember(at, entry.id);
    const account = stanza.to.bare.text;
    const epoch = this.#accounts.epochOf(account);
    const mayBeLate = this.#isScattered(entry, stanza.to) || entry.hasMissed;
    for (const [resource, place] of this.#accounts.sessionsOf(account)) {
      if (place === at) this.arrived.push({ entry, resource, epoch, mayBeLate });
    }
  }

  /** True when sessions of the account were at several nodes, and one left, since the stanza was sent. */
  #isScattered({ number }: Entry, to: Jid): boolean {
    if (to instanceof FullJid) return false;
    const account = to.text;
    const isSpread = (this.#spreadAt.get(account) ?? 0) >= number;
    return isSpread && (this.#leftAt.get(account) ?? 0) >= number;
  }

  #remember(peer: string, id: string): void {
    const memory = this.#memory.get(peer);
    if (memory === undefined) this.#memory.set(peer, new Set([id]));
    else memory.add(id);
  }

  #deliver(envelope: Envelope): NodeOutcome {
    const { stanza } = envelope;
    const account = stanza.to.bare.text;
    if (!this.#accounts.moves(stanza.to)) {
      this.#answered(envelope);
      return "delivered";
    }
    if (!this.#accounts.ownSessions(stanza.to).isHere) return "no-session";
    if (this.keepsStanzas) {
      envelope.retain();
      const kept = this.#kept.get(account);
      if (kept === undefined) this.#kept.set(account, [envelope]);
      else kept.push(envelope);
      return "delivered";
    }
    this.#arrive(envelope, "here");
    envelope.settle();
    return "delivered";
  }
}

function pairOf({ from, to }: Stanza): string {
  const sender = from.domainpart === COMPONENT ? COMPONENT : from.text;
  return `${sender} ${to.text}`;
}
