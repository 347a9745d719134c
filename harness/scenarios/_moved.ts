import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { Figures } from "./_figures.ts";

/** By metric, how far each of its children is to move; a metric with none is not to move at all. */
export type Moves = Readonly<Record<string, Readonly<Record<string, number>>>>;

/**
 * Waits until the metrics of `datacenter` have moved since `before` exactly as `moves` says: a counter
 * moves when a connection has ended on both sides, which the peer does not see.
 */
export async function expectMoved(
  cluster: Cluster,
  datacenter: Datacenter,
  before: Figures,
  moves: Moves,
): Promise<void> {
  const wanted = inOrder(moves);
  let seen = "";
  await cluster.until(async () => {
    const now = await Figures.read(datacenter);
    const moved = Object.keys(moves).map((name) => [name, now.movedSince(before, name)]);
    return (seen = inOrder(Object.fromEntries(moved))) === wanted;
  }, {
    what: `${datacenter.name} has counted ${wanted}`,
    withinMs: 5000,
    evidence: () => `it has counted ${seen}`,
  });
}

/** As text that two equal objects share, however they were put together. */
function inOrder(moves: Moves): string {
  const entries = Object.entries(moves).map(([name, children]) =>
    [name, Object.entries(children).sort(([one], [other]) => one < other ? -1 : 1)] as const
  );
  return JSON.stringify(entries);
}
