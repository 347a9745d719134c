import type { Socket } from "node:net";

/** Conditions of a pipe, read again for each chunk. */
export interface PipeConditions {
  /** Milliseconds that each chunk is held. */
  readonly delayMs: number;
  /** Bytes that pass in a second; 0: as many as come. */
  readonly bytesPerSec: number;
  /** Nothing passes and nothing is told to either side, as when packets vanish. */
  readonly isBlackHole: boolean;
  /** No more than this at once. @default all there is */
  readonly maxBytes?: number;
}

interface Held {
  readonly dueMs: number;
  readonly chunk: Uint8Array;
}

/** Bytes held for their delay before the source is made to wait. */
const MAX_HELD_BYTES = 16 * 1024 * 1024;
/** A throttled pipe writes this often in a second, so that it trickles rather than bursts. */
const THROTTLE_TICKS_PER_SEC = 50;

/** One direction of a proxied connection. */
export class StreamPipe {
  readonly #source: Socket;
  readonly #sink: Socket;
  readonly #conditions: () => PipeConditions;
  readonly #passed: (byteLength: number, isPart: boolean) => void;
  readonly #queue: Held[] = [];
  #heldBytes = 0;
  #hasEnded = false;
  #isSinkFull = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #nextWriteMs = 0;

  constructor(
    source: Socket,
    sink: Socket,
    options: {
      readonly conditions: () => PipeConditions;
      /** Told how many bytes have just passed, and whether more of the same piece are held. */
      readonly passed: (byteLength: number, isPart: boolean) => void;
    },
  ) {
    this.#source = source;
    this.#sink = sink;
    this.#conditions = options.conditions;
    this.#passed = options.passed;
    source.on("data", (chunk: Uint8Array) => this.#take(chunk));
    source.on("end", () => {
      this.#hasEnded = true;
      this.pump();
    });
    sink.on("drain", () => {
      this.#isSinkFull = false;
      this.pump();
    });
  }

  /** Passes on what may pass now; called again when conditions have changed. */
  pump(): void {
    clearTimeout(this.#timer);
    const { isBlackHole } = this.#conditions();
    while (!isBlackHole && !this.#isSinkFull) {
      const next = this.#queue[0];
      if (next === undefined) break;
      const nowMs = performance.now();
      const waitMs = Math.max(next.dueMs, this.#nextWriteMs) - nowMs;
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.pump(), waitMs);
        break;
      }
      this.#write(next, nowMs);
    }
    if (this.#hasEnded && this.#queue.length === 0 && !isBlackHole) this.#sink.end();
    if (this.#heldBytes > MAX_HELD_BYTES || isBlackHole) this.#source.pause();
    else this.#source.resume();
  }

  /** Drops what is held. */
  close(): void {
    clearTimeout(this.#timer);
    this.#queue.length = 0;
    this.#heldBytes = 0;
  }

  #take(chunk: Uint8Array): void {
    this.#queue.push({ dueMs: performance.now() + this.#conditions().delayMs, chunk });
    this.#heldBytes += chunk.length;
    this.pump();
  }

  #write(next: Held, nowMs: number): void {
    const { bytesPerSec, maxBytes = Infinity } = this.#conditions();
    let piece = next.chunk.subarray(0, maxBytes);
    if (bytesPerSec > 0) {
      const share = Math.max(1, Math.floor(bytesPerSec / THROTTLE_TICKS_PER_SEC));
      piece = piece.subarray(0, share);
      this.#nextWriteMs = nowMs + 1000 * piece.length / bytesPerSec;
    }
    if (piece.length === next.chunk.length) this.#queue.shift();
    else this.#queue[0] = { ...next, chunk: next.chunk.subarray(piece.length) };
    this.#heldBytes -= piece.length;
    this.#isSinkFull = !this.#sink.write(piece);
    this.#passed(piece.length, piece.length < next.chunk.length);
  }
}
