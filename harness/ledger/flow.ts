import type { Span } from "./span.ts";

/** Reasons for which a stanza may have another fate than one delivery or one error. */
export const MAY_BE_UNKNOWN = 1;
/** It may come once more. */
export const MAY_BE_DOUBLE = 2;
/** Its client has sent it again, and may not know better. */
export const SENT_AGAIN = 4;
/**
 * It may have passed a node that was killed before it could report the delivery to the sending
 * node.
 */
export const MAY_BE_UNTOLD = 8;
/** A further device of its recipient has got it, so it is not lost. */
export const CAME_TO_DEVICE = 16;
/** Its client has written it again, on a new stream. */
export const WRITTEN_AGAIN = 32;
/** The archive of its recipient has it, so it is not lost. */
export const IN_ARCHIVE = 64;

/** Kinds of stanzas that a flow mixes. */
export const STANZA_KINDS = ["message", "iq", "presence"] as const;
export type StanzaKind = typeof STANZA_KINDS[number];

const FIRST_CAPACITY = 1024;
const MAX_COUNT = 255;

/**
 * All that one client sends to one address of another, whatever its kind: for these order is promised.
 * Numbered from 0. Columns rather than objects: a run of half an
 * hour sends millions.
 */
export class Flow {
  readonly number: number;
  readonly sender: string;
  readonly recipient: string;
  /** The address that the stanzas bear: the recipient's full JID, or its bare one. */
  readonly to: string;
  #sent = 0;
  #firstOpen = 0;
  #highestArrived = -1;
  #arrivedFirst = 0;
  #recipientAtOtherNodeMs = -Infinity;
  #recipientAnewAtOtherNodeMs = -Infinity;
  #firstWithdrawnAtMs = Infinity;
  #lastWithdrawnAtMs = -Infinity;
  readonly #senderMoves: Span[] = [];
  readonly #recipientMoves: Span[] = [];
  readonly #recipientChanges: Span[] = [];
  #sentAtMs = new Float64Array(FIRST_CAPACITY);
  #arrivedAtMs = new Float64Array(FIRST_CAPACITY);
  #answeredAtMs = new Float64Array(FIRST_CAPACITY);
  #arrivals = new Uint8Array(FIRST_CAPACITY);
  #answers = new Uint8Array(FIRST_CAPACITY);
  #results = new Uint8Array(FIRST_CAPACITY);
  #kinds = new Uint8Array(FIRST_CAPACITY);
  #marks = new Uint8Array(FIRST_CAPACITY);
  /** The how manieth first arrival each one was. */
  #order = new Uint32Array(FIRST_CAPACITY);
  /** Time of the last arrival of each stanza that arrived more than once. */
  readonly #cameAgainAtMs = new Map<number, number>();
  #allowedDoubles = 0;
  /** Times at which a connection of either client broke. */
  readonly #brokeAtMs: number[] = [];
  /** Times in which the recipient's node may have gone on writing to a broken connection. */
  readonly #unnoticed: Span[] = [];
  readonly #doubles: number[] = [];
  readonly #skippedAtMs: number[] = [];
  /** First arrivals behind a later stanza. */
  readonly #late: number[] = [];

  constructor(number: number, sender: string, recipient: string, to: string) {
    this.number = number;
    this.sender = sender;
    this.recipient = recipient;
    this.to = to;
  }

  /** Number of stanzas sent. */
  get sent(): number {
    return this.#sent;
  }

  /** Stanzas whose first arrival came after that of a later one. */
  get late(): readonly number[] {
    return this.#late;
  }

  /** Arrivals beyond the first that may not be; a stanza is in it once for each. */
  get doubles(): readonly number[] {
    return this.#doubles;
  }

  /** Arrivals beyond the first that may be. */
  get allowedDoubles(): number {
    return this.#allowedDoubles;
  }

  /** The highest number that has arrived; -1 before any has. */
  get highestArrived(): number {
    return this.#highestArrived;
  }

  /** The sender's logins at another node than before, oldest first. */
  get senderMoves(): readonly Span[] {
    return this.#senderMoves;
  }

  /** The recipient's logins at another datacenter than before. */
  get recipientMoves(): readonly Span[] {
    return this.#recipientMoves;
  }

  /** The recipient's logins at another node than before, where the old session did not move along. */
  get recipientChanges(): readonly Span[] {
    return this.#recipientChanges;
  }

  /** Times of stanzas that were due and never sent. */
  get skippedAtMs(): readonly number[] {
    return this.#skippedAtMs;
  }

  /** Notes that one was due and is not sent. */
  skip(nowMs: number): void {
    this.#skippedAtMs.push(nowMs);
  }

  /** Notes one more stanza and gives its number. */
  send(nowMs: number, kind: StanzaKind): number {
    if (this.#sent === this.#sentAtMs.length) this.#grow();
    this.#kinds[this.#sent] = STANZA_KINDS.indexOf(kind);
    this.#sentAtMs[this.#sent] = nowMs;
    return this.#sent++;
  }

  /** Notes that the recipient was told that the sender is no longer available. */
  withdrawn(nowMs: number): void {
    this.#firstWithdrawnAtMs = Math.min(this.#firstWithdrawnAtMs, nowMs);
    this.#lastWithdrawnAtMs = nowMs;
  }

  /** Time at which that was so first; infinite before. */
  get withdrawnAtMs(): number {
    return this.#firstWithdrawnAtMs;
  }

  /** Notes an arrival at the recipient; the caller has checked that `seq` was sent. */
  arrive(seq: number, nowMs: number): void {
    const before = this.#arrivals[seq]!;
    this.#arrivals[seq] = Math.min(MAX_COUNT, before + 1);
    if (before > 0) return this.#arriveAgain(seq, nowMs);
    this.#arrivedAtMs[seq] = nowMs;
    this.#order[seq] = this.#arrivedFirst++;
    if (seq < this.#highestArrived) this.#late.push(seq);
    else this.#highestArrived = seq;
  }

  /** Notes an error that came back to the sender. */
  answer(seq: number, nowMs: number): void {
    this.#answers[seq] = Math.min(MAX_COUNT, this.#answers[seq]! + 1);
    this.#answeredAtMs[seq] = nowMs;
  }

  /** Notes a result that came back to the sender of a request. */
  result(seq: number): void {
    this.#results[seq] = Math.min(MAX_COUNT, this.#results[seq]! + 1);
  }

  results(seq: number): number {
    return this.#results[seq]!;
  }

  /** The sender has logged in at another node than before, in the time of `login`. */
  senderMoved(login: Span): void {
    this.#senderMoves.push(login);
  }

  /** The recipient has logged in at another datacenter than before. */
  recipientMoved(login: Span): void {
    this.#recipientMoves.push(login);
  }

  /** A connection of either of the two has broken. */
  broke(atMs: number): void {
    this.#brokeAtMs.push(atMs);
  }

  /**
   * Returns the time of the first broken connection of either client after that; undefined when
   * there was none.
   */
  nextBreakMs(afterMs: number): number | undefined {
    return this.#brokeAtMs.find((atMs) => atMs >= afterMs);
  }

  /** The recipient's connection broke at the beginning of `span`, and its node knew it by the end. */
  unnoticed(span: Span): void {
    this.#unnoticed.push(span);
  }

  /** The recipient has logged in at another node than before; a resumed session takes along what it had. */
  recipientChangedNode(login: Span, isResumed: boolean): void {
    this.#recipientAtOtherNodeMs = login.fromMs;
    if (isResumed) return;
    this.#recipientAnewAtOtherNodeMs = login.fromMs;
    this.#recipientChanges.push(login);
  }

  mark(seq: number, mark: number): void {
    this.#marks[seq]! |= mark;
  }

  has(seq: number, mark: number): boolean {
    return (this.#marks[seq]! & mark) !== 0;
  }

  /** True when it may be lost: marked so, or written to a connection that had just broken. */
  mayBeUnknown(seq: number): boolean {
    return this.has(seq, MAY_BE_UNKNOWN) ||
      this.#unnoticed.some((span) => this.#isFirstOf(seq, span));
  }

  kindOf(seq: number): StanzaKind {
    return STANZA_KINDS[this.#kinds[seq]!]!; // `send` is the only one to write it
  }

  /** True while its fate is unknown; presence may vanish, and is owed none. */
  isOpen(seq: number): boolean {
    return this.#arrivals[seq] === 0 && this.#answers[seq] === 0 &&
      this.kindOf(seq) !== "presence" && !this.has(seq, CAME_TO_DEVICE | IN_ARCHIVE);
  }

  arrivals(seq: number): number {
    return this.#arrivals[seq]!;
  }

  /** Number of stanzas that arrived at least once. */
  get arrivalCount(): number {
    return this.#arrivedFirst;
  }

  /** Number of first arrivals before that of `seq`. Valid only if it arrived. */
  arrivalsBefore(seq: number): number {
    return this.#order[seq]!;
  }

  /** Valid where there was an arrival. */
  lastArrivedAtMs(seq: number): number {
    return this.#cameAgainAtMs.get(seq) ?? this.#arrivedAtMs[seq]!;
  }

  answers(seq: number): number {
    return this.#answers[seq]!;
  }

  sentAtMs(seq: number): number {
    return this.#sentAtMs[seq]!;
  }

  /** Time of the first arrival. Valid only if there was one. */
  arrivedAtMs(seq: number): number {
    return this.#arrivedAtMs[seq]!;
  }

  /** Time of the last error. Valid only if there was one. */
  answeredAtMs(seq: number): number {
    return this.#answeredAtMs[seq]!;
  }

  /** The first stanza of unknown fate; `sent` when there is none. */
  firstOpen(): number {
    while (this.#firstOpen < this.#sent && !this.isOpen(this.#firstOpen)) this.#firstOpen++;
    return this.#firstOpen;
  }

  /** Sent in that time, and nothing that was sent in it before has had a fate: they are lost in a row. */
  #isFirstOf(seq: number, { fromMs, toMs }: Span): boolean {
    if (this.#sentAtMs[seq]! < fromMs || this.#sentAtMs[seq]! > toMs) return false;
    for (let before = seq - 1; before >= 0 && this.#sentAtMs[before]! >= fromMs; before--) {
      if (this.#arrivals[before]! > 0 || this.#answers[before]! > 0) return false;
    }
    return true;
  }

  #arriveAgain(seq: number, nowMs: number): void {
    const lastAtMs = this.lastArrivedAtMs(seq);
    this.#cameAgainAtMs.set(seq, nowMs);
    // each reason is good for one more
    let reason = 0;
    if (this.has(seq, MAY_BE_DOUBLE)) reason = MAY_BE_DOUBLE;
    // The place of the first arrival drops a repeat. The new place does not know the text, and
    // knows the number only if the session moved along.
    else if (this.#recipientAtOtherNodeMs >= lastAtMs && this.has(seq, SENT_AGAIN)) {
      reason = SENT_AGAIN;
    } else if (this.#recipientAnewAtOtherNodeMs >= lastAtMs && this.has(seq, MAY_BE_UNTOLD)) {
      reason = MAY_BE_UNTOLD;
    }
    // Presence comes back after each time that it was withdrawn with the sender's datacenter.
    const isBack = this.kindOf(seq) === "presence" && this.#lastWithdrawnAtMs >= lastAtMs;
    if (isBack) this.#allowedDoubles++;
    else if (reason === 0) this.#doubles.push(seq);
    else {
      this.#marks[seq]! &= ~reason;
      this.#allowedDoubles++;
    }
  }

  #grow(): void {
    const capacity = 2 * this.#sentAtMs.length;
    this.#sentAtMs = extended(this.#sentAtMs, new Float64Array(capacity));
    this.#arrivedAtMs = extended(this.#arrivedAtMs, new Float64Array(capacity));
    this.#answeredAtMs = extended(this.#answeredAtMs, new Float64Array(capacity));
    this.#arrivals = extended(this.#arrivals, new Uint8Array(capacity));
    this.#answers = extended(this.#answers, new Uint8Array(capacity));
    this.#results = extended(this.#results, new Uint8Array(capacity));
    this.#kinds = extended(this.#kinds, new Uint8Array(capacity));
    this.#marks = extended(this.#marks, new Uint8Array(capacity));
    this.#order = extended(this.#order, new Uint32Array(capacity));
  }
}

function extended<T extends Float64Array | Uint32Array | Uint8Array>(old: T, longer: T): T {
  longer.set(old);
  return longer;
}
