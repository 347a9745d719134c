import type { CausewayNode } from "../cluster/mod.ts";

/** Change of an endpoint's state, as logged. */
export type EndpointTransition = "opened" | "disabled" | "enabled" | "closed";

/** Log lines of a node about endpoints of other datacenters. */
export class EndpointLog {
  readonly #node: CausewayNode;

  constructor(node: CausewayNode) {
    this.#node = node;
  }

  /** Every transition of one endpoint (`127.0.0.1#40001`) since the node started. */
  of(endpoint: string): readonly string[] {
    return this.#node.logs.flatMap((line) => {
      const [, transition, name] = LINE.exec(line) ?? [];
      return name === endpoint ? [transition!] : [];
    });
  }

  /** @throws unless exactly these transitions were logged of `endpoint`, each once */
  expect(endpoint: string, transitions: readonly EndpointTransition[]): void {
    const found = this.of(endpoint).join(", ");
    const wanted = transitions.join(", ");
    if (found === wanted) return;
    throw new Error(`Expected the log to have of ${endpoint}: ${wanted}; it has: ${found}`);
  }
}

const LINE = / endpoint\.(\w+) .*\bendpoint="?([^\s"]+)/;
