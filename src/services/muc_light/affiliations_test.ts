import assert from "node:assert/strict";
import type { RoomOccupant } from "../../storage/mod.ts";
import { changeAffiliations, firstOccupants, refusalOf } from "./affiliations.ts";
import type { AffiliationRules, AffiliationWish } from "./affiliations.ts";

const STRICT: AffiliationRules = { areEqual: false, canAllInvite: false, maxOccupants: 4 };
const OPEN: AffiliationRules = { ...STRICT, canAllInvite: true };
const EQUAL: AffiliationRules = { ...STRICT, areEqual: true };

/** Reads `a:owner b:member`. */
function read(text: string): AffiliationWish[] {
  return text.split(" ").filter((each) => each !== "").map((each) => {
    const [jid, affiliation] = each.split(":") as [string, AffiliationWish["affiliation"]];
    return { jid, affiliation };
  });
}

function write(wishes: readonly AffiliationWish[]): string {
  return wishes.map(({ jid, affiliation }) => `${jid}:${affiliation}`).join(" ");
}

function play(
  before: string,
  actor: string,
  wish: string,
  rules: AffiliationRules,
): string {
  const occupants = read(before) as RoomOccupant[]; // none of them is `none`
  const refusal = refusalOf(read(wish), { actor, occupants, rules });
  if (refusal !== undefined) return refusal;
  const change = changeAffiliations(read(wish), occupants, rules);
  if ("error" in change) return change.error;
  return `${write(change.occupants)} | ${write(change.changed)}`;
}

const ROOM = "a:owner b:member c:member";

for (
  const [what, before, actor, wish, rules, expected] of [
    ["an owner adds", "a:owner", "a", "b:member", STRICT, "a:owner b:member | b:member"],
    ["an owner removes", ROOM, "a", "b:none", STRICT, "a:owner c:member | b:none"],
    [
      "an owner names another",
      ROOM,
      "a",
      "b:owner",
      STRICT,
      "a:member b:owner c:member | " +
      "a:member b:owner",
    ],
    [
      "an owner makes a newcomer owner",
      "a:owner",
      "a",
      "d:owner",
      STRICT,
      "a:member d:owner | " +
      "a:member d:owner",
    ],
    ["an owner leaves", ROOM, "a", "a:none", STRICT, "b:owner c:member | b:owner a:none"],
    [
      "an owner leaves to somebody",
      ROOM,
      "a",
      "a:none c:owner",
      STRICT,
      "b:member c:owner | " +
      "c:owner a:none",
    ],
    [
      "an owner steps down",
      ROOM,
      "a",
      "a:member",
      STRICT,
      "a:member b:owner c:member | " +
      "a:member b:owner",
    ],
    [
      "an owner steps down beside a newcomer",
      "a:owner",
      "a",
      "a:member d:member",
      STRICT,
      "a:member d:owner | a:member d:owner",
    ],
    ["an owner alone steps down", "a:owner", "a", "a:member", STRICT, "bad-request"],
    ["the last one leaves", "a:owner", "a", "a:none", STRICT, " | a:none"],
    ["all are removed", ROOM, "a", "a:none b:none c:none", STRICT, " | a:none b:none c:none"],
    ["a member leaves", ROOM, "b", "b:none", STRICT, "a:owner c:member | b:none"],
    ["a member removes another", ROOM, "b", "c:none", STRICT, "not-allowed"],
    ["a member takes the room", ROOM, "b", "b:owner", STRICT, "not-allowed"],
    ["a member invites", ROOM, "b", "d:member", STRICT, "not-allowed"],
    ["a member invites where all may", ROOM, "b", "d:member", OPEN, `${ROOM} d:member | d:member`],
    ["a member makes a newcomer owner", ROOM, "b", "d:owner", OPEN, "not-allowed"],
    [
      "a member demotes the owner",
      ROOM,
      "b",
      "a:member",
      OPEN,
      "not-allowed",
    ],
    ["a stranger", ROOM, "x", "x:member", OPEN, "item-not-found"],
    ["no wish", ROOM, "a", "", STRICT, "bad-request"],
    ["one person twice", ROOM, "a", "d:member d:owner", STRICT, "bad-request"],
    ["nothing changes", ROOM, "a", "b:member", STRICT, "bad-request"],
    ["nobody is removed", ROOM, "a", "d:none", STRICT, "bad-request"],
    ["two owners", ROOM, "a", "b:owner c:owner", STRICT, "bad-request"],
    ["too many", ROOM, "a", "d:member e:member", STRICT, "resource-constraint"],
    ["as many as may be", ROOM, "a", "d:member", STRICT, `${ROOM} d:member | d:member`],
    [
      "one comes for another",
      `${ROOM} d:member`,
      "a",
      "d:none e:member",
      STRICT,
      `${ROOM} e:member | e:member d:none`,
    ],
    ["an equal invites", "a:member b:member", "a", "c:member", EQUAL, "not-allowed"],
    ["an equal leaves", "a:member b:member", "a", "a:none", EQUAL, "b:member | a:none"],
    [
      "an equal wants an owner",
      "a:member",
      "a",
      "b:owner",
      { ...EQUAL, canAllInvite: true },
      "not-allowed",
    ],
    ["a room from before all were equal", ROOM, "a", "b:owner", EQUAL, "bad-request"],
  ] as const
) {
  Deno.test(`changes of affiliations: ${what}`, () => {
    assert.equal(play(before, actor, wish, rules), expected);
  });
}

for (
  const [wish, rules, expected] of [
    ["", STRICT, "a:owner"],
    ["b:member c:member", STRICT, "a:owner b:member c:member"],
    ["b:owner c:member", STRICT, "a:member b:owner c:member"],
    ["b:owner c:owner", STRICT, "bad-request"],
    ["b:none", STRICT, "bad-request"],
    ["a:member", STRICT, "bad-request"],
    ["b:member b:member", STRICT, "bad-request"],
    ["b:member c:member d:member e:member", STRICT, "resource-constraint"],
    ["b:member", EQUAL, "a:member b:member"],
    ["b:owner", EQUAL, "bad-request"],
  ] as const
) {
  Deno.test(`firstOccupants() of "${wish}"${rules === EQUAL ? " among equals" : ""}`, () => {
    const found = firstOccupants("a", read(wish), rules);
    assert.equal(typeof found === "string" ? found : write(found), expected);
  });
}
