import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { ArchiveId, ArchivePageRequest, StoredMessage } from "../../storage/mod.ts";
import { readFittingPage } from "./archive_page_reading.ts";

/** An archive of messages of one size, with sequences from 1. */
class Archive {
  readonly reads: number[] = [];
  #all: readonly StoredMessage[];

  constructor(count: number, bytes: number) {
    this.#all = Array.from({ length: count }, (_, i) => ({
      process: 5,
      sequence: i + 1,
      sentAtMs: i,
      stanza: new Uint8Array(bytes),
    }));
  }

  remove(sequence: number): void {
    this.#all = this.#all.filter((each) => each.sequence !== sequence);
  }

  read(_archive: string, _filter: unknown, { limit, from, after, before }: ArchivePageRequest) {
    this.reads.push(limit);
    const placeOf = (id: ArchiveId) =>
      this.#all.findIndex(({ sequence }) => sequence === id.sequence);
    const [low, high] = [
      after === undefined ? 0 : placeOf(after) + 1,
      before === undefined ? this.#all.length : placeOf(before),
    ];
    if ((after !== undefined && low === 0) || high === -1) return Promise.resolve(undefined);
    const all = this.#all.slice(low, high);
    const messages = from === "start" ? all.slice(0, limit) : all.slice(-limit);
    return Promise.resolve({ messages, isComplete: messages.length === all.length });
  }
}

function sequences(from: number, to: number): readonly number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

Deno.test("readFittingPage() reads a long page in parts, forwards and backwards", async () => {
  for (
    const [from, expected] of [["start", sequences(1, 120)], ["end", sequences(31, 150)]] as const
  ) {
    const archive = new Archive(150, 10);
    const page = await readFittingPage(archive, "a", { filter: {}, page: { limit: 120, from } });
    deepStrictEqual(page!.messages.map(({ sequence }) => sequence), expected);
    strictEqual(page!.isComplete, false);
    deepStrictEqual(archive.reads, [50, 50, 20]);
    const rest = from === "start"
      ? { after: page!.messages.at(-1) }
      : { before: page!.messages[0] };
    const last = await readFittingPage(archive, "a", {
      filter: {},
      page: { limit: 120, from, ...rest },
    });
    deepStrictEqual([last!.messages.length, last!.isComplete], [30, true]);
  }
});

Deno.test("readFittingPage() reads no more large messages than one part has", async () => {
  for (const from of ["start", "end"] as const) {
    const archive = new Archive(1_000, 250_000);
    const page = await readFittingPage(archive, "a", { filter: {}, page: { limit: 1_000, from } });
    const expected = from === "start" ? sequences(1, 4) : sequences(997, 1_000);
    deepStrictEqual(page!.messages.map(({ sequence }) => sequence), expected);
    deepStrictEqual([page!.isComplete, archive.reads], [false, [50]]);
  }
});

Deno.test("readFittingPage() ends a page where the archive has lost its place, and knows no other", async () => {
  const archive = new Archive(100, 10);
  const read = archive.read.bind(archive);
  const store = {
    read: async (...request: Parameters<Archive["read"]>) => {
      const part = await read(...request);
      archive.remove(50);
      return part;
    },
  };
  const page = { limit: 100, from: "start" } as const;
  const found = await readFittingPage(store, "a", { filter: {}, page });
  deepStrictEqual([found!.messages.length, found!.isComplete], [50, false]);
  const after = found!.messages.at(-1);
  ok(after);
  strictEqual(
    await readFittingPage(archive, "a", { filter: {}, page: { ...page, after } }),
    undefined,
  );
});
