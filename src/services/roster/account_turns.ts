import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";

/** Bounds of `AccountTurns`, and the one that hears of failures. */
export interface AccountTurnsOptions {
  /** Steps that may run or wait at once, without those that are always taken. */
  readonly maxWaiting: number;
  /** Bytes of the stanzas of those steps. */
  readonly maxBytes: number;
  /** Steps that may run at once. Others need the database too, such as logins. */
  readonly maxRunning: number;
  /** Called with what a step has thrown. Later steps run all the same. */
  failed(thrown: unknown): void;
}

type Step = () => Promise<void>;

/** The one whose share of the bounds a step takes, and the bytes that it holds. */
export interface StepCost {
  readonly payer: string;
  readonly bytes: number;
}

/**
 * Queues of asynchronous steps, one for each key. Steps with one key run one after another; those
 * of different keys run side by side, up to a bound. A key without steps costs nothing.
 */
export class AccountTurns {
  readonly #options: AccountTurnsOptions;
  /** Steps of each key, the running one included. */
  readonly #queues = new Map<string, Step[]>();
  /** Keys whose first step waits until fewer steps run. */
  readonly #ready = new Set<string>();
  readonly #shares: FairShares;
  #running = 0;
  #waiting = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(options: AccountTurnsOptions) {
    this.#options = options;
    this.#shares = new FairShares({ maxItems: options.maxWaiting, maxBytes: options.maxBytes });
  }

  /** Steps that run or wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs `step` after the earlier ones of `key`.
   * @returns false, and nothing has happened, when too many steps wait, or the payer has too many
   */
  run(key: string, step: Step, { payer, bytes }: StepCost): boolean {
    const holders = { singles: [payer], crowds: [] };
    const held = bytes + RETAINED_OVERHEAD_BYTES;
    if (!this.#shares.mayHold(holders, held)) return false;
    this.#shares.hold(holders, held);
    this.runAlways(key, async () => {
      try {
        await step();
      } finally {
        this.#shares.release(holders, held);
      }
    });
    return true;
  }

  /** Runs `step` after the earlier ones of `key`. The caller bounds how many there are. */
  runAlways(key: string, step: Step): void {
    this.#waiting++;
    const queue = this.#queues.get(key);
    if (queue !== undefined) {
      queue.push(step);
      return;
    }
    this.#queues.set(key, [step]);
    this.#ready.add(key);
    this.#next();
  }

  /** Waits until no step is left, including steps that begin meanwhile. */
  settled(): Promise<void> {
    if (this.#waiting === 0) return Promise.resolve();
    return (this.#idle ??= Promise.withResolvers()).promise;
  }

  #next(): void {
    for (const key of this.#ready) {
      if (this.#running >= this.#options.maxRunning) return;
      this.#ready.delete(key);
      this.#running++;
      void this.#runFirst(key);
    }
  }

  /** Never rejects. */
  async #runFirst(key: string): Promise<void> {
    const queue = this.#queues.get(key)!; // a ready key has one
    try {
      await queue[0]!();
    } catch (thrown) {
      this.#options.failed(thrown);
    }
    queue.shift();
    this.#waiting--;
    this.#running--;
    if (queue.length > 0) this.#ready.add(key);
    else this.#queues.delete(key);
    this.#next();
    if (this.#waiting > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }
}
