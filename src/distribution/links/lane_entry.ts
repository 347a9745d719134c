import type { Stanza } from "../../xmpp/mod.ts";
import { BareJid } from "../../xmpp/mod.ts";
import type { EnvelopeFields } from "../mod.ts";
import { Envelope } from "../mod.ts";
import { decodeStanza } from "../wire/mod.ts";
import type { FrameSlab } from "./frame_slabs.ts";
import type { SenderBinding } from "./sender_bindings.ts";

const NOBODY = new BareJid("", "invalid");
const NO_STANZA: Stanza = {
  kind: "message",
  type: "normal",
  from: NOBODY,
  to: NOBODY,
  bytes: new Uint8Array(0),
};
/** The frame holds the real ones; an entry must not keep the stanza's own bytes alive. */
const NO_FIELDS: EnvelopeFields = {
  stanza: NO_STANZA,
  process: 1,
  sequence: 0,
  origin: "",
  sentAtUs: 0,
  ttl: 0,
  bounces: 0,
  mayBeRepeat: false,
};

/**
 * What a lane keeps of a stanza besides its frame: the duty to settle it, and whose it is. It is an
 * `Envelope` only to carry the duty without a second object.
 */
export class LaneEntry extends Envelope {
  slab: FrameSlab;
  start: number;
  end: number;
  readonly binding: SenderBinding;

  constructor(slab: FrameSlab, start: number, end: number, binding: SenderBinding) {
    super(NO_FIELDS);
    this.slab = slab;
    this.start = start;
    this.end = end;
    this.binding = binding;
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
