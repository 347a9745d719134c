import assert from "node:assert/strict";
import { DEFAULT_MIX, FormDraw, tryMix } from "./mix.ts";

Deno.test("FormDraw keeps the shares of its mix, for each pair of a load too", () => {
  const draw = new FormDraw(DEFAULT_MIX);
  const pairs = 132;
  const counts = new Map<string, number>();
  const ofOnePair = new Map<string, number>();
  for (let turn = 0; turn < pairs * 1000; turn++) {
    const { kind, isBare } = draw.next();
    const form = isBare ? "bare" : kind;
    counts.set(form, (counts.get(form) ?? 0) + 1);
    if (turn % pairs === 0) ofOnePair.set(form, (ofOnePair.get(form) ?? 0) + 1);
  }
  for (
    const [form, percent] of [["message", 68], ["bare", 15], ["iq", 15], ["presence", 2]] as const
  ) {
    assert.ok(Math.abs(counts.get(form)! / 1320 - percent) < 0.1, `${form}: ${counts.get(form)}`);
    assert.ok(Math.abs(ofOnePair.get(form)! / 10 - percent) < 2, `${form}: ${ofOnePair.get(form)}`);
  }
});

Deno.test("FormDraw draws nothing that has no share", () => {
  const draw = new FormDraw({ full: 0, bare: 1, iq: 0, presence: 0 });
  for (let turn = 0; turn < 100; turn++) {
    assert.deepEqual(draw.next(), { kind: "message", isBare: true });
  }
  assert.throws(() => new FormDraw({ full: 0, bare: 0, iq: 0, presence: 0 }), RangeError);
});

Deno.test("tryMix() reads up to four parts, and nothing else", () => {
  assert.deepEqual(tryMix("68,15,15,2"), DEFAULT_MIX);
  assert.deepEqual(tryMix("1"), { full: 1, bare: 0, iq: 0, presence: 0 });
  for (const text of ["", "0,0", "1,-1", "1,x", "1,2,3,4,5", "Infinity"]) {
    assert.equal(tryMix(text), undefined, text);
  }
});
