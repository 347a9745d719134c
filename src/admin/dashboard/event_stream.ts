/** One event of a stream of server-sent events. */
export interface StreamEvent {
  /** Name; `message` when the stream gives none. */
  readonly name: string;
  readonly data: string;
  readonly id: string | undefined;
}

/** Most characters of one event. A longer one ends the stream. */
const MAX_EVENT_LENGTH = 1_000_000;

/**
 * Incremental parser of `text/event-stream`. The browser's `EventSource` cannot send a token, so
 * the dashboard reads the stream by `fetch`.
 */
export class EventStreamParser {
  #rest = "";
  #name = "";
  #data: string[] = [];
  #id: string | undefined;

  /** Returns the events that `text` completes. @throws {RangeError} for an event that is too long */
  push(text: string): readonly StreamEvent[] {
    const events: StreamEvent[] = [];
    const lines = (this.#rest + text).split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop()!;
    for (const line of lines) {
      if (line === "") {
        if (this.#data.length > 0) {
          events.push({ name: this.#name || "message", data: this.#data.join("\n"), id: this.#id });
        }
        this.#name = "";
        this.#data = [];
      } else this.#field(line);
    }
    const held = this.#data.reduce((sum, line) => sum + line.length, this.#rest.length);
    if (held > MAX_EVENT_LENGTH) {
      throw new RangeError(
        `Cannot read an event of ${held} characters: the limit is ${MAX_EVENT_LENGTH}`,
      );
    }
    return events;
  }

  #field(line: string): void {
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment, which keeps the connection open
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "event") this.#name = value;
    else if (name === "data") this.#data.push(value);
    else if (name === "id") this.#id = value;
  }
}
