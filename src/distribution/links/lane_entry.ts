import type { Jid } from "../../xmpp/mod.ts";
import { Duty, Envelope } from "../mod.ts";
import { decodeStanza } from "../wire/mod.ts";
import type { FrameSlab } from "./frame_slabs.ts";
import type { SenderBinding } from "./sender_bindings.ts";

/**
 * What a lane keeps of a stanza besides its frame: the duty to settle it, and whose it is. The
 * stanza's own bytes it does not keep alive.
 */
export class LaneEntry extends Duty {
  slab: FrameSlab;
  start: number;
  end: number;
  readonly binding: SenderBinding;
  /** As of its envelope. */
  isTakenBack = false;
  /** As of its envelope. */
  isOwed = false;

  constructor(slab: FrameSlab, start: number, end: number, binding: SenderBinding) {
    super();
    this.slab = slab;
    this.start = start;
    this.end = end;
    this.binding = binding;
  }

  /** Whom it is for. */
  get to(): Jid {
    return decodeStanza(this.slab.bytes, this.start, this.end).stanza.to;
  }

  /** The stanza as it was given to the lane, on its own bytes, with the duty to settle it. */
  toEnvelope(wasSent: boolean): Envelope {
    const frame = this.slab.bytes.slice(this.start, this.end);
    const envelope = new Envelope(decodeStanza(frame, 0, frame.length));
    if (wasSent) envelope.mayBeRepeat = true;
    envelope.adoptDuty(this);
    return envelope;
  }
}
