import { MAX_ACK_BYTES } from "./ack_frame.ts";
import { MAX_CONTROL_BYTES } from "./control_frames.ts";
import { FrameError } from "./frame_error.ts";
import { FIRST_OPTIONAL_TYPE, FRAME_HEADER_BYTES, FRAME_TYPE } from "./frame_type.ts";
import { MAX_HELLO_BYTES } from "./hello_frame.ts";
import { readU32 } from "./integers.ts";
import { MAX_INVALIDATE_BYTES } from "./invalidate_frame.ts";
import { MAX_SURVEY_BYTES } from "./survey_frames.ts";
import { MAX_TRACE_BYTES } from "./trace_frames.ts";
import { MAX_DETAILS_BYTES, MAX_RESUME_BYTES, QUEUE_HEADER_BYTES } from "./resume_frames.ts";
import { MAX_TABLE_FRAME_BYTES } from "./table_frames.ts";

/**
 * Bounds on frames, lengths and types included. Bounds that are not here are constants of the
 * protocol, which peers rely on (`docs/protocol.md`): `MAX_…` beside their frames.
 */
export interface FrameLimits {
  /** Bytes of a STANZA frame or of an optional frame that is skipped. */
  readonly maxFrameBytes: number;
}

/** Takes whole frames; one for each link. */
export interface FrameSink {
  /**
   * Takes the frame of the known type `type` at [`start`, `end`) of `buffer`, its length included.
   * The decoder does not use the buffer again, but it may be a large read buffer: copy parts that
   * live long.
   */
  frame(type: number, buffer: Uint8Array, start: number, end: number): void;
}

/** Initial room for a frame that comes in several chunks; it doubles as bytes arrive. */
const FIRST_ASSEMBLY_BYTES = 4096;

/**
 * Cuts a stream of bytes into frames.
 *
 * A frame within one chunk is passed on in place. Any other is assembled in a buffer that grows
 * with the bytes that arrive, never with the length that is claimed. HELLO must come first and only
 * once, unless GOODBYE comes instead; until then no larger frame is accepted. After an error the
 * decoder takes no more.
 */
export class FrameDecoder {
  readonly #limits: FrameLimits;
  readonly #sink: FrameSink;
  #hasHello = false;
  #isStopped = false;
  #partial: Uint8Array = new Uint8Array(0);
  #partialBytes = 0;
  /** Bytes of an unknown optional frame that are still to come. */
  #skipBytes = 0;
  #skippedFrames = 0;

  constructor(limits: FrameLimits, sink: FrameSink) {
    this.#limits = limits;
    this.#sink = sink;
  }

  /** Optional frames that were skipped because their type is unknown. */
  get skippedFrames(): number {
    return this.#skippedFrames;
  }

  /** Bytes allocated for a frame that has not fully arrived. */
  get assemblyBytes(): number {
    return this.#partial.length;
  }

  /** Drops kept bytes and takes no more; for use inside a sink when the link is closing. */
  stop(): void {
    this.#isStopped = true;
    this.#partial = new Uint8Array(0);
    this.#partialBytes = 0;
  }

  /**
   * Takes the next bytes and passes every whole frame to the sink, in order.
   * @throws FrameError once; errors of the sink pass through and stop the decoder too
   */
  push(chunk: Uint8Array): void {
    if (this.#isStopped) return;
    try {
      let at = 0;
      if (this.#partialBytes > 0) at = this.#assemble(chunk);
      if (this.#partialBytes === 0) this.#scan(chunk, at);
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** Passes on frames in place from `from` on; keeps the rest of the last one. */
  #scan(chunk: Uint8Array, from: number): void {
    let at = from;
    const length = chunk.length;
    while (!this.#isStopped) {
      if (this.#skipBytes > 0) {
        const skipped = Math.min(this.#skipBytes, length - at);
        this.#skipBytes -= skipped;
        at += skipped;
        if (this.#skipBytes > 0) return;
      }
      const left = length - at;
      if (left < FRAME_HEADER_BYTES) {
        // Four bytes are a length: refuse it now, as the type may never come.
        if (left >= 4) this.#checkLength(readU32(chunk, at) + 4);
        this.#keep(chunk, at);
        return;
      }
      const frameBytes = readU32(chunk, at) + 4;
      const type = chunk[at + 4]!;
      if (!this.#accept(type, frameBytes)) {
        this.#skippedFrames++;
        this.#skipBytes = frameBytes;
        continue;
      }
      if (frameBytes > left) {
        this.#keep(chunk, at);
        return;
      }
      this.#sink.frame(type, chunk, at, at + frameBytes);
      at += frameBytes;
    }
  }

  /** Completes the kept frame from `chunk`; returns how much of it was used. */
  #assemble(chunk: Uint8Array): number {
    let at = 0;
    if (this.#partialBytes < FRAME_HEADER_BYTES) {
      at = this.#append(chunk, 0, FRAME_HEADER_BYTES - this.#partialBytes);
      if (this.#partialBytes >= 4) this.#checkLength(readU32(this.#partial, 0) + 4);
      if (this.#partialBytes < FRAME_HEADER_BYTES) return at;
      const frameBytes = readU32(this.#partial, 0) + 4;
      if (!this.#accept(this.#partial[4]!, frameBytes)) {
        this.#skippedFrames++;
        this.#skipBytes = frameBytes - FRAME_HEADER_BYTES;
        this.#partialBytes = 0;
        return at;
      }
    }
    const frameBytes = readU32(this.#partial, 0) + 4;
    at += this.#append(chunk, at, frameBytes - this.#partialBytes);
    if (this.#partialBytes < frameBytes) return at;
    const frame = this.#partial;
    this.#partial = new Uint8Array(0);
    this.#partialBytes = 0;
    this.#sink.frame(frame[4]!, frame, 0, frameBytes);
    return at;
  }

  #keep(chunk: Uint8Array, at: number): void {
    if (at < chunk.length) this.#append(chunk, at, chunk.length - at);
  }

  /** Copies up to `want` bytes from `at` on to the kept ones; returns how many there were. */
  #append(chunk: Uint8Array, at: number, want: number): number {
    const count = Math.min(want, chunk.length - at);
    const needed = this.#partialBytes + count;
    if (needed > this.#partial.length) {
      const grown = new Uint8Array(
        Math.max(needed, FIRST_ASSEMBLY_BYTES, Math.min(this.#partial.length * 2, this.#maxBytes)),
      );
      grown.set(this.#partial.subarray(0, this.#partialBytes));
      this.#partial = grown;
    }
    this.#partial.set(chunk.subarray(at, at + count), this.#partialBytes);
    this.#partialBytes = needed;
    return count;
  }

  get #maxBytes(): number {
    return this.#hasHello
      ? Math.max(
        this.#limits.maxFrameBytes + QUEUE_HEADER_BYTES,
        MAX_ACK_BYTES,
        MAX_TABLE_FRAME_BYTES,
        MAX_INVALIDATE_BYTES,
        MAX_DETAILS_BYTES,
      )
      : MAX_HELLO_BYTES;
  }

  #checkLength(frameBytes: number, limitBytes = this.#maxBytes): void {
    if (frameBytes > limitBytes) {
      throw new FrameError(
        "link/frame-too-large",
        `Cannot accept frame of ${frameBytes} bytes: the limit is ${limitBytes} bytes`,
      );
    }
    if (frameBytes < FRAME_HEADER_BYTES) {
      throw new FrameError("link/frame-malformed", "Cannot read frame: it has no type");
    }
  }

  /** Checks type and length of a frame; false when it is to be skipped. */
  #accept(type: number, frameBytes: number): boolean {
    if (!this.#hasHello) {
      if (type === FRAME_TYPE.goodbye) {
        // A peer that refuses before it has introduced itself may still say why.
        this.#checkLength(frameBytes, MAX_CONTROL_BYTES);
        return true;
      }
      if (type !== FRAME_TYPE.hello) {
        throw new FrameError(
          "link/hello-expected",
          `Cannot accept frame of type ${type}: HELLO must come first`,
        );
      }
      this.#checkLength(frameBytes);
      this.#hasHello = true;
      return true;
    }
    switch (type) {
      case FRAME_TYPE.stanza:
        this.#checkLength(frameBytes, this.#limits.maxFrameBytes);
        return true;
      case FRAME_TYPE.ack:
        this.#checkLength(frameBytes, MAX_ACK_BYTES);
        return true;
      case FRAME_TYPE.ping:
      case FRAME_TYPE.pong:
      case FRAME_TYPE.goodbye:
      case FRAME_TYPE.retire:
      case FRAME_TYPE.written:
      case FRAME_TYPE.context:
      case FRAME_TYPE.slow:
        this.#checkLength(frameBytes, MAX_CONTROL_BYTES);
        return true;
      case FRAME_TYPE.lease:
      case FRAME_TYPE.changes:
      case FRAME_TYPE.snapshot:
      case FRAME_TYPE.position:
      case FRAME_TYPE.mesh:
        this.#checkLength(frameBytes, MAX_TABLE_FRAME_BYTES);
        return true;
      case FRAME_TYPE.invalidate:
        this.#checkLength(frameBytes, MAX_INVALIDATE_BYTES);
        return true;
      case FRAME_TYPE.resume:
      case FRAME_TYPE.have:
      case FRAME_TYPE.given:
      case FRAME_TYPE.end:
        this.#checkLength(frameBytes, MAX_RESUME_BYTES);
        return true;
      case FRAME_TYPE.trace:
      case FRAME_TYPE.tracing:
      case FRAME_TYPE.traced:
        this.#checkLength(frameBytes, MAX_TRACE_BYTES);
        return true;
      case FRAME_TYPE.survey:
      case FRAME_TYPE.surveyed:
        this.#checkLength(frameBytes, MAX_SURVEY_BYTES);
        return true;
      case FRAME_TYPE.details:
        this.#checkLength(frameBytes, MAX_DETAILS_BYTES);
        return true;
      case FRAME_TYPE.session:
        this.#checkLength(frameBytes, this.#limits.maxFrameBytes);
        return true;
      case FRAME_TYPE.queue:
        this.#checkLength(frameBytes, this.#limits.maxFrameBytes + QUEUE_HEADER_BYTES);
        return true;
      case FRAME_TYPE.hello:
        throw new FrameError("link/hello-repeated", "Cannot accept HELLO: there has been one");
      default:
        if (type < FIRST_OPTIONAL_TYPE) {
          throw new FrameError("link/frame-unknown", `Cannot accept frame of unknown type ${type}`);
        }
        this.#checkLength(frameBytes, this.#limits.maxFrameBytes);
        return false;
    }
  }
}
