import { fileURLToPath } from "node:url";

/** Debian's interpreter, which sees Debian's `python3-lxml`; one on PATH may not. */
const PYTHON = "/usr/bin/python3";
const SCRIPT = fileURLToPath(new URL("./reference_parsers.py", import.meta.url));

/** A document that a parser in wide use cannot read. */
export interface Refusal {
  readonly index: number;
  /** Name of the parser, and its message. */
  readonly reason: string;
}

/** The parsers that most clients are built on, expat and libxml2, in a Python process of their own. */
export class ReferenceParsers implements AsyncDisposable {
  readonly #process: Deno.ChildProcess;
  readonly #stdin: WritableStreamDefaultWriter<Uint8Array>;
  readonly #stdout: ReadableStreamDefaultReader<string>;
  readonly #stderr: Promise<string>;
  #unread = "";

  private constructor() {
    const pipes = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
    this.#process = new Deno.Command(PYTHON, { args: ["-u", SCRIPT], ...pipes }).spawn();
    this.#stdin = this.#process.stdin.getWriter();
    this.#stdout = this.#process.stdout.pipeThrough(new TextDecoderStream()).getReader();
    this.#stderr = this.#process.stderr.text();
  }

  /** Rejects with one line when Python or one of the parsers is not there. */
  static async start(): Promise<ReferenceParsers> {
    const parsers = new ReferenceParsers();
    try {
      await parsers.#line();
    } catch (thrown) {
      await parsers[Symbol.asyncDispose]();
      throw thrown;
    }
    return parsers;
  }

  /** The documents that one of the parsers refuses; called one at a time. */
  async refusals(documents: readonly Uint8Array[]): Promise<readonly Refusal[]> {
    if (documents.length === 0) return [];
    await this.#stdin.write(batchOf(documents));
    const refused: [number, string][] = JSON.parse(await this.#line());
    return refused.map(([index, reason]) => ({ index, reason }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stdin.close().catch(() => {}); // it may have ended by itself
    await this.#stdout.cancel();
    await this.#stderr;
    await this.#process.status;
  }

  async #line(): Promise<string> {
    for (;;) {
      const end = this.#unread.indexOf("\n");
      if (end !== -1) {
        const line = this.#unread.slice(0, end);
        this.#unread = this.#unread.slice(end + 1);
        return line;
      }
      const { value, done } = await this.#stdout.read();
      if (done) {
        const said = (await this.#stderr).trim().split("\n").at(-1);
        throw new Error(said || "Cannot compare with other parsers: Python has ended");
      }
      this.#unread += value;
    }
  }
}

function batchOf(documents: readonly Uint8Array[]): Uint8Array {
  const length = documents.reduce((sum, document) => sum + 4 + document.length, 4);
  const batch = new Uint8Array(length);
  const view = new DataView(batch.buffer);
  view.setUint32(0, documents.length);
  let at = 4;
  for (const document of documents) {
    view.setUint32(at, document.length);
    batch.set(document, at + 4);
    at += 4 + document.length;
  }
  return batch;
}
