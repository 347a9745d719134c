import { CausewayError } from "../base/mod.ts";

/** A terminal whose keys can be read one by one. */
export interface Terminal {
  /** Turns echo and line editing off, or on again. */
  setRaw(isRaw: boolean): void;
  /** Reads the next keys as bytes; null at the end of input. */
  read(buffer: Uint8Array): Promise<number | null>;
  /** Shows `text` as it is. */
  write(text: string): void;
}

const PROCESS_TERMINAL: Terminal = {
  setRaw: (isRaw) => Deno.stdin.setRaw(isRaw),
  read: (buffer) => Deno.stdin.read(buffer),
  // Not standard output: that may be a file that collects the command's results.
  write: (text) => void Deno.stderr.writeSync(new TextEncoder().encode(text)),
};

const INTERRUPT = "\x03";
const END_OF_INPUT = "\x04";

/**
 * Asks twice for a password without echo, and returns it when both are equal.
 *
 * @throws CausewayError `cli/interrupted` on Ctrl-C, `cli/passwords-differ`
 */
export async function promptPassword(
  prompt: string,
  terminal: Terminal = PROCESS_TERMINAL,
): Promise<string> {
  const keys = new KeyReader(terminal);
  terminal.setRaw(true);
  try {
    const first = await readUnseen(`${prompt}: `, keys, terminal);
    const second = await readUnseen("Again: ", keys, terminal);
    if (first !== second) {
      throw new CausewayError("cli/passwords-differ", "Cannot take the password: the two differ");
    }
    return first;
  } finally {
    terminal.setRaw(false);
  }
}

async function readUnseen(prompt: string, keys: KeyReader, terminal: Terminal): Promise<string> {
  terminal.write(prompt);
  const typed: string[] = [];
  for (;;) {
    const key = await keys.next();
    if (key === undefined || key === INTERRUPT || (key === END_OF_INPUT && typed.length === 0)) {
      terminal.write("\n");
      throw new CausewayError("cli/interrupted", "Cannot take the password: interrupted");
    }
    if (key === "\r" || key === "\n" || key === END_OF_INPUT) {
      terminal.write("\n");
      return typed.join("");
    }
    if (key === "\x7f" || key === "\b") typed.pop();
    else if (key === "\x15") typed.length = 0; // Ctrl-U
    else if (key >= " ") typed.push(key);
  }
}

/** Characters of a terminal, one by one, even when several arrive together, as in a paste. */
class KeyReader {
  readonly #terminal: Terminal;
  readonly #decoder = new TextDecoder();
  readonly #buffer = new Uint8Array(256);
  #pending: string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Reads the next character; undefined at the end of input. */
  async next(): Promise<string | undefined> {
    while (this.#pending.length === 0) {
      const length = await this.#terminal.read(this.#buffer);
      if (length === null) return undefined;
      const text = this.#decoder.decode(this.#buffer.subarray(0, length), { stream: true });
      this.#pending = [...text];
    }
    return this.#pending.shift();
  }
}
