import { ManualClock } from "../../../base/mod.ts";
import { MetricsRegistry, SILENT_LOGGER } from "../../../observe/mod.ts";
import type {
  PrivacyStore,
  PrivacyWrite,
  RosterItem,
  RosterStore,
  StoredPrivacy,
} from "../../../storage/mod.ts";
import type { Stanza, XmlElement } from "../../../xmpp/mod.ts";
import { buildStanza, element, FullJid, parseElement, parseJid } from "../../../xmpp/mod.ts";
import { unlistedItem } from "../../roster/subscription_state.ts";
import { blockingServices } from "../blocking_services.ts";
import type { PrivacyChange } from "../privacy_ports.ts";
import { PrivacyServer } from "../privacy_server.ts";
import { privacyServices } from "../privacy_services.ts";

/** Lists in memory, which all nodes of a test share. */
export class MemoryPrivacyStore implements PrivacyStore {
  readonly stored = new Map<string, StoredPrivacy>();
  /** Queries so far, by method. */
  readonly queries: string[] = [];
  /** Called before each write, as another node would write in between. */
  beforeWrite: () => void = () => {};
  failure: Error | undefined;
  /** Holds back what the next read has found. */
  late: PromiseWithResolvers<void> | undefined;
  /** Fails the answer to the next write, which is made. */
  lostAnswer: Error | undefined;

  async read(localpart: string): Promise<StoredPrivacy> {
    const found = await this.#answer("read", () => this.#find(localpart));
    const { late } = this;
    this.late = undefined;
    await late?.promise;
    return found;
  }

  write(localpart: string, write: PrivacyWrite): Promise<number | undefined> {
    return this.#answer("write", () => {
      this.beforeWrite();
      const version = this.put(localpart, write);
      const { lostAnswer } = this;
      this.lostAnswer = undefined;
      if (lostAnswer !== undefined) throw lostAnswer;
      return version;
    });
  }

  versions(localparts: readonly string[]): Promise<ReadonlyMap<string, number>> {
    return this.#answer("versions", () =>
      new Map(localparts.flatMap((each) => {
        const found = this.stored.get(each);
        return found === undefined ? [] : [[each, found.version]];
      })));
  }

  removeAll(localpart: string): Promise<void> {
    return this.#answer("removeAll", () => void this.stored.delete(localpart));
  }

  /** Writes at once. */
  put(localpart: string, { expected, defaultName, list }: PrivacyWrite): number | undefined {
    const { version, lists } = this.#find(localpart);
    if (version !== expected) return undefined;
    const others = lists.filter(({ name }) => name !== list?.name);
    const { name, xml } = list ?? {};
    const written = name === undefined || xml === undefined ? [] : [{ name, xml }];
    const kept = list === undefined ? lists : [...others, ...written];
    this.stored.set(localpart, { version: version + 1, defaultName, lists: kept });
    return version + 1;
  }

  #find(localpart: string): StoredPrivacy {
    return this.stored.get(localpart) ?? { version: 0, defaultName: undefined, lists: [] };
  }

  async #answer<T>(query: string, answer: () => T): Promise<T> {
    this.queries.push(query);
    await Promise.resolve();
    if (this.failure !== undefined) throw this.failure;
    return answer();
  }
}

/** A node with privacy lists. */
export class PrivacyFixture {
  readonly clock = new ManualClock();
  readonly metrics = new MetricsRegistry(this.clock);
  readonly store: MemoryPrivacyStore;
  /** Sessions of accounts at other nodes. */
  readonly elsewhere = new Map<
    string,
    { readonly host: string; readonly resourcepart: string }[]
  >();
  /** Contacts in the roster of every account. */
  readonly contacts: RosterItem[] = [];
  /** Called while a roster is read. */
  whileReadingRoster: () => void = () => {};
  readonly routed: Stanza[] = [];
  readonly delivered: string[] = [];
  readonly changes: { readonly session: string; readonly change: PrivacyChange }[] = [];
  /** Called as the account of a client is looked up. Returns false when the account is gone. */
  isCurrent: () => Promise<boolean> = () => Promise.resolve(true);
  readonly server: PrivacyServer;

  constructor({ store = new MemoryPrivacyStore(), process = 1 } = {}) {
    this.store = store;
    const rosters = {
      read: () => {
        this.whileReadingRoster();
        return Promise.resolve({ version: 1, removedVersion: 0, items: this.contacts });
      },
    };
    this.server = new PrivacyServer({
      process,
      hosts: {
        localHost: "dc1.example.com",
        globalHost: "example.com",
        store: (domain) => domain === "example.com" ? store : undefined,
        rosters: () => rosters as unknown as RosterStore, // no other method is used
        bounds: () => ({ maxLists: 2, maxItems: 3, maxBytes: 600 }),
      },
      everywhere: (accounts) =>
        Promise.resolve(
          new Map(accounts.map((account) => [account, this.elsewhere.get(account) ?? []])),
        ),
      route: (stanza) => void this.routed.push(stanza),
      deliver: (to, stanza) => void this.delivered.push(`${to.resourcepart} ${text(stanza)}`),
      changed: (session, change) => void this.changes.push({ session: session.text, change }),
      clock: this.clock,
      metrics: this.metrics,
      log: SILENT_LOGGER,
    });
  }

  /** Asks a service as the client `from` would; returns the payload, `empty` or the condition. */
  async ask(from: string, type: "get" | "set", xml: string): Promise<string> {
    const payload = parseElement(new TextEncoder().encode(xml));
    const services = [...privacyServices(this.server), ...blockingServices(this.server)];
    const service = services.find((each) =>
      each.type === type && each.name === payload.name && each.namespace === payload.namespace
    )!;
    const client = parseJid(from);
    const iq = element("iq", { type, id: "1" }, payload);
    const stanza = buildStanza(iq, { from: client, to: client.bare });
    const request = {
      stanza,
      id: "1",
      target: "account",
      payload,
      client: undefined,
      isCurrent: () => this.isCurrent(),
    } as const;
    const answer = await service.answer(request);
    if (answer === "empty") return answer;
    return "error" in answer ? answer.error : "payload" in answer ? written(answer.payload) : "";
  }

  /** Gives all routed stanzas to the nodes that have their recipients, until there are none. */
  async carry(...others: readonly PrivacyFixture[]): Promise<void> {
    const nodes = [this, ...others];
    for (const node of nodes) await settled(node);
    while (nodes.some(({ routed }) => routed.length > 0)) {
      for (const stanza of nodes.flatMap(({ routed }) => routed.splice(0))) {
        for (const { server } of nodes) server.takes(stanza);
      }
      for (const node of nodes) await settled(node);
    }
  }

  /** True when the metrics have this line. */
  async counts(line: string): Promise<boolean> {
    return (await this.metrics.prometheus()).split("\n").includes(line);
  }
}

/** Waits for all that a node does because of what came before. */
export async function settled({ server }: PrivacyFixture): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
  await server.settled();
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

/** A contact that clients see. */
export function contact(jid: string, fields: Partial<RosterItem>): RosterItem {
  return { ...unlistedItem(jid), isListed: true, ...fields };
}

/** A stanza with these addresses. */
export function stanza(
  kind: Stanza["kind"],
  type: Stanza["type"],
  [from, to]: readonly [string, string],
): Stanza {
  const written = type === "available" || type === "normal" ? undefined : type;
  return buildStanza(element(kind, { type: written, id: "1" }), {
    from: parseJid(from),
    to: parseJid(to),
  });
}

/** Parses a full JID. */
export function fullJid(jid: string): FullJid {
  const parsed = parseJid(jid);
  if (!(parsed instanceof FullJid)) throw new TypeError(`${jid} has no resourcepart`);
  return parsed;
}

function text({ bytes }: Stanza): string {
  const iq = parseElement(bytes);
  return iq.elements.map(written).join("");
}

function written({ name, attributes, elements }: XmlElement): string {
  const values = Object.entries(attributes).map(([key, value]) => ` ${key}=${value}`).join("");
  return `<${name}${values}>${elements.map(written).join("")}`;
}
