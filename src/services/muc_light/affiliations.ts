import { successorIn } from "../../storage/mod.ts";
import type { RoomAffiliation, RoomOccupant } from "../../storage/mod.ts";
import type { StanzaErrorCondition } from "../../xmpp/mod.ts";

/** One wish of a request: `none` for somebody who is to leave. */
export interface AffiliationWish {
  /** Bare JID. */
  readonly jid: string;
  readonly affiliation: RoomAffiliation | "none";
}

/** Rules of a room. */
export interface AffiliationRules {
  /** True when nobody owns the room, and all are members. */
  readonly areEqual: boolean;
  /** True when members may add members. */
  readonly canAllInvite: boolean;
  /** At least 1. */
  readonly maxOccupants: number;
}

/** Result of a request that is allowed. */
export interface AffiliationChange {
  /** Everything that changed, also what nobody wished for: a former owner, or a new one. */
  readonly changed: readonly AffiliationWish[];
  /** Occupants afterwards, those who were there first. None: the room is to be destroyed. */
  readonly occupants: readonly RoomOccupant[];
}

/**
 * Checks the wishes of an occupant, before those are left out who do not want to be added. Undefined
 * when they are allowed. Pure.
 */
export function refusalOf(
  wishes: readonly AffiliationWish[],
  { actor, occupants, rules }: {
    readonly actor: string;
    readonly occupants: readonly RoomOccupant[];
    readonly rules: AffiliationRules;
  },
): StanzaErrorCondition | undefined {
  const before = new Map(occupants.map(({ jid, affiliation }) => [jid, affiliation]));
  const own = before.get(actor);
  if (own === undefined) return "item-not-found";
  if (wishes.length === 0 || !areDistinct(wishes)) return "bad-request";
  if (own === "member") {
    const isAllowed = wishes.every(({ jid, affiliation }) =>
      affiliation === "none"
        ? jid === actor
        : affiliation === "member" && rules.canAllInvite && before.get(jid) !== "owner"
    );
    if (!isAllowed) return "not-allowed";
  }
  // Each change has to change something.
  const isEmpty = wishes.some(({ jid, affiliation }) =>
    (before.get(jid) ?? "none") === affiliation
  );
  if (isEmpty || countOwners(wishes) > 1) return "bad-request";
  if (rules.areEqual && countOwners(wishes) > 0) return "bad-request";
  return undefined;
}

/**
 * Carries out wishes that `refusalOf` has allowed. A room that had an owner and is not empty has one
 * afterwards: the one who is named, or the one who came first. Pure.
 */
export function changeAffiliations(
  wishes: readonly AffiliationWish[],
  occupants: readonly RoomOccupant[],
  { areEqual, maxOccupants }: AffiliationRules,
): AffiliationChange | { readonly error: StanzaErrorCondition } {
  const after = new Map<string, RoomAffiliation>(
    occupants.map(({ jid, affiliation }) => [jid, affiliation]),
  );
  const named = wishes.find(({ affiliation }) => affiliation === "owner")?.jid;
  if (named !== undefined) {
    for (const [jid, affiliation] of after) if (affiliation === "owner") after.set(jid, "member");
  }
  for (const { jid, affiliation } of wishes) {
    if (affiliation === "none") after.delete(jid);
    else after.set(jid, affiliation);
  }
  const wasOwned = !areEqual && occupants.some(({ affiliation }) => affiliation === "owner");
  if (wasOwned && ![...after.values()].includes("owner")) {
    const left = [...after].map(([jid, affiliation]) => ({ jid, affiliation }));
    const asked = new Set(wishes.map(({ jid }) => jid));
    // Whoever has just given the room away gets it back only if nobody else is there.
    const successor = successorIn(left.filter(({ jid }) => !asked.has(jid))) ??
      successorIn(left.filter(({ jid }) => !isOwner(occupants, jid))) ?? successorIn(left);
    if (successor !== undefined) after.set(successor.jid, "owner");
  }
  if (after.size > maxOccupants && after.size > occupants.length) {
    return { error: "resource-constraint" };
  }
  const changed = changesBetween(occupants, after);
  // The only occupant cannot give the room to nobody.
  if (changed.length === 0) return { error: "bad-request" };
  return {
    changed,
    occupants: [...after].map(([jid, affiliation]) => ({ jid, affiliation })),
  };
}

/** Returns the first occupants of a room, the creator first, or why they cannot be these. Pure. */
export function firstOccupants(
  creator: string,
  wishes: readonly AffiliationWish[],
  { areEqual, maxOccupants }: Pick<AffiliationRules, "areEqual" | "maxOccupants">,
): readonly RoomOccupant[] | StanzaErrorCondition {
  const others = wishes.flatMap(({ jid, affiliation }) =>
    affiliation === "none" ? [] : [{ jid, affiliation }]
  );
  if (others.length < wishes.length || !areDistinct(wishes)) return "bad-request";
  if (others.some(({ jid }) => jid === creator)) return "bad-request";
  const owners = countOwners(wishes);
  if (owners > (areEqual ? 0 : 1)) return "bad-request";
  if (others.length + 1 > maxOccupants) return "resource-constraint";
  const affiliation = areEqual || owners > 0 ? "member" : "owner";
  return [{ jid: creator, affiliation }, ...others];
}

function areDistinct(wishes: readonly AffiliationWish[]): boolean {
  return new Set(wishes.map(({ jid }) => jid)).size === wishes.length;
}

function countOwners(wishes: readonly AffiliationWish[]): number {
  return wishes.filter(({ affiliation }) => affiliation === "owner").length;
}

function isOwner(occupants: readonly RoomOccupant[], jid: string): boolean {
  return occupants.some((each) => each.jid === jid && each.affiliation === "owner");
}

function changesBetween(
  occupants: readonly RoomOccupant[],
  after: ReadonlyMap<string, RoomAffiliation>,
): readonly AffiliationWish[] {
  const before = new Map(occupants.map(({ jid, affiliation }) => [jid, affiliation]));
  const left: AffiliationWish[] = occupants.filter(({ jid }) => !after.has(jid))
    .map(({ jid }) => ({ jid, affiliation: "none" }));
  const set = [...after].filter(([jid, affiliation]) => before.get(jid) !== affiliation)
    .map(([jid, affiliation]) => ({ jid, affiliation }));
  return [...set, ...left];
}
