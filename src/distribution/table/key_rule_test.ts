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
  ["a login that is not the newest takes nothing", { ...THEIRS, isLogin: true }, LEAVE],
  ["ours and gone: only if still absent", OURS, { kind: "set-absent", host: HERE }],
  ["ours and right: written again", { ...OURS, current: HERE }, SET_HERE],
  ["ours, key names an older claim", { ...OURS, current: THERE, isClaimed: true }, SET_HERE],
  ["ours, key names a stranger", { ...OURS, current: THERE }, { kind: "suspect" }],
  ["ours, key still names a stranger", { ...OURS, current: THERE, isSuspect: true }, SET_HERE],
  ["ours, key names whom we gave it", { ...OURS, current: THERE, handedTo: THERE }, SET_HERE],
  ["refresh never takes another's", { ...THEIRS, current: THERE }, LEAVE],
  ["refresh leaves another's to its owner", { ...THEIRS, current: HERE }, LEAVE],
  ["refresh does not fill in for another", { ...THEIRS, current: null }, LEAVE],
  ["closing gives ours to the next", { ...THEIRS, ...CLOSED, current: HERE }, SET_THERE],
  [
    "closing gives an absent key to the next",
    { ...THEIRS, ...CLOSED },
    { kind: "set-absent", host: THERE },
  ],
  ["closing repeats what is right", { ...THEIRS, isFirstLogout: true, current: THERE }, SET_THERE],
  ["closing repeats it once", { ...THEIRS, ...CLOSED, current: THERE }, LEAVE],
  [
    "closing corrects what it gave",
    { ...THEIRS, ...CLOSED, current: THIRD, handedTo: THIRD },
    SET_THERE,
  ],
  ["a sibling node renews its own", { ...SIBLINGS, ...CLOSED, current: HERE }, LEAVE],
  [
    "closing puts a sibling's back",
    { ...SIBLINGS, ...CLOSED },
    { kind: "set-absent", host: HERE },
  ],
  ["nobody left: ours is deleted", { ...CLOSED, current: HERE }, DELETE],
  ["nobody left: what we gave is deleted", { ...CLOSED, current: THERE, handedTo: THERE }, DELETE],
  ["nobody left: garbage is deleted", { ...CLOSED, current: "" }, DELETE],
  ["nobody left: gone here, deleted elsewhere", { isFirstLogout: true }, DELETE],
  ["nobody left: gone stays gone", CLOSED, LEAVE],
  [
    "a claim on its way keeps its key",
    { isFirstLogout: true, current: THERE },
    SET_THERE,
  ],
  ["a stranger's key is left alone", { ...CLOSED, current: THERE }, LEAVE],
  ["no session of ours, no decision", { current: HERE }, LEAVE],
];

for (const [what, given, expected] of ROWS) {
  Deno.test(`decideKey: ${what}`, () => {
    assert.deepEqual(decideKey(facts(given)), expected);
  });
}
