import type { StanzaKind } from "../ledger/mod.ts";

/** Parts of the traffic, in any unit. */
export interface Mix {
  /** Messages to full JIDs. */
  readonly full: number;
  /** Messages to bare JIDs. */
  readonly bare: number;
  /** Requests, to full JIDs. */
  readonly iq: number;
  /** Presence, to full JIDs. */
  readonly presence: number;
}

/** Default mix: typical client traffic, with a little presence. */
export const DEFAULT_MIX: Mix = { full: 68, bare: 15, iq: 15, presence: 2 };

/**
 * Reads the parts in the order of `Mix`, as in `68,15,15,2`.
 * @returns undefined when it is not that
 */
export function tryMix(text: string): Mix | undefined {
  const parts = text.split(",").map(Number);
  const [full = 0, bare = 0, iq = 0, presence = 0] = parts;
  const isMix = parts.length <= 4 && parts.every((part) => part >= 0 && part < Infinity) &&
    full + bare + iq + presence > 0;
  return isMix ? { full, bare, iq, presence } : undefined;
}

/** Kind and address of one stanza to send. */
export interface Form {
  readonly kind: StanzaKind;
  readonly isBare: boolean;
}

/** Draws forms so that whatever part of the turns one looks at has nearly the shares asked for. */
export class FormDraw {
  readonly #bounds: readonly (readonly [number, Form])[];
  #at = 0;

  constructor({ full, bare, iq, presence }: Mix) {
    const total = full + bare + iq + presence;
    if (!(total > 0)) throw new RangeError("A mix needs at least one part above 0");
    this.#bounds = [
      [full / total, { kind: "message", isBare: false }],
      [(full + bare) / total, { kind: "message", isBare: true }],
      [(full + bare + iq) / total, { kind: "iq", isBare: false }],
      [1, { kind: "presence", isBare: false }],
    ];
  }

  next(): Form {
    // steps of the golden ratio fall evenly, with every n-th of them too
    this.#at = (this.#at + 0.618_033_988_75) % 1;
    return this.#bounds.find(([bound]) => this.#at < bound)![1]; // the last bound is 1
  }
}
