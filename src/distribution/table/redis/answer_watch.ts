import type { CancelTimer, Clock } from "../../../base/mod.ts";
import { SystemClock } from "../../../base/mod.ts";

/** Milliseconds that an answer may take bit by bit, for each millisecond of silence that is allowed. */
const LENIENCE = 3;

/** Objects behind `AnswerWatch`. */
export interface AnswerWatchDeps {
  /** Milliseconds of silence after which a connection counts as broken. */
  readonly silenceMs: number;
  /** Called when commands have waited for too long. */
  late(waitedMs: number): void;
  /** @default the machine's */
  readonly clock?: Pick<Clock, "monotonicMs" | "after">;
}

/**
 * Watches over the commands of one connection that have no answer yet. ioredis only notices silence
 * (`socketTimeout`). A reply that promises more bytes than ever come swallows the replies behind it: no
 * command is answered any more, and there is no silence while others are sent.
 */
export class AnswerWatch {
  readonly #deps: AnswerWatchDeps;
  readonly #clock: Pick<Clock, "monotonicMs" | "after">;
  readonly #limitMs: number;
  /** Monotonic milliseconds at which each was sent, oldest first. */
  readonly #asked = new Map<object, number>();
  #cancel: CancelTimer | undefined;

  constructor(deps: AnswerWatchDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? new SystemClock();
    this.#limitMs = LENIENCE * deps.silenceMs;
  }

  /** Notes that commands are sent. */
  asked(commands: object): void {
    this.#asked.set(commands, this.#clock.monotonicMs());
    this.#cancel ??= this.#clock.after(this.#limitMs, () => this.#look());
  }

  /** Notes that they are all answered, or have failed. */
  answered(commands: object): void {
    this.#asked.delete(commands);
  }

  close(): void {
    this.#cancel?.();
  }

  #look(): void {
    this.#cancel = undefined;
    const [sentMs] = this.#asked.values();
    if (sentMs === undefined) return;
    const leftMs = sentMs + this.#limitMs - this.#clock.monotonicMs();
    if (leftMs > 0) {
      this.#cancel = this.#clock.after(leftMs, () => this.#look());
      return;
    }
    this.#asked.clear(); // they fail with the connection
    this.#deps.late(this.#limitMs);
  }
}
