/** Below this clocks count as agreeing: the network and ordinary care account for it. */
const AGREEING_US = 1_000_000;

/**
 * How far the clocks of other nodes are from ours, told by their leases, and what most of the mesh
 * takes for the time: a node whose clock is wrong must not have its logins count as newer, or older,
 * than they are. Only epochs follow it.
 */
export class MeshTime {
  readonly #offsetsUs = new Map<string, number>();
  #correctionUs = 0;

  /** Microseconds that most clocks are ahead of ours (negative: behind); 0 while ours is one of them. */
  get correctionUs(): number {
    return this.#correctionUs;
  }

  /** A node's wall clock is `offsetUs` ahead of ours; true when the correction changes by that. */
  note(node: string, offsetUs: number): boolean {
    this.#offsetsUs.set(node, offsetUs);
    return this.#settle();
  }

  /** The node does not count any more. */
  forget(node: string): boolean {
    return this.#offsetsUs.delete(node) && this.#settle();
  }

  /** The lower median, ours included: also two clocks come to the same answer on both sides. */
  #settle(): boolean {
    const offsets = [0, ...this.#offsetsUs.values()].sort((left, right) => left - right);
    const median = offsets[(offsets.length - 1) >> 1]!; // there is one at least
    const wanted = Math.abs(median) < AGREEING_US ? 0 : median;
    if (Math.abs(wanted - this.#correctionUs) < AGREEING_US) return false;
    this.#correctionUs = wanted;
    return true;
  }
}
