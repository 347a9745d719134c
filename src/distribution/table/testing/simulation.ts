import { ManualClock, SeededRandom } from "../../../base/mod.ts";
import { advanceFinely, keyFaults } from "./simulated_logins.ts";
import type { SimulatedLogin } from "./simulated_logins.ts";
import { fullJid, TestTable } from "./table.ts";
import { MemoryRedis } from "../redis/testing/memory_redis.ts";
import type { KeyRule } from "../claims/key_rule.ts";

/** One run: datacenters whose Redises are replicated by a program that forwards writes late. */
export interface SimulationOptions {
  readonly seed: number;
  readonly datacenters: number;
  readonly rule: KeyRule;
  /** Events, drawn by the test. */
  readonly steps: readonly SimulationStep[];
  /** Refreshes after which all tables must agree, besides replication lags. */
  readonly refreshes: number;
  /** True to wait first until entries lost in splits have expired. */
  readonly isLossy: boolean;
}

/** One event after a pause. */
export interface SimulationStep {
  readonly pauseMs: number;
  readonly datacenter: number;
  readonly action: "login" | "logout" | "split" | "heal" | "flush";
  readonly user: number;
  readonly resource: number;
}

const REFRESH_MS = 1_000;
const EXPIRE_MS = 4_000;
const MAX_LAG_MS = 300;

/**
 * The shipped table code, with clock, Redis and replication simulated: each write arrives at the other
 * Redises after a lag of its own, in order for one key from one datacenter, in any order otherwise.
 */
export class Simulation {
  readonly clock = new ManualClock();
  readonly #options: SimulationOptions;
  readonly #random: SeededRandom;
  readonly #tables: TestTable[] = [];
  readonly #sessions: SimulatedLogin[] = [];
  readonly #arrivals = new Map<string, number>();
  readonly #split = new Set<number>();

  private constructor(options: SimulationOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
  }

  /** Plays the steps, heals all splits, waits for pending work and one refresh, and compares. */
  static async run(options: SimulationOptions): Promise<readonly string[]> {
    const simulation = new Simulation(options);
    await simulation.#start();
    for (const step of options.steps) await simulation.#play(step);
    // This replicator does not resend writes of a split: renewal has to repair them.
    simulation.#split.clear();
    const refreshingMs = options.refreshes * (REFRESH_MS + MAX_LAG_MS);
    const expiringMs = options.isLossy ? EXPIRE_MS + REFRESH_MS : 0;
    await simulation.#advance(MAX_LAG_MS + expiringMs + refreshingMs + REFRESH_MS / 10);
    const faults = simulation.#faults();
    for (const { commands } of simulation.#tables) commands.latencyMs = 0;
    await simulation.#advance(10); // pending work ends; then the clock stands still
    for (const { table } of simulation.#tables) await table.close();
    return faults;
  }

  async #start(): Promise<void> {
    for (let i = 0; i < this.#options.datacenters; i++) {
      const redis = new MemoryRedis(this.clock);
      redis.onWrite = (command) => {
        this.#tables.forEach((_, to) => {
          if (to !== i) this.#replicate(i, to, command);
        });
      };
      const test = new TestTable(
        {
          host: `dc${i}.example.com`,
          incarnation: 0x10 + i,
          rule: this.#options.rule,
          redis: { refreshAfterMs: REFRESH_MS, expireAfterMs: EXPIRE_MS, readBackMs: [200, 700] },
        },
        this.clock,
        redis,
      );
      test.commands.latencyMs = 1;
      this.#tables.push(test);
    }
    const starting = this.#tables.map(({ table }) => table.start());
    await this.#advance(MAX_LAG_MS + 100);
    await Promise.all(starting);
  }

  #replicate(from: number, to: number, command: Parameters<MemoryRedis["apply"]>[0]): void {
    if (this.#split.has(from) || this.#split.has(to)) return;
    const order = `${from}>${to}>${command[1]}`;
    const nowMs = this.clock.monotonicMs();
    const lagMs = 2 + this.#random.unit() * (MAX_LAG_MS - 2);
    const atMs = Math.max(nowMs + lagMs, this.#arrivals.get(order) ?? 0);
    this.#arrivals.set(order, atMs);
    this.clock.after(atMs - nowMs, () => {
      this.#tables[to]!.redis.apply(command);
    });
  }

  async #play(step: SimulationStep): Promise<void> {
    await this.#advance(step.pauseMs);
    const datacenter = step.datacenter % this.#options.datacenters;
    const { table, redis } = this.#tables[datacenter]!;
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
        table.sessionOpened(jid).catch(this.#fail);
        break;
      case "logout":
        if (at === -1) break;
        this.#sessions.splice(at, 1);
        table.sessionClosed(jid).catch(this.#fail);
        break;
      case "split":
        this.#split.add(datacenter);
        break;
      case "heal":
        this.#split.delete(datacenter);
        break;
      case "flush":
        redis.flush();
        break;
      default:
        step.action satisfies never;
    }
  }

  #fail = (thrown: unknown): never => {
    throw thrown;
  };

  #advance(byMs: number): Promise<void> {
    return advanceFinely(this.clock, byMs);
  }

  #faults(): string[] {
    return keyFaults(this.#tables.map(({ redis }) => redis), this.#sessions);
  }
}
