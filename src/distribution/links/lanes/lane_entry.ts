import type { Jid } from "../../../xmpp/mod.ts";
import { Duty, Envelope } from "../../mod.ts";
import { decodeStanza } from "../../wire/mod.ts";
import type { FrameSlab } from "./frame_slabs.ts";
import type { SenderBinding } from "./sender_bindings.ts";

/**
 * A lane's record of a stanza besides its frame: the duty to settle it, and its sender's binding.
 * It does not keep the stanza's own bytes alive.
 */
export class LaneEntry extends Duty {
  slab: FrameSlab;
  start: number;
  end: number;
  readonly binding: SenderBinding;
  /** Same as its envelope's. */
  isTakenBack = false;
  /** Same as its envelope's. */
  isOwed = false;

  constructor(slab: FrameSlab, start: number, end: number, binding: SenderBinding) {
    super();
    this.slab = slab;
    this.start = start;
    this.end = end;
    this.binding = binding;
  }

  /** The recipient. */
  get to(): Jid {
    return decodeStanza(this.slab.bytes, this.start, this.end).stanza.to;
  }

  /** Returns the stanza as the lane was given it, on its own bytes, with the duty to settle it. */
  toEnvelope(wasSent: boolean): Envelope {
    const frame = this.slab.bytes.slice(this.start, this.end);
    const envelope = new Envelope(decodeStanza(frame, 0, frame.length));
    if (wasSent) envelope.mayBeRepeat = true;
    envelope.adoptDuty(this);
    return envelope;
  }
}
