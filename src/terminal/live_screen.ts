import type { LiveTerminal, TerminalSize } from "./live_terminal.ts";

/** Control-C, which a terminal in raw mode gives as a key. */
export const INTERRUPT = "\u0003";

/** Least time between two drawings, so that a key that is held down does not flood the terminal. */
const LEAST_DRAW_MS = 30;

/** A screen that is drawn again after each look, each key and each new size of the terminal. */
export interface LiveScreen {
  /** Milliseconds between the end of a look and the next one. */
  readonly everyMs: number;
  /** Gathers news for the next drawing. Never rejects. */
  look(): Promise<void>;
  /** Lays out the screen as it is now. */
  lines(size: TerminalSize): readonly string[];
  /** Takes a key. Returns `"end"` when the screen is to be left. */
  press(key: string): "stay" | "end";
}

/**
 * Shows `screen` until a key ends it, the terminal's input ends or `signal` comes. Resolves after a
 * look that was under way.
 */
export async function runScreen(
  terminal: LiveTerminal,
  screen: LiveScreen,
  signal?: AbortSignal,
): Promise<void> {
  let lookTimer: ReturnType<typeof setTimeout> | undefined;
  let drawTimer: ReturnType<typeof setTimeout> | undefined;
  let drawnMs = -Infinity;
  let isOver = false;
  const drawNow = () => {
    drawTimer = undefined;
    drawnMs = performance.now();
    terminal.show(screen.lines(terminal.size()));
  };
  const draw = () => {
    if (drawTimer !== undefined) return;
    const waitMs = drawnMs + LEAST_DRAW_MS - performance.now();
    if (waitMs <= 0) drawNow();
    else drawTimer = setTimeout(drawNow, waitMs);
  };
  const next = async () => {
    await screen.look();
    if (isOver) return;
    draw();
    lookTimer = setTimeout(() => void next(), screen.everyMs);
  };
  draw();
  const looking = next();
  const ended = Promise.withResolvers<IteratorReturnResult<undefined>>();
  const end = () => ended.resolve({ done: true, value: undefined });
  signal?.addEventListener("abort", end, { once: true });
  if (signal?.aborted) end();
  const events = terminal.events[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await Promise.race([events.next(), ended.promise]);
      if (done) break;
      if (value.kind === "key" && screen.press(value.key) === "end") break;
      draw();
    }
  } finally {
    isOver = true;
    clearTimeout(lookTimer);
    clearTimeout(drawTimer);
    signal?.removeEventListener("abort", end);
    await looking;
  }
}
