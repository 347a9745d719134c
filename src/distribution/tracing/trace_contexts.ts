import type { TraceContext } from "../mod.ts";

/** A context that waits for its stanza. */
interface Waiting {
  readonly context: TraceContext;
  readonly process: number;
  readonly sequence: number;
  /** Stands for the link that it came over. */
  readonly link: object;
}

const SLOTS = 1_024;

/**
 * Contexts whose stanzas are still to come, by the stanzas' ids. Bounded: over the bound the oldest
 * goes. A peer may send a stanza and a copy of it, each with a context of its own.
 */
export class TraceContexts {
  readonly #max: number;
  readonly #byProcess = new Map<number, Map<number, Waiting[]>>();
  /** All of them, oldest first. */
  readonly #all = new Set<Waiting>();
  /**
   * Number of contexts that wait, by the lowest bits of the stanza's number: most stanzas have none, and
   * see so without a look into the maps.
   */
  readonly #counts = new Uint16Array(SLOTS);

  /** @param max at most 65_535 */
  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Keeps a context. False when an older one had to go. */
  add({ process, sequence }: StanzaId, context: TraceContext, link: object): boolean {
    const isFull = this.#all.size >= this.#max;
    if (isFull) {
      for (const oldest of this.#all) {
        this.#drop(oldest);
        break;
      }
    }
    const waiting = { context, process, sequence, link };
    this.#all.add(waiting);
    this.#counts[sequence % SLOTS]!++;
    let bySequence = this.#byProcess.get(process);
    if (bySequence === undefined) this.#byProcess.set(process, bySequence = new Map());
    const same = bySequence.get(sequence);
    if (same === undefined) bySequence.set(sequence, [waiting]);
    else same.push(waiting);
    return !isFull;
  }

  /** Takes the oldest context of a stanza; undefined when there is none. */
  take({ process, sequence }: StanzaId): TraceContext | undefined {
    if (this.#counts[sequence % SLOTS] === 0) return undefined;
    const waiting = this.#byProcess.get(process)?.get(sequence)?.[0];
    if (waiting === undefined) return undefined;
    this.#drop(waiting);
    return waiting.context;
  }

  /** Forgets the contexts of a link that has ended: its stanzas come over another, if at all. */
  forget(link: object): void {
    for (const waiting of this.#all) if (waiting.link === link) this.#drop(waiting);
  }

  #drop(waiting: Waiting): void {
    const { process, sequence } = waiting;
    this.#all.delete(waiting);
    this.#counts[sequence % SLOTS]!--;
    const bySequence = this.#byProcess.get(process)!; // it holds all that `#all` has
    const same = bySequence.get(sequence)!;
    if (same.length > 1) return void same.splice(same.indexOf(waiting), 1);
    bySequence.delete(sequence);
    if (bySequence.size === 0) this.#byProcess.delete(process);
  }
}

/** Id of a stanza, as in its STANZA frame. */
export interface StanzaId {
  readonly process: number;
  readonly sequence: number;
}
