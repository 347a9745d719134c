import { ManualClock } from "../../../base/mod.ts";
import { MetricsRegistry } from "../../../observe/mod.ts";
import { parseJid } from "../../../xmpp/mod.ts";
import type { Fate, Jid, Stanza, StanzaKind, StanzaType } from "../../../xmpp/mod.ts";
import { Envelope } from "../../envelope.ts";
import type { StanzaTracer } from "../../mod.ts";
import type {
  Archive,
  LocalOutcome,
  OfflineKeeper,
  OwnSessions,
  PresenceServer,
  RequestKeeper,
  SessionHost,
} from "../ports.ts";
import { Router } from "../router.ts";
import type { RouterDeps, RouterOptions } from "../router_options.ts";

export const OWN_PROCESS = 1;
export const PEER_PROCESS = 2;

/** A router at dc1 between fakes that record their calls. */
export class RouterFixture {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(new ManualClock());
  /** Outcomes of local delivery by address; `no-session` if not listed. */
  readonly local = new Map<string, LocalOutcome>();
  /** Local hosts by address in Redis. */
  readonly table = new Map<string, string>();
  /** Local hosts by address in memory. */
  readonly cache = new Map<string, string | null>();
  /** Sessions of accounts that have some in several datacenters, by bare JID. */
  readonly spread = new Map<string, readonly SessionHost[]>();
  /** Bare JIDs whose `spread` is not known before they are looked up. */
  readonly unplaced = new Set<string>();
  /** Sessions of accounts at this datacenter, by bare JID; none if not listed. */
  readonly sessions = new Map<string, OwnSessions>();
  /** True when messages for a person are copied to their other devices. */
  copiesToDevices = false;
  readonly delivered: Stanza[] = [];
  readonly sent: { readonly host: string; readonly envelope: Envelope }[] = [];
  /** Datacenters to which the last message can bring its carbon. */
  readonly takesCarbons = new Set<string>();
  /** Carbons that messages bring. */
  readonly brought: string[] = [];
  readonly lookups: string[] = [];
  /** Addresses that were looked up again, grouped by request. */
  readonly relocated: string[][] = [];
  readonly forgotten: string[] = [];
  readonly pressure: string[] = [];
  /** Hears of delivered stanzas, and of senders that are slowed and go on. */
  onDelivered: (stanza: Stanza) => void = () => {};
  onPressure: (sender: string, isOver: boolean) => void = () => {};
  /** Takes stanzas for other datacenters. */
  onSent: (host: string, envelope: Envelope) => void = (host, envelope) => {
    this.sent.push({ host, envelope });
  };
  readonly domains = new Set<string>();
  /**
   * Ids of the stanzas that another node of the datacenter was given; undefined while there is
   * none.
   */
  handedOn: string[] | undefined;
  /** Results of `keepBehind`, by recipient. */
  readonly kept = new Map<string, boolean | "full">();
  /** Result of `keepBehind` for the others. */
  whenKept: (envelope: Envelope) => boolean = () => false;
  /** Stanzas that wait behind others. */
  readonly waiting: Envelope[] = [];
  /** True while the nodes of this datacenter's users are not looked up. */
  isUnplaced = false;
  /** Keeper of requests for subscriptions; undefined while there is none. */
  requests: RequestKeeper | undefined;
  /** Keeper of messages for accounts that are offline; undefined while there is none. */
  offline: OfflineKeeper | undefined;
  /** Server of presence; undefined while no host has rosters. */
  presence: PresenceServer | undefined;
  /** Decides which stanzas are followed; none is while it is undefined. */
  tracer: StanzaTracer | undefined;
  /** While set, lookups wait for it. */
  gate: Promise<void> | undefined;
  readonly router: Router;

  constructor(
    options: Partial<RouterOptions> = {},
    budget?: RouterDeps["budget"],
    process = OWN_PROCESS,
    archive?: Archive,
  ) {
    this.router = new Router({
      domains: {
        globalHost: "example.com",
        localHost: "dc1.example.com",
        hosts: new Set(["example.com", "dc1.example.com"]),
        roomDomains: new Set(["rooms.example.com"]),
        isOtherLocalHost: (domain) => domain === "dc2.example.com" || domain === "dc3.example.com",
      },
      ...options,
    }, {
      process,
      requests: { note: (stanza, entry) => this.requests?.note(stanza, entry) },
      carbons: { copies: () => this.copiesToDevices },
      offline: {
        keep: (...values) => this.offline?.keep(...values) ?? false,
        refuse: (...values) => this.offline?.refuse(...values) ?? false,
      },
      presence: {
        serves: (domain) => this.presence?.serves(domain) ?? false,
        take: (envelope) => this.presence?.take(envelope),
      },
      ...(archive !== undefined && { archive }),
      clock: this.clock,
      metrics: this.metrics,
      ...(budget !== undefined && { budget }),
      random: { unit: () => 0.5 },
      tracer: this.#tracer(),
      pressure: (sender, isOver) => {
        this.pressure.push(`${sender} ${isOver}`);
        this.onPressure(sender, isOver);
      },
      outbound: {
        send: (host, envelope) => this.onSent(host, envelope),
        bringCarbon: (host, sender, { sequence }) => {
          if (!this.takesCarbons.has(host)) return false;
          this.brought.push(`${sequence} of ${sender.text} to ${host}`);
          return true;
        },
      },
      locations: {
        cached: (jid) => this.cache.get(jid.text),
        locate: async (jid) => {
          this.lookups.push(jid.text);
          await (this.gate ?? Promise.resolve());
          const host = this.table.get(jid.text) ?? this.table.get(jid.bare.text);
          this.cache.set(jid.text, host ?? null);
          this.unplaced.delete(jid.bare.text);
          return host;
        },
        locateAgain: async (jids) => {
          for (const jid of jids) this.cache.delete(jid.text);
          this.relocated.push(jids.map(({ text }) => text));
          await (this.gate ?? Promise.resolve());
          return jids.map((jid) => {
            const host = this.table.get(jid.text) ?? this.table.get(jid.bare.text);
            this.cache.set(jid.text, host ?? null);
            return host;
          });
        },
        learn: (jid, host) => {
          if ((this.cache.get(jid.text) ?? null) !== null) return false;
          this.cache.set(jid.text, host);
          return true;
        },
        spread: (jid) =>
          this.unplaced.has(jid.bare.text) ? [] : this.spread.get(jid.bare.text) ?? [],
        isUnplaced: (jid) => this.unplaced.has(jid.text),
        forget: (jid) => {
          this.forgotten.push(jid.text);
          this.cache.delete(jid.text);
        },
        expire: (jid) => void this.cache.delete(jid.text),
      },
      local: {
        servesDomain: (domain) => this.domains.has(domain),
        prepare: (envelope, turn) => {
          if (!this.isUnplaced) return undefined;
          const look = () => void this.lookups.push(envelope.stanza.to.text);
          return (turn(envelope) ?? Promise.resolve()).then(look);
        },
        sessionsOf: (to) =>
          this.sessions.get(to.bare.text) ??
            { isHere: false, isResourceHere: false, priority: undefined },
        keepBehind: (envelope) => this.kept.get(envelope.stanza.to.text) ?? this.whenKept(envelope),
        giveUpWaiting: () => this.waiting.splice(0),
        handOn: (envelope) => {
          this.handedOn?.push(idOf(envelope.stanza));
          return this.handedOn !== undefined;
        },
        deliver: (envelope) => {
          const { to, type } = envelope.stanza;
          const outcome = this.local.get(to.text) ?? this.local.get(to.bare.text) ?? "no-session";
          if (outcome === "delivered" || (outcome !== "no-session" && type === "error")) {
            this.delivered.push(envelope.stanza);
            this.onDelivered(envelope.stanza);
            envelope.settle();
          }
          return outcome;
        },
      },
    });
  }

  #tracer(): StanzaTracer {
    const isOn = () => this.tracer?.isOn ?? false;
    return {
      get isOn() {
        return isOn();
      },
      follow: (envelope, cause) => this.tracer?.follow(envelope, cause),
    };
  }

  /** Makes the datacenter `peerHost` pass a stanza on. */
  received(envelope: Envelope, peerHost = "dc9.example.com"): void {
    envelope.arrived("link", peerHost);
    this.router.route(envelope);
  }

  /** Makes another node of the datacenter hand a stanza over. */
  handedOver(envelope: Envelope): void {
    envelope.arrived("handed-over");
    this.router.route(envelope);
  }

  /** Makes a client send a stanza that it may have sent before. */
  acceptResent(stanza: Stanza, fate?: Fate, number?: number): void {
    this.router.accept(stanza, fate, number, "resent");
  }

  /** Lets promise callbacks run. */
  async settled(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
  }

  value(classicName: string): number {
    const entry = this.metrics.classic()[`global.mod_global_distrib.${classicName}`];
    if (entry === undefined) return Number.NaN;
    return "value" in entry ? entry.value : entry.count;
  }

  /** Closes the metrics of the fixture. */
  close(): void {
    this.metrics.close();
  }

  /** Returns the ids of stanzas that were sent to `host`, in order. */
  sentTo(host: string): string[] {
    return this.sent.filter((each) => each.host === host).map((each) => idOf(each.envelope.stanza));
  }
}

export interface StanzaShape {
  readonly kind?: StanzaKind;
  readonly type?: StanzaType;
  readonly id?: string;
}

/** Makes a stanza with a body, from and to as given. */
export function stanza(from: string, to: string, shape: StanzaShape = {}): Stanza {
  const { kind = "message", type = kind === "iq" ? "get" : "chat", id = "1" } = shape;
  const sender: Jid = parseJid(from);
  const recipient: Jid = parseJid(to);
  const text =
    `<${kind} from='${from}' to='${to}' id='${id}' type='${type}'><body>x</body></${kind}>`;
  return { kind, type, from: sender, to: recipient, bytes: new TextEncoder().encode(text) };
}

/** Wraps a stanza as it comes from a link. */
export function fromLink(
  stanza: Stanza,
  { ttl = 3, origin = "dc2.example.com", sequence = 1, mayBeRepeat = false } = {},
): Envelope {
  return new Envelope({
    stanza,
    process: PEER_PROCESS,
    sequence,
    origin,
    sentAtUs: 0,
    ttl,
    bounces: 0,
    mayBeRepeat,
  });
}

/** The incoming lane that stanzas came from. It records which of them are settled or left open. */
export class FakeLink implements Fate {
  readonly settled: number[] = [];
  readonly left: number[] = [];

  settle(number: number): void {
    this.settled.push(number);
  }

  leftOpen(number: number): void {
    this.left.push(number);
  }
}

/** Reads the `id` attribute off the bytes. */
export function idOf(stanza: Stanza): string {
  return /\sid=['"]([^'"]*)/.exec(new TextDecoder().decode(stanza.bytes))?.[1] ?? "";
}

/** Reads the condition of an error stanza off the bytes. */
export function conditionOf(stanza: Stanza): string {
  const text = new TextDecoder().decode(stanza.bytes);
  return /<([a-z-]+) xmlns=['"]urn:ietf:params:xml:ns:xmpp-stanzas/.exec(text)?.[1] ?? "";
}
