/** Characters in a line, and lines. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A terminal that shows one screen, which is drawn again and again. */
export interface LiveTerminal extends AsyncDisposable {
  size(): TerminalSize;
  /**
   * Shows `lines` in place of the last screen; lines and rows past its size are cut off. Colours
   * (SGR sequences) take no room.
   */
  show(lines: readonly string[]): void;
  /** Keys as they are pressed, and `"resize"` for a new size. Ends with the terminal's input. */
  readonly events: AsyncIterable<TerminalEvent>;
}

/**
 * A key, as the characters that it sends (`q`, `\u001b[A` for the arrow up), or a new size of the
 * terminal.
 */
export type TerminalEvent =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "resize" };

const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l";
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Events that wait; keys beyond are dropped, as when somebody pastes a book. */
const MAX_WAITING_EVENTS = 256;

/** Opens the terminal of this process; undefined where there is none that can show a screen. */
export function openTerminal(): LiveTerminal | undefined {
  if (!Deno.stdout.isTerminal() || !Deno.stdin.isTerminal()) return undefined;
  if (Deno.env.get("TERM") === "dumb") return undefined;
  return new ProcessTerminal();
}

/** Splits input into keys. An arrow or a function key is a sequence of characters. */
export function keysOf(input: string): readonly string[] {
  // deno-lint-ignore no-control-regex -- Escape begins these sequences
  return input.match(/\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|[^]/gu) ?? [];
}

/** Cuts `line` after `columns` characters. Colours before and behind the cut are kept. */
export function cutLine(line: string, columns: number): string {
  let room = columns;
  // deno-lint-ignore no-control-regex -- Escape begins a colour
  return line.replace(/\u001b\[[0-9;]*m|[^]/gu, (part) => {
    if (part.length > 2) return part;
    return room-- > 0 ? part : "";
  });
}

class ProcessTerminal implements LiveTerminal {
  readonly events: AsyncIterable<TerminalEvent>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #push: (event: TerminalEvent | undefined) => void = () => {};
  readonly #resized = () => this.#push({ kind: "resize" });
  /** A process that ends at once gives the terminal back too. */
  readonly #restore = () => {
    Deno.stdin.setRaw(false);
    write(LEAVE_SCREEN);
  };

  constructor() {
    Deno.stdin.setRaw(true);
    write(ENTER_SCREEN);
    globalThis.addEventListener("unload", this.#restore);
    this.#reader = Deno.stdin.readable.getReader();
    const stream = new ReadableStream<TerminalEvent>({
      start: (controller) => {
        this.#push = (event) => {
          if (event !== undefined) {
            if ((controller.desiredSize ?? 0) > 0) controller.enqueue(event);
            return;
          }
          this.#push = () => {};
          controller.close();
        };
      },
    }, new CountQueuingStrategy({ highWaterMark: MAX_WAITING_EVENTS }));
    this.events = stream;
    if (Deno.build.os !== "windows") Deno.addSignalListener("SIGWINCH", this.#resized);
    void this.#read();
  }

  size() {
    return Deno.consoleSize();
  }

  show(lines: readonly string[]): void {
    const { columns, rows } = this.size();
    const shown = lines.slice(0, rows).map((line) => cutLine(line, columns));
    write(HOME + shown.map((line) => line + CLEAR_LINE).join("\r\n") + CLEAR_BELOW);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#push = () => {};
    if (Deno.build.os !== "windows") Deno.removeSignalListener("SIGWINCH", this.#resized);
    await this.#reader.cancel();
    globalThis.removeEventListener("unload", this.#restore);
    this.#restore();
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { value, done } = await this.#reader.read();
        if (done) break;
        for (const key of keysOf(decoder.decode(value, { stream: true }))) {
          this.#push({ kind: "key", key });
        }
      }
    } catch {
      // The terminal has gone away, which ends the input like a closed one.
    }
    this.#push(undefined);
  }
}

function write(text: string): void {
  const bytes = new TextEncoder().encode(text);
  for (let at = 0; at < bytes.length;) at += Deno.stdout.writeSync(bytes.subarray(at));
}
