import type { Lane } from "./lane.ts";

/**
 * State of watched stanzas: some not reported as received, all left with live peers, or none held.
 */
export type HeldState = "open" | "received" | "gone";

/** Marks behind the last stanza of each lane, to watch those before it and no later ones. */
export class HeldMarks {
  #marks: readonly { readonly lane: Lane; readonly last: number }[];

  constructor(lanes: Iterable<Lane>) {
    this.#marks = Array.from(lanes, (lane) => ({ lane, last: lane.last }));
  }

  /** Returns the state of the stanzas before the marks. None may have changed lanes. */
  look(): HeldState {
    // A lane whose numbers were set back has given back all that it held.
    this.#marks = this.#marks.filter(({ lane, last }) => lane.lastGone < last && last <= lane.last);
    if (this.#marks.length === 0) return "gone";
    const isReceived = this.#marks.every(({ lane, last }) => lane.isLive && lane.received >= last);
    return isReceived ? "received" : "open";
  }
}
