import type { Clock } from "../base/mod.ts";
import type { LogFields, Logger } from "./log.ts";

/** Milliseconds between two lines of one event about one source. */
const LINE_MS = 60_000;
/** Lines a minute about ordinary events (come, go, move) of one datacenter or one of its certificates. */
export const LIFE_LINES = 64;
/** Sources remembered at once; past it the source that has been silent longest is forgotten. */
const MAX_SOURCES = 1_024;

interface Source {
  readonly level: "info" | "warn";
  /** Monotonic milliseconds from which the next line may be written. */
  dueMs: number;
  /** Lines that may still be written before that. */
  room: number;
  /** Events not written since the last line. */
  unsaid: number;
  event: string;
  fields: LogFields;
}

/**
 * A log for events that others can cause as often as they like. Of each event about one source (a link,
 * a node) the first is written at once. Then one line a minute follows, with the number of events as
 * `count`. Where an honest source has many lines at once, such as a datacenter that starts, the first
 * `lines` are written.
 */
export class PacedLog {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #lines: number;
  readonly #sources = new Map<string, Source>();

  /** @param lines of one event about one source that are written within a minute; at least 1 */
  constructor(logger: Logger, clock: Clock, lines = 1) {
    this.#logger = logger;
    this.#clock = clock;
    this.#lines = lines;
  }

  /** Writes `event`, or counts it for the line that `flush` writes. */
  warn(event: string, source: string, fields: LogFields): void {
    this.#note("warn", { event, source, fields });
  }

  info(event: string, source: string, fields: LogFields): void {
    this.#note("info", { event, source, fields });
  }

  /** Writes the events counted for a minute. The owner calls it every few seconds. */
  flush(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, source] of this.#sources) {
      if (nowMs < source.dueMs) continue;
      if (source.unsaid === 0) {
        this.#sources.delete(key);
        continue;
      }
      this.#logger[source.level](source.event, { ...source.fields, count: source.unsaid });
      source.unsaid = 0;
      source.room = this.#lines - 1;
      source.dueMs = nowMs + LINE_MS;
    }
  }

  #note(
    level: Source["level"],
    { event, source, fields }: { event: string; source: string; fields: LogFields },
  ): void {
    const key = `${event} ${source}`;
    const nowMs = this.#clock.monotonicMs();
    const known = this.#sources.get(key);
    if (known !== undefined && nowMs < known.dueMs) {
      if (known.room > 0) {
        known.room--;
        this.#logger[level](event, fields);
        return;
      }
      known.unsaid++;
      known.fields = fields;
      return;
    }
    const count = 1 + (known?.unsaid ?? 0);
    this.#sources.delete(key);
    if (this.#sources.size >= MAX_SOURCES) this.#forgetOldest();
    const room = this.#lines - 1;
    this.#sources.set(key, { level, dueMs: nowMs + LINE_MS, room, unsaid: 0, event, fields });
    this.#logger[level](event, count > 1 ? { ...fields, count } : fields);
  }

  #forgetOldest(): void {
    for (const key of this.#sources.keys()) {
      this.#sources.delete(key);
      return;
    }
  }
}
