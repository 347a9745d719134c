import { TdsError } from "./tds_error.ts";

/** Time for which a session waits for a lock. */
export interface LockWait {
  /** Milliseconds; -1 for ever. */
  readonly timeoutMs: number;
  /** Aborted when the client gives up, with what to throw then. */
  readonly signal: AbortSignal;
  /** Called when the session begins to wait, and when it ends. */
  waits(isWaiting: boolean): void;
}

/** A lock that one session has at a time. Others wait in their order. */
export class Lock {
  #holder: object | undefined;
  readonly #waiting: { readonly session: object; readonly take: () => void }[] = [];

  /**
   * Takes the lock for a session, which may have it already.
   *
   * @throws TdsError 1222 past the time
   */
  async take(session: object, { timeoutMs, signal, waits }: LockWait): Promise<void> {
    if (this.#holder === undefined || this.#holder === session) {
      this.#holder = session;
      return;
    }
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry = { session, take: resolve };
    this.#waiting.push(entry);
    const timer = timeoutMs < 0 ? undefined : setTimeout(
      () => reject(new TdsError(1222, "Lock request time out period exceeded.")),
      timeoutMs,
    );
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort);
    waits(true);
    try {
      if (signal.aborted) throw signal.reason;
      await promise;
    } catch (thrown) {
      const index = this.#waiting.indexOf(entry);
      if (index >= 0) this.#waiting.splice(index, 1);
      else this.release(session); // it was given in the same moment
      throw thrown;
    } finally {
      waits(false);
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  }

  /** Gives the lock to the next session, if this one has it. */
  release(session: object): void {
    if (this.#holder !== session) return;
    const next = this.#waiting.shift();
    this.#holder = next?.session;
    next?.take();
  }
}
