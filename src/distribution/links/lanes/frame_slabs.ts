/** Bytes of one slab; a frame larger than a quarter of it gets a block of its own. */
export const FRAME_SLAB_BYTES = 65_536;

/** One block of memory with encoded frames one after the other. */
export interface FrameSlab {
  readonly bytes: Uint8Array;
  used: number;
  liveFrames: number;
}

/** Place of one encoded frame: the bytes of `slab` from `start` to before `end`. */
export interface FramePlace {
  slab: FrameSlab;
  start: number;
  end: number;
}

/**
 * Memory for encoded frames that live about equally long, counted by allocated bytes.
 *
 * Reserve room, encode into it, commit the end, release when done: a frame costs no object. An
 * empty slab is freed, except that one is kept for the next use.
 */
export class FrameSlabs {
  #current: FrameSlab | undefined;
  #spare: FrameSlab | undefined;
  #allocatedBytes = 0;
  #liveBytes = 0;

  /** Bytes of all blocks that hold frames. */
  get allocatedBytes(): number {
    return this.#allocatedBytes;
  }

  /** Bytes of the frames that are held. */
  get liveBytes(): number {
    return this.#liveBytes;
  }

  /**
   * Returns a slab with `room` bytes behind `used`; undefined when it would need more than
   * `maxBytes`.
   */
  reserve(room: number, maxBytes: number): FrameSlab | undefined {
    const current = this.#current;
    if (current !== undefined && current.used + room <= current.bytes.length) return current;
    const isOwn = room > FRAME_SLAB_BYTES >> 2;
    const blockBytes = isOwn ? room : FRAME_SLAB_BYTES;
    if (this.#allocatedBytes + blockBytes > maxBytes) return undefined;
    let slab: FrameSlab;
    if (isOwn) {
      slab = { bytes: new Uint8Array(room), used: 0, liveFrames: 0 };
    } else {
      slab = this.#spare ?? { bytes: new Uint8Array(FRAME_SLAB_BYTES), used: 0, liveFrames: 0 };
      this.#spare = undefined;
      if (current !== undefined && current.liveFrames === 0) this.#drop(current);
      this.#current = slab;
    }
    this.#allocatedBytes += blockBytes;
    return slab;
  }

  /** Counts the frame written at [`slab.used`, `end`). */
  commit(slab: FrameSlab, end: number): void {
    this.#liveBytes += end - slab.used;
    slab.used = end;
    slab.liveFrames++;
  }

  /** Frees one frame of `frameBytes` in `slab`. */
  release(slab: FrameSlab, frameBytes: number): void {
    this.#liveBytes -= frameBytes;
    if (--slab.liveFrames > 0) return;
    if (slab === this.#current) slab.used = 0;
    else this.#drop(slab);
  }

  /**
   * Copies a frame here, whatever the bound, and updates its place. Where it lay before, it stays
   * counted.
   */
  adopt(frame: FramePlace): void {
    const { slab: from, start, end } = frame;
    const slab = this.reserve(end - start, Infinity)!; // without a bound there is always room
    frame.slab = slab;
    frame.start = slab.used;
    frame.end = slab.used + end - start;
    slab.bytes.set(from.bytes.subarray(start, end), frame.start);
    this.commit(slab, frame.end);
  }

  /**
   * Moves frames together when at least half of the memory is unused; false when less is.
   * @param frames all frames that lie here
   */
  compact(frames: Iterable<FramePlace>): boolean {
    if (this.#liveBytes * 2 > this.#allocatedBytes) return false;
    this.#turnOver();
    for (const frame of frames) {
      const { slab: from, start, end } = frame;
      this.adopt(frame);
      this.release(from, end - start);
    }
    return true;
  }

  /** Begins a new slab at the next `reserve`, so that frames copied now leave the old slabs. */
  #turnOver(): void {
    const current = this.#current;
    this.#current = undefined;
    if (current !== undefined && current.liveFrames === 0) this.#drop(current);
  }

  #drop(slab: FrameSlab): void {
    this.#allocatedBytes -= slab.bytes.length;
    slab.used = 0;
    if (slab.bytes.length === FRAME_SLAB_BYTES) this.#spare = slab;
  }
}
