import { FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";

/**
 * The kinds of steps. A patient one waits for paced work, for long while very many log in. A portioned
 * one may wait so too, as it tells many contacts a few at a time, but not behind patient ones. A prompt
 * one waits for the database and the session table alone.
 */
export type StepKind = "prompt" | "portioned" | "patient";

/** Bounds of `AccountTurns`, and the one that hears of failures. */
export interface AccountTurnsOptions {
  /** Steps that may run or wait at once, without those that are always taken. */
  readonly maxWaiting: number;
  /** Bytes of the stanzas of those steps. */
  readonly maxBytes: number;
  /** Steps of each kind that may run at once. Others need the database too, such as logins. */
  readonly maxRunning: Readonly<Record<StepKind, number>>;
  /** Called with what a step has thrown. Later steps run all the same. */
  failed(thrown: unknown): void;
}

type Step = () => Promise<void>;

/** A step that waits or runs. */
interface Queued {
  readonly step: Step;
  readonly kind: StepKind;
}

/** The one whose share of the bounds a step takes, and the bytes that it holds. */
export interface StepCost {
  readonly payer: string;
  readonly bytes: number;
  /** @default "prompt" */
  readonly kind?: StepKind;
}

/**
 * Queues of asynchronous steps, one for each key. Steps with one key run one after another; those
 * of different keys run side by side, up to a bound for each kind of step: however many of the others
 * wait, prompt ones of other keys find a place. A key without steps costs nothing.
 */
export class AccountTurns {
  readonly #options: AccountTurnsOptions;
  /** Steps of each key, the running one included. */
  readonly #queues = new Map<string, Queued[]>();
  /** Keys whose first step waits until fewer steps of its kind run. */
  readonly #ready: Readonly<Record<StepKind, Set<string>>> = {
    prompt: new Set(),
    portioned: new Set(),
    patient: new Set(),
  };
  readonly #shares: FairShares;
  readonly #running = { prompt: 0, portioned: 0, patient: 0 };
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
  run(key: string, step: Step, { payer, bytes, kind }: StepCost): boolean {
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
    }, kind);
    return true;
  }

  /** Runs `step` after the earlier ones of `key`. The caller bounds how many there are. */
  runAlways(key: string, step: Step, kind: StepKind = "prompt"): void {
    this.#waiting++;
    const queue = this.#queues.get(key);
    if (queue !== undefined) {
      queue.push({ step, kind });
      return;
    }
    this.#queues.set(key, [{ step, kind }]);
    this.#ready[kind].add(key);
    this.#next(kind);
  }

  /** Waits until no step is left, including steps that begin meanwhile. */
  settled(): Promise<void> {
    if (this.#waiting === 0) return Promise.resolve();
    return (this.#idle ??= Promise.withResolvers()).promise;
  }

  #next(kind: StepKind): void {
    for (const key of this.#ready[kind]) {
      if (this.#running[kind] >= this.#options.maxRunning[kind]) return;
      this.#ready[kind].delete(key);
      this.#running[kind]++;
      void this.#runFirst(key);
    }
  }

  /** Never rejects. */
  async #runFirst(key: string): Promise<void> {
    const queue = this.#queues.get(key)!; // a ready key has one
    const { step, kind } = queue[0]!;
    try {
      await step();
    } catch (thrown) {
      this.#options.failed(thrown);
    }
    queue.shift();
    this.#waiting--;
    this.#running[kind]--;
    const next = queue[0];
    if (next === undefined) this.#queues.delete(key);
    else {
      this.#ready[next.kind].add(key);
      if (next.kind !== kind) this.#next(next.kind);
    }
    this.#next(kind);
    if (this.#waiting > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }
}
