/** One line that a process wrote. */
export interface LogLine {
  readonly stream: "stdout" | "stderr";
  readonly text: string;
}

type Watcher = (line: LogLine) => void;

/** Output of a process, line by line: the last lines in memory, all of them in a file. */
export class LineLog {
  readonly #lines: LogLine[] = [];
  readonly #watchers = new Set<Watcher>();
  readonly #maxLines: number;
  #file: Deno.FsFile | undefined;

  constructor(options: { readonly maxLines?: number; readonly file?: string } = {}) {
    this.#maxLines = options.maxLines ?? 2000;
    if (options.file !== undefined) {
      this.#file = Deno.openSync(options.file, { create: true, append: true });
    }
  }

  /** The lines still in memory, oldest first. */
  get lines(): readonly LogLine[] {
    return this.#lines;
  }

  add(line: LogLine): void {
    if (this.#lines.length >= this.#maxLines) this.#lines.splice(0, this.#maxLines >> 1);
    this.#lines.push(line);
    this.#file?.writeSync(new TextEncoder().encode(line.text + "\n"));
    for (const watcher of this.#watchers) watcher(line);
  }

  /** Calls `watcher` with each line from now on; the returned function ends that. */
  watch(watcher: Watcher): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /** The last `count` lines as text. */
  tail(count = 30): string {
    return this.#lines.slice(-count).map((line) => line.text).join("\n");
  }

  /** Reads `source` to its end, adding each line. */
  async drain(source: ReadableStream<Uint8Array>, stream: LogLine["stream"]): Promise<void> {
    let rest = "";
    for await (const chunk of source.pipeThrough(new TextDecoderStream() as TextDecoding)) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop()!; // split never gives an empty list
      for (const text of parts) this.add({ stream, text: text.replace(/\r$/, "") });
    }
    if (rest !== "") this.add({ stream, text: rest });
  }

  close(): void {
    this.#file?.close();
    this.#file = undefined;
  }
}

/** `TextDecoderStream` is declared to take any buffer source, which pipes refuse to match. */
type TextDecoding = ReadableWritablePair<string, Uint8Array>;
