/**
 * Microseconds below which clocks count as agreeing: the network and ordinary care account for
 * them.
 */
const AGREEING_US = 1_000_000;

/**
 * Largest correction of epochs, either way. A clock set to the wrong day or time zone is followed,
 * and no datacenter can move another's time further than that.
 */
export const MAX_CORRECTION_US = 86_400_000_000;

/**
 * Offsets of other datacenters' clocks from ours, taken from their leases, and the correction
 * towards most of the mesh. A node with a wrong clock must not have its logins count as newer, or
 * older, than they are. Each datacenter has one vote, however many nodes it names. Only epochs are
 * corrected.
 */
export class MeshTime {
  /** Offsets by local host and node name. */
  readonly #offsetsUs = new Map<string, Map<string, number>>();
  #correctionUs = 0;

  /** Microseconds by which our epochs follow the mesh: positive when most clocks are ahead of ours. */
  get correctionUs(): number {
    return this.#correctionUs;
  }

  /**
   * Notes that a node's wall clock is `offsetUs` ahead of ours; true when the correction changes.
   */
  note({ host, node }: NodeName, offsetUs: number): boolean {
    let nodes = this.#offsetsUs.get(host);
    if (nodes === undefined) this.#offsetsUs.set(host, nodes = new Map());
    nodes.set(node, offsetUs);
    return this.#settle();
  }

  /** Forgets a node; true when the correction changes. */
  forget({ host, node }: NodeName): boolean {
    const nodes = this.#offsetsUs.get(host);
    if (!nodes?.delete(node)) return false;
    if (nodes.size === 0) this.#offsetsUs.delete(host);
    return this.#settle();
  }

  /**
   * Takes the lower median of all votes, our own included, so that even two datacenters get the
   * same result on both sides.
   */
  #settle(): boolean {
    const votes = [0];
    for (const nodes of this.#offsetsUs.values()) votes.push(voteOf([...nodes.values()]));
    votes.sort((left, right) => left - right);
    const median = votes[(votes.length - 1) >> 1]!; // our own vote is always there
    const bounded = Math.max(-MAX_CORRECTION_US, Math.min(MAX_CORRECTION_US, median));
    const wanted = Math.abs(bounded) < AGREEING_US ? 0 : bounded;
    if (Math.abs(wanted - this.#correctionUs) < AGREEING_US) return false;
    this.#correctionUs = wanted;
    return true;
  }
}

/** A node of a datacenter. */
interface NodeName {
  /** Local host. */
  readonly host: string;
  readonly node: string;
}

/**
 * Returns the median of a datacenter's nodes; of two in the middle, the one nearer to our clock.
 */
function voteOf(offsetsUs: number[]): number {
  offsetsUs.sort((left, right) => left - right);
  const lower = offsetsUs[(offsetsUs.length - 1) >> 1]!; // there is at least one
  const upper = offsetsUs[offsetsUs.length >> 1]!;
  return Math.abs(upper) < Math.abs(lower) ? upper : lower;
}
