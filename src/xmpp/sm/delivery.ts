import type { Stanza } from "../stanza/stanza.ts";

/**
 * A stanza on its way to sessions here, lent out by the router. It stays unsettled while a session keeps
 * it. It is returned when none of the sessions that kept it is sure to have handed it over.
 */
export interface Delivery {
  readonly stanza: Stanza;
  /**
   * True for an owed error, by which a node answers a stanza of the client's. The client hears nothing
   * else about that stanza. A session therefore takes the error beyond its other bounds, up to
   * `maxOwedBytes`.
   */
  readonly isOwed: boolean;
  /** True when another recipient session ended without acknowledging it. @default false */
  readonly isRerouted?: boolean;
  /**
   * A session keeps the stanza until its client has acknowledged it. `acknowledged` or `abandoned`
   * answers each call.
   */
  retain(): void;
  /** The session's client has acknowledged it. */
  acknowledged(): void;
  /**
   * A session that kept it is over, and its client has not acknowledged it.
   * @param hasGone true when the session had gone to another node with it. Default: false
   * @returns true when no other session has it or had it: the caller must route it again
   */
  abandoned(hasGone?: boolean): boolean;
  /** A session without acknowledgements also got it. */
  written(): void;
  /**
   * Releases whoever waits for the stanza's fate, so that a session that keeps it costs others no more
   * memory. The stanza stays kept.
   * @returns true when anybody waited for it
   */
  release(): boolean;
  /** Copies the bytes out of their read buffer or slab, so that they can be held for long. */
  detach(): void;
  /** True for the same stanza as `other`, which is answered for and is to be kept. @default false */
  isCopyOf?(other: Delivery): boolean;
  /** A session keeps it in the place of a copy, and is done with that. */
  takePlaceOf?(copy: Delivery): void;
}

/**
 * Reason why a stanza comes back from its recipient's session: the session ended before its client
 * had acknowledged it (`unacknowledged`); so it did after it had moved, and the node that was sent
 * the stanza is gone (`passed-on`) or may still deliver it (`perhaps-delivered`); or the client's
 * streams ended each time it was sent (`unreadable`).
 */
export type SessionReturn = "unacknowledged" | "passed-on" | "perhaps-delivered" | "unreadable";

/** True for bytes outside any larger buffer: holding them for long pins nothing else. */
export function areDetached(bytes: Uint8Array): boolean {
  return bytes.byteLength === bytes.buffer.byteLength;
}

/**
 * A stanza from the session itself to its client. It is kept like the others, but nobody else can use
 * it.
 */
export class OwnDelivery implements Delivery {
  stanza: Stanza;

  constructor(stanza: Stanza) {
    this.stanza = stanza;
  }

  get isOwed(): boolean {
    return this.stanza.type === "error";
  }

  retain(): void {}
  acknowledged(): void {}
  written(): void {}

  release(): boolean {
    return false;
  }

  detach(): void {
    if (areDetached(this.stanza.bytes)) return;
    this.stanza = { ...this.stanza, bytes: this.stanza.bytes.slice() };
  }

  abandoned(): boolean {
    return true;
  }
}
