import type { OpenLink } from "../../mod.ts";
import type { TestNode } from "./nodes.ts";

/** A link between two nodes that loses frames on their way when it is cut. */
export class TestLink {
  /** True for frames to lose, by the sending node and type. */
  drops: (from: TestNode, type: number) => boolean = () => false;
  readonly sent: { readonly from: TestNode; readonly type: number }[] = [];
  readonly refusals: string[] = [];
  /** Called with each frame, whether or not it arrives. */
  heard: (frame: Uint8Array) => void = () => {};
  /** Processes that nodes claim falsely. */
  readonly processes: ReadonlyMap<TestNode, number>;
  readonly #ends: readonly { readonly node: TestNode; readonly link: OpenLink }[];
  #isOpen = true;

  /** @param one has dialled */
  constructor(
    one: TestNode,
    other: TestNode,
    processes: ReadonlyMap<TestNode, number> = new Map(),
  ) {
    this.processes = processes;
    this.#ends = [
      { node: one, link: this.#linkTo(other, one) },
      { node: other, link: this.#linkTo(one, other) },
    ];
    one.traffic.dialled(this.#ends[0]!.link);
    other.traffic.accepted(this.#ends[1]!.link);
  }

  /** Returns the end of `node`. */
  endOf(node: TestNode): OpenLink {
    return this.#ends.find((end) => end.node === node)!.link;
  }

  cut(hasLeft = false): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const { node, link } of this.#ends) node.traffic.ended(link, hasLeft);
  }

  #linkTo(to: TestNode, from: TestNode): OpenLink {
    return {
      host: to.host,
      nodeName: `node@${to.host}`,
      process: this.processes.get(to) ?? to.process,
      send: (frame) => {
        const type = frame[4]!;
        if (!this.#isOpen) return;
        this.sent.push({ from, type });
        this.heard(frame);
        if (this.drops(from, type)) return;
        const copy = frame.slice();
        queueMicrotask(() => {
          if (this.#isOpen) to.traffic.frame(this.endOf(to), type, copy, 0, copy.length);
        });
      },
      refuse: (detail) => {
        this.refusals.push(detail);
        this.cut();
      },
    };
  }
}
