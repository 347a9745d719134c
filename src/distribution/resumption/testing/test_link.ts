import type { OpenLink } from "../../mod.ts";
import type { TestNode } from "./nodes.ts";

/** One end of a link. */
interface End {
  readonly node: TestNode;
  readonly link: OpenLink;
  /** False once its node knows that the link has ended. */
  isOpen: boolean;
  /** Monotonic milliseconds when the last thing that its node has sent arrives. */
  dueMs: number;
}

/**
 * A link between two nodes. It keeps the order of what goes one way, delays it on request, and loses
 * what is on its way when it is cut. A link that is to be open again is a new link.
 */
export class TestLink {
  /** True for frames to lose, by the sending node and type. */
  drops: (from: TestNode, type: number) => boolean = () => false;
  /** Milliseconds that anything from a node is on its way. */
  delayMs: (from: TestNode) => number = () => 0;
  readonly sent: { readonly from: TestNode; readonly type: number }[] = [];
  readonly refusals: string[] = [];
  /** Called with each frame, whether or not it arrives. */
  heard: (frame: Uint8Array) => void = () => {};
  /** Called when a node learns that the link has ended. */
  ended: (node: TestNode) => void = () => {};
  /** Processes that nodes claim falsely. */
  readonly processes: ReadonlyMap<TestNode, number>;
  readonly #ends: readonly [End, End];
  #isWhole = true;

  /** @param one has dialled */
  constructor(
    one: TestNode,
    other: TestNode,
    processes: ReadonlyMap<TestNode, number> = new Map(),
  ) {
    this.processes = processes;
    this.#ends = [this.#endFor(one, other), this.#endFor(other, one)];
    one.traffic.dialled(this.#ends[0].link);
    other.traffic.accepted(this.#ends[1].link);
  }

  /** False once the link is cut, whether or not its nodes know that. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Returns the end of `node`. */
  endOf(node: TestNode): OpenLink {
    return this.#endOf(node).link;
  }

  /** True until `node` knows that the link has ended. */
  isOpenAt(node: TestNode): boolean {
    return this.#endOf(node).isOpen;
  }

  /** Ends the link, and both nodes know that at once. */
  cut(hasLeft = false): void {
    this.#isWhole = false;
    for (const end of this.#ends) this.#endAt(end, hasLeft);
  }

  /**
   * Cuts the link, and each node learns that `learnMs` later, or never. Until then it sends in vain.
   */
  sever(learnMs: (node: TestNode) => number): void {
    if (!this.#isWhole) return;
    this.#isWhole = false;
    for (const end of this.#ends) {
      const delayMs = learnMs(end.node);
      if (delayMs === Infinity) continue;
      end.node.world.clock.after(delayMs, () => this.#endAt(end, false));
    }
  }

  /** Makes something other than a frame go the same way: behind earlier frames, and before later ones. */
  carry(from: TestNode, arrive: () => void): void {
    const end = this.#endOf(from);
    if (!end.isOpen || !this.#isWhole) return;
    const { clock } = from.world;
    const nowMs = clock.monotonicMs();
    const delayMs = this.delayMs(from);
    const goIn = () => {
      if (this.#isWhole) arrive();
    };
    if (delayMs === 0 && end.dueMs <= nowMs) return queueMicrotask(goIn);
    end.dueMs = Math.max(end.dueMs, nowMs + delayMs);
    clock.after(end.dueMs - nowMs, goIn);
  }

  #endOf(node: TestNode): End {
    return this.#ends.find((end) => end.node === node)!;
  }

  #endAt(end: End, hasLeft: boolean): void {
    if (!end.isOpen) return;
    end.isOpen = false;
    end.node.traffic.ended(end.link, hasLeft);
    this.ended(end.node);
  }

  #endFor(node: TestNode, other: TestNode): End {
    return { node, link: this.#linkTo(other, node), isOpen: true, dueMs: 0 };
  }

  #linkTo(to: TestNode, from: TestNode): OpenLink {
    return {
      host: to.host,
      nodeName: `node@${to.host}`,
      process: this.processes.get(to) ?? to.process,
      send: (frame) => {
        const type = frame[4]!;
        if (!this.isOpenAt(from)) return;
        this.sent.push({ from, type });
        this.heard(frame);
        if (this.drops(from, type)) return;
        const copy = frame.slice();
        this.carry(from, () => to.traffic.frame(this.endOf(to), type, copy, 0, copy.length));
      },
      refuse: (detail) => {
        this.refusals.push(detail);
        this.cut();
      },
    };
  }
}
