/** Names remembered one by one; with one more, every pending answer counts as overtaken. */
const MAX_NAMES = 10_000;

/**
 * Answers of Redis that must not be cached: those to a question asked before the account or domain
 * is known to have changed. They may be out of date, and would not be dropped again.
 *
 * Holds nothing while no question is pending.
 */
export class OvertakenAnswers {
  #asked = 0;
  /** Numbers of the pending questions, oldest first. */
  readonly #underWay = new Set<number>();
  /** The last question asked before each name changed, lowest first. */
  readonly #changed = new Map<string, number>();
  #allChanged = 0;

  /** Notes a new question; returns its number. */
  begin(): number {
    this.#underWay.add(++this.#asked);
    return this.#asked;
  }

  /** Notes that `name`, a bare JID or a domain, has changed. */
  changed(name: string): void {
    if (this.#underWay.size === 0) return;
    if (this.#changed.size >= MAX_NAMES) return this.allChanged();
    this.#changed.delete(name); // moves it to the end, as it has the highest number now
    this.#changed.set(name, this.#asked);
  }

  /** Notes that any name may have changed. */
  allChanged(): void {
    this.#changed.clear();
    this.#allChanged = this.#asked;
  }

  /** True when `name` has changed since the question was asked. */
  isOvertaken(name: string, question: number): boolean {
    return question <= this.#allChanged || question <= (this.#changed.get(name) ?? 0);
  }

  /** Notes that no further reply to the question will come. */
  end(question: number): void {
    this.#underWay.delete(question);
    const [oldest = Infinity] = this.#underWay;
    for (const [name, last] of this.#changed) {
      if (last >= oldest) break;
      this.#changed.delete(name);
    }
  }
}
