import type { Sample } from "./samples.ts";

/** Milliseconds between two lines on how far a soak is. */
const PROGRESS_MS = 60_000;
const MEBIBYTE = 1024 * 1024;

/** Figures of a soak at one moment. */
export interface ProgressFigures {
  /** Stanzas sent so far, and those among them without a fate. */
  readonly sent: number;
  readonly unsettled: number;
  /** The nodes that are watched. */
  readonly samples: readonly Sample[];
}

/** Says once a minute how far a soak is: it may run for hours. */
export class Progress {
  readonly #minutes: number;
  readonly #say: (line: string) => void;
  readonly #startMs: number;
  #saidMs: number;

  constructor(
    { minutes, nowMs, say }: {
      readonly minutes: number;
      readonly nowMs: number;
      readonly say: (line: string) => void;
    },
  ) {
    this.#minutes = minutes;
    this.#say = say;
    this.#startMs = this.#saidMs = nowMs;
  }

  /** Says a line if the last one is a minute old. */
  look(nowMs: number, figures: () => ProgressFigures): void {
    if (nowMs - this.#saidMs < PROGRESS_MS) return;
    this.#saidMs = nowMs;
    const { sent, unsettled, samples } = figures();
    const passed = Math.floor((nowMs - this.#startMs) / PROGRESS_MS);
    const mebibytes = samples.map(({ rssBytes }) => Math.round(rssBytes / MEBIBYTE));
    const held = samples.reduce((sum, each) => sum + each.held, 0);
    this.#say(
      `${passed} of ${this.#minutes} minutes: ${sent} stanzas sent, ${unsettled} without a fate; ` +
        `${held} held by nodes of ${mebibytes.join(", ")} MiB`,
    );
  }
}
