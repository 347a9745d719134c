import { ManualClock, SeededRandom } from "../../../base/mod.ts";
import type { OpenLink } from "../../mod.ts";
import { MemoryRedis } from "../redis/testing/memory_redis.ts";
import { advanceFinely, keyFaults } from "./simulated_logins.ts";
import type { SimulatedLogin } from "./simulated_logins.ts";
import { fullJid, TestTable } from "./table.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";

/** One run: datacenters with a plain Redis each, whose nodes replicate over links. */
export interface MeshSimulationOptions {
  readonly seed: number;
  readonly datacenters: number;
  readonly steps: readonly MeshStep[];
  /** Makes the epochs of one node; undefined for the shipped ones. */
  readonly epochs?: () => HybridClock;
}

/** One event after a pause. */
export interface MeshStep {
  readonly pauseMs: number;
  readonly datacenter: number;
  readonly action:
    | "login"
    | "logout"
    | "split"
    | "heal"
    | "cut"
    | "flush"
    | "crash"
    | "leave"
    | "redis-down"
    | "redis-up";
  readonly user: number;
  readonly resource: number;
}

/** A link that is open or on its way to be, seen from both sides. */
interface SimulatedLink {
  readonly from: number;
  readonly to: number;
  /** The dialler's process and the acceptor's. */
  readonly processes: readonly [TestTable, TestTable];
  /** The link objects of the dialler and of the acceptor. */
  readonly dialler: OpenLink;
  readonly acceptor: OpenLink;
  isUp: boolean;
  arrivesMs: [number, number];
}

const REFRESH_MS = 1_000;
const EXPIRE_MS = 4_000;
const MAX_LAG_MS = 120;
/** Milliseconds within which a side notices the end of a silent link. */
const SILENCE_MS = 600;

/** The shipped table code, with clock, Redis and links simulated. */
export class MeshSimulation {
  readonly clock = new ManualClock();
  readonly #options: MeshSimulationOptions;
  readonly #random: SeededRandom;
  readonly #redises: MemoryRedis[] = [];
  readonly #tables: (TestTable | undefined)[] = [];
  readonly #sessions: SimulatedLogin[] = [];
  readonly #split = new Set<number>();
  readonly #links = new Map<string, SimulatedLink>();
  readonly #downSinceMs = new Map<number, number>();
  readonly #closing: Promise<void>[] = [];
  #processes = 0x10;

  private constructor(options: MeshSimulationOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  /** @returns descriptions of faults at the end; empty when all tables name the newest login */
  static async run(options: MeshSimulationOptions): Promise<readonly string[]> {
    const simulation = new MeshSimulation(options);
    for (let i = 0; i < options.datacenters; i++) {
      simulation.#redises.push(new MemoryRedis(simulation.clock));
      simulation.#tables.push(undefined);
      await simulation.#start(i);
    }
    for (const step of options.steps) await simulation.#play(step);
    return await simulation.#finish();
  }

  async #finish(): Promise<readonly string[]> {
    this.#split.clear();
    for (const [i, table] of this.#tables.entries()) {
      if (table === undefined) await this.#start(i);
      else table.commands.setUp(true);
    }
    // leases of crashed processes expire, then come one exchange and one check of who lives
    await this.#advance(EXPIRE_MS + 2 * REFRESH_MS + SILENCE_MS + 10 * MAX_LAG_MS);
    const faults = this.#faults();
    for (const table of this.#tables) table!.commands.latencyMs = 0;
    await this.#advance(20);
    for (const link of this.#links.values()) link.isUp = false;
    await Promise.all([...this.#closing, ...this.#tables.map((test) => test!.table.close())]);
    return faults;
  }

  async #start(i: number): Promise<void> {
    const epochs = this.#options.epochs?.();
    const test = new TestTable(
      {
        host: `dc${i}.example.com`,
        incarnation: this.#processes++,
        replication: "builtin",
        redis: { refreshAfterMs: REFRESH_MS, expireAfterMs: EXPIRE_MS, readBackMs: [200, 700] },
        ...(epochs === undefined ? {} : { epochs }),
      },
      this.clock,
      this.#redises[i]!,
    );
    test.commands.latencyMs = 1;
    this.#tables[i] = test;
    let hasStarted = false;
    const starting = test.table.start().then(() => hasStarted = true);
    while (!hasStarted) await this.#advance(4);
    await starting;
  }

  async #play(step: MeshStep): Promise<void> {
    await this.#advance(step.pauseMs);
    const datacenter = step.datacenter % this.#options.datacenters;
    const test = this.#tables[datacenter];
    if (test === undefined) {
      if (step.action !== "flush") await this.#start(datacenter);
      return;
    }
    const { table, redis, commands } = test;
    const resource = `r${step.resource}`;
    const jid = fullJid(`user${step.user}`, resource);
    const at = this.#sessions.findIndex((session) =>
      session.datacenter === datacenter && session.user === step.user &&
      session.resource === resource
    );
    switch (step.action) {
      case "login":
        if (at !== -1) break; // a login that takes over is a logout and a login
        this.#sessions.push({ datacenter, user: step.user, resource });
        void table.sessionOpened(jid); // never rejects
        break;
      case "logout":
        if (at === -1) break;
        this.#sessions.splice(at, 1);
        void table.sessionClosed(jid); // never rejects
        break;
      case "split":
        this.#split.add(datacenter);
        this.#cut(datacenter);
        break;
      case "heal":
        this.#split.delete(datacenter);
        break;
      case "cut":
        this.#cut(datacenter);
        break;
      case "flush":
        redis.flush();
        break;
      case "redis-down":
        commands.setUp(false);
        this.#downSinceMs.set(datacenter, this.clock.monotonicMs());
        break;
      case "redis-up":
        commands.setUp(true);
        break;
      case "crash":
        commands.setUp(false); // the process writes no more
        this.#end(datacenter, false);
        break;
      case "leave":
        commands.setUp(true);
        this.#end(datacenter, true);
        break;
      default:
        step.action satisfies never;
    }
  }

  /** Ends a process: by a crash, or in order, with its sessions closed first. */
  #end(datacenter: number, isOrderly: boolean): void {
    const test = this.#tables[datacenter]!;
    for (let i = this.#sessions.length - 1; i >= 0; i--) {
      const { user, resource, ...session } = this.#sessions[i]!;
      if (session.datacenter !== datacenter) continue;
      this.#sessions.splice(i, 1);
      if (isOrderly) void test.table.sessionClosed(fullJid(`user${user}`, resource));
    }
    this.#tables[datacenter] = undefined;
    for (const [key, link] of this.#links) {
      if (link.from !== datacenter && link.to !== datacenter) continue;
      this.#links.delete(key);
      const other = link.from === datacenter ? link.to : link.from;
      const theirs = link.from === datacenter ? link.acceptor : link.dialler;
      // GOODBYE comes after earlier frames; a crash is noticed later
      const lagMs = isOrderly ? 3 * MAX_LAG_MS : this.#random.unit() * SILENCE_MS;
      this.clock.after(lagMs, () => {
        link.isUp = false;
        this.#tables[other]?.table.traffic?.ended(theirs, isOrderly && !this.#isSplit(link));
      });
    }
    this.#closing.push(test.table.close());
  }

  /** Breaks every link of a datacenter; each side notices at its own time. */
  #cut(datacenter: number): void {
    for (const [key, link] of this.#links) {
      if (link.from !== datacenter && link.to !== datacenter) continue;
      link.isUp = false;
      this.#links.delete(key);
      const { from, to, dialler, acceptor } = link;
      for (const [side, end] of [[from, dialler], [to, acceptor]] as const) {
        const test = this.#tables[side];
        this.clock.after(this.#random.unit() * SILENCE_MS, () => {
          if (this.#tables[side] === test) test?.table.traffic?.ended(end, false);
        });
      }
    }
  }

  #isSplit({ from, to }: { readonly from: number; readonly to: number }): boolean {
    return this.#split.has(from) || this.#split.has(to);
  }

  /** Links every node to every other that it can reach. */
  #connect(): void {
    this.#tables.forEach((dialling, from) => {
      this.#tables.forEach((accepting, to) => {
        const key = `${from}>${to}`;
        if (from === to || dialling === undefined || accepting === undefined) return;
        if (this.#links.has(key) || this.#isSplit({ from, to })) return;
        const end = (way: 0 | 1, to: TestTable, host: number): OpenLink => ({
          host: `dc${host}.example.com`,
          nodeName: `node1@dc${host}.example.com`,
          process: to.incarnation,
          send: (frame) => this.#send(link, way, frame.slice()),
          refuse: (detail) => {
            throw new Error(`refused: ${detail}`);
          },
        });
        const link: SimulatedLink = {
          from,
          to,
          processes: [dialling, accepting],
          dialler: end(0, accepting, to),
          acceptor: end(1, dialling, from),
          isUp: true,
          arrivesMs: [0, 0],
        };
        this.#links.set(key, link);
        accepting.table.traffic!.accepted(link.acceptor);
        dialling.table.traffic!.dialled(link.dialler);
      });
    });
  }

  #send(link: SimulatedLink, way: 0 | 1, frame: Uint8Array): void {
    if (!link.isUp) return;
    const nowMs = this.clock.monotonicMs();
    const atMs = Math.max(nowMs + 1 + this.#random.unit() * MAX_LAG_MS, link.arrivesMs[way]);
    link.arrivesMs[way] = atMs;
    const [side, end] = way === 0 ? [link.to, link.acceptor] : [link.from, link.dialler];
    // A connection leads to a process: a later one of the same name gets nothing from it.
    const test = link.processes[way === 0 ? 1 : 0];
    this.clock.after(atMs - nowMs, () => {
      if (!link.isUp || this.#tables[side] !== test) return;
      test.table.traffic!.frame(end, frame[4]!, frame, 0, frame.length);
    });
  }

  #advance(byMs: number): Promise<void> {
    return advanceFinely(this.clock, byMs, (moved) => {
      if (moved % 40 === 0) this.#connect();
    });
  }

  #faults(): string[] {
    return keyFaults(this.#redises, this.#sessions);
  }
}
