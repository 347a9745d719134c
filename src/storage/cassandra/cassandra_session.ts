import { Buffer } from "node:buffer";
import type { Client, types } from "cassandra-driver";
import { backoffMs } from "../../base/mod.ts";
import type { BackoffOptions, Clock } from "../../base/mod.ts";
import type { CassandraPoolOptions } from "../server_pools.ts";
import { isAmbiguous, isContention } from "./cassandra_failure.ts";
import { CONSISTENCIES } from "./cql_protocol.ts";

/** Numbers of replicas that take part, as Cassandra names them. */
export type CassandraConsistency = Required<
  Pick<CassandraPoolOptions, "consistency" | "serialConsistency">
>;

/**
 * Level of one read.
 *
 * | level | meaning |
 * | --- | --- |
 * | `near` | as `consistency` says: another datacenter's newest rows may be missing |
 * | `strong` | sees everything that was written `strong` or by a lightweight transaction |
 * | `serial` | completes lightweight transactions that were left in the middle, too |
 */
export type ReadLevel = "near" | "strong" | "serial";

/** Value of a parameter. */
export type CqlValue = string | number | boolean | Uint8Array | null | readonly number[];

/** One statement and its parameters. */
export interface CqlStatement {
  readonly query: string;
  readonly params: readonly CqlValue[];
}

/** One row, with methods that read its columns. */
export class CqlRow {
  readonly #row: types.Row;

  constructor(row: types.Row) {
    this.#row = row;
  }

  /** Returns the number in a column; undefined for none. */
  number(column: string): number | undefined {
    const value: unknown = this.#row[column];
    if (value === null || value === undefined) return undefined;
    return typeof value === "number" ? value : (value as types.Long).toNumber(); // bigint columns
  }

  /** Returns the number in a column that always has one. */
  integer(column: string): number {
    return this.number(column)!;
  }

  isTrue(column: string): boolean {
    return this.#row[column] === true;
  }

  text(column: string): string {
    return String(this.#row[column]);
  }

  bytes(column: string): Uint8Array | undefined {
    const value: Buffer | null | undefined = this.#row[column];
    return value === null || value === undefined
      ? undefined
      : new Uint8Array(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength);
  }
}

const NEAR = {
  local_one: CONSISTENCIES.localOne,
  local_quorum: CONSISTENCIES.localQuorum,
  quorum: CONSISTENCIES.quorum,
} as const;

/** Requests that one operation has under way at once. */
const AT_ONCE = 32;
/** Pauses of an operation whose way others are in. */
const PAUSES: BackoffOptions = { firstMs: 2, maxMs: 250, jitter: 0.5 };

/** The driver, which carries out statements. */
export type StatementClient = Pick<Client, "execute" | "batch">;

/** Time of one operation. */
export interface SessionTime {
  readonly clock: Clock;
  /** Milliseconds for which it repeats what was not answered in time. */
  readonly patienceMs: number;
}

/** The statements of one operation, at the consistency of its pool. */
export class CassandraSession {
  readonly #client: StatementClient;
  readonly #options: CassandraConsistency;
  readonly #clock: Clock;
  readonly #patientUntilMs: number;

  constructor(
    client: StatementClient,
    { consistency = "local_quorum", serialConsistency = "serial" }: Partial<CassandraConsistency>,
    { clock, patienceMs }: SessionTime,
  ) {
    this.#client = client;
    this.#options = { consistency, serialConsistency };
    this.#clock = clock;
    this.#patientUntilMs = clock.monotonicMs() + patienceMs;
  }

  /** True while the operation may repeat what was not answered in time. */
  get isPatient(): boolean {
    return this.#clock.monotonicMs() < this.#patientUntilMs;
  }

  /** Waits before another attempt, because others change the same rows. The first attempt is 1. */
  async pause(attempt: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#clock.after(backoffMs(attempt, PAUSES), resolve);
    await promise;
  }

  /** True when a `near` read sees as much as a `strong` one. */
  get isNearStrong(): boolean {
    const { consistency, serialConsistency } = this.#options;
    return consistency === "quorum" ||
      (consistency === "local_quorum" && serialConsistency === "local_serial");
  }

  /**
   * Returns the rows that a statement selects: it has a limit, or one partition bounds it. A `serial`
   * read takes its turn among lightweight transactions, and is repeated when it does not get one in
   * time.
   */
  async select(
    query: string,
    params: readonly CqlValue[],
    level: ReadLevel,
  ): Promise<readonly CqlRow[]> {
    for (let attempt = 1;; attempt++) {
      try {
        const { rows } = await this.#client.execute(query, driven(params), {
          prepare: true,
          isIdempotent: true,
          fetchSize: 10_000,
          consistency: this.#levelOf(level),
          serialConsistency: this.#serial,
        });
        return rows.map((row) => new CqlRow(row));
      } catch (thrown) {
        if (level !== "serial" || !isContention(thrown) || !this.isPatient) throw thrown;
        await this.pause(attempt);
      }
    }
  }

  /** Writes rows of one partition, all or none. */
  async write(...statements: readonly CqlStatement[]): Promise<void> {
    const options = {
      prepare: true,
      isIdempotent: true,
      logged: false,
      consistency: this.#strong,
    };
    const [only] = statements;
    if (only === undefined) return;
    if (statements.length === 1) {
      await this.#client.execute(only.query, driven(only.params), options);
    } else await this.#client.batch(mutable(statements), options);
  }

  /**
   * Carries out one lightweight transaction on one partition. `unknown` comes with its failure: it
   * may have been carried out, or be carried out later.
   */
  async transact(...statements: readonly CqlStatement[]): Promise<Transacted> {
    const options = {
      prepare: true,
      isIdempotent: false,
      logged: true,
      consistency: this.#strong,
      serialConsistency: this.#serial,
    };
    try {
      const result = statements.length === 1
        ? await this.#client.execute(statements[0]!.query, driven(statements[0]!.params), options)
        : await this.#client.batch(mutable(statements), options);
      return result.wasApplied() ? { kind: "applied" } : { kind: "refused" };
    } catch (failure) {
      if (!isAmbiguous(failure)) throw failure;
      return { kind: "unknown", failure };
    }
  }

  #levelOf(level: ReadLevel): types.consistencies {
    if (level === "near") return NEAR[this.#options.consistency];
    return level === "strong" ? this.#strong : this.#serial;
  }

  /** Two sets of so many replicas have one in common, among those that agree on the order. */
  get #strong(): types.consistencies {
    return this.#options.serialConsistency === "serial"
      ? CONSISTENCIES.quorum
      : CONSISTENCIES.localQuorum;
  }

  get #serial(): types.consistencies {
    return this.#options.serialConsistency === "serial"
      ? CONSISTENCIES.serial
      : CONSISTENCIES.localSerial;
  }
}

/** Outcome of a lightweight transaction. */
export type Transacted =
  | { readonly kind: "applied" | "refused" }
  | { readonly kind: "unknown"; readonly failure: unknown };

/** Returns parameters as the driver takes them: it knows no other bytes than buffers. */
function driven(params: readonly CqlValue[]): unknown[] {
  return params.map((value) =>
    value instanceof Uint8Array && !Buffer.isBuffer(value)
      ? Buffer.from(value.buffer as ArrayBuffer, value.byteOffset, value.byteLength)
      : value
  );
}

function mutable(statements: readonly CqlStatement[]) {
  return statements.map(({ query, params }) => ({ query, params: driven(params) }));
}

/** Does work for each item, some at once, and returns the results in the order of the items. */
export async function forEach<T, R>(
  items: Iterable<T>,
  work: (item: T) => Promise<R>,
  atOnce = AT_ONCE,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = [...items].entries();
  const doSome = async () => {
    for (const [i, item] of waiting) results[i] = await work(item);
  };
  const outcomes = await Promise.allSettled(Array.from({ length: atOnce }, doSome));
  // All of it has ended by now: nothing goes on behind the back of one who handles the failure.
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  return results;
}
