import type { Lane } from "./lane.ts";
import type { SenderBinding } from "./sender_bindings.ts";

/**
 * Tells who feeds a live lane that is over its high-water mark to slow down, and to go on when it
 * has emptied, has gone down (then the lane fills and refuses) or is not theirs any more.
 */
export class LanePressure {
  readonly #tell: (sender: string, isOver: boolean) => void;
  readonly #told = new Map<Lane, Set<SenderBinding>>();

  constructor(tell: (sender: string, isOver: boolean) => void) {
    this.#tell = tell;
  }

  /** The lane's level or life has changed. */
  update(lane: Lane): void {
    if (!lane.isLive || !lane.isOver) {
      this.release(lane);
      return;
    }
    for (const binding of lane.holders()) this.note(lane, binding);
  }

  /** `binding` has fed a lane that may be over. */
  note(lane: Lane, binding: SenderBinding): void {
    if (binding.isPressured || !lane.isLive || !lane.isOver) return;
    let told = this.#told.get(lane);
    if (told === undefined) this.#told.set(lane, told = new Set());
    told.add(binding);
    binding.isPressured = true;
    this.#tell(binding.sender, true);
  }

  /** Lets everyone who was slowed for `lane` go on. */
  release(lane: Lane): void {
    const told = this.#told.get(lane);
    if (told === undefined) return;
    this.#told.delete(lane);
    for (const binding of told) binding.isPressured = false;
    for (const binding of told) this.#tell(binding.sender, false);
  }
}
