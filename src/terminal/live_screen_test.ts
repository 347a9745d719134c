import assert from "node:assert/strict";
import { INTERRUPT, runScreen } from "./live_screen.ts";
import type { LiveTerminal, TerminalEvent } from "./live_terminal.ts";

/** A terminal in memory. */
class TestTerminal implements LiveTerminal {
  readonly shown: (readonly string[])[] = [];
  readonly events: AsyncIterable<TerminalEvent>;
  #input!: ReadableStreamDefaultController<TerminalEvent>;

  constructor() {
    this.events = new ReadableStream({ start: (controller) => void (this.#input = controller) });
  }

  size() {
    return { columns: 80, rows: 24 };
  }

  show(lines: readonly string[]): void {
    this.shown.push(lines);
  }

  press(...keys: readonly string[]): void {
    for (const key of keys) this.#input.enqueue({ kind: "key", key });
  }

  hangUp(): void {
    this.#input.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}

function screenOf(pressed: string[]) {
  return {
    everyMs: 3_600_000,
    look: () => Promise.resolve(),
    lines: () => [pressed.join("")],
    press(key: string) {
      pressed.push(key);
      return key === "q" || key === INTERRUPT ? "end" as const : "stay" as const;
    },
  };
}

Deno.test("runScreen() hands on keys until one ends it", async () => {
  const terminal = new TestTerminal();
  const pressed: string[] = [];
  terminal.press("a", "\u001b[A", "q", "z");
  await runScreen(terminal, screenOf(pressed));
  assert.deepEqual(pressed, ["a", "\u001b[A", "q"]);
});

Deno.test("runScreen() draws no more often than a terminal can show, whatever is pressed", async () => {
  const terminal = new TestTerminal();
  const pressed: string[] = [];
  terminal.press(..."x".repeat(10_000), "q");
  const startMs = performance.now();
  await runScreen(terminal, screenOf(pressed));
  const mostDrawn = 2 + (performance.now() - startMs) / 30;
  assert.equal(pressed.length, 10_001);
  assert.ok(terminal.shown.length >= 1 && terminal.shown.length <= mostDrawn);
});

Deno.test("runScreen() ends with its signal, and with the terminal's input", async () => {
  const terminal = new TestTerminal();
  const ending = new AbortController();
  const running = runScreen(terminal, screenOf([]), ending.signal);
  ending.abort();
  await running;
  await runScreen(new TestTerminal(), screenOf([]), ending.signal);
  const other = new TestTerminal();
  const shown = runScreen(other, screenOf([]));
  other.hangUp();
  await shown;
});

Deno.test("runScreen() waits for a look that is under way", async () => {
  const terminal = new TestTerminal();
  const answer = Promise.withResolvers<void>();
  let isDone = false;
  const running = runScreen(terminal, { ...screenOf([]), look: () => answer.promise })
    .then(() => isDone = true);
  terminal.press("q");
  await Promise.resolve();
  assert.equal(isDone, false);
  answer.resolve();
  await running;
  assert.equal(terminal.shown.length, 1);
});
