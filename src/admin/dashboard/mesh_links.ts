import type { DatacenterLinks, LinksTo } from "./api_types.ts";
import { shortNames } from "./mesh_layout.ts";

/** State of the links between two datacenters: `unknown` while neither has told of them. */
export type PairState = LinksTo["state"] | "unknown";

/** Two datacenters other than this node's, and their links as they tell of them. */
export interface Pair {
  readonly one: string;
  readonly other: string;
  /** The worse of the two directions, of those that are known. */
  readonly state: PairState;
  /** Links of `one` to `other`; undefined where `one` has not told of them. */
  readonly there: LinksTo | undefined;
  readonly back: LinksTo | undefined;
}

/** States, the worst first. */
const ORDER: readonly PairState[] = ["unreachable", "degraded", "paused", "linked", "unknown"];

/**
 * Returns all pairs of `names`.
 *
 * @param told undefined while the node has not answered: nothing is known then
 */
export function pairsOf(
  told: readonly DatacenterLinks[] | undefined,
  names: readonly string[],
): readonly Pair[] {
  const links = new Map(
    told?.map((each) => [
      each.datacenter,
      new Map(each.links.map((to) => [to.datacenter, to])),
    ]),
  );
  return names.flatMap((one, index) =>
    names.slice(index + 1).map((other): Pair => {
      const there = links.get(one)?.get(other);
      const back = links.get(other)?.get(one);
      const [state = "unknown"] = [there, back].flatMap((each) => each?.state ?? []).toSorted(
        worse,
      );
      return { one, other, state, there, back };
    })
  );
}

function worse(one: PairState, other: PairState): number {
  return ORDER.indexOf(one) - ORDER.indexOf(other);
}

/** Returns what one datacenter tells of its links, the worst first. */
export function linksByHealth(links: readonly LinksTo[]): readonly LinksTo[] {
  return links.toSorted((one, other) => worse(one.state, other.state));
}

const COUNTED: readonly PairState[] = ["linked", "unknown", "paused", "degraded", "unreachable"];

/** Returns how many pairs are in each state, in words: `27 linked, 1 unreachable`. */
export function countPairs(pairs: readonly { readonly state: PairState }[]): string {
  return COUNTED.flatMap((state) => {
    const count = pairs.filter((pair) => pair.state === state).length;
    return count === 0 ? [] : `${count} ${state === "unknown" ? "not known" : state}`;
  }).join(", ");
}

/** Most datacenters that a sentence names. */
const MAX_NAMED = 3;

/** Returns names in a sentence: `dc2, dc3 and 4 more`. */
export function nameSome(names: readonly string[]): string {
  const short = shortNames(names);
  const said = names.slice(0, MAX_NAMED).map((name) =>
    names.length > 1 ? short.get(name) ?? name : name
  );
  const more = names.length - said.length;
  return more > 0 ? `${said.join(", ")} and ${more} more` : said.join(", ");
}

/** Says in a sentence what a datacenter tells of its links. */
export function sayLinks(told: DatacenterLinks | undefined): string {
  if (told === undefined || told.answers === 0) return "it has told nothing of its own links";
  const bad = told.links.filter(({ state }) => state === "unreachable");
  const named = bad.length === 0
    ? ""
    : ` (${nameSome(bad.map(({ datacenter }) => datacenter))} unreachable)`;
  return `its own links: ${countPairs(told.links) || "none"}${named}`;
}
