import type { StanzaSource } from "../xmpp/mod.ts";

/**
 * Slows down a client or component that feeds a full lane, or that has too much waiting here for
 * lookups and archives: its node stops reading from it, and TCP slows the sender (docs/promises.md,
 * "Bounds").
 */
export class Pressure {
  readonly #sources = new Map<string, StanzaSource>();
  readonly #known = new Set<StanzaSource>();
  /**
   * Number of lanes and queues that hold each sender back. A sender feeds one lane for each
   * datacenter. A sender may be of another node, which is not told.
   */
  readonly #holds = new Map<string, number>();

  #isFrozen = false;
  #isStopping = false;

  /** Clients and components of this node that are held back. */
  get heldBack(): number {
    let count = 0;
    for (const sender of this.#holds.keys()) if (this.#sources.has(sender)) count++;
    return count;
  }

  /** Notes which sender's stanzas come from this stream. Cheap when the stream is known. */
  saw(source: StanzaSource): void {
    if (this.#known.has(source)) return;
    const sender = source.jid.text;
    const older = this.#sources.get(sender);
    if (older !== undefined) this.#known.delete(older);
    this.#known.add(source);
    this.#sources.set(sender, source);
    if (this.#isFrozen || this.#holds.has(sender)) source.pause();
  }

  /** Holds every sender back at a stop, so that the stanzas here can be settled. */
  freeze(): void {
    this.#isFrozen = this.#isStopping = true;
    for (const source of this.#known) source.pause();
  }

  /** Resumes reading from every sender that no lane holds back. */
  thaw(): void {
    this.#isFrozen = false;
    for (const [sender, source] of this.#sources) if (!this.#holds.has(sender)) source.resume();
  }

  /** The stream of this full JID or component domain is over. */
  gone(sender: string): void {
    if (this.#isStopping) return; // its last stanzas may still be read
    const source = this.#sources.get(sender);
    if (source === undefined) return;
    this.#sources.delete(sender);
    this.#known.delete(source);
  }

  /**
   * A lane that `sender` feeds rose over its high-water mark, or its queue grew too long, and when that
   * is over.
   */
  changed(sender: string, isOver: boolean): void {
    const holds = (this.#holds.get(sender) ?? 0) + (isOver ? 1 : -1);
    if (holds > 0) this.#holds.set(sender, holds);
    else this.#holds.delete(sender);
    if (isOver && holds === 1) this.#sources.get(sender)?.pause();
    else if (!isOver && holds <= 0 && !this.#isFrozen) this.#sources.get(sender)?.resume();
  }
}
