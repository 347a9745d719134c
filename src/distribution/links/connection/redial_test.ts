import assert from "node:assert/strict";
import { Redial } from "./redial.ts";

const OPTIONS = { reconnectFirstMs: 200, reconnectMaxMs: 1_000 };
/** Random source without jitter. */
const EVEN = { unit: () => 0.5 };

Deno.test("Redial.next() doubles the wait up to its bound", () => {
  const redial = new Redial(OPTIONS, EVEN);
  assert.deepEqual(Array.from({ length: 5 }, () => redial.next()), [200, 400, 800, 1_000, 1_000]);
});

Deno.test("Redial.broke() begins anew when the link stood for as long as the last wait", () => {
  const redial = new Redial(OPTIONS, EVEN);
  redial.next();
  redial.next();
  redial.broke(399);
  assert.equal(redial.next(), 800);
  redial.broke(800);
  assert.equal(redial.next(), 200);
});

Deno.test("Redial waits longer and longer for links that break as soon as they stand", () => {
  const redial = new Redial(OPTIONS, EVEN);
  const waits = Array.from({ length: 5 }, () => {
    redial.broke(1);
    return redial.next();
  });
  assert.deepEqual(waits, [200, 400, 800, 1_000, 1_000]);
});

Deno.test("Redial.failed() tells the first failure since the peer answered from the rest", () => {
  const redial = new Redial(OPTIONS, EVEN);
  assert.deepEqual([redial.failed(), redial.failed()], [true, false]);
  redial.next();
  redial.broke(1_000);
  assert.ok(!redial.failed(), "a link that broke is not a failed attempt");
  redial.answered();
  redial.next();
  assert.deepEqual([redial.failed(), redial.failed()], [true, false]);
});

Deno.test("Redial spreads the waits, so that links do not all come back at once", () => {
  const waits = [0, 1].map((unit) => Math.round(new Redial(OPTIONS, { unit: () => unit }).next()));
  assert.deepEqual(waits, [180, 220]);
});
