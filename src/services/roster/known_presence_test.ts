import assert from "node:assert/strict";
import { PacedWork } from "../../base/mod.ts";
import { KnownPresence } from "./known_presence.ts";

const ALICE = "alice@example.com";

function tell(presence: KnownPresence, from: string, payer: string, process = 2): void {
  const told = { host: payer, process, payer, sentAtUs: 1, heardUs: 1 };
  presence.tell(from, { account: ALICE, to: ALICE, hash: 1 }, told);
}

Deno.test("KnownPresence has room for a datacenter beside one that tells of very many resources", () => {
  const presence = new KnownPresence(10);
  for (let i = 0; i < 20; i++) tell(presence, `many@example.com/${i}`, "dc2");
  assert.equal(presence.of("many@example.com/10").length, 0, "there is no room for more");
  for (let i = 0; i < 8; i++) tell(presence, `bob@example.com/${i}`, "dc3", 3);
  assert.equal(presence.pairs, 10);
  const known = presence.resourcesOf(ALICE).toSorted();
  const bobs = Array.from({ length: 5 }, (_, i) => `bob@example.com/${i}`);
  const others = Array.from({ length: 5 }, (_, i) => `many@example.com/${i + 5}`);
  assert.deepEqual(known, [...bobs, ...others], "the oldest of many are forgotten");
});

Deno.test("KnownPresence counts what it forgets and what moves to another process", async () => {
  const presence = new KnownPresence(2);
  tell(presence, "bob@example.com/a", "dc2", 2);
  tell(presence, "bob@example.com/a", "dc3", 3);
  const [first] = presence.of("bob@example.com/a");
  presence.move("bob@example.com/a", first!, { process: 3, host: "dc3" });
  assert.equal(presence.pairs, 1);
  tell(presence, "bob@example.com/b", "dc2", 2);
  for (const from of presence.resourcesOf(ALICE)) {
    for (const known of presence.of(from)) presence.untell(from, known, ALICE);
  }
  assert.equal(presence.pairs, 0);
  assert.deepEqual(await presence.matching(new PacedWork(), () => true), []);
  for (const from of ["x", "y", "z"]) tell(presence, `${from}@example.com/a`, "dc3", 3);
  assert.equal(presence.pairs, 2);
});

Deno.test("KnownPresence tells which processes have told of resources, through moves", () => {
  const presence = new KnownPresence();
  const [phone, desk] = ["bob@example.com/phone", "bob@example.com/desk"];
  const tellers = () => [...presence.tellers()].map(([host, all]) => [host, ...all.keys()]);
  for (const from of [phone, desk]) tell(presence, from, "dc2", 2);
  const [known] = presence.of(phone);
  presence.move(phone, known!, { process: 3, host: "dc3" });
  assert.deepEqual(tellers(), [["dc2", 2], ["dc3", 3]]);
  tell(presence, phone, "dc2", 2);
  presence.move(phone, known!, { process: 2, host: "dc2" });
  assert.deepEqual(tellers(), [["dc2", 2]]);
  for (const from of [phone, desk]) presence.untell(from, presence.of(from)[0]!, ALICE);
  assert.deepEqual(tellers(), []);
});

Deno.test("KnownPresence walks through very many resources in pieces, while some come and go", async () => {
  const presence = new KnownPresence();
  const resource = (index: number) => `many@example.com/${index}`;
  for (let i = 0; i < 2_000; i++) tell(presence, resource(i), "dc2");
  const walked: number[] = [];
  let asked = 0;
  const paced = {
    run: async <T>(piece: () => T | Promise<T>) => {
      const before = asked;
      const result = piece();
      walked.push(asked - before);
      if (walked.length === 1) {
        presence.untell(resource(1_999), presence.of(resource(1_999))[0]!, ALICE);
        tell(presence, "bob@example.com/new", "dc3", 3);
      }
      return await result;
    },
  };
  const found = await presence.matching(paced, ({ process }) => ++asked > 0 && process === 2);
  assert.deepEqual(walked, [500, 500, 500, 500]);
  assert.deepEqual(
    found.map(([from]) => from),
    Array.from({ length: 1_999 }, (_, i) => resource(i)),
  );
});
