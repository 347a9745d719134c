import type { StanzaSource } from "../xmpp/mod.ts";

/**
 * Slows down at the edge what feeds a lane that is too full: the client or component stops being
 * read, and TCP tells it so (docs/promises.md, "Bounds").
 */
export class Pressure {
  readonly #sources = new Map<string, StanzaSource>();
  readonly #known = new Set<StanzaSource>();
  /** How many lanes hold each sender back: a sender feeds one lane for each datacenter. */
  readonly #holds = new Map<string, number>();

  #isFrozen = false;
  #isStopping = false;

  /** Senders that are held back. */
  get heldBack(): number {
    return this.#holds.size;
  }

  /** Notes whose stanzas come from this stream; cheap when it is known. */
  saw(source: StanzaSource): void {
    if (this.#known.has(source)) return;
    const sender = source.jid.text;
    const older = this.#sources.get(sender);
    if (older !== undefined) this.#known.delete(older);
    this.#known.add(source);
    this.#sources.set(sender, source);
    if (this.#isFrozen || this.#holds.has(sender)) source.pause();
  }

  /** At a stop: holds everybody back, so that what is here can be brought to its end. */
  freeze(): void {
    this.#isFrozen = this.#isStopping = true;
    for (const source of this.#known) source.pause();
  }

  /** Lets those go on again whom no lane holds back. */
  thaw(): void {
    this.#isFrozen = false;
    for (const [sender, source] of this.#sources) if (!this.#holds.has(sender)) source.resume();
  }

  /** The stream of this full JID or component domain is over. */
  gone(sender: string): void {
    if (this.#isStopping) return; // it may be read beyond its end
    const source = this.#sources.get(sender);
    if (source === undefined) return;
    this.#sources.delete(sender);
    this.#known.delete(source);
  }

  /** A lane that `sender` feeds rose over its high-water mark, or fell under its low-water mark. */
  changed(sender: string, isOver: boolean): void {
    const holds = (this.#holds.get(sender) ?? 0) + (isOver ? 1 : -1);
    if (holds > 0) this.#holds.set(sender, holds);
    else this.#holds.delete(sender);
    if (isOver && holds === 1) this.#sources.get(sender)?.pause();
    else if (!isOver && holds <= 0 && !this.#isFrozen) this.#sources.get(sender)?.resume();
  }
}
