import assert from "node:assert/strict";
import { parseJid } from "../jid/jid_parser.ts";
import { OwnDelivery } from "./delivery.ts";
import { NotedCarbons } from "./noted_carbons.ts";

const ALICE = "alice@example.com";

Deno.test("NotedCarbons.take() knows a noted carbon once for each time", () => {
  const carbons = new NotedCarbons();
  for (const id of ["one", "two", "two"]) carbons.note(carbon(id));
  const taken = ["one", "one", "two", "two", "two", "three"].map((id) => carbons.take(carbon(id)));
  assert.deepEqual(taken, [true, false, true, true, false, false]);
});

Deno.test("NotedCarbons notes no message of another sender", () => {
  const carbons = new NotedCarbons();
  carbons.note(carbon("one", "bob@example.com"));
  assert.equal(carbons.take(carbon("one", "bob@example.com")), false);
});

Deno.test("NotedCarbons remembers 5000 carbons, and forgets the oldest for one more", () => {
  const carbons = new NotedCarbons();
  for (let number = 1; number <= 5_000; number++) carbons.note(carbon(`c${number}`));
  assert.equal(carbons.take(carbon("c1")), true);
  for (let number = 5_001; number <= 5_002; number++) carbons.note(carbon(`c${number}`));
  const taken = ["c2", "c3", "c5002"].map((id) => carbons.take(carbon(id)));
  assert.deepEqual(taken, [false, true, true]);
});

/** Makes what a session gets as a carbon: a message in the name of its account. */
function carbon(id: string, from = ALICE): OwnDelivery {
  return new OwnDelivery({
    kind: "message",
    type: "chat",
    from: parseJid(from),
    to: parseJid(`${ALICE}/home`),
    bytes: new TextEncoder().encode(`<message from='${from}' id='${id}'/>`),
  });
}
