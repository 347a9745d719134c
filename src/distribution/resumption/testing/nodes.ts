import type { Clock, ManualClock } from "../../../base/mod.ts";
import { memoryConnectionPair } from "../../../net/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { authenticate, bind, HOSTS } from "../../../xmpp/c2s/testing/c2s_fixture.ts";
import { C2sListener, FullJid, isWorthRouting, parseJid } from "../../../xmpp/mod.ts";
import { SessionRegistry, StreamManagement } from "../../../xmpp/mod.ts";
import type {
  C2sSession,
  Delivery,
  Fate,
  Jid,
  SessionOrigin,
  SessionRegistryEvents,
  SessionReturn,
  Stanza,
  StreamManagementOptions,
} from "../../../xmpp/mod.ts";
import { MemoryMetrics } from "../../../xmpp/stream/testing/memory_metrics.ts";
import { RawPeer } from "../../../xmpp/stream/testing/raw_peer.ts";
import { Envelope } from "../../mod.ts";
import type { LinkTraffic } from "../../mod.ts";
import type { RepeatMemory } from "../ports.ts";
import { Resumption } from "../resumption.ts";
import { DeliveryMemory } from "../../routing/delivery_memory.ts";

export const SM = "urn:xmpp:sm:3";
export const ALICE = "alice@example.com";
export const HOME = `${ALICE}/home`;
export const ENABLE = `<enable xmlns='${SM}' resume='true'/>`;
export const ENABLED = new RegExp(
  `^<enabled xmlns='${SM}' id='([0-9a-f-]+)' resume='true' max='\\d+'/>`,
);

export const resume = (id: string, h: number) => `<resume xmlns='${SM}' previd='${id}' h='${h}'/>`;
export const resumed = (id: string, h: number) =>
  `<resumed xmlns='${SM}' previd='${id}' h='${h}'/>`;
export const failed = (h?: number) =>
  `<failed xmlns='${SM}'${h === undefined ? "" : ` h='${h}'`}>` +
  `<item-not-found xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></failed>`;
export const a = (h: number) => `<a xmlns='${SM}' h='${h}'/>`;

/** State that all nodes of a test share. */
export interface World {
  readonly clock: ManualClock;
  /** Owner of each full JID in the session table. */
  readonly claims: Map<string, TestNode>;
  /** True when nodes route what ended sessions give back, to where the claim is. @default false */
  isRouting?: boolean;
}

/** The parts of a node behind which its sessions stand. */
export interface NodeParts {
  readonly clock: Clock;
  readonly memory: RepeatMemory;
  opened(jid: FullJid, origin?: SessionOrigin): Promise<void>;
  closed(jid: FullJid): Promise<void>;
  reachable(jid: Jid): void;
  returned(delivery: Delivery, reason: SessionReturn): void;
  hasMoved(jid: FullJid): Promise<boolean>;
}

export interface NodeOptions {
  /** Makes the node's parts. @default all nodes share one table, and route nothing */
  readonly parts?: (node: TestNode) => NodeParts;
  readonly management?: StreamManagementOptions;
  readonly maxGivings?: number;
  readonly maxTakings?: number;
  readonly maxItems?: number;
  readonly maxSessionsPerAccount?: number;
  readonly host?: string;
  /** As of the registry's events. @default refuses no session */
  readonly opening?: NonNullable<SessionRegistryEvents["opening"]>;
  /** @default any datacenter may have any account */
  readonly mayHave?: (account: string, host: string) => boolean;
}

/** The c2s edge, sessions and resumption of one node; links and table are faked. */
export class TestNode {
  readonly world: World;
  readonly process: number;
  readonly host: string;
  readonly metrics = new MemoryMetrics();
  readonly log = new MemoryLogger();
  readonly registry: SessionRegistry;
  readonly management: StreamManagement<C2sSession>;
  readonly resumption: Resumption;
  readonly listener: C2sListener;
  readonly traffic: LinkTraffic;
  readonly memory: DeliveryMemory;
  /** Stanzas that ended sessions gave back, with their mark as possible repeats. */
  readonly rerouted: { readonly id: string; readonly mayBeRepeat: boolean }[] = [];
  /** Ids of stanzas that were given up because streams ended over them. */
  readonly givenUp: string[] = [];
  /** Stanzas that clients here have sent. */
  readonly accepted: Stanza[] = [];
  readonly arrivedWith: (number | undefined)[] = [];
  /** Sequence numbers of the stanzas whose fate is final. */
  readonly settled: number[] = [];
  readonly endedProcesses = new Set<number>();
  /** Processes that this node has never reached, and that listen nowhere. */
  readonly unheardProcesses = new Set<number>();
  /** Processes whose node was dialled. */
  readonly called: number[] = [];
  #sequence = 0;
  readonly #peers: RawPeer[] = [];

  constructor(process: number, world: World, options: NodeOptions = {}) {
    this.world = world;
    this.process = process;
    this.host = options.host ?? `dc${process}.example.com`;
    const { metrics, log } = this;
    this.memory = new DeliveryMemory({}, world.clock);
    const parts = options.parts?.(this) ?? this.#simpleParts();
    const { clock, memory } = parts;
    this.registry = new SessionRegistry({
      events: {
        opened: (jid, origin) => parts.opened(jid, origin),
        closed: (jid) => parts.closed(jid),
        reachable: (jid) => parts.reachable(jid),
        ...(options.opening === undefined ? {} : { opening: options.opening }),
        arrived: (_jid, priority) => void this.arrivedWith.push(priority),
      },
      accountIq: () => "service-unavailable",
      ...(options.maxSessionsPerAccount === undefined
        ? {}
        : { maxSessionsPerAccount: options.maxSessionsPerAccount }),
    });
    this.management = new StreamManagement<C2sSession>({ ackFreq: 1000, ...options.management }, {
      metrics,
      clock,
      log,
      process,
      elsewhere: { fetch: (request, at) => this.resumption.fetch(request, at) },
      returned: (delivery, reason) => parts.returned(delivery, reason),
      hasMoved: (jid) => parts.hasMoved(jid),
    });
    this.resumption = new Resumption({
      timeoutMs: 5_000,
      maxItems: options.maxItems ?? 5_000,
      maxBytes: 8_388_608,
      maxOwedBytes: 67_108_864,
      maxFrameBytes: 524_288,
      expireAfterMs: 120_000,
      ...(options.maxGivings === undefined ? {} : { maxGivings: options.maxGivings }),
      ...(options.maxTakings === undefined ? {} : { maxTakings: options.maxTakings }),
    }, {
      process,
      localHost: this.host,
      sessions: this.management,
      memory,
      peers: {
        hasEnded: ({ process }) => this.endedProcesses.has(process),
        seemsEnded: ({ process }) => this.unheardProcesses.has(process),
        call: ({ process }) => void this.called.push(process),
        mayBring: ({ stanza }) => stanza.from.domainpart !== "forged.example",
        claimedEpoch: () => Promise.resolve(undefined), // claims in `world` have none
        mayHave: (account, host) => options.mayHave?.(account, host) ?? true,
      },
      metrics,
      log,
      clock,
    });
    this.traffic = this.resumption.traffic();
    this.listener = new C2sListener({
      hosts: HOSTS,
      registry: this.registry,
      sink: {
        accept: (stanza, _source, fate, number) => {
          this.accepted.push(stanza);
          fate?.settle(number!);
        },
      },
      metrics,
      log,
      clock,
      management: this.management,
      scramIterations: 16,
    });
  }

  connect(): RawPeer {
    const [client, server] = memoryConnectionPair({ isEncrypted: true });
    this.listener.accept(server);
    const peer = new RawPeer(client);
    this.#peers.push(peer);
    return peer;
  }

  /** Connects a client that has authenticated, but not bound. */
  async greet(user = "alice"): Promise<RawPeer> {
    const peer = this.connect();
    await authenticate(peer, user);
    return peer;
  }

  /** Connects a client with stream management; returns the id to resume by. */
  async enter(
    resource = "home",
    user = "alice",
  ): Promise<{ readonly peer: RawPeer; readonly id: string }> {
    const peer = await this.greet(user);
    await bind(peer, resource);
    const [, id] = await peer.exchange(ENABLE, ENABLED);
    return { peer, id: id! };
  }

  /** Connects a client of alice's as `enter` does, and makes it available. */
  async enterAvailable(
    resource?: string,
  ): Promise<{ readonly peer: RawPeer; readonly id: string }> {
    const client = await this.enter(resource);
    await client.peer.exchange("<presence/>", /<presence [^>]*\/>/);
    return client;
  }

  /**
   * Connects a client that resumes its session here.
   *
   * @param h stanzas that the client has handled
   * @param covered stanzas that the server answers to have handled
   */
  async resume(id: string, h: number, covered = h): Promise<RawPeer> {
    const peer = await this.greet();
    await peer.exchange(resume(id, h), resumed(id, covered));
    return peer;
  }

  /** Delivers stanzas of bob's at this node, which have come by no other node. */
  deliver(...ids: string[]): Envelope[] {
    return ids.map((id) => {
      const sequence = ++this.#sequence;
      const fate = { settle: () => this.settled.push(sequence) };
      const envelope = envelopeOf(id, sequence, fate, HOME, 90 + this.process);
      this.memory.noteDelivered(envelope);
      if (this.registry.deliver(envelope.stanza, envelope) !== "delivered") {
        this.rerouted.push({
          id: `lost ${id}`,
          mayBeRepeat: false,
        });
      }
      return envelope;
    });
  }

  /** Delivers a message of bob's to all of alice's sessions here, unless this node knows it as a repeat. */
  deliverToAccount(id: string, sequence: number, isCopy = false, isRerouted = false): void {
    const fate = isCopy ? undefined : { settle: () => this.settled.push(sequence) };
    const envelope = envelopeOf(id, sequence, fate, ALICE);
    envelope.isCopy = isCopy;
    envelope.isRerouted = isRerouted;
    if (this.memory.hasDelivered(envelope, true)) return;
    this.memory.noteDelivered(envelope);
    this.registry.deliver(envelope.stanza, envelope);
  }

  #simpleParts(): NodeParts {
    const { claims, clock } = this.world;
    return {
      clock,
      memory: this.memory,
      opened: (jid, origin) => {
        const owner = claims.get(jid.text);
        const isNewest = origin === undefined || owner === undefined || owner === this ||
          owner.process === origin.process;
        if (isNewest) claims.set(jid.text, this);
        else this.registry.displaced(jid);
        if (isNewest && owner !== this) owner?.registry.displaced(jid);
        return Promise.resolve();
      },
      closed: (jid) => {
        if (claims.get(jid.text) === this) claims.delete(jid.text);
        return Promise.resolve();
      },
      reachable: () => {},
      returned: (delivery, reason) => this.#takeBack(delivery, reason),
      hasMoved: (jid) => Promise.resolve((claims.get(jid.text) ?? this) !== this),
    };
  }

  #takeBack(delivery: Delivery, reason: SessionReturn): void {
    if (reason === "unreadable") return void this.givenUp.push(idOf(delivery.stanza));
    if (!(delivery instanceof Envelope) || !isWorthRouting(delivery.stanza)) return;
    if (delivery.isCopy) return; // the stanza itself is answered for
    const mayBeRepeat = reason === "perhaps-delivered";
    this.rerouted.push({ id: idOf(delivery.stanza), mayBeRepeat });
    delivery.rememberedBy?.forgetDelivered(delivery);
    if (this.world.isRouting === true) this.#reroute(delivery, mayBeRepeat);
  }

  /** Routes a stanza of an ended session as the router does. */
  #reroute(envelope: Envelope, mayBeRepeat: boolean): void {
    envelope.mayBeRepeat = mayBeRepeat;
    envelope.isRerouted = true;
    this.world.claims.get(HOME)?.arrive(new Envelope(envelope, envelope, 0));
  }

  /** Takes a stanza that was sent here, unless this node knows it as a repeat. */
  arrive(envelope: Envelope): void {
    if (this.memory.hasDelivered(envelope, true)) return envelope.settle();
    this.memory.noteDelivered(envelope);
    this.registry.deliver(envelope.stanza, envelope);
  }

  /** The session that is registered here for alice's home. */
  get session() {
    return this.registry.find(parseJid(HOME) as FullJid);
  }

  metric(name: string, labels?: Readonly<Record<string, string>>): number {
    return this.metrics.value(name, labels);
  }

  /** Ends all connections of clients at once. */
  cutClients(): void {
    for (const peer of this.#peers) if (!peer.isClosed) peer.cut();
  }

  async end(): Promise<void> {
    this.resumption.stop();
    await this.listener.close();
    for (const peer of this.#peers) if (!peer.isClosed) peer.close();
    await Promise.all(this.#peers.map((peer) => peer.expectClosed()));
  }
}

/** Makes a message from bob to alice that entered at a third datacenter. */
export function envelopeOf(
  id: string,
  sequence: number,
  fate?: Fate,
  to = HOME,
  process = 99,
): Envelope {
  return new Envelope({
    stanza: message(id, "bob@example.com/x", to),
    process,
    sequence,
    origin: "dc9.example.com",
    sentAtUs: 1,
    ttl: 3,
    bounces: 0,
    mayBeRepeat: false,
  }, fate);
}

export function message(id: string, from = "bob@example.com/x", to = HOME): Stanza {
  return {
    kind: "message",
    type: "chat",
    from: parseJid(from),
    to: parseJid(to),
    bytes: new TextEncoder().encode(`<message from='${from}' to='${to}' id='${id}'/>`),
  };
}

export function idOf(stanza: Stanza): string {
  return /id='([^']*)'/.exec(new TextDecoder().decode(stanza.bytes))?.[1] ?? "";
}

/** Reads messages with these ids, in order. */
export async function expectMessages(peer: RawPeer, ...ids: string[]): Promise<void> {
  for (const id of ids) await peer.expectNext(new RegExp(`^<message [^>]*id='${id}'/>`));
}
