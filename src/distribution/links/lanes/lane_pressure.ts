import type { BoundLane, SenderBinding } from "./lane_entry.ts";

/**
 * Slows down the senders that feed a live lane over its high-water mark. They may go on when the
 * lane has emptied, has gone down (then it fills and refuses), or no longer holds their stanzas.
 */
export class LanePressure {
  readonly #tell: (sender: string, isOver: boolean) => void;
  readonly #told = new Map<BoundLane, Set<SenderBinding>>();

  constructor(tell: (sender: string, isOver: boolean) => void) {
    this.#tell = tell;
  }

  /** Updates the senders after the lane's level or life has changed. */
  update(lane: BoundLane): void {
    if (!lane.isLive || !lane.isOver) {
      this.release(lane);
      return;
    }
    for (const binding of lane.holders()) this.note(lane, binding);
  }

  /** Notes that `binding` has fed a lane that may be over its mark. */
  note(lane: BoundLane, binding: SenderBinding): void {
    if (binding.isPressured || !lane.isLive || !lane.isOver) return;
    let told = this.#told.get(lane);
    if (told === undefined) this.#told.set(lane, told = new Set());
    told.add(binding);
    binding.isPressured = true;
    this.#tell(binding.sender, true);
  }

  /** Lets all senders that were slowed for `lane` go on. */
  release(lane: BoundLane): void {
    const told = this.#told.get(lane);
    if (told === undefined) return;
    this.#told.delete(lane);
    for (const binding of told) binding.isPressured = false;
    for (const binding of told) this.#tell(binding.sender, false);
  }
}
