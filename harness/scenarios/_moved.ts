import type { Cluster, Datacenter } from "../cluster/mod.ts";
import { Figures } from "./_figures.ts";

/** Expected increases of each metric's children. A metric without children must not move. */
export type Moves = Readonly<Record<string, Readonly<Record<string, number>>>>;

/**
 * Waits until the metrics of `datacenter` have moved exactly by `moves` since `before`. Some
 * counters move only when a connection has ended on both sides, which the peer cannot see.
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
    evidence: () => `it has counted ${seen}`,
  });
}

/** Serialises `moves` with sorted keys, so that equal objects give equal texts. */
function inOrder(moves: Moves): string {
  const entries = Object.entries(moves).map(([name, children]) =>
    [name, Object.entries(children).sort(([one], [other]) => one < other ? -1 : 1)] as const
  );
  return JSON.stringify(entries);
}
