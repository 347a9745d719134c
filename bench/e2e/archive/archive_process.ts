/**
 * Uses the archives of the product in a process of its own: adds messages as a node does, and reads
 * pages of a large archive.
 */
import { SystemClock } from "../../../src/base/mod.ts";
import { SILENT_LOGGER } from "../../../src/observe/mod.ts";
import { ArchiveWriter } from "../../../src/services/archive/archive_writer.ts";
import type { ArchivePageRequest, ArchiveStore } from "../../../src/storage/mod.ts";
import { jsonLine, readJsonLines } from "../json_lines.ts";
import { countOf, idOf, LARGE_ARCHIVE, messageOf, peerOf, placeOf } from "./archive_messages.ts";
import type { ArchiveCommand, ArchiveEvent, ArchivePlan, PageName } from "./archive_protocol.ts";
import { openArchives } from "./open_archives.ts";

/** Messages that wait for the writer at all times: it always finds a whole batch. */
const WAITING = 4_096;
/** Messages of one step of filling. */
const FILL_BATCH = 1_000;
const PAGE = 50;

/** Adds messages through the writer of a node. */
class Insertions {
  readonly #store: ArchiveStore;
  readonly #hasSearch: boolean;
  /** The large archive has the numbers below. */
  #sequence = 1e9;
  #stored = 0;
  #failure: string | undefined;

  constructor(store: ArchiveStore, hasSearch: boolean) {
    this.#store = store;
    this.#hasSearch = hasSearch;
  }

  async measure(
    { warmUpMs, measureMs }: { readonly warmUpMs: number; readonly measureMs: number },
  ): Promise<ArchiveEvent> {
    const writer = new ArchiveWriter({
      store: this.#store,
      logger: SILENT_LOGGER,
      clock: new SystemClock(),
    });
    let [isOver, missing] = [false, 0];
    const done = (outcome: string) => {
      if (outcome === "stored") this.#stored++;
      else this.#failure ??= outcome;
      // In a turn of its own, as messages come to a node: SQLite answers without one.
      if (missing++ === 0) setImmediate(() => add(missing));
    };
    const add = (count: number) => {
      missing = 0;
      for (let i = 0; i < count && !isOver; i++) {
        const message = messageOf(this.#sequence++, { hasSearch: this.#hasSearch });
        writer.add({ message, late: () => {}, done });
      }
    };
    add(WAITING);
    await sleep(warmUpMs);
    const [before, startMs] = [this.#stored, performance.now()];
    await sleep(measureMs);
    const [messages, elapsedMs] = [this.#stored - before, performance.now() - startMs];
    isOver = true;
    await writer.close();
    if (this.#failure !== undefined) throw new Error(`A message was not stored: ${this.#failure}`);
    return { event: "inserted", messages, elapsedMs };
  }
}

async function fill(
  store: ArchiveStore,
  { entries, hasSearch }: { readonly entries: number; readonly hasSearch: boolean },
): Promise<ArchiveEvent> {
  const startMs = performance.now();
  for (let next = 0; next < entries; next += FILL_BATCH) {
    const count = Math.min(FILL_BATCH, entries - next);
    const messages = Array.from(
      { length: count },
      (_, i) => messageOf(next + i, { archive: LARGE_ARCHIVE, hasSearch }),
    );
    const outcomes = await store.append(messages, Date.now());
    if (!outcomes.every((each) => each === "stored")) throw new Error("A message was not stored");
  }
  return { event: "filled", elapsedMs: performance.now() - startMs };
}

/** Reads a page many times, one after another, the middle ones behind messages all over the archive. */
async function read(
  store: ArchiveStore,
  { page, times, entries }: {
    readonly page: PageName;
    readonly times: number;
    readonly entries: number;
  },
): Promise<ArchiveEvent> {
  const tookMs: number[] = [];
  for (let turn = 0; turn < times; turn++) {
    const hasPeer = page.endsWith("peer");
    const position = placeOf(0.1 + 0.8 * turn / times, { entries, page: PAGE, hasPeer });
    const isMiddle = page.startsWith("middle");
    const request: ArchivePageRequest = {
      limit: PAGE,
      from: page.startsWith("last") ? "end" : "start",
      ...(isMiddle ? { after: idOf(position) } : {}),
    };
    const filter = hasPeer ? { peer: { bare: peerOf(turn), resourcepart: "" } } : {};
    const startMs = performance.now();
    const result = await store.read(LARGE_ARCHIVE, filter, request);
    tookMs.push(performance.now() - startMs);
    const there = countOf(isMiddle ? position + 1 : 0, entries, hasPeer ? turn : undefined);
    const found = result?.messages.length ?? 0;
    if (found !== Math.min(PAGE, there)) {
      throw new Error(`Page "${page}" has ${found} messages: ${there} are there`);
    }
  }
  tookMs.sort((one, other) => one - other);
  const quantile = (part: number) => tookMs[Math.ceil(part * times) - 1]!;
  return { event: "read", p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
}

function tell(event: ArchiveEvent): void {
  Deno.stdout.writeSync(jsonLine(event));
}

function sleep(forMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, forMs));
}

if (import.meta.main) {
  const plan = JSON.parse(Deno.args[0] ?? "{}") as ArchivePlan; // from our own main process
  await using stores = await openArchives(plan.place);
  const { store } = stores;
  const { hasSearch } = plan.place;
  let entries = 0;
  const insertions = new Insertions(store, hasSearch);
  tell({ event: "ready" });
  for await (const command of readJsonLines<ArchiveCommand>(Deno.stdin.readable)) {
    if (command.do === "insert") {
      tell(await insertions.measure(command));
    } else if (command.do === "fill") {
      ({ entries } = command);
      tell(await fill(store, { entries, hasSearch }));
    } else tell(await read(store, { ...command, entries }));
  }
  Deno.exit(0);
}
