import { FairShares, ShareTab } from "../../../base/mod.ts";
import type { Holders } from "../../../base/mod.ts";
import type { BoundLane, SenderBinding } from "./lane_entry.ts";

/**
 * Lane of each sender to one datacenter. A binding may be forgotten only while the lane holds no
 * stanza of the sender: then none can be overtaken.
 */
export class SenderBindings {
  readonly #bySender = new Map<string, SenderBinding>();
  readonly #maxBindings: number;
  readonly #idleTicks: number;
  readonly #budget: FairShares;
  #tick = 0;

  constructor(
    options: {
      readonly maxBindings: number;
      readonly idleTicks: number;
      /** The bound of which each sender has a share. @default none */
      readonly budget?: FairShares | undefined;
    },
  ) {
    this.#maxBindings = options.maxBindings;
    this.#idleTicks = options.idleTicks;
    this.#budget = options.budget ?? new FairShares();
  }

  get size(): number {
    return this.#bySender.size;
  }

  get(sender: string): SenderBinding | undefined {
    const binding = this.#bySender.get(sender);
    if (binding !== undefined) binding.usedTick = this.#tick;
    return binding;
  }

  bind(sender: string, lane: BoundLane): SenderBinding {
    if (this.#bySender.size >= this.#maxBindings) this.#forget(0);
    const tab = new ShareTab(this.#budget, holdersOfSender(sender));
    const binding = { sender, lane, held: 0, tab, usedTick: this.#tick, isPressured: false };
    this.#bySender.set(sender, binding);
    lane.senders++;
    return binding;
  }

  rebind(binding: SenderBinding, lane: BoundLane): void {
    binding.lane.senders--;
    binding.lane = lane;
    lane.senders++;
  }

  /** Yields the senders of which no lane holds a stanza. */
  *idle(): IterableIterator<SenderBinding> {
    for (const binding of this.#bySender.values()) {
      if (binding.held === 0 && !binding.isPressured) yield binding;
    }
  }

  /** Counts time, and forgets idle senders now and then. */
  tick(): void {
    this.#tick++;
    if (this.#tick % this.#idleTicks === 0) this.#forget(this.#idleTicks);
  }

  #forget(idleTicks: number): void {
    for (const [sender, binding] of this.#bySender) {
      if (binding.held > 0 || binding.isPressured) continue;
      if (this.#tick - binding.usedTick < idleTicks) continue;
      this.#bySender.delete(sender);
      binding.lane.senders--;
    }
  }
}

/** Returns the holders of a sender, as `senderHolders` does, from its `senderKey`. */
function holdersOfSender(sender: string): Holders {
  const slash = sender.indexOf("/");
  const bare = slash === -1 ? sender : sender.slice(0, slash);
  return bare.includes("@") ? { singles: [bare], crowds: [] } : { singles: [], crowds: [bare] };
}
