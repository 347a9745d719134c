import { setImmediate } from "node:timers/promises";
import { ManualClock } from "../../../base/mod.ts";
import type { Counter, MetricDeclaration, MetricLabels, Metrics } from "../../../observe/mod.ts";
import { MemoryLogger } from "../../../observe/mod.ts";
import { BareJid, FullJid } from "../../../xmpp/mod.ts";
import { MemoryRedis, MemoryRedisCommands } from "../redis/testing/memory_redis.ts";
import type { HybridClock } from "../claims/hybrid_clock.ts";
import type { KeyRule } from "../claims/key_rule.ts";
import type { CacheOptions, DatacenterBounds, RedisOptions } from "../options.ts";
import { SessionTable } from "../session_table.ts";

/** Metrics that tests read back by name. */
export class TestMetrics implements Metrics {
  readonly counters = new Map<string, { value: number } & Counter>();
  readonly gauges = new Map<string, () => number>();
  readonly observed = new Map<string, number[]>();
  /** Gauges by their node, as long as they exist. */
  readonly shownNodes = new Map<string, Set<string>>();

  counter(declaration: MetricDeclaration): Counter {
    const known = this.counters.get(declaration.name);
    if (known !== undefined) return known;
    const counter = {
      value: 0,
      inc(by = 1) {
        this.value += by;
      },
    };
    this.counters.set(declaration.name, counter);
    return counter;
  }

  gauge(declaration: MetricDeclaration, read?: () => number) {
    const { name, labels } = declaration;
    if (read !== undefined) this.gauges.set(name, read);
    if (labels?.["node"] !== undefined) {
      const nodes = this.shownNodes.get(name) ?? new Set();
      this.shownNodes.set(name, nodes.add(labels["node"]));
    }
    return { set() {}, add() {}, value: 0 };
  }

  histogram(declaration: MetricDeclaration) {
    return this.histogramUs(declaration);
  }

  histogramUs(declaration: MetricDeclaration) {
    const values: number[] = [];
    this.observed.set(declaration.name, values);
    return {
      observe(value: number) {
        values.push(value);
      },
    };
  }

  remove(name: string, labels: MetricLabels): void {
    this.shownNodes.get(name)?.delete(labels["node"] ?? "");
  }

  /** Value of a counter or gauge. */
  value(name: string): number {
    return this.counters.get(name)?.value ?? this.gauges.get(name)?.() ?? NaN;
  }
}

export function fullJid(localpart: string, resourcepart: string): FullJid {
  return new FullJid(bareJid(localpart), resourcepart);
}

export function bareJid(localpart: string): BareJid {
  return new BareJid(localpart, "example.com");
}

export function domainJid(domain: string): BareJid {
  return new BareJid("", domain);
}

/** Options of a test's table. */
export interface TestTableOptions {
  readonly host?: string;
  readonly node?: string;
  readonly incarnation?: number;
  readonly redis?: RedisOptions;
  readonly cache?: CacheOptions;
  readonly rule?: KeyRule;
  readonly onSuperseded?: () => void;
  readonly onRenamed?: () => void;
  readonly onDisplaced?: (fullJid: string) => void;
  readonly onChanged?: (keys: readonly string[]) => void;
  /** @default "external" */
  readonly replication?: "builtin" | "external";
  readonly epochs?: HybridClock;
  readonly hosts?: readonly string[];
  readonly datacenter?: DatacenterBounds;
  readonly meshChanged?: (host: string) => void;
  readonly meshHinted?: (host: string) => void;
  readonly hostRemoved?: (host: string) => void;
}

/** A table on a `MemoryRedis` of its own or shared, under a clock that the test moves. */
export class TestTable {
  readonly metrics = new TestMetrics();
  readonly logger = new MemoryLogger();
  readonly commands: MemoryRedisCommands;
  readonly table: SessionTable;
  readonly incarnation: number;
  readonly clock: ManualClock;
  readonly redis: MemoryRedis;

  constructor(
    options: TestTableOptions = {},
    clock = new ManualClock(),
    redis = new MemoryRedis(clock),
  ) {
    this.clock = clock;
    this.incarnation = options.incarnation ?? 0xa1;
    this.redis = redis;
    this.commands = new MemoryRedisCommands(redis, clock);
    const localHost = options.host ?? "dc1.example.com";
    this.table = new SessionTable({
      globalHost: "example.com",
      localHost,
      nodeName: options.node ?? `node1@${localHost}`,
      incarnation: this.incarnation,
      replication: options.replication ?? "external",
      ...(options.hosts === undefined ? {} : { hosts: options.hosts }),
      ...(options.datacenter === undefined ? {} : { datacenter: options.datacenter }),
      ...(options.redis === undefined ? {} : { redis: options.redis }),
      ...(options.cache === undefined ? {} : { cache: options.cache }),
    }, {
      metrics: this.metrics,
      clock,
      logger: this.logger,
      redis: this.commands,
      ...(options.rule === undefined ? {} : { keyRule: options.rule }),
      ...(options.epochs === undefined ? {} : { epochs: options.epochs }),
      ...(options.meshChanged === undefined ? {} : { meshChanged: options.meshChanged }),
      ...(options.meshHinted === undefined ? {} : { meshHinted: options.meshHinted }),
      ...(options.hostRemoved === undefined ? {} : { hostRemoved: options.hostRemoved }),
      ...(options.onSuperseded === undefined ? {} : { onSuperseded: options.onSuperseded }),
      ...(options.onRenamed === undefined ? {} : { onRenamed: options.onRenamed }),
      ...(options.onDisplaced === undefined ? {} : { onDisplaced: options.onDisplaced }),
      ...(options.onChanged === undefined ? {} : { onChanged: options.onChanged }),
    });
  }

  /** Starts a table on a Redis of its own. */
  static async started(options: TestTableOptions = {}): Promise<TestTable> {
    const test = new TestTable(options);
    await test.table.start();
    return test;
  }

  /** Keys of the table that other programs may read, too. */
  publicKeys(): Record<string, string | string[]> {
    return Object.fromEntries(
      Object.entries(this.redis.dump()).filter(([key]) => !key.startsWith("causeway:")),
    );
  }
}

/** Moves `clock` on, letting all possible work happen after each step. */
export async function advance(clock: ManualClock, byMs: number, stepMs = 20): Promise<void> {
  for (let moved = 0; moved < byMs; moved += stepMs) {
    clock.advance(Math.min(stepMs, byMs - moved));
    await setImmediate();
  }
}
