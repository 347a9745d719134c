import type { Envelope } from "../envelope.ts";

/** Numbers that one sender's process has used towards one recipient, newest last. */
interface Seen {
  readonly process: number;
  recent: number[];
  next: number;
  highest: number;
  /** The lowest and the highest number that was delivered and is forgotten. Others between them may be. */
  forgottenFrom: number;
  forgottenTo: number;
}

/** Numbers of one process's stanzas that were delivered from one sender to one address. */
export interface DeliveredNumbers {
  readonly sender: string;
  readonly process: number;
  readonly highest: number;
  /** Ascending. */
  readonly recent: readonly number[];
}

/** Bounds of the filter. */
export interface RepeatFilterOptions {
  /** Sender–recipient pairs; the oldest half is forgotten first. @default 65536 */
  readonly maxPairs?: number;
  /**
   * Stanza numbers per pair and origin process: as many as two users may exchange while a node
   * between them is held up. A record that moves with a session has the newest 255. @default 1024
   */
  readonly window?: number;
  /** Stanza numbers of all pairs, 8 bytes each; the oldest half is forgotten first. @default 2097152 */
  readonly maxNumbers?: number;
}

/** Default of `maxPairs`. */
export const DEFAULT_MAX_PAIRS = 65_536;

/** Processes that carry one sender's stanzas at a time: the current one and its predecessors. */
const MAX_PROCESSES_PER_PAIR = 4;

/** Numbers of a record that moves with a session. One that had more has lost the older ones. */
const MAX_MOVED_NUMBERS = 255;

/**
 * Placeholder of a forgotten number. It is below every sequence, so that none counts as older than
 * all.
 */
const NO_SEQUENCE = 0;

/**
 * Remembers delivered stanzas by recipient address, sender and origin process. So a stanza that
 * travelled on two lanes (`mayBeRepeat`) is delivered once (docs/promises.md, "Delivery across a
 * link").
 *
 * A stanza whose number is in the window was delivered before. A marked stanza that is older than
 * the whole window is taken for a repeat, too, if it is among those that have left the window: lanes
 * keep order, so it came before. One older than those, too, has not been delivered here: it was sent to
 * a datacenter that its recipient has left, and later ones have overtaken it. An unmarked stanza of
 * any age is delivered, because it may have taken a longer way.
 */
export class RepeatFilter {
  readonly #maxPairs: number;
  readonly #window: number;
  readonly #maxNumbers: number;
  #young = new Map<string, Map<string, Seen[]>>();
  #old = new Map<string, Map<string, Seen[]>>();
  #youngPairs = 0;
  #youngNumbers = 0;
  /** The record that was used last, and its addresses: a stanza is looked for first, then noted. */
  #last: Seen | undefined;
  #lastTo = "";
  #lastFrom = "";

  constructor(options: RepeatFilterOptions = {}) {
    this.#maxPairs = options.maxPairs ?? DEFAULT_MAX_PAIRS;
    this.#window = options.window ?? 1_024;
    this.#maxNumbers = options.maxNumbers ?? 2_097_152;
  }

  /** True when this very stanza has been delivered to this address before. */
  isRepeat(envelope: Envelope, address: string = envelope.stanza.to.text): boolean {
    const seen = this.#find(envelope, address);
    if (seen === undefined || envelope.sequence > seen.highest) return false;
    if (seen.recent.includes(envelope.sequence)) return true;
    if (!envelope.mayBeRepeat) return false;
    if (envelope.sequence < seen.forgottenFrom || envelope.sequence > seen.forgottenTo) {
      return false;
    }
    return envelope.sequence < Math.min(...seen.recent);
  }

  /** True when this very stanza is remembered: it is not guessed that one may be forgotten. */
  has(envelope: Envelope, address: string): boolean {
    return this.#find(envelope, address)?.recent.includes(envelope.sequence) === true;
  }

  /** Notes that the stanza has been delivered. */
  remember(envelope: Envelope, address: string = envelope.stanza.to.text): void {
    const seen = this.#find(envelope, address) ?? this.#add(envelope, address);
    if (envelope.sequence > seen.highest) seen.highest = envelope.sequence;
    const isGrowing = seen.recent.length < this.#window;
    if (isGrowing) seen.recent.push(envelope.sequence);
    else {
      const oldest = seen.recent[seen.next]!; // the window is full
      noteForgotten(seen, oldest, oldest);
      seen.recent[seen.next] = envelope.sequence;
    }
    seen.next = (seen.next + 1) % this.#window;
    if (isGrowing) this.#count(1);
  }

  /** Forgets a stanza that was taken back from a session and is to be delivered anew. */
  forget(envelope: Envelope): void {
    const seen = this.#find(envelope, envelope.stanza.to.text);
    if (seen === undefined) return;
    // A number that a session brought, and that was delivered to it here, is there twice.
    for (let at = 0; at < seen.recent.length; at++) {
      if (seen.recent[at] === envelope.sequence) seen.recent[at] = NO_SEQUENCE;
    }
  }

  /** Forgets all that was delivered to this address. */
  forgetAll(address: string): void {
    for (const { recent } of [...this.#young.get(address)?.values() ?? []].flat()) {
      this.#youngNumbers -= recent.length;
    }
    this.#youngPairs -= this.#young.get(address)?.size ?? 0;
    this.#young.delete(address);
    this.#old.delete(address);
    this.#last = undefined;
  }

  /**
   * Returns the numbers delivered to `recipient`, of at most `max` senders and processes, the
   * newest.
   */
  deliveredTo(recipient: string, max: number): DeliveredNumbers[] {
    const delivered: DeliveredNumbers[] = [];
    for (const pairs of [this.#young, this.#old]) {
      for (const [sender, processes] of [...pairs.get(recipient) ?? []].toReversed()) {
        for (const { process, recent, highest } of processes) {
          if (delivered.length === max) return delivered;
          const known = recent.filter((sequence) => sequence !== NO_SEQUENCE)
            .toSorted((one, other) => one - other);
          delivered.push({ sender, process, highest, recent: known });
        }
      }
    }
    return delivered;
  }

  /** Adds the numbers that another node delivered to `recipient`. */
  learnDelivered(recipient: string, numbers: DeliveredNumbers): void {
    const { sender, process, highest } = numbers;
    const seen = this.#findFor(recipient, sender, process) ??
      this.#addFor(recipient, sender, process);
    seen.highest = Math.max(seen.highest, highest);
    const before = seen.recent.length;
    const all = [...new Set([...seen.recent, ...numbers.recent])]
      .toSorted((one, other) => one - other);
    seen.recent = all.slice(-this.#window);
    const gone = all.slice(0, -seen.recent.length).filter((each) => each !== NO_SEQUENCE);
    if (gone.length > 0) noteForgotten(seen, gone[0]!, gone.at(-1)!);
    const mayBeCut = numbers.recent.length >= Math.min(this.#window, MAX_MOVED_NUMBERS);
    if (mayBeCut) noteForgotten(seen, NO_SEQUENCE, numbers.recent[0]! - 1);
    seen.next = seen.recent.length % this.#window;
    this.#count(seen.recent.length - before);
  }

  #find({ stanza, process }: Envelope, to: string): Seen | undefined {
    return this.#findFor(to, stanza.from.text, process);
  }

  #findFor(to: string, from: string, process: number): Seen | undefined {
    const last = this.#last;
    if (last?.process === process && to === this.#lastTo && from === this.#lastFrom) return last;
    const processes = this.#processes(to, from);
    if (processes === undefined) return undefined;
    for (let i = 0; i < processes.length; i++) {
      if (processes[i]!.process === process) return this.#use(to, from, processes[i]!);
    }
    return undefined;
  }

  #use(to: string, from: string, seen: Seen): Seen {
    this.#last = seen;
    this.#lastTo = to;
    this.#lastFrom = from;
    return seen;
  }

  #processes(to: string, from: string): Seen[] | undefined {
    const young = this.#young.get(to)?.get(from);
    if (young !== undefined) return young;
    const old = this.#old.get(to)?.get(from);
    if (old !== undefined) this.#place(to, from, old);
    return old;
  }

  #add({ stanza, process }: Envelope, to: string): Seen {
    return this.#addFor(to, stanza.from.text, process);
  }

  #addFor(to: string, from: string, process: number): Seen {
    const seen = {
      process,
      recent: [],
      next: 0,
      highest: 0,
      forgottenFrom: Infinity,
      forgottenTo: NO_SEQUENCE,
    };
    const processes = this.#processes(to, from);
    if (processes === undefined) this.#place(to, from, [seen]);
    else {
      if (processes.length === MAX_PROCESSES_PER_PAIR) processes.shift();
      processes.push(seen);
    }
    return this.#use(to, from, seen);
  }

  #place(to: string, from: string, processes: Seen[]): void {
    if (this.#youngPairs >= this.#maxPairs >> 1) this.#turnOver();
    let senders = this.#young.get(to);
    if (senders === undefined) this.#young.set(to, senders = new Map());
    senders.set(from, processes);
    this.#youngPairs++;
    for (const { recent } of processes) this.#youngNumbers += recent.length;
  }

  #count(numbers: number): void {
    this.#youngNumbers += numbers;
    if (this.#youngNumbers > this.#maxNumbers >> 1) this.#turnOver();
  }

  #turnOver(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#youngPairs = 0;
    this.#youngNumbers = 0;
    this.#last = undefined; // it is found among the old ones, and counts as used again
  }
}

/** Notes numbers that were delivered, and that leave the window. */
function noteForgotten(seen: Seen, from: number, to: number): void {
  if (to === NO_SEQUENCE) return;
  seen.forgottenFrom = Math.min(seen.forgottenFrom, from);
  seen.forgottenTo = Math.max(seen.forgottenTo, to);
}
