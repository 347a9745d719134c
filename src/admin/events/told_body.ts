const UTF8 = new TextEncoder();

/** Source of what a body tells. */
export interface Telling {
  /** Called at the first read. False when there are too many bodies: the client is told so. */
  begin(): boolean;
  /** True while there is nothing to tell. */
  isEmpty(): boolean;
  /** Takes all that there is to tell, as server-sent events. */
  take(): string;
  /** Called once, when the client is gone or the body has ended. */
  ended(): void;
}

/**
 * The body of an answer of server-sent events. It begins with the first read: one that nobody reads,
 * as in the answer to HEAD, costs nothing. The source keeps what the client has not read.
 */
export class ToldBody {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #source: Telling;
  #isEnded = false;
  #isCancelled = false;
  #wake: (() => void) | undefined;

  constructor(source: Telling) {
    this.#source = source;
    let hasBegun = false;
    this.stream = new ReadableStream({
      pull: async (controller) => {
        if (!hasBegun) {
          hasBegun = true;
          if (!source.begin()) {
            controller.enqueue(UTF8.encode(sentEvent("full", {})));
            this.end();
          }
        }
        while (!this.#isEnded && source.isEmpty()) {
          await new Promise<void>((resolve) => this.#wake = resolve);
        }
        const text = source.take();
        if (text !== "" && !this.#isCancelled) controller.enqueue(UTF8.encode(text));
        if (this.#isEnded && !this.#isCancelled) controller.close();
      },
      cancel: () => {
        this.#isCancelled = true;
        this.end();
      },
    }, { highWaterMark: 0 });
  }

  /** Called when there is something to tell. */
  wake(): void {
    this.#wake?.();
    this.#wake = undefined;
  }

  /** Ends the body; what waits is still read. */
  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#source.ended();
    this.wake();
  }
}

/** Returns one server-sent event. */
export function sentEvent(name: string, data: object, id?: number): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${
    JSON.stringify(data)
  }\n\n`;
}
