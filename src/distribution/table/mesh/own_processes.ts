/** Processes remembered; the one heard of first is forgotten first. */
const MAX_PROCESSES = 1024;

/** Incarnations of this datacenter's nodes that were heard of, including ended ones. */
export class OwnProcesses {
  readonly #heard = new Set<number>();

  note(incarnation: number): void {
    if (this.#heard.has(incarnation)) return;
    if (this.#heard.size === MAX_PROCESSES) this.#heard.delete(this.#heard.values().next().value!);
    this.#heard.add(incarnation);
  }

  has(incarnation: number): boolean {
    return this.#heard.has(incarnation);
  }
}
