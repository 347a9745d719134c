/**
 * Uses the archives of the product in a process of its own: adds messages as a node does, reads pages
 * of a large archive, counts its messages and removes them.
 */
import { SystemClock } from "../../../src/base/mod.ts";
import { SILENT_LOGGER } from "../../../src/observe/mod.ts";
import { ArchiveWriter } from "../../../src/services/archive/archive_writer.ts";
import type { ArchiveFilter, ArchivePageRequest, ArchiveStore } from "../../../src/storage/mod.ts";
import { jsonLine, readJsonLines } from "../json_lines.ts";
import {
  countOf,
  DOMAIN,
  idOf,
  LARGE_ARCHIVE,
  messageOf,
  peerOf,
  placeOf,
  sentAtOf,
} from "./archive_messages.ts";
import type {
  ArchiveCommand,
  ArchiveEvent,
  ArchivePlan,
  CountName,
  PageName,
  RemovalName,
} from "./archive_protocol.ts";
import { WAITING_INSERTIONS } from "./archive_protocol.ts";
import { openArchives } from "./open_archives.ts";

/** Messages of one step of filling. */
const FILL_BATCH = 1_000;
const PAGE = 50;
/** Most messages that a node counts, and one, which says that there are more. */
const MOST_COUNTED = 10_001;
/** Messages of one step of a removal by age, as a node takes them. */
const REMOVED_AT_ONCE = 1_000;
/** Part of the archive that the removal by age removes. */
const AGED_PART = 0.1;

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
    add(WAITING_INSERTIONS);
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
    const outcomes = await store.append(messages, sentAtOf(next + count));
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
    const isBefore = page.startsWith("before a time");
    const request: ArchivePageRequest = {
      limit: PAGE,
      from: page.startsWith("last") || isBefore ? "end" : "start",
      ...(isMiddle ? { after: idOf(position) } : {}),
    };
    const filter: ArchiveFilter = {
      ...(hasPeer ? { peer: { bare: peerOf(turn), resourcepart: "" } } : {}),
      ...(page === "behind a time" ? { startMs: sentAtOf(position + 1) } : {}),
      ...(isBefore ? { endMs: sentAtOf(position) } : {}),
    };
    const startMs = performance.now();
    const result = await store.read(LARGE_ARCHIVE, filter, request);
    tookMs.push(performance.now() - startMs);
    const isBehind = isMiddle || page === "behind a time";
    const [first, end] = [isBehind ? position + 1 : 0, isBefore ? position + 1 : entries];
    const there = countOf(first, end, hasPeer ? turn : undefined);
    const found = result?.messages.length ?? 0;
    if (found !== Math.min(PAGE, there)) {
      throw new Error(`Page "${page}" has ${found} messages: ${there} are there`);
    }
  }
  return { event: "read", ...quantilesOf(tookMs) };
}

/** Counts messages many times, one count after another. */
async function count(
  store: ArchiveStore,
  { count, times, entries }: {
    readonly count: CountName;
    readonly times: number;
    readonly entries: number;
  },
): Promise<ArchiveEvent> {
  const tookMs: number[] = [];
  for (let turn = 0; turn < times; turn++) {
    const hasPeer = count === "with a peer";
    const filter = hasPeer ? { peer: { bare: peerOf(turn), resourcepart: "" } } : {};
    const startMs = performance.now();
    const found = await store.count(LARGE_ARCHIVE, filter, MOST_COUNTED);
    tookMs.push(performance.now() - startMs);
    const there = countOf(0, entries, hasPeer ? turn : undefined);
    if (found !== Math.min(MOST_COUNTED, there)) {
      throw new Error(`Counted ${found} messages (${count}): ${there} are there`);
    }
  }
  return { event: "counted", ...quantilesOf(tookMs) };
}

/** Removes messages as a node does, but without its pauses. */
async function remove(
  store: ArchiveStore,
  { removal, entries }: { readonly removal: RemovalName; readonly entries: number },
): Promise<ArchiveEvent> {
  const startMs = performance.now();
  const aged = Math.floor(entries * AGED_PART);
  if (removal === "by age") {
    const age = { host: DOMAIN, sentBeforeMs: sentAtOf(aged) };
    let removed = 0;
    for (let some = -1; some !== 0; removed += some) {
      some = await store.removeBefore(age, REMOVED_AT_ONCE);
    }
    if (removed !== aged) throw new Error(`Removed ${removed} messages: ${aged} are old`);
    return { event: "removed", messages: removed, elapsedMs: performance.now() - startMs };
  }
  await store.removeAll(LARGE_ARCHIVE);
  const elapsedMs = performance.now() - startMs;
  if (await store.ends(LARGE_ARCHIVE) !== undefined) throw new Error("Messages are left");
  return { event: "removed", messages: entries - aged, elapsedMs };
}

function quantilesOf(tookMs: readonly number[]) {
  const sorted = tookMs.toSorted((one, other) => one - other);
  const quantile = (part: number) => sorted[Math.ceil(part * sorted.length) - 1]!;
  return { p50Ms: quantile(0.5), p99Ms: quantile(0.99) };
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
    switch (command.do) {
      case "insert":
        tell(await insertions.measure(command));
        break;
      case "fill":
        ({ entries } = command);
        tell(await fill(store, { entries, hasSearch }));
        break;
      case "note":
        ({ entries } = command);
        tell({ event: "noted" });
        break;
      case "read":
        tell(await read(store, { ...command, entries }));
        break;
      case "count":
        tell(await count(store, { ...command, entries }));
        break;
      case "remove":
        tell(await remove(store, { ...command, entries }));
        break;
    }
  }
  Deno.exit(0);
}
