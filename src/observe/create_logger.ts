import { configureSync, getLogger } from "@logtape/logtape";
import type { LogLevel as LogTapeLevel, LogRecord } from "@logtape/logtape";
import type { LogEntry, LogFields, Logger } from "./log.ts";
import { redactFields } from "./redact.ts";

/** Least important level that the logger writes. */
export type LogLevel = LogEntry["level"];

/** `text` for people; `json` for machines, one object a line. */
export type LogFormat = "text" | "json";

/** Options of a process's logger. */
export interface LoggerOptions {
  /** @default "info" */
  readonly level?: LogLevel;
  /** @default "text" */
  readonly format?: LogFormat;
  /** Takes each line with its line end. @default writes to standard error */
  readonly write?: (line: string) => void;
}

const CATEGORY = "causeway";
const AUDIT_CATEGORY = [CATEGORY, "audit"];

const TO_LOGTAPE: Readonly<Record<LogLevel, LogTapeLevel>> = {
  debug: "debug",
  info: "info",
  warn: "warning",
  error: "error",
};

const FROM_LOGTAPE: Readonly<Record<LogTapeLevel, LogLevel>> = {
  trace: "debug",
  debug: "debug",
  info: "info",
  warning: "warn",
  error: "error",
  fatal: "error",
};

/**
 * Creates the logger of the process. LogTape is configured process-wide, so a later call also changes
 * the loggers that earlier calls returned.
 */
export function createLogger(options: LoggerOptions = {}): Logger {
  const { level = "info", format = "text", write = writeToStderr } = options;
  const toLine = format === "json" ? jsonLine : textLine;
  configureSync({
    reset: true,
    sinks: { lines: (record: LogRecord) => write(toLine(toEntry(record), record.timestamp)) },
    loggers: [
      { category: CATEGORY, lowestLevel: TO_LOGTAPE[level], sinks: ["lines"] },
      { category: AUDIT_CATEGORY, lowestLevel: "info", sinks: ["lines"], parentSinks: "override" },
      { category: ["logtape", "meta"], lowestLevel: "warning", sinks: ["lines"] },
    ],
  });
  const logger = getLogger(CATEGORY);
  const audit = getLogger(AUDIT_CATEGORY);
  // The event travels as a field, because LogTape fills in braces in a message.
  return {
    debug: (event, fields) => logger.debug("", { event, fields }),
    info: (event, fields) => logger.info("", { event, fields }),
    warn: (event, fields) => logger.warning("", { event, fields }),
    error: (event, fields) => logger.error("", { event, fields }),
    audit: (event, fields) => audit.info("", { event, fields }),
  };
}

function toEntry(record: LogRecord): LogEntry {
  const level = FROM_LOGTAPE[record.level];
  const { event, fields } = record.properties;
  if (typeof event !== "string") {
    return { level, event: "log.internal", fields: { message: record.message.join("") } };
  }
  return { level, event, fields: redactFields((fields as LogFields | undefined) ?? {}) };
}

const RESERVED = new Set(["time", "level", "event"]);

/** Renders one JSON object and a line feed. A field named like one of ours gets a trailing `_`. */
export function jsonLine({ level, event, fields }: LogEntry, timestampMs: number): string {
  const renamed = Object.entries(fields).map((
    [name, value],
  ) => [RESERVED.has(name) ? `${name}_` : name, value]);
  const time = new Date(timestampMs).toISOString();
  return toJson({ time, level, event, ...Object.fromEntries(renamed) }) + "\n";
}

/** `2026-01-02T03:04:05.678Z WARN  link.closed peer=dc2.example.com reason="went away"` */
export function textLine({ level, event, fields }: LogEntry, timestampMs: number): string {
  let line = `${new Date(timestampMs).toISOString()} ${level.toUpperCase().padEnd(5)} ${event}`;
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined) line += ` ${name}=${textValue(value)}`;
  }
  return line + "\n";
}

/**
 * Returns a value as it is where nothing can be misread, else as JSON, so that no value can begin a line
 * of its own.
 */
function textValue(value: unknown): string {
  if (typeof value === "string" && /^[\w.:@/#+\[\]-]+$/.test(value)) return value;
  return toJson(value);
}

/**
 * Characters that JSON leaves as they are, but that a terminal obeys or some reader treats as a line end:
 * controls of ISO 8859 (U+009B is CSI), line and paragraph separators, and marks that turn the direction
 * of text.
 */
const UNSEEN = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/** Returns JSON without invisible characters, because fields may hold text from peers. */
function toJson(value: unknown): string {
  return JSON.stringify(value)?.replace(
    UNSEEN,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  ) ?? "null";
}

function writeToStderr(line: string): void {
  try {
    let rest = new TextEncoder().encode(line);
    while (rest.length > 0) rest = rest.subarray(Deno.stderr.writeSync(rest));
  } catch {
    // Standard error is gone; a server that cannot log still serves.
  }
}
