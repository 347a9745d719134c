import type { Fate } from "../../../xmpp/mod.ts";
import { Envelope } from "../../mod.ts";
import type { RoutedNode } from "./routed_node.ts";
import type { TestLink } from "./test_link.ts";

interface Parcel {
  readonly number: number;
  readonly envelope: Envelope;
  /** True once it was written to a link: the other node may have it. */
  isSent: boolean;
}

/**
 * Stanzas from one node to another. It keeps them in order over all links that follow one another,
 * and until the other node has settled them.
 */
export class TestLane implements Fate {
  readonly #from: RoutedNode;
  readonly #to: RoutedNode;
  #link: TestLink | undefined;
  #parcels: Parcel[] = [];
  #last = 0;
  /** At the other node: the highest number that has come, and those that are settled. */
  #arrived = 0;
  readonly #settled = new Set<number>();

  constructor(from: RoutedNode, to: RoutedNode) {
    this.#from = from;
    this.#to = to;
  }

  get items(): number {
    return this.#parcels.length;
  }

  append(envelope: Envelope): void {
    const parcel = { number: ++this.#last, envelope, isSent: false };
    this.#parcels.push(parcel);
    this.#write(parcel);
  }

  /** Goes on over a new link, behind what the other node has. */
  linked(link: TestLink): void {
    this.#link = link;
    this.#acknowledge(this.#arrived, [...this.#settled]);
    for (const parcel of this.#parcels) if (parcel.number > this.#arrived) this.#write(parcel);
  }

  /** Empties the lane, because the process of the other node has ended. */
  takeAll(): Envelope[] {
    return this.#parcels.splice(0).map(({ envelope, isSent }) => {
      envelope.mayBeRepeat ||= isSent;
      return envelope;
    });
  }

  settle(number: number): void {
    this.#settled.add(number);
    this.#tell();
  }

  leftOpen(): void {}

  #write(parcel: Parcel): void {
    const { number, envelope } = parcel;
    if (this.#link?.isOpenAt(this.#from.node) !== true) return;
    parcel.isSent = true;
    const fields = { ...envelope };
    this.#link.carry(
      this.#from.node,
      () => this.#arrive(number, new Envelope(fields, this, number)),
    );
  }

  #arrive(number: number, envelope: Envelope): void {
    if (number <= this.#arrived || this.#to.isDead) return;
    this.#arrived = number;
    envelope.arrived("link", this.#from.node.host);
    this.#to.router.route(envelope);
    this.#tell();
  }

  #tell(): void {
    const [arrived, settled] = [this.#arrived, [...this.#settled]];
    this.#link?.carry(this.#to.node, () => this.#acknowledge(arrived, settled));
  }

  #acknowledge(arrived: number, settled: readonly number[]): void {
    if (this.#from.isDead) return;
    for (const { number, envelope } of this.#parcels) if (number <= arrived) envelope.held();
    const done = this.#parcels.filter(({ number }) => settled.includes(number));
    this.#parcels = this.#parcels.filter(({ number }) => !settled.includes(number));
    for (const { envelope } of done) envelope.settle();
  }
}
