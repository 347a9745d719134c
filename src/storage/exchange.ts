import type { CancelTimer, Clock } from "../base/mod.ts";
import { SystemClock } from "../base/mod.ts";

/** A database, as far as its exchange cares. */
interface Closable {
  close(): Promise<void>;
}

/** A store of the current database, and that database. */
interface Opened<D> {
  readonly database: D;
  readonly store: object;
}

/** A database that has been replaced. */
interface Retired {
  /** Closes it now, if that has not been done. */
  end(): void;
  readonly ended: Promise<void>;
}

/** Milliseconds that calls may take to end after their database was replaced. */
const DRAIN_MS = 30_000;

/**
 * A database that may be replaced while its stores are in use, such as by one with another password or
 * more connections. Stores are opened at first need. A call goes to the database that is current when
 * it begins. A replaced database is closed once its last call has ended.
 */
export class Exchange<D extends Closable> {
  readonly #clock: Clock;
  #current: D;
  /** Stores by name. */
  readonly #shared = new Map<string, object>();
  /**
   * Numbers of calls under way, by database, of those that have had one. A `Map` that loses an entry
   * with each call takes new tables again and again, which outlive minor garbage collections.
   */
  readonly #calls = new Map<D, { open: number }>();
  /** Functions that close a replaced database, by database. */
  readonly #retired = new Map<D, Retired>();

  constructor(current: D, clock: Clock = new SystemClock()) {
    this.#current = current;
    this.#clock = clock;
  }

  /** The database that calls go to now. */
  get current(): D {
    return this.#current;
  }

  /** Returns a store as `store` does: the same object for each name. */
  shared<S extends object>(name: string, open: (database: D) => S): S {
    const known = this.#shared.get(name);
    // One name always stands for one kind of store.
    if (known !== undefined) return known as S;
    const store = this.store(open);
    this.#shared.set(name, store);
    return store;
  }

  /**
   * Returns a store that passes each call on to the current database's. A member that somebody sets on
   * it replaces the database's own.
   *
   * @param open makes the store of one database
   */
  store<S extends object>(open: (database: D) => S): S {
    let opened: Opened<D> = { database: this.#current, store: open(this.#current) };
    const current = (): Opened<D> => {
      if (opened.database !== this.#current) {
        opened = { database: this.#current, store: open(this.#current) };
      }
      return opened;
    };
    return new Proxy({}, {
      get: (own, member) => {
        if (Object.hasOwn(own, member)) return Reflect.get(own, member);
        const { store } = current();
        const value: unknown = Reflect.get(store, member, store);
        if (typeof value !== "function") return value;
        return (...args: unknown[]): unknown => this.#call(current(), member, args);
      },
      has: (own, member) => Object.hasOwn(own, member) || Reflect.has(current().store, member),
    }) as S; // it answers as the store does
  }

  /** Sends calls to `next` from now on, and closes the former database once it has no more to do. */
  replace(next: D): void {
    const former = this.#current;
    this.#current = next;
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    let cancel: CancelTimer = () => {};
    let hasEnded = false;
    const end = (): void => {
      if (hasEnded) return;
      hasEnded = true;
      cancel();
      this.#calls.delete(former);
      void former.close().catch(() => {}) // its connections are lost anyway
        .finally(() => {
          this.#retired.delete(former);
          resolve();
        });
    };
    this.#retired.set(former, { end, ended });
    if ((this.#calls.get(former)?.open ?? 0) === 0) end();
    else cancel = this.#clock.after(DRAIN_MS, end);
  }

  /** Closes the current database, and those before it, whatever they still do. */
  async close(): Promise<void> {
    const retired = [...this.#retired.values()];
    for (const { end } of retired) end();
    await Promise.all([this.#current.close(), ...retired.map(({ ended }) => ended)]);
  }

  #call({ database, store }: Opened<D>, member: string | symbol, args: unknown[]): unknown {
    const method: unknown = Reflect.get(store, member, store);
    if (typeof method !== "function") {
      throw new TypeError(`Cannot call ${String(member)} of a store`);
    }
    const result: unknown = Reflect.apply(method, store, args);
    if (!(result instanceof Promise)) return result;
    let calls = this.#calls.get(database);
    if (calls === undefined) this.#calls.set(database, calls = { open: 0 });
    calls.open++;
    return result.finally(() => {
      if (--calls.open === 0) this.#retired.get(database)?.end();
    });
  }
}
