/** Reasons for which a stanza may have another fate than one delivery or one error. */
export const MAY_BE_UNKNOWN = 1;
export const MAY_BE_DOUBLE = 2;

const FIRST_CAPACITY = 1024;
const MAX_COUNT = 255;

/**
 * All that one client sends to another, numbered from 0. Columns rather than objects: a run of half an
 * hour sends millions.
 */
export class Flow {
  readonly number: number;
  readonly sender: string;
  readonly recipient: string;
  #sent = 0;
  #firstOpen = 0;
  #highestArrived = -1;
  readonly #movedAtMs: number[] = [];
  #sentAtMs = new Float64Array(FIRST_CAPACITY);
  #arrivedAtMs = new Float64Array(FIRST_CAPACITY);
  #answeredAtMs = new Float64Array(FIRST_CAPACITY);
  #arrivals = new Uint8Array(FIRST_CAPACITY);
  #answers = new Uint8Array(FIRST_CAPACITY);
  #marks = new Uint8Array(FIRST_CAPACITY);
  /** First arrivals behind a later stanza. */
  readonly #late: number[] = [];

  constructor(number: number, sender: string, recipient: string) {
    this.number = number;
    this.sender = sender;
    this.recipient = recipient;
  }

  /** How many stanzas have been sent. */
  get sent(): number {
    return this.#sent;
  }

  /** Stanzas whose first arrival came after that of a later one. */
  get late(): readonly number[] {
    return this.#late;
  }

  /** When either of the two logged in at another datacenter, each time. */
  get movedAtMs(): readonly number[] {
    return this.#movedAtMs;
  }

  /** Notes one more stanza and gives its number. */
  send(nowMs: number): number {
    if (this.#sent === this.#sentAtMs.length) this.#grow();
    this.#sentAtMs[this.#sent] = nowMs;
    return this.#sent++;
  }

  /** Notes an arrival at the recipient; the caller has checked that `seq` was sent. */
  arrive(seq: number, nowMs: number): void {
    const before = this.#arrivals[seq]!;
    this.#arrivals[seq] = Math.min(MAX_COUNT, before + 1);
    if (before > 0) return;
    this.#arrivedAtMs[seq] = nowMs;
    if (seq < this.#highestArrived) this.#late.push(seq);
    else this.#highestArrived = seq;
  }

  /** Notes an error that came back to the sender. */
  answer(seq: number, nowMs: number): void {
    this.#answers[seq] = Math.min(MAX_COUNT, this.#answers[seq]! + 1);
    this.#answeredAtMs[seq] = nowMs;
  }

  move(nowMs: number): void {
    this.#movedAtMs.push(nowMs);
  }

  mark(seq: number, mark: number): void {
    this.#marks[seq]! |= mark;
  }

  has(seq: number, mark: number): boolean {
    return (this.#marks[seq]! & mark) !== 0;
  }

  isOpen(seq: number): boolean {
    return this.#arrivals[seq] === 0 && this.#answers[seq] === 0;
  }

  arrivals(seq: number): number {
    return this.#arrivals[seq]!;
  }

  /** How many have arrived at least once. */
  arrivalCount(): number {
    let count = 0;
    for (let seq = 0; seq < this.#sent; seq++) if (this.#arrivals[seq]! > 0) count++;
    return count;
  }

  answers(seq: number): number {
    return this.#answers[seq]!;
  }

  sentAtMs(seq: number): number {
    return this.#sentAtMs[seq]!;
  }

  /** Of the first arrival; valid where there was one. */
  arrivedAtMs(seq: number): number {
    return this.#arrivedAtMs[seq]!;
  }

  /** Of the last error; valid where there was one. */
  answeredAtMs(seq: number): number {
    return this.#answeredAtMs[seq]!;
  }

  /** The first stanza of unknown fate; `sent` when there is none. */
  firstOpen(): number {
    while (this.#firstOpen < this.#sent && !this.isOpen(this.#firstOpen)) this.#firstOpen++;
    return this.#firstOpen;
  }

  #grow(): void {
    const capacity = 2 * this.#sentAtMs.length;
    this.#sentAtMs = extended(this.#sentAtMs, new Float64Array(capacity));
    this.#arrivedAtMs = extended(this.#arrivedAtMs, new Float64Array(capacity));
    this.#answeredAtMs = extended(this.#answeredAtMs, new Float64Array(capacity));
    this.#arrivals = extended(this.#arrivals, new Uint8Array(capacity));
    this.#answers = extended(this.#answers, new Uint8Array(capacity));
    this.#marks = extended(this.#marks, new Uint8Array(capacity));
  }
}

function extended<T extends Float64Array | Uint8Array>(old: T, longer: T): T {
  longer.set(old);
  return longer;
}
