import { cutLine, durationText } from "../../src/terminal/mod.ts";

/** One part of a run. Shares are of the whole run, from 0 to 1. */
export interface Stage {
  readonly text: string;
  /** Share of the run that is done when the stage begins, and when it ends. */
  readonly from: number;
  readonly to: number;
  /** Milliseconds that the stage takes. Undefined: the bar stays at `from` until the next one. */
  readonly forMs?: number;
}

/** Streams of a bar, and its clock. */
export interface ProgressBarOptions {
  /** Takes the lines of the run. */
  readonly out: (text: string) => void;
  /** Terminal that the bar is drawn on; undefined where there is none. */
  readonly terminal: { write(text: string): void; columns(): number } | undefined;
  /** @default performance.now */
  readonly nowMs?: () => number;
}

const REDRAW_MS = 500;
const WIDTH = 24;
/** A stage that takes longer than expected stays below its end. */
const MOST_OF_STAGE = 0.98;
const CLEAR_LINE = "\r\u001b[K";

/**
 * A bar below the lines of a long run, which says how far the run is. It needs no colours. Off a
 * terminal there are the lines alone.
 */
export class ProgressBar implements Disposable {
  readonly #options: ProgressBarOptions;
  readonly #nowMs: () => number;
  readonly #startMs: number;
  #stage: Stage | undefined;
  #stageMs = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: ProgressBarOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#startMs = this.#nowMs();
  }

  /** A bar on standard error, with its lines on standard output or beside it. */
  static ofProcess(lines: "stdout" | "stderr"): ProgressBar {
    const { stderr } = Deno;
    const canDraw = stderr.isTerminal() && Deno.env.get("TERM") !== "dumb";
    return new ProgressBar({
      out: (text) => write(Deno[lines], text),
      terminal: canDraw
        ? { write: (text) => write(stderr, text), columns: () => Deno.consoleSize().columns }
        : undefined,
    });
  }

  /** Shows that a stage has begun. */
  begin(stage: Stage): void {
    this.#stage = stage;
    this.#stageMs = this.#nowMs();
    if (this.#options.terminal === undefined) return;
    this.#timer ??= setInterval(() => this.#draw(), REDRAW_MS);
    this.#draw();
  }

  /** Writes text that ends with a line break, above the bar. */
  write(text: string): void {
    this.#options.terminal?.write(CLEAR_LINE);
    this.#options.out(text);
    this.#draw();
  }

  /** Writes a line above the bar. */
  say(line: string): void {
    this.write(`${line}\n`);
  }

  /** Takes the bar away. Lines may still be written. */
  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.#stage !== undefined) this.#options.terminal?.write(CLEAR_LINE);
    this.#stage = undefined;
  }

  #draw(): void {
    const { terminal } = this.#options;
    if (this.#stage === undefined || terminal === undefined) return;
    const { text, from, to, forMs } = this.#stage;
    const nowMs = this.#nowMs();
    const passed = forMs === undefined
      ? 0
      : Math.min(MOST_OF_STAGE, (nowMs - this.#stageMs) / forMs);
    const share = Math.max(0, Math.min(1, from + (to - from) * passed));
    const full = Math.floor(share * WIDTH);
    const bar = "█".repeat(full) + "░".repeat(WIDTH - full);
    const percent = String(Math.floor(share * 100)).padStart(3);
    const line = `[${bar}] ${percent} %  ${text}  (${durationText(nowMs - this.#startMs)})`;
    // A line that fills the terminal would begin another one.
    terminal.write(CLEAR_LINE + cutLine(line, Math.max(0, terminal.columns() - 1)));
  }
}

function write(stream: { writeSync(bytes: Uint8Array): number }, text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += stream.writeSync(bytes.subarray(at));
}
