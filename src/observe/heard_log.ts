import type { LogEntry, LogFields, Logger } from "./log.ts";

/** A logger that tells a listener of its events too, from `info` on. */
export class HeardLog implements Logger {
  readonly #log: Logger;
  readonly #heard: (entry: LogEntry) => void;

  /** @param heard called after the event was logged; must not throw */
  constructor(log: Logger, heard: (entry: LogEntry) => void) {
    this.#log = log;
    this.#heard = heard;
  }

  debug(event: string, fields?: LogFields): void {
    this.#log.debug(event, fields);
  }

  info(event: string, fields: LogFields = {}): void {
    this.#log.info(event, fields);
    this.#heard({ level: "info", event, fields });
  }

  warn(event: string, fields: LogFields = {}): void {
    this.#log.warn(event, fields);
    this.#heard({ level: "warn", event, fields });
  }

  error(event: string, fields: LogFields = {}): void {
    this.#log.error(event, fields);
    this.#heard({ level: "error", event, fields });
  }

  audit(event: string, fields: LogFields = {}): void {
    this.#log.audit(event, fields);
    this.#heard({ level: "info", event, fields });
  }
}
