import type { OpenLink } from "../mod.ts";

/** The open links to other nodes, by process. */
export class LinkBook {
  readonly #dialled = new Map<number, Set<OpenLink>>();
  readonly #accepted = new Map<number, Set<OpenLink>>();

  add(link: OpenLink, isDialled: boolean): void {
    const links = isDialled ? this.#dialled : this.#accepted;
    const ofProcess = links.get(link.process);
    if (ofProcess === undefined) links.set(link.process, new Set([link]));
    else ofProcess.add(link);
  }

  remove(link: OpenLink): void {
    for (const links of [this.#dialled, this.#accepted]) {
      const ofProcess = links.get(link.process);
      if (ofProcess?.delete(link) && ofProcess.size === 0) links.delete(link.process);
    }
  }

  /**
   * A link to that process; one that we have dialled if there is one: our lanes to it use that too, so
   * that what was sent on one before comes first.
   */
  to(process: number): OpenLink | undefined {
    for (const links of [this.#dialled, this.#accepted]) {
      for (const link of links.get(process) ?? []) return link;
    }
    return undefined;
  }
}
