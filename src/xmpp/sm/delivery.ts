import type { Stanza } from "../stanza.ts";

/**
 * A stanza on its way to sessions here, as whoever routes it lends it out: it stays unsettled while a
 * session keeps it, and comes back when none of those that kept it could hand it over for sure.
 */
export interface Delivery {
  readonly stanza: Stanza;
  /**
   * True for an error by which a node answers what the client has sent: nothing else tells it what became
   * of that, so a session takes it beyond its bounds for the rest, as far as `maxOwedBytes`.
   */
  readonly isOwed: boolean;
  /**
   * True once another session that was to get it ended without acknowledging it. @default false
   */
  readonly isRerouted?: boolean;
  /** A session keeps it until its client has acknowledged it; each call is answered by one of the next two. */
  retain(): void;
  /** A client has acknowledged it. */
  acknowledged(): void;
  /**
   * A session that kept it is over, and its client has not acknowledged it.
   * @returns true when nobody else has it or had it: the caller has to see to it again
   */
  abandoned(): boolean;
  /** Somebody who acknowledges nothing got it as well. */
  written(): void;
  /**
   * Tells whoever waits for the end of it that this is as far as it gets: a session that keeps it is to
   * cost others no more memory. It stays kept.
   * @returns true when anybody waited for it
   */
  release(): boolean;
  /** Copies the bytes out of the read buffer or slab they lie in, to be held for long. */
  detach(): void;
}

/** True for bytes that lie in no larger buffer: to hold them for long pins nothing else. */
export function areDetached(bytes: Uint8Array): boolean {
  return bytes.byteLength === bytes.buffer.byteLength;
}

/** What the session itself has to say to its client: kept like the rest, and of no use to anybody else. */
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
