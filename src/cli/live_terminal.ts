/** A terminal that shows one screen, which is drawn again and again. */
export interface LiveTerminal extends AsyncDisposable {
  size(): { readonly columns: number; readonly rows: number };
  /** Shows `lines` in place of the last screen; lines and rows past its size are cut off. */
  show(lines: readonly string[]): void;
  /** Keys as they are pressed, and `"resize"` for a new size. Ends with the terminal's input. */
  readonly events: AsyncIterable<TerminalEvent>;
}

/** A key, as the characters that it sends, or a new size of the terminal. */
export type TerminalEvent =
  | { readonly kind: "key"; readonly key: string }
  | { readonly kind: "resize" };

const ENTER_SCREEN = "\u001b[?1049h\u001b[?25l";
const LEAVE_SCREEN = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

/** Opens the terminal of this process; undefined where there is none. */
export function openTerminal(): LiveTerminal | undefined {
  if (!Deno.stdout.isTerminal() || !Deno.stdin.isTerminal()) return undefined;
  return new ProcessTerminal();
}

class ProcessTerminal implements LiveTerminal {
  readonly events: AsyncIterable<TerminalEvent>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  #push: (event: TerminalEvent | undefined) => void = () => {};
  readonly #resized = () => this.#push({ kind: "resize" });

  constructor() {
    Deno.stdin.setRaw(true);
    write(ENTER_SCREEN);
    this.#reader = Deno.stdin.readable.getReader();
    const stream = new ReadableStream<TerminalEvent>({
      start: (controller) => {
        this.#push = (event) => {
          if (event !== undefined) return controller.enqueue(event);
          this.#push = () => {};
          controller.close();
        };
      },
    });
    this.events = stream;
    if (Deno.build.os !== "windows") Deno.addSignalListener("SIGWINCH", this.#resized);
    void this.#read();
  }

  size() {
    return Deno.consoleSize();
  }

  show(lines: readonly string[]): void {
    const { columns, rows } = this.size();
    const shown = lines.slice(0, rows).map((line) => [...line].slice(0, columns).join(""));
    write(HOME + shown.map((line) => line + CLEAR_LINE).join("\r\n") + CLEAR_BELOW);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#push = () => {};
    if (Deno.build.os !== "windows") Deno.removeSignalListener("SIGWINCH", this.#resized);
    await this.#reader.cancel();
    Deno.stdin.setRaw(false);
    write(LEAVE_SCREEN);
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    try {
      for (;;) {
        const { value, done } = await this.#reader.read();
        if (done) break;
        for (const key of decoder.decode(value, { stream: true })) this.#push({ kind: "key", key });
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
