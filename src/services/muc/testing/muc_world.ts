import { CausewayError, ManualClock } from "../../../base/mod.ts";
import { MemoryLogger, MetricsRegistry, SILENT_LOGGER } from "../../../observe/mod.ts";
import { InternalStore } from "../../../storage/mod.ts";
import type { ArchiveStore, MucStore } from "../../../storage/mod.ts";
import { buildStanza, FullJid, parseElement, parseJid } from "../../../xmpp/mod.ts";
import type { Stanza } from "../../../xmpp/mod.ts";
import type { MucOptions } from "../muc_options.ts";
import type { Seat } from "../occupants.ts";
import { RoomArchives } from "../../rooms/mod.ts";
import type { RoomStanza } from "../../rooms/mod.ts";
import { MucServer } from "../muc_server.ts";

/** Milliseconds in which messages of nodes that have died come into archives. */
export const SWEEP_WITHIN_MS = 120_000;
export const SERVICE = "conference.example.com";
export const COVEN = `coven@${SERVICE}`;
export const ALICE = "alice@example.com/a";
export const BOB = "bob@example.com/b";
export const CAROL = "carol@example.com/c";
export const DAVE = "dave@example.com/d";
export const MUC = "http://jabber.org/protocol/muc";

/** A seat of alice in the coven, at dc1. */
export const SEAT: Seat = {
  room: COVEN,
  jid: ALICE,
  nick: "witch",
  affiliation: "none",
  role: "participant",
  payload: [],
  joinedMs: 1,
  changedMs: 1,
  host: "dc1.example.com",
  process: 1,
};

/** Settings of a room that nobody has configured. */
export const DEFAULT_ROOM: MucOptions["defaultRoom"] = {
  title: "",
  description: "",
  persistent: false,
  public: true,
  moderated: true,
  membersOnly: false,
  membersByDefault: true,
  allowChangeSubject: true,
  allowUserInvites: false,
  allowPrivateMessages: true,
  passwordProtected: false,
  password: "",
  anonymous: true,
  maxUsers: 10,
};

/** Options of the rooms. */
export const OPTIONS: MucOptions = {
  historySize: 5,
  maxUsers: 10,
  maxCreatedRooms: 20,
  maxUserConferences: 3,
  maxRoomId: 20,
  maxRoomName: 20,
  maxRoomDescription: 40,
  maxAffiliations: 20,
  roomsPerPage: 2,
  messagesPerSec: 100,
  defaultRoom: DEFAULT_ROOM,
};

/** A node: its rooms, and the stanzas that each of its sessions got. */
export class MucNode {
  readonly host: string;
  readonly process: number;
  readonly server: MucServer<RoomStanza>;
  readonly archives: RoomArchives | undefined;
  readonly log = new MemoryLogger();
  readonly metrics: MetricsRegistry;
  readonly #world: MucWorld;
  readonly #got = new Map<string, string[]>();
  readonly sessions = new Set<string>();
  /** Sessions without a connection. */
  readonly away = new Set<string>();
  /** Stanzas for others than sessions of this node. */
  readonly sent: string[] = [];
  settled = 0;
  isStoreDown = false;
  /** True while the database of archives takes nothing from this node. */
  isArchiveDown = false;
  /** True for a message that the database of archives refuses without a name for the failure. */
  refuses: (stanza: string) => boolean = () => false;
  /** Runs before the node reads a room. */
  beforeRead: () => Promise<void> = () => Promise.resolve();
  /** Runs once, before the node reads for the first time what an archive lacks. */
  beforeUnarchived: (() => Promise<void>) | undefined;

  constructor(world: MucWorld, host: string, options: Partial<MucOptions>) {
    this.#world = world;
    this.host = host;
    this.process = world.nodes.length + 1;
    this.metrics = new MetricsRegistry(world.clock);
    const store = failing(world.store, () => this.isStoreDown);
    const archives = this.archives = world.archiveStore && this.#makeArchives(world, store);
    this.server = new MucServer({
      service: {
        domain: SERVICE,
        options: { ...OPTIONS, ...options },
        store: new Proxy(store, {
          get: (target, name: keyof MucStore) => {
            if (name !== "read") return target[name];
            return async (room: string) => {
              await this.beforeRead();
              return await target.read(room);
            };
          },
        }),
        ...archives && { archives },
      },
      localHost: host,
      process: this.process,
      isLocalHost: (domain) => world.nodes.some((node) => node.host === domain),
      isHere: (jid) => this.sessions.has(jid.text),
      isAway: (jid) => this.away.has(jid.text),
      deliver: (to, stanza) => {
        if (!this.sessions.has(to.text)) return false;
        this.#note(to.text, stanza);
        return true;
      },
      send: (stanza, done) => {
        world.route(stanza, this);
        done?.();
      },
      sendToSessions: (messages, done) => {
        for (const message of messages) {
          world.route(message);
          done();
        }
      },
      answer: (reply, { settle }) => {
        world.route(reply);
        settle();
      },
      tell: (where, stanza) => world.tell(this, where, stanza),
      hosts: () => Promise.resolve(world.reachable(this)),
      knownHosts: () => world.nodes.map((node) => node.host),
      liveProcesses: () => Promise.resolve(world.live(this)),
      hasNeighbours: () => world.nodes.some((node) => node !== this && node.host === host),
      metrics: this.metrics,
      logger: this.log,
      clock: world.clock,
    });
  }

  #makeArchives(world: MucWorld, outbox: MucStore): RoomArchives {
    const store = failing(world.archiveStore!, () => this.isArchiveDown);
    return new RoomArchives({
      options: {
        defaultLimit: 50,
        maxLimit: 50,
        hasChatMarkers: false,
        maxAgeMs: world.archiveAgeMs,
        isSearched: true,
      },
      outboxes: new Map([[SERVICE, {
        unarchived: async (room, limit) => {
          const before = this.beforeUnarchived;
          this.beforeUnarchived = undefined;
          await before?.();
          return await outbox.unarchived(room, limit);
        },
        markArchived: (room, upTo) => outbox.markArchived(room, upTo),
        overdue: (page) => outbox.overdue(page),
      }]]),
      store: new Proxy(store, {
        get: (target, name: keyof ArchiveStore) => {
          if (name !== "append") return target[name];
          return (...[messages, nowMs]: Parameters<ArchiveStore["append"]>) => {
            const isRefused = messages.some(({ stanza }) =>
              this.refuses(new TextDecoder().decode(stanza))
            );
            return isRefused
              ? Promise.reject(new CausewayError("storage/failed", "Cannot"))
              : target.append(messages, nowMs);
          };
        },
      }),
      sweepWithinMs: SWEEP_WITHIN_MS,
      send: (to, message) => {
        this.receive(to.text, message);
        return true;
      },
      metrics: new MetricsRegistry(world.clock),
      logger: SILENT_LOGGER,
      clock: world.clock,
    });
  }

  /** Gives the node a stanza of one of its sessions, and waits until all nodes are done. */
  async take(xml: string): Promise<string> {
    const stanza = buildStanza(parseElement(new TextEncoder().encode(xml)));
    if (stanza.from instanceof FullJid) this.sessions.add(stanza.from.text);
    const outcome = this.server.take(
      this.#world.taken(stanza, () => void this.settled++),
    );
    await this.#world.settled();
    return outcome;
  }

  async enter(jid: string, nick: string, content = ""): Promise<void> {
    await this.take(
      `<presence from='${jid}' to='${COVEN}/${nick}'><x xmlns='${MUC}'>${content}</x></presence>`,
    );
  }

  /** Makes the room, and unlocks it. */
  async make(jid: string, nick: string, fields = ""): Promise<void> {
    await this.enter(jid, nick);
    await this.ask(
      jid,
      "set",
      `<query xmlns='${MUC}#owner'><x xmlns='jabber:x:data' type='submit'>${fields}</x></query>`,
    );
    this.got(jid);
  }

  /** Makes a session of another node come here. */
  resume(session: string, from: MucNode): void {
    from.sessions.delete(session);
    this.sessions.add(session);
    this.server.arrived(parseJid(session) as FullJid);
  }

  leave(jid: string, nick: string): Promise<string> {
    return this.take(`<presence from='${jid}' to='${COVEN}/${nick}' type='unavailable'/>`);
  }

  say(jid: string, text: string): Promise<string> {
    return this.take(
      `<message from='${jid}' to='${COVEN}' type='groupchat' id='m'><body>${text}</body></message>`,
    );
  }

  /** Sends a request, and returns its answer. */
  async ask(jid: string, type: string, content: string, to = COVEN): Promise<string> {
    const before = this.#got.get(jid)?.length ?? 0;
    await this.take(`<iq from='${jid}' to='${to}' type='${type}' id='i'>${content}</iq>`);
    const found = (this.#got.get(jid) ?? []).slice(before);
    return found.find((each) => each.startsWith("<iq")) ?? "";
  }

  /** Returns what a session got since it was asked for the last time. */
  got(jid: string): readonly string[] {
    const all = this.#got.get(jid) ?? [];
    this.#got.set(jid, []);
    return all;
  }

  /** Returns the texts of the messages that a session got. */
  texts(jid: string): readonly string[] {
    return this.got(jid).flatMap((xml) => /<body>(.*?)<\/body>/.exec(xml)?.[1] ?? []);
  }

  #note(jid: string, { bytes }: Stanza): void {
    const all = this.#got.get(jid) ?? [];
    all.push(new TextDecoder().decode(bytes));
    this.#got.set(jid, all);
  }

  receive(to: string, stanza: Stanza): void {
    this.#note(to, stanza);
  }
}

/** Returns a store whose methods fail while `isDown`. */
function failing<Store extends object>(store: Store, isDown: () => boolean): Store {
  return new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) =>
        isDown()
          ? Promise.reject(new CausewayError("storage/unreachable", "Cannot"))
          : value.apply(target, args);
    },
  });
}

/** Nodes of several datacenters with one database. */
export class MucWorld {
  readonly clock = new ManualClock();
  readonly nodes: MucNode[] = [];
  /** Nodes that are dead, and pairs of datacenters without a link. */
  readonly dead = new Set<MucNode>();
  readonly cut = new Set<string>();
  /** Processes whose lease has ended for the other side of a split. */
  isLeaseOver = false;
  /** News that are held back, to come later. */
  held: (() => void)[] | undefined;
  /** News that wait on slow links, oldest first, by the processes of both ends, such as "1 2". */
  readonly slow = new Map<string, (() => void)[]>();
  store!: MucStore;
  /** Archives of the rooms. Undefined: they have none. */
  archiveStore: ArchiveStore | undefined;
  archiveAgeMs = Infinity;
  #sequence = 0;
  #internal!: InternalStore;
  #directory!: string;

  static async open(
    hosts: readonly string[],
    options: Partial<MucOptions> = {},
    { hasArchives = false, archiveAgeMs = Infinity }: {
      readonly hasArchives?: boolean;
      readonly archiveAgeMs?: number;
    } = {},
  ): Promise<MucWorld> {
    const world = new MucWorld();
    world.archiveAgeMs = archiveAgeMs;
    world.#directory = await Deno.makeTempDir({ prefix: "causeway-muc-" });
    world.#internal = await InternalStore.open({ path: `${world.#directory}/store.sqlite` });
    world.store = world.#internal.muc(SERVICE);
    if (hasArchives) world.archiveStore = world.#internal.archives();
    for (const host of hosts) world.nodes.push(new MucNode(world, host, options));
    for (const node of world.nodes) node.server.start();
    await world.look();
    return world;
  }

  /** Starts another node, which has not looked yet. */
  begin(host: string): MucNode {
    const node = new MucNode(this, host, {});
    this.nodes.push(node);
    node.server.start();
    return node;
  }

  /** Lets all nodes look once, and waits until what follows is done. */
  async look(times = 2): Promise<void> {
    for (let i = 0; i < times; i++) {
      this.clock.advance(1_000);
      await this.settled();
    }
  }

  /** Lets news come that were held back, and holds no more. */
  release(): void {
    const late = this.held ?? [];
    this.held = undefined;
    for (const take of late) take();
  }

  /** Lets news come that wait on a slow link, which is slow no longer. */
  speedUp(link: string): void {
    const late = this.slow.get(link) ?? [];
    for (let take = late.shift(); take !== undefined; take = late.shift()) take();
    this.slow.delete(link);
  }

  async settled(): Promise<void> {
    for (let i = 0; i < 5; i++) {
      for (const node of this.nodes) await node.server.settled();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Returns a stanza as a node takes it. */
  taken(stanza: Stanza, settle = () => {}): RoomStanza {
    return { stanza, process: 1, sequence: ++this.#sequence, settle };
  }

  /** Brings a stanza to wherever its recipient is. A link that is cut loses it. */
  route(stanza: Stanza, from?: MucNode): void {
    const { text } = stanza.to;
    const node = this.nodes.find(({ sessions }) => sessions.has(text));
    if (node !== undefined && from !== undefined && this.#isCut(from, node)) return;
    if (node !== undefined) node.receive(text, stanza);
    else if (stanza.to.domainpart === SERVICE) {
      this.nodes[0]!.server.take(this.taken(stanza));
    } else this.nodes[0]!.sent.push(new TextDecoder().decode(stanza.bytes));
  }

  tell(from: MucNode, host: string, stanza: Stanza): void {
    for (const node of this.nodes) {
      if (node === from || node.host !== host || this.#isCut(from, node)) continue;
      const take = () => void node.server.take(this.taken(stanza));
      const waiting = this.held ?? this.slow.get(`${from.process} ${node.process}`);
      if (waiting === undefined) take();
      else waiting.push(take);
    }
  }

  reachable(from: MucNode): readonly string[] {
    return this.nodes.filter((node) => !this.#isGone(from, node)).map(({ host }) => host);
  }

  live(from: MucNode): ReadonlyMap<string, ReadonlySet<number>> {
    const found = new Map<string, Set<number>>();
    for (const node of this.nodes) {
      if (this.#isGone(from, node)) continue;
      const all = found.get(node.host) ?? new Set();
      found.set(node.host, all.add(node.process));
    }
    return found;
  }

  #isCut(one: MucNode, other: MucNode): boolean {
    return this.dead.has(one) || this.dead.has(other) ||
      this.cut.has([one.host, other.host].toSorted().join(" "));
  }

  #isGone(one: MucNode, other: MucNode): boolean {
    return one !== other && this.isLeaseOver && this.#isCut(one, other);
  }

  async [Symbol.asyncDispose]() {
    for (const node of this.nodes) {
      await node.server.close();
      await node.archives?.close();
    }
    await this.#internal.close();
    await Deno.remove(this.#directory, { recursive: true });
  }
}

/** Returns a field of a submitted form. */
export function field(name: string, value: string): string {
  return `<field var='${name}'><value>${value}</value></field>`;
}

/** Two datacenters, a room of alice at dc1, and bob in it at dc2. */
export async function withRoom(
  fields = "",
  { options = {}, ...archives }: {
    readonly hasArchives?: boolean;
    readonly archiveAgeMs?: number;
    readonly options?: Partial<MucOptions>;
  } = {},
): Promise<[MucWorld, MucNode, MucNode]> {
  const world = await MucWorld.open(["dc1.example.com", "dc2.example.com"], options, archives);
  const [one, two] = world.nodes as [MucNode, MucNode];
  await one.make(ALICE, "witch", fields);
  await two.enter(BOB, "bard");
  one.got(ALICE);
  two.got(BOB);
  return [world, one, two];
}
