import type { ResumptionLink } from "./ports.ts";

/** The open links to other nodes, by process. */
export class LinkBook {
  readonly #dialled = new Map<number, Set<ResumptionLink>>();
  readonly #accepted = new Map<number, Set<ResumptionLink>>();

  add(link: ResumptionLink, isDialled: boolean): void {
    const links = isDialled ? this.#dialled : this.#accepted;
    const ofProcess = links.get(link.process);
    if (ofProcess === undefined) links.set(link.process, new Set([link]));
    else ofProcess.add(link);
  }

  remove(link: ResumptionLink): void {
    for (const links of [this.#dialled, this.#accepted]) {
      const ofProcess = links.get(link.process);
      if (ofProcess?.delete(link) && ofProcess.size === 0) links.delete(link.process);
    }
  }

  /**
   * A link to that process; one that we have dialled if there is one: our lanes to it use that too, so
   * that what was sent on one before comes first.
   */
  to(process: number): ResumptionLink | undefined {
    for (const links of [this.#dialled, this.#accepted]) {
      for (const link of links.get(process) ?? []) return link;
    }
    return undefined;
  }
}
