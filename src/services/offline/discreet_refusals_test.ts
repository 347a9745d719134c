import assert from "node:assert/strict";
import { FairShares, ManualClock } from "../../base/mod.ts";
import { DiscreetRefusals } from "./discreet_refusals.ts";
import { BOB, HOST, message, settle } from "./testing/offline_fixture.ts";

const ALICE = "alice@example.com/desk";
const CAROL = "carol@example.com/desk";

class Fixture {
  readonly outcomes: string[] = [];
  readonly asked: string[] = [];
  readonly clock = new ManualClock();
  readonly budget = new FairShares({ maxBytes: 10_000_000 });
  /** Answers of rosters. */
  maySee: (asker: string) => Promise<boolean> = () => Promise.resolve(false);
  readonly refusals = new DiscreetRefusals({
    maySee: (asker, account) => {
      this.asked.push(`${asker.text} ${account.text}`);
      return this.maySee(asker.text);
    },
    isUserHost: (domain) => domain === HOST || domain === "example.com",
    budget: this.budget,
    clock: this.clock,
  });

  refuse(text: string, from = ALICE, to = BOB): Promise<void> {
    return this.refusals.refuse(message(text, from, to), "resource-constraint", {
      refused: (condition) => void this.outcomes.push(`${text} ${condition}`),
      dropped: () => void this.outcomes.push(`${text} dropped`),
    });
  }
}

Deno.test("DiscreetRefusals tells only those who may see the account's presence", async () => {
  const fixture = new Fixture();
  fixture.maySee = (asker) => Promise.resolve(asker === "alice@example.com");
  await fixture.refuse("contact", ALICE);
  await fixture.refuse("stranger", CAROL);
  assert.deepEqual(fixture.outcomes, ["contact resource-constraint", "stranger dropped"]);
  assert.equal(fixture.budget.bytes, 0);
});

Deno.test("DiscreetRefusals asks once for all messages of a sender that come until the answer", async () => {
  const fixture = new Fixture();
  const answer = Promise.withResolvers<boolean>();
  fixture.maySee = () => answer.promise;
  const texts = Array.from({ length: 100 }, (_, index) => `${index}`);
  const refused = texts.map((text) => fixture.refuse(text));
  await settle();
  answer.resolve(true);
  await Promise.all(refused);
  assert.deepEqual(fixture.outcomes, texts.map((text) => `${text} resource-constraint`));
  assert.deepEqual(fixture.asked, [`alice@example.com ${BOB}`]);
  await fixture.refuse("later");
  assert.equal(fixture.asked.length, 2);
});

Deno.test("DiscreetRefusals loses nothing in silence when the roster cannot tell, or not in time", async () => {
  const fixture = new Fixture();
  fixture.maySee = () => Promise.reject(new Error("no database"));
  await fixture.refuse("1");
  const roster = Promise.withResolvers<boolean>();
  fixture.maySee = () => roster.promise;
  const late = fixture.refuse("2");
  fixture.clock.advance(5_000);
  await late;
  assert.deepEqual(fixture.outcomes, ["1 resource-constraint", "2 resource-constraint"]);
  roster.resolve(false);
});

Deno.test("DiscreetRefusals holds a sender's share of messages, and drops more of them in silence", async () => {
  const fixture = new Fixture();
  const roster = Promise.withResolvers<boolean>();
  fixture.maySee = () => roster.promise;
  const taken = Array.from({ length: 10_000 }, (_, index) => fixture.refuse(`${index}`));
  const held = fixture.budget.items;
  assert.ok(held > 0 && held < 10_000, `${held}`);
  assert.equal(fixture.outcomes.length, 10_000 - held);
  roster.resolve(true);
  await Promise.all(taken);
  assert.ok(fixture.outcomes.slice(0, -held).every((outcome) => outcome.endsWith(" dropped")));
  assert.ok(fixture.outcomes.slice(-held).every((each) => each.endsWith(" resource-constraint")));
  assert.equal(fixture.budget.items, 0);
});

Deno.test("DiscreetRefusals tells no stranger whose questions to many rosters would be late", async () => {
  const fixture = new Fixture();
  fixture.maySee = async (asker) => {
    await new Promise<void>((resolve) => fixture.clock.after(100, resolve)); // a slow database
    return asker === "carol@example.com";
  };
  const flood = Array.from(
    { length: 500 },
    (_, index) => fixture.refuse("flood", ALICE, `user${index}@${HOST}`),
  );
  const contact = fixture.refuse("contact", CAROL);
  for (let passedMs = 0; passedMs < 5_000; passedMs += 100) {
    await settle();
    fixture.clock.advance(100);
  }
  await Promise.all([...flood, contact]);
  assert.deepEqual(Object.groupBy(fixture.outcomes, (outcome) => outcome), {
    __proto__: null,
    "flood dropped": Array(500).fill("flood dropped"),
    "contact resource-constraint": ["contact resource-constraint"],
  });
});
