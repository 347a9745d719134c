import { ManualClock, PacedWork } from "../../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../../observe/mod.ts";
import type { RosterItem, RosterStore } from "../../../storage/mod.ts";
import type { Jid, Stanza, XmlElement } from "../../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  FullJid,
  isSubscription,
  parseJid,
  stanzaElement,
} from "../../../xmpp/mod.ts";
import type { IqAnswer } from "../../iq_service.ts";
import { resolveRosterBounds } from "../roster_query.ts";
import type { PresenceView, SessionPlace } from "../roster_ports.ts";
import { RosterServer } from "../roster_server.ts";
import { unlistedItem } from "../subscription_state.ts";
import { MemoryRosterStore } from "./memory_roster_store.ts";

/** The roster server of dc1, with sessions at dc1 and dc2 that are data alone. */
export class RosterFixture {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(new ManualClock());
  readonly store = new MemoryRosterStore();
  /** Hosts whose accounts have rosters. */
  readonly hosts = new Set(["example.com"]);
  /** Creations of accounts, by bare JID. */
  readonly accounts = new Map(
    ["alice", "bob", "carol"].map((name) => [`${name}@example.com`, "first"]),
  );
  /** True while the rosters of all hosts lie in one database. */
  isShared = true;
  /** Sessions of dc1's node, by full JID, with their last presence. */
  readonly here = new Map<string, Stanza | undefined>();
  /** Sessions at other nodes and datacenters, by account. */
  readonly elsewhere = new Map<string, SessionPlace[]>();
  /** Contacts that the list of each session keeps out, by full JID. */
  readonly hidden = new Map<string, ReadonlySet<string>>();
  /** Sessions of dc1's node whose accounts are gone, by full JID. */
  readonly former = new Set<string>();
  /** Recipients of the directed presence of every session. */
  readonly directed: Jid[] = [];
  /** While true, the session table cannot tell where sessions are. */
  isTableAway = false;
  /** Live processes by datacenter. */
  readonly live = new Map<string, Set<number>>();
  /** Accounts of each lookup in the session table. */
  readonly lookups: (readonly string[])[] = [];
  readonly routed: Stanza[] = [];
  /** Called with each stanza that is routed. */
  onRoute: (stanza: Stanza) => void = () => {};
  readonly sent: { readonly host: string; readonly stanza: Stanza }[] = [];
  /** Presence for the other nodes of dc1. */
  readonly sentToNodes: Stanza[] = [];
  /** Presences that sessions of this node were given directly. */
  readonly delivered: { readonly to: string; readonly stanza: Stanza }[] = [];
  /** Directed presence that was sent again, as `SESSION ACCOUNT`. */
  readonly repeated: string[] = [];
  /** Contacts that may see somebody's presence from now on, as `OWNER CONTACT`. */
  readonly approved: string[] = [];
  /** Number of times that a datacenter was said to be back. */
  backs = 0;
  readonly server: RosterServer;
  readonly #paced: Pick<PacedWork, "run" | "task">;

  constructor(
    { maxItems = 3, maxRequests = 2, paced = new PacedWork(), rosters }: {
      readonly maxItems?: number;
      readonly maxRequests?: number;
      readonly paced?: Pick<PacedWork, "run" | "task">;
      /** @default those of `store` */
      readonly rosters?: RosterStore;
    } = {},
  ) {
    this.#paced = paced;
    this.server = new RosterServer({
      process: 1,
      leaseMs: 120_000,
      hosts: {
        localHost: "dc1.example.com",
        globalHost: "example.com",
        store: (domain) => this.hosts.has(domain) ? rosters ?? this.store : undefined,
        isShared: () => this.isShared,
        hasVersions: () => true,
      },
      sessions: {
        here: (account) =>
          [...this.here].filter(([jid]) => jid.startsWith(`${account}/`)).map((
            [jid, lastPresence],
          ) => this.#session(jid, lastPresence)),
        all: () => [...this.here].map(([jid, last]) => this.#session(jid, last)),
        hosts: () => Promise.resolve([...this.live.keys()]),
        liveProcesses: (hosts) =>
          Promise.resolve(new Map(hosts.map((host) => [host, this.live.get(host) ?? new Set()]))),
        everywhere: (accounts) => {
          this.lookups.push(accounts);
          if (this.isTableAway) return Promise.resolve(undefined);
          const found = accounts.map((each) => [each, this.#places(each)] as const);
          return Promise.resolve(new Map(found.filter(([, places]) => places.length > 0)));
        },
      },
      routes: {
        route: (stanza) => {
          this.routed.push(stanza);
          this.onRoute(stanza);
        },
        sendTo: (host, stanza) => void this.sent.push({ host, stanza }),
        sendToNodes: (stanza) => void this.sentToNodes.push(stanza),
        deliver: (to, stanza) => this.delivered.push({ to: to.text, stanza }) > 0,
        offer: (to, stanza) => this.delivered.push({ to: to.text, stanza }) > 0,
      },
      privacy: {
        viewOf: ({ text }) => hidingFrom(this.hidden.get(text)),
        refusesForAccount: ({ from, to }) =>
          Promise.resolve(this.hidden.get(to.text)?.has(from.bare.text) === true),
        hiders: (accounts) =>
          Promise.resolve(
            new Map(
              accounts.map(({ text }) => [text, hidingFrom(this.hidden.get(text)).hidesFrom]),
            ),
          ),
      },
      bounds: resolveRosterBounds({ maxItems, maxRequests }),
      approved: (owner, contact) => void this.approved.push(`${owner.text} ${contact.text}`),
      datacenterBack: () => void this.backs++,
      isCurrent: ({ text }) => () => Promise.resolve(!this.former.has(text)),
      creationOf: ({ text }) => Promise.resolve(this.accounts.get(text)),
      maxRequestBytes: 4096,
      paced,
      clock: this.clock,
      metrics: this.metrics,
      log: SILENT_LOGGER,
    });
  }

  /** Asks a service as the client `from` would. */
  async ask(from: string, type: "get" | "set", query: XmlElement): Promise<IqAnswer> {
    const client = parseJid(from);
    const iq = element("iq", { type, id: "1" }, query);
    const stanza = buildStanza(iq, { from: client, to: client.bare });
    const service = this.server.services.find((each) => each.type === type)!;
    return await service.answer({
      stanza,
      id: "1",
      target: "account",
      payload: query,
      client: undefined,
      isCurrent: () => Promise.resolve(!this.former.has(from)),
    });
  }

  /** A session of this node sends presence; resolves once that has had its effect. */
  async changePresence(jid: string, type?: "unavailable"): Promise<void> {
    this.sendPresence(jid, type);
    await this.server.settled();
  }

  /** A session of this node sends presence. */
  sendPresence(jid: string, type?: "unavailable", status = ""): void {
    const from = fullJid(jid);
    const presence = buildStanza(
      element("presence", { type }, element("status", {}, status)),
      { from, to: from.bare },
    );
    this.here.set(jid, type === undefined ? presence : undefined);
    this.server.presenceChanged(from, presence);
  }

  /** An available session comes from another node. */
  arrive(jid: string, isNew: boolean): void {
    const from = fullJid(jid);
    this.here.set(jid, buildStanza(element("presence", {}), { from, to: from.bare }));
    this.server.arrived(from, { isAvailable: true, isNew });
  }

  /** Presence of a session at dc2 comes for an account or a session here. */
  heard(from: string, to: string, type?: "unavailable"): void {
    const addresses = { from: parseJid(from), to: parseJid(to) };
    const stanza = buildStanza(element("presence", { type }), addresses);
    this.server.saw(stanza, { origin: "dc2.example.com", process: 2, sentAtUs: 1 });
  }

  /** A process of a datacenter is gone, and comes back until nobody waits for its presence. */
  async cutOff(host: string, process: number): Promise<void> {
    const looks = async (times: number) => {
      for (let i = 0; i < times; i++) {
        this.clock.advance(1_000);
        await new Promise((resolve) => setTimeout(resolve));
        await this.#paced.run(() => {}); // behind the pieces of the look
        await new Promise((resolve) => setTimeout(resolve));
      }
    };
    this.server.start();
    this.live.set(host, new Set());
    await looks(2);
    this.live.set(host, new Set([process]));
    await looks(6);
    this.server.close();
  }

  /** A client of this node sends a subscription stanza or a probe; returns when it was settled. */
  async enter(from: string, type: string, to: string): Promise<readonly string[]> {
    const steps: string[] = [];
    const [client, contact] = [parseJid(from), parseJid(to)];
    const stanza = buildStanza(element("presence", { type }), { from: client.bare, to: contact });
    const fate = { settle: () => void steps.push(`settled, ${this.routed.length} routed`) };
    this.server.entered(stanza, client, fate, 1);
    await this.server.settled();
    return steps;
  }

  /** Such a stanza arrives at its recipient's account. */
  async take(from: string, type: string, to: string): Promise<void> {
    const [sender, account] = [parseJid(from), parseJid(to)];
    let isSettled = false;
    this.server.take({
      stanza: buildStanza(element("presence", { type }), { from: sender, to: account }),
      settle: () => void (isSettled = true),
    });
    await this.server.settled();
    if (!isSettled) throw new Error("The stanza was not settled");
  }

  /** Takes subscription stanzas that were routed to accounts here, as the router does, and the answers. */
  async takeRouted(): Promise<void> {
    await this.server.settled();
    for (const stanza of this.routed) { // it grows meanwhile
      const { from, to } = stanza;
      const isForAccount = to === to.bare && this.hosts.has(to.domainpart);
      if (isForAccount && isSubscription(stanza)) await this.take(from.text, stanza.type, to.text);
    }
  }

  /** True when the metrics have this line. */
  async counts(line: string): Promise<boolean> {
    return (await this.metrics.prometheus()).split("\n").includes(line);
  }

  #session(text: string, lastPresence: Stanza | undefined) {
    const priority = lastPresence === undefined ? undefined : 0;
    const repeatDirected = (account: Jid) => void this.repeated.push(`${text} ${account.text}`);
    const { directed } = this;
    return { jid: fullJid(text), lastPresence, priority, isOpen: true, directed, repeatDirected };
  }

  #places(account: string): SessionPlace[] {
    const own = [...this.here.keys()].filter((jid) => jid.startsWith(`${account}/`))
      .map((jid) => ({
        host: "dc1.example.com",
        resourcepart: fullJid(jid).resourcepart,
        process: 1,
      }));
    return [...own, ...this.elsewhere.get(account) ?? []];
  }
}

/** The view of a list that keeps out these contacts, or of none. */
export function hidingFrom(contacts: ReadonlySet<string> = new Set()): PresenceView {
  const isHidden = ({ text, bare }: Jid) => contacts.has(bare.text) || contacts.has(text);
  const devices = [...contacts].map(parseJid).filter((jid) => jid instanceof FullJid);
  return { hidesFrom: isHidden, isDeafTo: isHidden, devices };
}

/** Makes an item that clients see. */
export function item(jid: string, fields: Partial<RosterItem> = {}): RosterItem {
  return { ...unlistedItem(jid), isListed: true, ...fields };
}

/** Describes stanzas in one line each: type, sender and recipient. */
export function lines(stanzas: readonly Stanza[]): string[] {
  return stanzas.map((stanza) => {
    const push = stanza.kind === "iq" ? stanzaElement(stanza).elements[0]?.elements[0] : undefined;
    const what = push === undefined
      ? stanza.type
      : `push ${push.attribute("jid")} ${push.attribute("subscription")}`;
    return `${what}: ${stanza.from.text} → ${stanza.to.text}`;
  });
}

/** Parses a full JID. */
export function fullJid(text: string): FullJid {
  const jid: Jid = parseJid(text);
  if (jid === jid.bare) throw new TypeError(`${text} has no resourcepart`);
  return jid as FullJid; // only a bare JID is its own `bare`
}
