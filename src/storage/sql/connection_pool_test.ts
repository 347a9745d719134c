import assert from "node:assert/strict";
import { ManualClock } from "../../base/mod.ts";
import { ConnectionPool } from "./connection_pool.ts";
import type { PoolBounds } from "./connection_pool.ts";
import { executeWithin } from "./pooled_dialect.ts";
import type { SqlConnection, SqlResult } from "./sql_connection.ts";

/** A connection that answers when the test says so. */
class FakeConnection implements SqlConnection {
  isOpen = true;
  readonly answer = Promise.withResolvers<SqlResult>();

  constructor() {
    this.answer.promise.catch(() => {}); // most tests never ask
  }

  execute(): Promise<SqlResult> {
    return this.answer.promise;
  }

  close(): Promise<void> {
    this.isOpen = false;
    return Promise.resolve();
  }

  destroy(): void {
    this.isOpen = false;
    this.answer.reject(new Error("cut"));
  }
}

/** A pool whose connections the test opens, by `attempts`. */
class Fixture {
  readonly clock = new ManualClock();
  readonly attempts: PromiseWithResolvers<SqlConnection>[] = [];
  readonly pool: ConnectionPool;

  constructor(bounds: PoolBounds = {}) {
    this.pool = new ConnectionPool({
      place: "the database",
      connect: () => {
        const attempt = Promise.withResolvers<SqlConnection>();
        this.attempts.push(attempt);
        return attempt.promise;
      },
      bounds,
      clock: this.clock,
    });
  }

  /** Opens the connection that the pool asked for last. */
  async open(connection = new FakeConnection()): Promise<FakeConnection> {
    this.attempts.at(-1)!.resolve(connection);
    await settle();
    return connection;
  }

  async refuse(message = "refused"): Promise<void> {
    this.attempts.at(-1)!.reject(new Error(message));
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 10; turns++) await Promise.resolve();
}

/** Returns what became of `promise` so far. */
async function stateOf(promise: Promise<unknown>): Promise<unknown> {
  let state: unknown = "pending";
  promise.then(() => state = "done", (error) => state = error);
  await settle();
  return state;
}

function failureOf(pool: ConnectionPool): string | undefined {
  return pool.checkFailure()?.message;
}

/** Bounds of the pools below, as their figures show them. */
const BOUNDS = { maxConnections: 2, maxWaiting: 1000 };

Deno.test("ConnectionPool opens connections up to its bound, and lends them again", async () => {
  const fixture = new Fixture({ workers: 2 });
  const [one, two, three] = [1, 2, 3].map(() => fixture.pool.acquire());
  assert.equal(fixture.attempts.length, 2);
  for (const attempt of fixture.attempts) attempt.resolve(new FakeConnection());
  const first = await one!;
  await two!;
  assert.equal(await stateOf(three!), "pending");
  assert.deepEqual(fixture.pool.figures, { ...BOUNDS, connections: 2, idle: 0, waiting: 1 });
  fixture.pool.release(first);
  assert.equal(await three!, first);
  fixture.pool.release(first);
  assert.deepEqual(fixture.pool.figures, { ...BOUNDS, connections: 2, idle: 1, waiting: 0 });
});

Deno.test("ConnectionPool refuses a request above the bound of its queue", async () => {
  const fixture = new Fixture({ workers: 1, maxWaiting: 1 });
  const first = fixture.pool.acquire();
  await assert.rejects(fixture.pool.acquire(), {
    code: "storage/pool-full",
    retryable: true,
    message: "Cannot use the database: too many requests wait for a connection",
  });
  await fixture.open();
  await first;
});

Deno.test("ConnectionPool ends a wait that takes too long, and forgets who waited", async () => {
  const fixture = new Fixture({ workers: 1, waitTimeoutMs: 100 });
  const first = fixture.pool.acquire();
  const connection = await fixture.open();
  await first;
  const late = fixture.pool.acquire();
  fixture.clock.advance(99);
  assert.equal(await stateOf(late), "pending");
  fixture.clock.advance(1);
  await assert.rejects(late, { code: "storage/timeout", message: /within 100 ms/ });
  fixture.pool.release(connection);
  assert.equal(fixture.pool.figures.idle, 1);
});

Deno.test("ConnectionPool gives up an attempt that takes too long, and closes it when it succeeds later", async () => {
  const fixture = new Fixture({ connectTimeoutMs: 100 });
  const waiting = fixture.pool.acquire();
  fixture.clock.advance(100);
  await assert.rejects(waiting, { code: "storage/unreachable", retryable: true });
  const late = await fixture.open();
  assert.equal(late.isOpen, false);
  assert.equal(fixture.pool.figures.connections, 0);
});

Deno.test("ConnectionPool tells requests at once that a database is gone, and tries again after a growing pause", async () => {
  const fixture = new Fixture();
  for (const pauseMs of [250, 500, 1000, 2000, 4000, 5000, 5000]) {
    const asked = fixture.attempts.length;
    const requests = [fixture.pool.acquire()];
    if (asked > 0) requests.push(fixture.pool.acquire()); // waits for the same attempt
    const refused = requests.map((each) => assert.rejects(each, { message: "refused" }));
    assert.equal(fixture.attempts.length, asked + 1);
    await fixture.refuse();
    await Promise.all(refused);
    fixture.clock.advance(pauseMs * 0.85);
    await assert.rejects(fixture.pool.acquire(), { message: "refused" });
    assert.equal(fixture.attempts.length, asked + 1);
    fixture.clock.advance(pauseMs * 0.3);
  }
  const back = fixture.pool.acquire();
  const connection = await fixture.open();
  assert.equal(await back, connection);
  assert.equal(fixture.pool.checkFailure(), undefined);
});

Deno.test("ConnectionPool lets requests wait for other connections when one more cannot be opened", async () => {
  const fixture = new Fixture({ workers: 2 });
  const first = fixture.pool.acquire();
  const connection = await fixture.open();
  await first;
  const second = fixture.pool.acquire();
  await fixture.refuse();
  assert.equal(await stateOf(second), "pending");
  fixture.pool.release(connection);
  assert.equal(await second, connection);
});

Deno.test("ConnectionPool opens a new connection for a lost one, and drops the idle ones", async () => {
  const fixture = new Fixture({ workers: 2 });
  const asked = [fixture.pool.acquire(), fixture.pool.acquire()];
  const idle = new FakeConnection();
  fixture.attempts[0]!.resolve(idle);
  const lost = await fixture.open();
  await Promise.all(asked);
  fixture.pool.release(idle);
  lost.destroy();
  fixture.pool.release(lost);
  assert.equal(idle.isOpen, false);
  assert.deepEqual(fixture.pool.figures, { ...BOUNDS, connections: 0, idle: 0, waiting: 0 });
  const next = fixture.pool.acquire();
  assert.equal(fixture.attempts.length, 3);
  await fixture.open();
  await next;
});

Deno.test("ConnectionPool.acquire() tells a database that lets nobody in from one whose connections are all lent", async () => {
  const fixture = new Fixture({ workers: 1, waitTimeoutMs: 1_000, connectTimeoutMs: 1_000 });
  const { pool, clock } = fixture;
  const silent = assert.rejects(pool.acquire(), {
    code: "storage/timeout",
    message: "Cannot use the database: it accepted no connection within 1000 ms",
  });
  clock.advance(1_000); // the request waits as long as the attempt to connect
  await silent;
  await settle();
  clock.advance(60_000);
  const first = pool.acquire();
  await fixture.open();
  await first;
  const busy = assert.rejects(pool.acquire(), {
    code: "storage/timeout",
    message: "Cannot use the database: no connection became free within 1000 ms",
  });
  clock.advance(1_000);
  await busy;
});

Deno.test("ConnectionPool.checkFailure() notices without a request that the database is gone, and that it is back", async () => {
  const fixture = new Fixture();
  const { pool, attempts } = fixture;
  assert.equal(failureOf(pool), undefined);
  assert.equal(attempts.length, 0, "nobody has used the database yet");
  const waiting = pool.acquire();
  const connection = await fixture.open();
  pool.release(await waiting);
  assert.equal(failureOf(pool), undefined);
  assert.equal(attempts.length, 1, "the idle connection is open");

  connection.isOpen = false;
  assert.equal(failureOf(pool), undefined);
  assert.equal(failureOf(pool), undefined);
  assert.equal(attempts.length, 2, "both readings share one attempt");
  await fixture.refuse();
  assert.equal(failureOf(pool), "refused");
  assert.equal(attempts.length, 2, "the pause is not over");

  fixture.clock.advance(1_000);
  assert.equal(failureOf(pool), "refused");
  assert.equal(attempts.length, 3);
  await fixture.open();
  assert.equal(failureOf(pool), undefined);
  assert.equal(attempts.length, 3);
  assert.equal(pool.figures.idle, 1);
});

Deno.test("ConnectionPool.checkFailure() tries again after a borrowed connection was lost, and not once closed", async () => {
  const fixture = new Fixture();
  const { pool, attempts } = fixture;
  const waiting = pool.acquire();
  const connection = await fixture.open();
  await waiting;
  connection.isOpen = false;
  pool.release(connection);
  assert.equal(failureOf(pool), undefined);
  assert.equal(attempts.length, 2);
  await fixture.refuse();
  await pool.close();
  fixture.clock.advance(60_000);
  assert.equal(failureOf(pool), "refused");
  assert.equal(attempts.length, 2);
});

Deno.test("ConnectionPool.close() refuses requests and cuts connections that do not come back", async () => {
  const fixture = new Fixture({ workers: 1 });
  const first = fixture.pool.acquire();
  const connection = await fixture.open();
  await first;
  const waiting = fixture.pool.acquire();
  const closed = fixture.pool.close(1000);
  await assert.rejects(waiting, { code: "storage/closed" });
  await assert.rejects(fixture.pool.acquire(), { code: "storage/closed" });
  assert.equal(await stateOf(closed), "pending");
  fixture.clock.advance(1000);
  await closed;
  assert.equal(connection.isOpen, false);
});

Deno.test("executeWithin() cuts the connection of a statement that takes too long", async () => {
  const clock = new ManualClock();
  const limit = { statementTimeoutMs: 100, clock, place: "the database" };
  const connection = new FakeConnection();
  const slow = executeWithin(limit, connection, { sql: "SELECT 1" });
  clock.advance(100);
  await assert.rejects(slow, {
    code: "storage/timeout",
    retryable: true,
    message: "Cannot use the database: it did not answer within 100 ms",
  });
  assert.equal(connection.isOpen, false);
  assert.equal(clock.pendingTimers, 0);
});
