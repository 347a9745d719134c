import { beginPrint, endPrint, mixText } from "../../base/mod.ts";
import type { BareJid } from "../../xmpp/mod.ts";
import { ArchiveWriter } from "./archive_writer.ts";
import type { ArchiveWriterDeps } from "./archive_writer.ts";

/**
 * The writers of one store, as many as it takes batches at once. All messages for the archives of one
 * account go through one of them, and keep their order there.
 */
export class ArchiveWriters {
  readonly #writers: readonly ArchiveWriter[];

  constructor(deps: ArchiveWriterDeps) {
    const { batchesAtOnce: length = 1 } = deps.store;
    this.#writers = Array.from({ length }, () => new ArchiveWriter(deps));
  }

  /** Entries that are not done. */
  get pending(): number {
    return this.#writers.reduce((sum, { pending }) => sum + pending, 0);
  }

  /** Returns the writer of an account's archives: the same one each time. */
  of({ text }: BareJid): ArchiveWriter {
    const { length } = this.#writers;
    if (length === 1) return this.#writers[0]!;
    beginPrint(text.length);
    mixText(text);
    return this.#writers[endPrint() % length]!;
  }

  /** Waits until all entries are done. Those that the store does not take now have failed. */
  async close(): Promise<void> {
    await Promise.all(this.#writers.map((writer) => writer.close()));
  }
}
