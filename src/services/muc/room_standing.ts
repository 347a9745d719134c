import type { MucAffiliate, MucAffiliation } from "../../storage/mod.ts";
import type { StanzaErrorCondition } from "../../xmpp/mod.ts";
import type { RoomSettings } from "./room_settings.ts";

/** Lasting relation to a room. */
export type Affiliation = MucAffiliation | "none";
/** Position in a room while one is there (XEP-0045 §5.1). */
export type Role = "moderator" | "participant" | "visitor" | "none";

/** Affiliation and role of somebody in a room. */
export interface Standing {
  readonly affiliation: Affiliation;
  readonly role: Role;
}

const RANKS: Readonly<Record<Affiliation, number>> = {
  outcast: -1,
  none: 0,
  member: 1,
  admin: 2,
  owner: 3,
};

const ROLES: ReadonlySet<string> = new Set(["moderator", "participant", "visitor", "none"]);

/** True for the name of an affiliation. */
export function isAffiliation(name: string): name is Affiliation {
  return Object.hasOwn(RANKS, name);
}

/** True for the name of a role. */
export function isRole(name: string): name is Role {
  return ROLES.has(name);
}

/** True for those who run a room. */
export function isAdmin(affiliation: Affiliation): boolean {
  return RANKS[affiliation] >= RANKS.admin;
}

/** Returns the affiliation of a bare JID. */
export function affiliationOf(affiliates: readonly MucAffiliate[], jid: string): Affiliation {
  return affiliates.find((each) => each.jid === jid)?.affiliation ?? "none";
}

/** Returns the role with which somebody enters a room (XEP-0045 §5.1.2). Pure. */
export function entryRole(affiliation: Affiliation, settings: RoomSettings): Role {
  if (affiliation === "outcast") return "none";
  if (isAdmin(affiliation)) return "moderator";
  if (affiliation === "member" || !settings.moderated) return "participant";
  return settings.membersByDefault ? "participant" : "visitor";
}

/**
 * Returns the role of an occupant after their affiliation has changed. `none`: they leave. Those who
 * lose their affiliation in a members-only room do, and so do outcasts. Pure.
 */
export function roleAfter(
  before: Standing,
  affiliation: Affiliation,
  settings: RoomSettings,
): Role {
  if (affiliation === "outcast") return "none";
  if (settings.membersOnly && affiliation === "none") return "none";
  if (affiliation === before.affiliation) return before.role;
  return entryRole(affiliation, settings);
}

/**
 * Returns the error that keeps `actor` from giving `target` another role; undefined when they may
 * (XEP-0045 §8.2–§8.4, §9.6–§9.7, §5.1.1). Pure.
 */
export function roleRefusal(
  actor: Standing,
  target: Standing,
  role: Role,
): StanzaErrorCondition | undefined {
  if (actor.role !== "moderator") return "forbidden";
  // Nobody takes anything from those who run the room, but whoever stands above them.
  if (isAdmin(target.affiliation) && RANKS[target.affiliation] >= RANKS[actor.affiliation]) {
    return "not-allowed";
  }
  const concernsModerators = role === "moderator" || target.role === "moderator";
  if (concernsModerators && !isAdmin(actor.affiliation)) {
    return role === "moderator" ? "forbidden" : "not-allowed";
  }
  // The role of a moderator goes with these affiliations.
  if (isAdmin(target.affiliation) && role !== "none" && role !== "moderator") return "not-allowed";
  return undefined;
}

/** A wish to give somebody another affiliation. */
export interface AffiliationWish {
  /** Bare JID. */
  readonly jid: string;
  readonly affiliation: Affiliation;
  readonly reason: string;
}

/**
 * Returns the error that keeps `actor` from what they wish; undefined when they may have it all
 * (XEP-0045 §9, §10). Pure.
 *
 * @param actor bare JID
 */
export function affiliationRefusal(
  actor: string,
  wishes: readonly AffiliationWish[],
  affiliates: readonly MucAffiliate[],
): StanzaErrorCondition | undefined {
  const own = affiliationOf(affiliates, actor);
  if (!isAdmin(own)) return "forbidden";
  const after = new Map(
    affiliates.map(({ jid, affiliation }) => [jid, affiliation as Affiliation]),
  );
  for (const { jid, affiliation } of wishes) {
    const before = affiliationOf(affiliates, jid);
    after.set(jid, affiliation);
    if (jid === actor && affiliation === "outcast") return "conflict";
    if (own === "owner" || before === affiliation) continue;
    // Admins decide on everybody but those who run the room.
    if (isAdmin(before) || isAdmin(affiliation)) {
      return RANKS[before] >= RANKS[own] ? "not-allowed" : "forbidden";
    }
  }
  const hadOwner = affiliates.some(({ affiliation }) => affiliation === "owner");
  // The last owner stays (§10.5).
  return hadOwner && ![...after.values()].includes("owner") ? "conflict" : undefined;
}

/** Returns the error that keeps somebody out of a room; undefined when they may enter. Pure. */
export function entryRefusal(
  affiliation: Affiliation,
  settings: RoomSettings,
  { password, occupants }: {
    readonly password: string | undefined;
    /** Nicknames in the room. */
    readonly occupants: number;
  },
): StanzaErrorCondition | undefined {
  if (affiliation === "outcast") return "forbidden";
  // A locked room does not exist yet for others than its owner (§10.1.3).
  if (settings.isLocked && affiliation !== "owner") return "item-not-found";
  if (settings.membersOnly && affiliation === "none") return "registration-required";
  const needsPassword = settings.passwordProtected && affiliation !== "owner";
  if (needsPassword && password !== settings.password) return "not-authorized";
  return hasPlace(affiliation, settings, occupants) ? undefined : "service-unavailable";
}

/**
 * True when a room has place for the nickname of one more occupant. Pure.
 *
 * @param occupants nicknames in the room
 */
export function hasPlace(
  affiliation: Affiliation,
  { maxUsers }: RoomSettings,
  occupants: number,
): boolean {
  return occupants < maxUsers || isAdmin(affiliation);
}
