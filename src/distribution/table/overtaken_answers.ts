/** Names that are remembered one by one before every answer under way counts as overtaken. */
const MAX_NAMES = 10_000;

/**
 * Tells which answers of Redis must not be kept: those to a question that was asked before the account
 * or domain was known to change. They may say what was before, and nobody would drop them again.
 *
 * Holds nothing while no question is under way.
 */
export class OvertakenAnswers {
  #asked = 0;
  /** Numbers of the questions under way, oldest first. */
  readonly #underWay = new Set<number>();
  /** The last question asked before each name changed, lowest first. */
  readonly #changed = new Map<string, number>();
  #allChanged = 0;

  /** A question is asked; its number. */
  begin(): number {
    this.#underWay.add(++this.#asked);
    return this.#asked;
  }

  /** What `name`, a bare JID or a domain, was before is not what it is now. */
  changed(name: string): void {
    if (this.#underWay.size === 0) return;
    if (this.#changed.size >= MAX_NAMES) return this.allChanged();
    this.#changed.delete(name); // to the end: it has the highest number now
    this.#changed.set(name, this.#asked);
  }

  /** Anything may have changed. */
  allChanged(): void {
    this.#changed.clear();
    this.#allChanged = this.#asked;
  }

  /** True when `name` has changed since the question was asked. */
  isOvertaken(name: string, question: number): boolean {
    return question <= this.#allChanged || question <= (this.#changed.get(name) ?? 0);
  }

  /** Nothing that answers the question is still to come. */
  end(question: number): void {
    this.#underWay.delete(question);
    const [oldest = Infinity] = this.#underWay;
    for (const [name, last] of this.#changed) {
      if (last >= oldest) break;
      this.#changed.delete(name);
    }
  }
}
