import { areDetached } from "../xmpp/mod.ts";
import type { Stanza } from "../xmpp/mod.ts";
import { Duty } from "./duty.ts";
import type { Settler } from "./duty.ts";

/** What a stanza carries besides itself while Causeway holds it; docs/architecture.md, "Ownership". */
export interface EnvelopeFields {
  readonly stanza: Stanza;
  /** Incarnation of the process where the stanza entered the mesh; an integer in [1, 2^52). */
  readonly process: number;
  /** That process's running number for it; with `process` unique for the stanza's whole life. */
  readonly sequence: number;
  /** Local host of the datacenter where it entered. */
  readonly origin: string;
  /** Wall-clock microseconds when it was accepted there. */
  readonly sentAtUs: number;
  /** Datacenter hops it may still take. */
  ttl: number;
  /** Retries that bouncing has already spent on it. */
  bounces: number;
  /**
   * True once it was sent on a lane that ended without telling whether it was received: from then
   * on it may arrive a second time, and the node that delivers compares it with what it has seen.
   */
  mayBeRepeat: boolean;
  /**
   * True for what a client may have sent before, on a stream whose node has died: the node that delivers
   * compares it by its text with what it has delivered. @default false
   */
  readonly isResent?: boolean;
  /**
   * True for what its sender never sends again, whatever dies: no later stanza has to be compared with
   * it. @default false
   */
  readonly isSentOnce?: boolean;
  /**
   * True for what a node hands to another of its datacenter beside the one that answers for the
   * stanza: it is delivered to whom it finds there, and otherwise vanishes. @default false
   */
  readonly isCopy?: boolean;
  /**
   * True for the error by which a node answers a stanza: nothing else tells its sender what became of
   * that, so it is taken where there is no room for anything else. @default false
   */
  readonly isOwed?: boolean;
  /**
   * True once a session that was to get the stanza ended without acknowledging it: a message of any kind
   * for a person may then go to the account's other resources. @default false
   */
  isRerouted?: boolean;
}

/**
 * A stanza on its way, with the promise of an answer: whoever holds an envelope either passes it on
 * or settles it. `settle` reports its fate to where it came from (an incoming lane, a client that uses
 * stream management); an error that answers it takes the duty over with `adoptDuty`.
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
  readonly isCopy: boolean;
  readonly isResent: boolean;
  readonly isSentOnce: boolean;
  readonly isOwed: boolean;
  isRerouted: boolean;
  /** True once a session here had it and gave it back: it may be older than what others have delivered. */
  isTakenBack = false;
  /** True once another node of this datacenter has handed it over: this one does not do so again. */
  isHandedOver = false;
  /** Local host of the datacenter that has passed it on to this one. */
  cameFrom: string | undefined;
  /** Sessions that keep it until their client has acknowledged it. */
  #keepers = 0;
  /** True once one client at least has it for sure, or one that acknowledges nothing was sent it. */
  #isTaken = false;

  constructor(fields: EnvelopeFields, settler?: Settler, number = 0) {
    super(settler, number);
    this.stanza = fields.stanza;
    this.process = fields.process;
    this.sequence = fields.sequence;
    this.origin = fields.origin;
    this.sentAtUs = fields.sentAtUs;
    this.ttl = fields.ttl;
    this.bounces = fields.bounces;
    this.mayBeRepeat = fields.mayBeRepeat;
    this.isCopy = fields.isCopy ?? false;
    this.isResent = fields.isResent ?? false;
    this.isSentOnce = fields.isSentOnce ?? false;
    this.isOwed = fields.isOwed ?? false;
    this.isRerouted = fields.isRerouted ?? false;
  }

  /** True when it was accepted before `other`: by its number, or by the clocks of two processes. */
  isOlderThan(other: Envelope): boolean {
    return this.process === other.process
      ? this.sequence < other.sequence
      : this.sentAtUs < other.sentAtUs;
  }

  /** Copies the stanza out of the read buffer or slab it lies in, to be held for long. */
  detach(): void {
    const { kind, type, from, to, bytes } = this.stanza;
    if (areDetached(bytes)) return;
    this.stanza = { kind, type, from, to, bytes: bytes.slice() };
  }

  /** True while a session here keeps it until its client has acknowledged it. */
  get isKept(): boolean {
    return this.#keepers > 0;
  }

  /** One more session keeps it; it is settled when all of them are done with it. */
  retain(): void {
    this.#keepers++;
  }

  /** A client that kept it has acknowledged it. */
  acknowledged(): void {
    this.#isTaken = true;
    if (--this.#keepers === 0) this.settle();
  }

  /** Somebody who acknowledges nothing was sent it. */
  written(): void {
    this.#isTaken = true;
  }

  /**
   * A session that kept it ended without an acknowledgement.
   * @returns true when nobody else has it: whoever asks holds the envelope again, duty and all
   */
  abandoned(): boolean {
    if (--this.#keepers > 0) return false;
    if (!this.#isTaken) return true;
    this.settle();
    return false;
  }

  /**
   * Settles it though a session keeps it still: those that wait for it are to wait no longer.
   * @returns true when anybody did
   */
  release(): boolean {
    const isWaitedFor = this.settler !== undefined;
    this.settle();
    return isWaitedFor;
  }
}
