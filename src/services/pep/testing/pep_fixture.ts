import { CausewayError, ManualClock, PacedWork } from "../../../base/mod.ts";
import { MemoryLogger, MetricsRegistry } from "../../../observe/mod.ts";
import { InternalStore } from "../../../storage/mod.ts";
import type {
  LastItemsQuery,
  PepStore,
  RosterContact,
  RosterStore,
  Subscription,
  VcardStore,
} from "../../../storage/mod.ts";
import type { FullJid, Stanza } from "../../../xmpp/mod.ts";
import { parseJid, readdress } from "../../../xmpp/mod.ts";
import { HostServices } from "../../mod.ts";
import type { SessionPlace } from "../../roster/mod.ts";
import { vcards } from "../../vcard/mod.ts";
import type { PepLimits } from "../mod.ts";
import { PAUSE_MS } from "../last_items.ts";
import { PepDisco, pepRequests, PepServer } from "../mod.ts";

/** Limits that a test of anything else never reaches. */
const LIMITS: PepLimits = {
  maxNodes: 20,
  maxItemsPerNode: 10,
  maxItemBytes: 20_000,
  maxBytes: 1_000_000,
};

/** Personal eventing of dc1 over a built-in store, with sessions that are data alone. */
export class PepFixture implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly log = new MemoryLogger();
  readonly metrics = new MetricsRegistry(new ManualClock());
  readonly server: PepServer;
  readonly services: HostServices;
  readonly store: InternalStore;
  /** Sessions of this node, by full JID, with their last presence. */
  readonly here = new Map<string, Stanza | undefined>();
  /** Full JIDs of those of them that are moving away: they take nothing any more. */
  readonly leaving = new Set<string>();
  /** Sessions in other datacenters, by account. */
  readonly elsewhere = new Map<string, SessionPlace[]>();
  /** True while the session table cannot tell who is elsewhere. */
  isTableAway = false;
  /** Accounts whose privacy lists hide them, by the bare JID of the contact. */
  readonly hiding = new Map<string, ReadonlySet<string>>();
  /** Creations of accounts, by bare JID. @default "1" */
  readonly creations = new Map<string, string>();
  /** Stanzas that were routed to sessions elsewhere, or to nobody. */
  readonly routed: Stanza[] = [];
  /** Stanzas that sessions of this node were given. */
  readonly delivered: { readonly to: string; readonly stanza: Stanza }[] = [];
  /** Readings of last items so far. */
  readonly readings: LastItemsQuery[] = [];
  /** While set, no last items can be read. */
  lastItemsFailure: Error | undefined;
  /** Contacts that are being told the presence of every session; undefined: nobody is. */
  told: readonly RosterContact[] | undefined;
  /** While set, nobody's contacts can be read. */
  rostersFailure: Error | undefined;
  /** While set, contacts are read once it resolves. */
  rostersAfter: Promise<void> | undefined;
  /** Readings of contacts so far. */
  rosterReadings = 0;
  /** Readings of items by their ids so far. */
  itemReadings = 0;
  /** Called before an item is stored in a node. */
  publishing: ((node: string) => Promise<void>) | undefined;
  /** Called before a node is changed in the store. */
  writing: (() => Promise<void>) | undefined;
  /** Called as the account of a client is looked up. Returns false when the account is gone. */
  isCurrent: () => Promise<boolean> = () => Promise.resolve(true);
  /** Called when items are asked for by their ids. */
  itemsAsked: (() => void | Promise<void>) | undefined;
  /** Called after each reading of a vCard by the conversion of avatars. */
  vcardRead: (() => Promise<void>) | undefined;
  /** True while vCards lie in a directory, which is only read. */
  hasDirectory = false;
  /** Sessions that were told to send their presence anew. */
  readonly repeated: string[] = [];
  /** The last presence of sessions as their clients wrote it. */
  readonly #written = new Map<string, Stanza>();
  readonly #answers: string[] = [];
  readonly #directory: string;

  private constructor(directory: string, store: InternalStore, limits: Partial<PepLimits>) {
    this.#directory = directory;
    this.store = store;
    const stored = store.pep("example.com");
    const pep = new Proxy(stored, {
      get: (_, name: keyof PepStore) => {
        if (name === "items") {
          return async (...asked: Parameters<PepStore["items"]>) => {
            this.itemReadings++;
            await this.itemsAsked?.();
            return await stored.items(...asked);
          };
        }
        if (name === "publish") {
          return async (...publication: Parameters<PepStore["publish"]>) => {
            await this.publishing?.(publication[1].node);
            await this.writing?.();
            return await stored.publish(...publication);
          };
        }
        if (name === "configure" || name === "retract" || name === "remove") {
          const write = stored[name].bind(stored) as (...change: unknown[]) => Promise<unknown>;
          return async (...change: unknown[]) => {
            await this.writing?.();
            return await write(...change);
          };
        }
        if (name !== "lastItems") return stored[name].bind(stored);
        return (query: LastItemsQuery) => {
          this.readings.push(query);
          if (this.lastItemsFailure !== undefined) return Promise.reject(this.lastItemsFailure);
          return stored.lastItems(query);
        };
      },
    });
    const storedRosters = store.rosters();
    const rosters = new Proxy(storedRosters, {
      get: (_, name: keyof RosterStore) => {
        if (name !== "contacts") return storedRosters[name].bind(storedRosters);
        return async (owner: string) => {
          this.rosterReadings++;
          if (this.rostersFailure !== undefined) throw this.rostersFailure;
          await this.rostersAfter;
          return await storedRosters.contacts(owner);
        };
      },
    });
    this.server = new PepServer({
      hosts: {
        localHost: "dc1.example.com",
        globalHost: "example.com",
        store: (domain) => domain === "example.com" ? pep : undefined,
        rosters: (domain) => domain === "example.com" ? rosters : undefined,
        vcards: (domain) => {
          const vcards = this.#vcards(domain);
          return {
            ...vcards.isReadOnly === true && { isReadOnly: true },
            read: async (localpart) => {
              const found = await vcards.read(localpart);
              await this.vcardRead?.();
              return found;
            },
            replace: (...change) => vcards.replace(...change),
          };
        },
        limits: () => ({ ...LIMITS, ...limits }),
        creations: (accounts) =>
          Promise.resolve(
            new Map(accounts.map(({ bare }) => [bare.text, this.creations.get(bare.text) ?? "1"])),
          ),
        isElsewhere: (domain) => domain === "dc2.example.com",
        hiderOf: ({ text }) =>
          Promise.resolve((asker) => this.hiding.get(asker.bare.text)?.has(text) === true),
        hiders: (owners) =>
          Promise.resolve(
            new Map(owners.map(({ text }) => [
              text,
              (contact) => this.hiding.get(contact.bare.text)?.has(text) === true,
            ])),
          ),
      },
      sessions: {
        here: (account) => this.#sessions().filter(({ jid }) => jid.bare.text === account),
        all: () => this.#sessions(),
        everywhere: (accounts) =>
          Promise.resolve(
            this.isTableAway
              ? undefined
              : new Map(accounts.map((each) => [each, this.elsewhere.get(each) ?? []])),
          ),
      },
      routes: {
        route: (stanza) => this.route(stanza),
        sendTo: (_host, stanza) => this.route(stanza),
        deliver: (to, stanza) => this.#deliver(to, stanza),
      },
      contactsTold: () => Promise.resolve(this.told),
      paced: new PacedWork(),
      presenceAgain: (jid) => {
        this.repeated.push(jid.text);
        this.#broadcast(jid.text, this.#written.get(jid.text) ?? this.here.get(jid.text)!);
      },
      clock: this.clock,
      metrics: this.metrics,
      log: this.log,
    });
    const { hosts, photos } = this.server;
    this.services = new HostServices({
      software: { name: "Causeway", version: "1" },
      publicDomains: () => Promise.resolve([]),
      reply: ({ bytes }) => void this.#answers.push(new TextDecoder().decode(bytes)),
      metrics: new MetricsRegistry(this.clock),
      logger: this.log,
      clock: this.clock,
      isCurrent: () => this.isCurrent(),
      accounts: new PepDisco(hosts, () => true),
      services: [
        ...pepRequests({ server: this.server, hosts }),
        ...vcards({ storeOf: (host) => this.#vcards(host), maxBytesOf: () => 100_000, photos }),
      ],
    });
  }

  static async open(limits: Partial<PepLimits> = {}): Promise<PepFixture> {
    const directory = await Deno.makeTempDir({ prefix: "causeway-pep-" });
    const store = await InternalStore.open({ path: `${directory}/store.sqlite` });
    return new PepFixture(directory, store, limits);
  }

  /** Lets `contact` have this subscription to the presence of `owner`, and the other way round. */
  async subscribe(owner: string, contact: string, groups: readonly string[] = []): Promise<void> {
    for (
      const [one, other, subscription] of [
        [owner, contact, "from"],
        [contact, owner, "to"],
      ] as const
    ) await this.#addItem(one, other, subscription, groups);
  }

  /** A client of this node becomes available, with the features that its capabilities stand for. */
  async online(jid: string, features: readonly string[] = []): Promise<void> {
    this.logIn(jid, features);
    await this.settled();
  }

  /** The same, and nothing of it has had an effect yet. */
  logIn(jid: string, features: readonly string[] = []): void {
    this.appear(jid)(features);
  }

  /**
   * A client of this node becomes available, and is asked for the features that its capabilities stand
   * for. Returns a function by which it answers.
   */
  appear(jid: string): (features: readonly string[]) => void {
    const session = fullJid(jid);
    this.here.set(jid, undefined);
    this.server.opened(session);
    const node = "http://client.example";
    // Legacy capabilities: this client alone is believed what it says.
    const c = `<c xmlns='http://jabber.org/protocol/caps' node='${node}' ver='${jid}'/>`;
    this.presence(jid, presenceOf(jid, c));
    const question = this.delivered.find(({ to, stanza }) => to === jid && stanza.kind === "iq");
    if (question === undefined) throw new Error(`Nobody asked ${jid} for its features`);
    this.delivered.splice(this.delivered.indexOf(question), 1);
    const id = /id='([^']+)'/.exec(textOf(question.stanza))![1]!;
    return (features) => {
      const found = features.map((each) => `<feature var='${each}'/>`).join("");
      this.answer(jid, id, `<query xmlns='http://jabber.org/protocol/disco#info'>${found}</query>`);
    };
  }

  /** A client of this node broadcasts presence. */
  presence(jid: string, presence: Stanza): void {
    this.#written.set(jid, presence);
    this.#broadcast(jid, presence);
  }

  /** A client answers a question of the server. */
  answer(jid: string, id: string, payload: string, type: "result" | "error" = "result"): boolean {
    const text = `<iq from='${jid}' to='example.com' id='${id}' type='${type}'>${payload}</iq>`;
    return this.server.answered({
      kind: "iq",
      type,
      from: parseJid(jid),
      to: parseJid("example.com"),
      bytes: new TextEncoder().encode(text),
    });
  }

  /**
   * Asks as a client of this node, or of dc2 where the host is dc2's. Returns the answer once all that
   * follows it has happened.
   */
  async ask(
    from: string,
    type: "get" | "set",
    payload: string,
    to = parseJid(from).bare.text,
  ): Promise<string> {
    const text = `<iq type='${type}' id='i1' from='${from}' to='${to}'>${payload}</iq>`;
    const stanza: Stanza = {
      kind: "iq",
      type,
      from: parseJid(from),
      to: parseJid(to),
      bytes: new TextEncoder().encode(text),
    };
    const isHere = stanza.from.domainpart === "example.com";
    const client = isHere ? { isConfidential: true, hasCarbons: false } : undefined;
    const outcome = this.services.handle(stanza, client);
    await this.services.close();
    await this.server.settled();
    return this.#answers.splice(0)[0] ?? outcome;
  }

  /** Publishes as a client of this node; returns the answer. */
  publish(from: string, node: string, item: string, options?: Readonly<Record<string, string>>) {
    const form = options === undefined
      ? ""
      : `<publish-options>${
        submitted("http://jabber.org/protocol/pubsub#publish-options", options)
      }</publish-options>`;
    return this.ask(
      from,
      "set",
      `<pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='${node}'>${item}` +
        `</publish>${form}</pubsub>`,
    );
  }

  /** Asks for the items of a node; returns the answer. */
  items(from: string, node: string, to?: string, content = ""): Promise<string> {
    const items = `<items node='${node}'>${content}</items>`;
    return this.ask(
      from,
      "get",
      `<pubsub xmlns='http://jabber.org/protocol/pubsub'>${items}</pubsub>`,
      to,
    );
  }

  /** Waits until all has had its effect, with the last items that wait for presence. */
  async settled(): Promise<void> {
    await this.server.settled();
    this.clock.advance(PAUSE_MS);
    await this.server.settled();
  }

  /** Returns what a client of this node was sent since the last call. */
  async received(jid: string): Promise<readonly string[]> {
    await this.settled();
    const own = this.delivered.filter(({ to }) => to === jid);
    for (const each of own) this.delivered.splice(this.delivered.indexOf(each), 1);
    return own.map(({ stanza }) => textOf(stanza));
  }

  /** Plays the node: what is for a session here meets the filter. */
  route(stanza: Stanza): void {
    if (!this.here.has(stanza.to.text)) return void this.routed.push(stanza);
    if (this.server.notified(stanza) !== undefined) return;
    // The sessions here have full JIDs. One that moves away gives back what it keeps.
    if (!this.#deliver(stanza.to as FullJid, stanza)) this.routed.push(stanza);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server.settled();
    await this.store.close();
    await Deno.remove(this.#directory, { recursive: true });
  }

  #vcards(domain: string): VcardStore {
    const stored = this.store.vcards(domain);
    if (!this.hasDirectory) return stored;
    const refuse = () =>
      Promise.reject(
        new CausewayError(
          "storage/managed-elsewhere",
          "Cannot change a vCard: the directory has it",
        ),
      );
    return {
      isReadOnly: true,
      read: (localpart) => stored.read(localpart),
      search: (...each) => stored.search(...each),
      write: refuse,
      replace: refuse,
      remove: refuse,
    };
  }

  #sessions() {
    return [...this.here].map(([jid, lastPresence]) => ({
      jid: fullJid(jid),
      lastPresence,
      isOpen: !this.leaving.has(jid),
    }));
  }

  #broadcast(jid: string, presence: Stanza): void {
    const completed = this.server.photos.complete(presence);
    this.here.set(jid, presence.type === "available" ? completed : undefined);
    this.server.presenceChanged(fullJid(jid), completed);
  }

  #deliver(to: FullJid, stanza: Stanza): boolean {
    if (!this.here.has(to.text) || this.leaving.has(to.text)) return false;
    this.delivered.push({ to: to.text, stanza: readdress(stanza, to) });
    return true;
  }

  async #addItem(
    owner: string,
    contact: string,
    wanted: "from" | "to",
    groups: readonly string[],
  ): Promise<void> {
    const rosters = this.store.rosters();
    const { version: expected, item } = await rosters.find(owner, contact);
    const isOther = item !== undefined && item.subscription !== wanted;
    const subscription: Subscription = isOther ? "both" : wanted;
    await rosters.write(owner, {
      expected,
      contact,
      item: {
        jid: contact,
        name: "",
        groups,
        subscription,
        isAsking: false,
        isApproved: false,
        isListed: true,
        request: undefined,
      },
    });
  }
}

/** Returns available presence of a client, as its session broadcasts it. */
export function presenceOf(jid: string, content = ""): Stanza {
  const from = parseJid(jid);
  const text = `<presence from='${jid}' to='${from.bare.text}'>${content}</presence>`;
  return {
    kind: "presence",
    type: "available",
    from,
    to: from.bare,
    bytes: new TextEncoder().encode(text),
  };
}

/** Returns a form that is submitted. */
export function submitted(type: string, values: Readonly<Record<string, string>>): string {
  const fields = Object.entries({ FORM_TYPE: type, ...values }).map(([name, value]) =>
    `<field var='${name}'><value>${value}</value></field>`
  );
  return `<x xmlns='jabber:x:data' type='submit'>${fields.join("")}</x>`;
}

/** Returns the XML of a stanza. */
export function textOf({ bytes }: Stanza): string {
  return new TextDecoder().decode(bytes);
}

function fullJid(text: string): FullJid {
  return parseJid(text) as FullJid; // the tests name resources
}
