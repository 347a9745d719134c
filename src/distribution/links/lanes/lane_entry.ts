import type { ShareTab } from "../../../base/mod.ts";
import type { Jid } from "../../../xmpp/mod.ts";
import { Duty, Envelope } from "../../mod.ts";
import { decodeStanza, encodeStanzaFrame, maxStanzaFrameBytes } from "../../wire/mod.ts";
import type { FrameSlab } from "./frame_slabs.ts";
import type { RetiredLanes } from "./retired_lanes.ts";

/** The two numbers that tell a stanza from all others, for its whole life. */
export type StanzaId = Pick<Envelope, "process" | "sequence">;

/** A lane as the senders bound to it see it. */
export interface BoundLane {
  readonly id: number;
  /** The last number given to a stanza. */
  readonly last: number;
  /** Lanes whose stanzas have moved to it. */
  readonly retired: Pick<RetiredLanes, "forget" | "isEmpty">;
  /** Senders bound to it. */
  senders: number;
  /** True while its link is up. */
  readonly isLive: boolean;
  /** False when its endpoint is no longer listed. */
  readonly isEnabled: boolean;
  /** True from the high-water mark until the lane has fallen below the low one. */
  readonly isOver: boolean;
  /** Takes `envelope` and its duty over; false when there is no room. */
  append(envelope: Envelope, binding: SenderBinding): boolean;
  /**
   * Takes a stanza of another lane, in order and whatever the bound.
   * @param wasSent true when that lane may have sent it
   */
  adopt(entry: LaneEntry, wasSent: boolean): void;
  /** Makes the stanza that was appended last bring its carbon; false when it cannot. */
  bringCarbon(id: StanzaId): boolean;
  /** Notes that the peer must learn that `lane` ends, before it gets any stanza that moved here. */
  noteRetired(lane: number): void;
  /** Yields the bindings of held stanzas; a sender comes once for each stanza. */
  holders(): Iterable<SenderBinding>;
}

/** One sender's lane to one datacenter. */
export interface SenderBinding {
  readonly sender: string;
  lane: BoundLane;
  /** Stanzas of the sender that the lane holds. */
  held: number;
  /** Bytes of those stanzas, for the share of the sender's account or domain. */
  readonly tab: ShareTab;
  /** Tick of its last use. */
  usedTick: number;
  /** True while the sender is slowed down. */
  isPressured: boolean;
}

/**
 * A lane's record of a stanza besides its frame: the duty to settle it, and its sender's binding.
 * It does not keep the stanza's own bytes alive.
 */
export class LaneEntry extends Duty {
  slab: FrameSlab;
  start: number;
  end: number;
  readonly binding: SenderBinding;
  /** True when its envelope's `arrival` is `taken-back`. */
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

  /** Returns an entry with a frame on bytes of its own, for a lane to adopt. It has no number yet. */
  static of(envelope: Envelope, binding: SenderBinding): LaneEntry {
    const bytes = new Uint8Array(maxStanzaFrameBytes(envelope));
    const end = encodeStanzaFrame(bytes, 0, envelope, 1);
    const entry = new LaneEntry({ bytes, used: end, liveFrames: 1 }, 0, end, binding);
    entry.adoptDuty(envelope);
    return entry;
  }

  /** Monotonic milliseconds until which the peer may have its sender slowed, once it has begun to. */
  slowUntilMs: number | undefined;

  /**
   * True when its sender may be slowed for it: it is a message, and no answer of this node's, which its
   * sender has not caused.
   */
  get maySlow(): boolean {
    if (this.isOwed) return false;
    return decodeStanza(this.slab.bytes, this.start, this.end).stanza.kind === "message";
  }

  /** The recipient. */
  get to(): Jid {
    return decodeStanza(this.slab.bytes, this.start, this.end).stanza.to;
  }

  /** Returns the stanza on its own bytes. The duty to settle it stays here. */
  toCopy(): Envelope {
    const frame = this.slab.bytes.slice(this.start, this.end);
    return new Envelope(decodeStanza(frame, 0, frame.length));
  }

  /** Returns the stanza as the lane was given it, on its own bytes, with the duty to settle it. */
  toEnvelope(wasSent: boolean): Envelope {
    const envelope = this.toCopy();
    if (wasSent) envelope.mayBeRepeat = true;
    envelope.adoptDuty(this);
    envelope.trace = this.trace;
    return envelope;
  }
}
