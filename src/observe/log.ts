/** Values a log event may carry; never a stanza body or a secret. */
export type LogFields = Readonly<Record<string, unknown>>;

/** Structured events: a stable dotted name and fields, one line per state change. */
export interface Logger {
  debug(event: string, fields?: LogFields): void;
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
  /** Logs at `info`, whatever the level of the log: who has done what is never left out. */
  audit(event: string, fields?: LogFields): void;
}

/** A logger that keeps nothing, the default for callers that pass none. */
export const SILENT_LOGGER: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
  audit() {},
};

/** One event as `MemoryLogger` keeps it. */
export interface LogEntry {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly event: string;
  readonly fields: LogFields;
}

/** A logger that remembers its events, for tests that assert on them. */
export class MemoryLogger implements Logger {
  readonly entries: LogEntry[] = [];

  debug(event: string, fields: LogFields = {}): void {
    this.entries.push({ level: "debug", event, fields });
  }
  info(event: string, fields: LogFields = {}): void {
    this.entries.push({ level: "info", event, fields });
  }
  warn(event: string, fields: LogFields = {}): void {
    this.entries.push({ level: "warn", event, fields });
  }
  error(event: string, fields: LogFields = {}): void {
    this.entries.push({ level: "error", event, fields });
  }
  audit(event: string, fields: LogFields = {}): void {
    this.info(event, fields);
  }

  /** The events named `event`, oldest first. */
  named(event: string): LogEntry[] {
    return this.entries.filter((entry) => entry.event === event);
  }
}
