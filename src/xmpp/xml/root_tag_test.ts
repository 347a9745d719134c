import assert from "node:assert/strict";
import { ROOT_TAG, scanRoot } from "./root_tag.ts";
import { StreamFailure } from "./scan_failure.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

Deno.test("scanRoot() reads each array's own tag, and the same again when it is asked again", () => {
  const [one, two] = [bytesOf("<a b='1' c='2'><d/></a>"), bytesOf("<longer/>")];
  for (let round = 0; round < 2; round++) {
    for (let again = 0; again < 2; again++) {
      assert.equal(scanRoot(one), 15);
      assert.deepEqual([ROOT_TAG.count, ROOT_TAG.nameEnd, ROOT_TAG.isEmpty], [2, 2, false]);
    }
    assert.equal(scanRoot(two), 9);
    assert.deepEqual([ROOT_TAG.count, ROOT_TAG.nameEnd, ROOT_TAG.isEmpty], [0, 7, true]);
  }
});

Deno.test("scanRoot() takes nothing that it could not read for the tag that it has read before", () => {
  const whole = bytesOf("<a b='1'/>");
  assert.equal(scanRoot(whole), 10);
  const broken = bytesOf("<a b='1' b='2'/>");
  for (let again = 0; again < 2; again++) assert.throws(() => scanRoot(broken), StreamFailure);
  assert.equal(scanRoot(bytesOf("<a b='1'")), -1);
  assert.throws(() => scanRoot(bytesOf("<1/>")), StreamFailure);
  assert.equal(ROOT_TAG.nameEnd, 4);
  assert.equal(scanRoot(whole), 10);
  assert.equal(ROOT_TAG.count, 1);
});
