import { areDetached } from "../xmpp/mod.ts";
import type { Delivery, Fate, Stanza } from "../xmpp/mod.ts";
import { Duty } from "./duty.ts";

/**
 * Way in which a stanza entered the mesh.
 *
 * | entry | meaning |
 * | --- | --- |
 * | `ordinary` | its sender sends it again, elsewhere, if this process dies before it has taken it |
 * | `resent` | its client may have sent it before, on a stream whose node has died: the delivering node compares its text with stanzas that it has delivered |
 * | `sent-once` | its sender never sends it again, whichever node dies: no later stanza is compared with it |
 * | `owed` | the error by which a node answers a stanza, whose sender hears nothing else: it is taken even when there is no room for other stanzas |
 */
export type StanzaEntry = "ordinary" | "resent" | "sent-once" | "owed";

/**
 * Way in which a stanza came to this node.
 *
 * | arrival | meaning |
 * | --- | --- |
 * | `here` | it entered here, or this node decides on it as if it had |
 * | `link` | another datacenter passed it on: `cameFrom` names it |
 * | `handed-over` | another node of this datacenter placed it here: this node does not hand it over again |
 * | `taken-back` | a session here gave it back: it may be older than stanzas that others have delivered |
 */
export type Arrival = "here" | "link" | "handed-over" | "taken-back";

/** Fields of a stanza while Causeway holds it; docs/architecture.md, "Ownership". */
export interface EnvelopeFields {
  readonly stanza: Stanza;
  /** Incarnation of the process where the stanza entered the mesh; an integer in [1, 2^52). */
  readonly process: number;
  /** Running number given by that process; with `process` unique for the stanza's whole life. */
  readonly sequence: number;
  /** Local host of the datacenter where it entered. */
  readonly origin: string;
  /** Wall-clock microseconds when it was accepted there; for some presence, `Stanza.sinceUs`. */
  readonly sentAtUs: number;
  /** Datacenter hops it may still take. */
  ttl: number;
  /** Retries that bouncing has already spent on it. */
  bounces: number;
  /**
   * True once it was sent on a lane that ended before it was reported as received. From then on it
   * may arrive a second time, and the delivering node compares it with stanzas that it has seen.
   */
  mayBeRepeat: boolean;
  /** @default "ordinary" */
  readonly entry?: StanzaEntry;
  /**
   * True for a copy that a node hands to another of its datacenter, or sends to another datacenter,
   * besides the stanza that is answered for. It is delivered to sessions there, and otherwise
   * dropped. @default false
   */
  readonly isCopy?: boolean;
  /**
   * True once a session that was to get the stanza ended without acknowledging it. A message of any
   * kind for a person may then go to the account's other resources. @default false
   */
  isRerouted?: boolean;
  /**
   * True once it was sent to all datacenters where its recipient has sessions, as a stanza or as
   * copies of it: each delivers to its own. @default false
   */
  isSpread?: boolean;
  /**
   * True for a copy that no session gets as it is: those with message carbons (XEP-0280) are told of
   * it. @default false
   */
  isCarbon?: boolean;
  /**
   * True when the archive of its recipient has it, under the id that `process` and `sequence` make, or
   * will have it. @default false
   */
  isArchived?: boolean;
}

/**
 * A stanza on its way, with the duty to report its fate: the holder of an envelope either passes it
 * on or settles it. `settle` reports to where it came from (an incoming lane, a client with stream
 * management). An error that answers it takes the duty over with `adoptDuty`.
 */
export class Envelope extends Duty implements EnvelopeFields {
  stanza: Stanza;
  readonly process: number;
  readonly sequence: number;
  readonly origin: string;
  readonly sentAtUs: number;
  ttl: number;
  bounces: number;
  mayBeRepeat: boolean;
  readonly entry: StanzaEntry;
  isCopy: boolean;
  isRerouted: boolean;
  isSpread: boolean;
  isCarbon: boolean;
  isArchived: boolean;
  /** Local host of the datacenter that a copy made here is for. */
  copyFor: string | undefined;
  /**
   * Key of the sender on whose lanes it goes, when that is another than its own: a carbon that was
   * made here follows the messages of the session that it tells of.
   */
  boundAs: string | undefined;
  /** Local host of a datacenter that makes this carbon itself, out of the message. */
  broughtTo: string | undefined;
  /** True once this node's sessions have the carbon of a message for another session. */
  isTold = false;
  /** True once the order of its room has taken it, and is to note it when a session here has got it. */
  isHeldForOrder = false;
  /** Memory of repeats that has it as delivered here, on account of this very envelope. */
  rememberedBy: { forgetDelivered(envelope: Envelope): void } | undefined;
  /** Local host of the datacenter where the stanza entered that this error made here answers. */
  answersTo: string | undefined;
  /**
   * State of the stanza in archives; `Archiving` alone reads and writes it. In a WeakMap it would
   * outlive the stanza until the next major garbage collection: minor ones take all of its values for
   * reachable, and copy them.
   */
  archiving: object | undefined;
  #arrival: Arrival = "here";
  #cameFrom: string | undefined;
  /** Sessions that keep it until their client has acknowledged it. */
  #keepers = 0;
  /** Keepers that have gone to other nodes with it. */
  #gone = 0;
  #isTaken = false;

  constructor(fields: EnvelopeFields, fate?: Fate, number = 0) {
    super(fate, number);
    this.stanza = fields.stanza;
    this.process = fields.process;
    this.sequence = fields.sequence;
    this.origin = fields.origin;
    this.sentAtUs = fields.sentAtUs;
    this.ttl = fields.ttl;
    this.bounces = fields.bounces;
    this.mayBeRepeat = fields.mayBeRepeat;
    this.entry = fields.entry ?? "ordinary";
    this.isCopy = fields.isCopy ?? false;
    this.isRerouted = fields.isRerouted ?? false;
    this.isSpread = fields.isSpread ?? false;
    this.isCarbon = fields.isCarbon ?? false;
    this.isArchived = fields.isArchived ?? false;
  }

  /** Way in which it came to this node. */
  get arrival(): Arrival {
    return this.#arrival;
  }

  /** Local host of the datacenter that has passed it on to this one over a link. */
  get cameFrom(): string | undefined {
    return this.#cameFrom;
  }

  /**
   * Notes how it came to this node.
   * @param cameFrom local host of the datacenter at the other end of the link
   */
  arrived(arrival: "link", cameFrom: string): void;
  arrived(arrival: Exclude<Arrival, "link">): void;
  arrived(arrival: Arrival, cameFrom?: string): void {
    this.#arrival = arrival;
    this.#cameFrom = cameFrom;
  }

  /** True for an error by which a node answers a stanza. */
  get isOwed(): boolean {
    return this.entry === "owed";
  }

  /** True when it was accepted before `other`: by its number, or by the clocks of two processes. */
  isOlderThan(other: Envelope): boolean {
    return this.process === other.process
      ? this.sequence < other.sequence
      : this.sentAtUs < other.sentAtUs;
  }

  /** Copies the stanza out of its read buffer or slab, to be held for long. */
  detach(): void {
    const { kind, type, from, to, bytes } = this.stanza;
    if (areDetached(bytes)) return;
    this.stanza = { kind, type, from, to, bytes: bytes.slice() };
  }

  /**
   * True for a copy of `other`, and for the same stanza as it came before. `other` is answered for, and
   * its sender waits for the fate of that one. Messages of a service to several sessions have one id.
   */
  isCopyOf(other: Delivery): boolean {
    return other !== this && other instanceof Envelope && !other.isCopy &&
      other.process === this.process && other.sequence === this.sequence &&
      other.stanza.to.text === this.stanza.to.text;
  }

  /**
   * A session keeps it in the place of a copy. It is remembered in the place of that, too, unless another
   * session here has or had the copy.
   */
  takePlaceOf(copy: Delivery): void {
    if (!(copy instanceof Envelope)) return;
    copy.#keepers--;
    if (!copy.isHere && copy.rememberedBy !== undefined) {
      this.rememberedBy = copy.rememberedBy;
      copy.rememberedBy = undefined;
    }
    if (copy.#keepers === 0) copy.settle();
  }

  /** True while a session here keeps it until its client has acknowledged it. */
  get isKept(): boolean {
    return this.#keepers > 0;
  }

  /**
   * True once at least one client has it for sure, or one without stream management was sent it.
   */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** True while a session here keeps it that has not gone on with it, and once a client has it. */
  get isHere(): boolean {
    return this.#isTaken || this.#keepers > this.#gone;
  }

  /** Notes that a session that keeps it has gone to another node with it. */
  goneOn(): void {
    this.#gone++;
  }

  /** Notes that one more session keeps it; it is settled when all of them are done with it. */
  retain(): void {
    this.#keepers++;
    this.trace?.note("kept");
  }

  /** Notes that a client that kept it has acknowledged it. */
  acknowledged(): void {
    this.#isTaken = true;
    this.trace?.note("acknowledged");
    if (--this.#keepers === 0) this.settle();
  }

  /** Notes that a client without stream management was sent it. */
  written(): void {
    this.#isTaken = true;
  }

  /**
   * Notes that a session that kept it ended without an acknowledgement. Nobody here has it any more, if
   * the others have gone on with it: another node may send it here anew.
   * @param hasGone true when the session had gone to another node with it. Default: false
   * @returns true when no other session has it: the caller holds the envelope again, with its duty
   */
  abandoned(hasGone = false): boolean {
    this.#keepers--;
    if (hasGone) this.#gone--;
    if (!this.isHere) this.rememberedBy?.forgetDelivered(this);
    if (this.#keepers > 0) return false;
    if (!this.#isTaken) return true;
    this.settle();
    return false;
  }

  /**
   * Settles it while sessions still keep it, as it must not be waited for any longer.
   * @returns true when a session still kept it
   */
  release(): boolean {
    const isWaitedFor = this.fate !== undefined;
    this.settle();
    return isWaitedFor;
  }
}
