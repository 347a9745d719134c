import type { CancelTimer, Clock } from "../base/mod.ts";
import type { PrepareStep } from "../storage/mod.ts";
import type { CommandIo } from "./command_io.ts";

/** Milliseconds after which somebody who waits is told of a step, and between two such lines. */
const [SLOW_MS, AGAIN_MS] = [5_000, 30_000];
/** Characters of a statement in a line. */
const SHOWN_CHARACTERS = 100;

/** Tells of those steps of a preparation that take long, and no others. */
export class SlowSteps implements Disposable {
  readonly #io: Pick<CommandIo, "error">;
  readonly #clock: Clock;
  readonly #backend: string;
  #cancel: CancelTimer | undefined;

  constructor(
    backend: string,
    { io, clock }: { readonly io: Pick<CommandIo, "error">; readonly clock: Clock },
  ) {
    this.#backend = backend;
    this.#io = io;
    this.#clock = clock;
  }

  /** Notes that a step begins: the one before has ended. */
  begin(step: PrepareStep): void {
    this.#cancel?.();
    this.#later(step, SLOW_MS, SLOW_MS);
  }

  #later(step: PrepareStep, waitMs: number, runsForMs: number): void {
    this.#cancel = this.#clock.after(waitMs, () => {
      const { done, total, statement } = step;
      const [first = ""] = statement.split("\n");
      this.#io.error(
        `causeway: ${this.#backend}: step ${done + 1} of ${total} has run for ${
          runsForMs / 1000
        } ` +
          `s: ${first.slice(0, SHOWN_CHARACTERS)}`,
      );
      this.#later(step, AGAIN_MS, runsForMs + AGAIN_MS);
    });
  }

  [Symbol.dispose](): void {
    this.#cancel?.();
  }
}
