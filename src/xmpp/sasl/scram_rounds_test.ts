import assert from "node:assert/strict";
import { FakeCredentials } from "./fake_credentials.ts";
import { ScramRounds } from "./scram_rounds.ts";

Deno.test("ScramRounds shows the default without accounts, and each count for its share", () => {
  const rounds = new ScramRounds(20_000);
  assert.equal(rounds.at(0), 20_000);
  rounds.learn(new Map([[10_000, 3], [20_000, 1]]));
  assert.deepEqual([0, 0.249, 0.25, 0.999].map((at) => rounds.at(at)), [
    20_000,
    20_000,
    10_000,
    10_000,
  ]);
  rounds.learn(new Map());
  assert.equal(rounds.at(0.5), 20_000);
});

Deno.test("FakeCredentials show the rounds of real accounts, in the same proportions", () => {
  const rounds = new ScramRounds(20_000);
  const fake = new FakeCredentials(rounds, new Uint8Array(32));
  rounds.learn(new Map([[10_000, 700], [20_000, 300]]));
  const names = Array.from({ length: 2000 }, (_, at) => `nobody${at}`);
  const credentialsOf = (name: string) => fake.credentialsOf(name, "example.com");
  const older = names.filter((name) => credentialsOf(name).sha256.iterations === 10_000);
  assert.ok(older.length > 1300 && older.length < 1500, String(older.length));
  const [name] = older as [string];
  const before = credentialsOf(name);
  assert.deepEqual(credentialsOf(name), before, "always the same");
  assert.equal(before.sha1.iterations, 10_000, "for every mechanism");
  rounds.learn(new Map([[20_000, 1000]]));
  const after = credentialsOf(name);
  assert.equal(after.sha256.iterations, 20_000);
  assert.notDeepEqual(after.sha256.salt, before.sha256.salt, "as with a new password");
});
