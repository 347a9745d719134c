import assert from "node:assert/strict";
import type { Claim } from "./claims.ts";
import type { KeyDecision, KeyFacts } from "./key_rule.ts";
import { decideKey } from "./key_rule.ts";

const HERE = "dc1.example.com";
const THERE = "dc2.example.com";
const THIRD = "dc3.example.com";

function claimAt(host: string): Claim {
  return { id: "1-1", epoch: 1, host, node: "n", resourcepart: "r", renewal: 1 };
}

function facts(given: Partial<KeyFacts>): KeyFacts {
  return {
    current: null,
    localHost: HERE,
    newest: undefined,
    isOurs: false,
    isLogin: false,
    isLogout: given.isFirstLogout ?? false,
    isFirstLogout: false,
    isClaimed: false,
    isSuspect: false,
    handedTo: undefined,
    ...given,
  };
}

const OURS = { newest: claimAt(HERE), isOurs: true };
const THEIRS = { newest: claimAt(THERE) };
const SIBLINGS = { newest: claimAt(HERE) };
const CLOSED = { isLogout: true };

const SET_HERE: KeyDecision = { kind: "set", host: HERE };
const SET_THERE: KeyDecision = { kind: "set", host: THERE };
const LEAVE: KeyDecision = { kind: "leave" };
const DELETE: KeyDecision = { kind: "delete" };

const ROWS: readonly (readonly [string, Partial<KeyFacts>, KeyDecision])[] = [
  ["a login takes an absent key", { ...OURS, isLogin: true }, SET_HERE],
  ["a login takes another's key", { ...OURS, isLogin: true, current: THERE }, SET_HERE],
  ["a login that is not the newest takes no key", { ...THEIRS, isLogin: true }, LEAVE],
  ["our key is absent: set if still absent", OURS, { kind: "set-absent", host: HERE }],
  ["our key is right: written again", { ...OURS, current: HERE }, SET_HERE],
  [
    "our key names the host of an older claim",
    { ...OURS, current: THERE, isClaimed: true },
    SET_HERE,
  ],
  ["our key names a host without a claim", { ...OURS, current: THERE }, { kind: "suspect" }],
  [
    "our key still names a host without a claim",
    { ...OURS, current: THERE, isSuspect: true },
    SET_HERE,
  ],
  [
    "our key names the host that we gave it to",
    { ...OURS, current: THERE, handedTo: THERE },
    SET_HERE,
  ],
  ["a renewal never takes another's key", { ...THEIRS, current: THERE }, LEAVE],
  ["a renewal leaves another's key to its owner", { ...THEIRS, current: HERE }, LEAVE],
  ["a renewal does not set another's absent key", { ...THEIRS, current: null }, LEAVE],
  ["a logout gives our key to the next owner", { ...THEIRS, ...CLOSED, current: HERE }, SET_THERE],
  [
    "a logout gives an absent key to the next owner",
    { ...THEIRS, ...CLOSED },
    { kind: "set-absent", host: THERE },
  ],
  ["a logout repeats a right value", { ...THEIRS, isFirstLogout: true, current: THERE }, SET_THERE],
  ["a logout repeats it only once", { ...THEIRS, ...CLOSED, current: THERE }, LEAVE],
  [
    "a logout corrects a key that it gave away",
    { ...THEIRS, ...CLOSED, current: THIRD, handedTo: THIRD },
    SET_THERE,
  ],
  ["another node of dc1 renews its own key", { ...SIBLINGS, ...CLOSED, current: HERE }, LEAVE],
  [
    "a logout puts back the key of another node of dc1",
    { ...SIBLINGS, ...CLOSED },
    { kind: "set-absent", host: HERE },
  ],
  ["no claim left: our key is deleted", { ...CLOSED, current: HERE }, DELETE],
  ["no claim left: a key that we gave away is deleted", {
    ...CLOSED,
    current: THERE,
    handedTo: THERE,
  }, DELETE],
  ["no claim left: garbage is deleted", { ...CLOSED, current: "" }, DELETE],
  ["nobody left: gone here, deleted elsewhere", { isFirstLogout: true }, DELETE],
  ["no claim left: an absent key stays absent", CLOSED, LEAVE],
  [
    "a key whose claim may be on its way is written again",
    { isFirstLogout: true, current: THERE },
    SET_THERE,
  ],
  ["a key of a host without a claim is left alone", { ...CLOSED, current: THERE }, LEAVE],
  ["no session of ours, no decision", { current: HERE }, LEAVE],
];

for (const [what, given, expected] of ROWS) {
  Deno.test(`decideKey: ${what}`, () => {
    assert.deepEqual(decideKey(facts(given)), expected);
  });
}
