import type { Logger } from "../observe/mod.ts";
import type { AuditEntry } from "./api/action_schemas.ts";

/** Entries that the API shows; the log has all. */
const MAX_KEPT = 500;

/** Who has done what, and how it ended: in the log for good, and the last entries in memory. */
export class AuditLog {
  readonly #log: Logger;
  readonly #nowMs: () => number;
  readonly #kept: AuditEntry[] = [];
  #lastId = 0;

  /** @param nowMs returns the wall time */
  constructor(log: Logger, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** The last entries, newest first. */
  get newest(): readonly AuditEntry[] {
    return this.#kept.toReversed();
  }

  /** Notes an action, also one that was refused. */
  add(entry: Omit<AuditEntry, "id" | "at">): void {
    this.#log.audit("admin.action", entry);
    this.#kept.push({ id: ++this.#lastId, at: new Date(this.#nowMs()).toISOString(), ...entry });
    if (this.#kept.length > MAX_KEPT) this.#kept.shift();
  }
}
