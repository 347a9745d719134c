import { strictEqual } from "node:assert/strict";
import { parseJid } from "../../xmpp/mod.ts";
import { WaitingLeaves } from "./waiting_leaves.ts";

const STANZA = {
  from: parseJid("alice@example.com/a"),
  to: parseJid("coven@conference.example.com/witch"),
};
const OTHER = { ...STANZA, to: parseJid("heath@conference.example.com/witch") };
const [SEATED, NOWHERE] = [{ isSeated: true }, { isSeated: false }];

Deno.test("WaitingLeaves.ends() takes a leave where a seat is, or presence waits, and one of them", () => {
  const leaves = new WaitingLeaves();
  strictEqual(leaves.ends("leave", STANZA, NOWHERE), undefined);
  const joined = leaves.joins(STANZA);
  strictEqual(leaves.ends("leave", OTHER, NOWHERE), undefined);
  const left = leaves.ends("leave", STANZA, NOWHERE)!;
  strictEqual(leaves.ends("leave", STANZA, SEATED), undefined, "one waits");
  joined();
  left();
  strictEqual(leaves.ends("leave", STANZA, NOWHERE), undefined, "nothing waits");
  const again = leaves.ends("leave", STANZA, SEATED)!;
  strictEqual(leaves.ends("leave", STANZA, SEATED), undefined);
  again();
});

Deno.test("WaitingLeaves.ends() takes a leave after each presence that waits", () => {
  const leaves = new WaitingLeaves();
  for (let i = 0; i < 3; i++) {
    leaves.joins(STANZA);
    strictEqual(typeof leaves.ends("leave", STANZA, NOWHERE), "function");
    strictEqual(leaves.ends("leave", STANZA, NOWHERE), undefined);
  }
});

Deno.test("WaitingLeaves.ends() does not take an error for a leave", () => {
  const leaves = new WaitingLeaves();
  leaves.ends("error", STANZA, SEATED);
  strictEqual(leaves.ends("error", STANZA, SEATED), undefined);
  strictEqual(typeof leaves.ends("leave", STANZA, SEATED), "function");
});

Deno.test("WaitingLeaves.ends() takes a leave of the last presence while earlier ones come to their turn", () => {
  const leaves = new WaitingLeaves();
  const firstLeft = leaves.ends("leave", STANZA, SEATED)!;
  const joined = leaves.joins(STANZA);
  const secondLeft = leaves.ends("leave", STANZA, NOWHERE)!;
  firstLeft();
  strictEqual(leaves.ends("leave", STANZA, SEATED), undefined, "the second one waits");
  joined();
  const joinedAgain = leaves.joins(STANZA);
  secondLeft();
  const thirdLeft = leaves.ends("leave", STANZA, NOWHERE);
  strictEqual(typeof thirdLeft, "function");
  joinedAgain();
  thirdLeft!();
  strictEqual(leaves.ends("leave", STANZA, NOWHERE), undefined, "nothing waits");
});
