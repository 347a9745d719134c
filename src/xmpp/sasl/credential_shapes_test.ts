import assert from "node:assert/strict";
import type { CountedShape } from "./credential_shapes.ts";
import { accountsWithoutKey, CredentialShapes } from "./credential_shapes.ts";
import { FakeCredentials } from "./fake_credentials.ts";

/** Accounts with a salt of 16 bytes and as many rounds for both keys. */
function made(iterations: number, accounts: number): CountedShape {
  const secret = { iterations, saltBytes: 16 };
  return { shape: { sha1: secret, sha256: secret, sharesSalt: false }, accounts };
}

Deno.test("CredentialShapes shows the default without accounts, and each shape for its share", () => {
  const shapes = new CredentialShapes(20_000);
  const roundsAt = (position: number) => shapes.at(position).sha256?.iterations;
  assert.equal(roundsAt(0), 20_000);
  shapes.learn([made(10_000, 1), made(20_000, 1), made(10_000, 2)]);
  assert.deepEqual([0, 0.249, 0.25, 0.999].map(roundsAt), [20_000, 20_000, 10_000, 10_000]);
  shapes.learn([]);
  assert.equal(roundsAt(0.5), 20_000);
});

Deno.test("FakeCredentials show the rounds of real accounts, in the same proportions", () => {
  const shapes = new CredentialShapes(20_000);
  const fake = new FakeCredentials(shapes, new Uint8Array(32));
  shapes.learn([made(10_000, 700), made(20_000, 300)]);
  const names = Array.from({ length: 2000 }, (_, at) => `nobody${at}`);
  const secretsOf = (name: string) => fake.secretsOf(name, "example.com", undefined);
  const older = names.filter((name) => secretsOf(name).sha256.iterations === 10_000);
  assert.ok(older.length > 1300 && older.length < 1500, String(older.length));
  const [name] = older as [string];
  const before = secretsOf(name);
  assert.deepEqual(secretsOf(name), before, "always the same");
  assert.equal(before.sha1.iterations, 10_000, "for every mechanism");
  shapes.learn([made(20_000, 1000)]);
  const after = secretsOf(name);
  assert.equal(after.sha256.iterations, 20_000);
  assert.notDeepEqual(after.sha256.salt, before.sha256.salt, "as with a new password");
});

Deno.test("FakeCredentials show what else distinguishes accounts that were moved here", () => {
  const shapes = new CredentialShapes(20_000);
  const fake = new FakeCredentials(shapes, new Uint8Array(32));
  const secretsOf = (name: string) => fake.secretsOf(name, "example.com", undefined);

  const long = { iterations: 4096, saltBytes: 100 };
  shapes.learn([{ shape: { sha1: long, sha256: undefined, sharesSalt: false }, accounts: 1 }]);
  const { sha1, sha256, plainHash } = secretsOf("nobody");
  assert.equal(sha1.salt.length, 100);
  assert.equal(sha256.salt.length, 100, "the missing key looks like the one that is there");
  assert.equal(sha256.iterations, 4096);
  assert.notDeepEqual(sha1.salt, sha256.salt);
  assert.ok(new Set(sha1.salt.subarray(32)).size > 16, "the salt is random to its end");
  assert.equal(plainHash, "SHA-1", "a password is checked with the key that accounts have");

  const secret = { iterations: 4096, saltBytes: 16 };
  shapes.learn([{ shape: { sha1: secret, sha256: secret, sharesSalt: true }, accounts: 1 }]);
  const shared = secretsOf("nobody");
  assert.deepEqual(shared.sha1.salt, shared.sha256.salt);
  assert.equal(shared.plainHash, "SHA-256");

  const uuid = { iterations: 10_000, saltBytes: 36 };
  shapes.learn([{ shape: { sha1: uuid, sha256: undefined, sharesSalt: false }, accounts: 1 }]);
  const text = new TextDecoder().decode(secretsOf("nobody").sha1.salt);
  assert.match(text, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

Deno.test("FakeCredentials gives an account a missing key that no password has", () => {
  const fake = new FakeCredentials(20_000, new Uint8Array(32));
  const sha1 = {
    salt: new Uint8Array(16).fill(1),
    iterations: 4096,
    storedKey: new Uint8Array(20).fill(2),
    serverKey: new Uint8Array(20).fill(3),
  };
  const secrets = fake.secretsOf("alice", "example.com", { sha1, sha256: undefined });
  assert.deepEqual(secrets.sha1, sha1);
  assert.equal(secrets.plainHash, "SHA-1");
  assert.equal(secrets.sha256.iterations, 4096);
  assert.equal(secrets.sha256.salt.length, 16);
  assert.equal(secrets.sha256.storedKey.length, 32);
  const again = fake.secretsOf("alice", "example.com", { sha1, sha256: undefined });
  assert.deepEqual(again, secrets, "always the same");
});

Deno.test("accountsWithoutKey() counts accounts by the mechanisms that they cannot use", () => {
  const secret = { iterations: 4096, saltBytes: 16 };
  const counted: CountedShape[] = [
    made(10_000, 5),
    { shape: { sha1: secret, sha256: undefined, sharesSalt: false }, accounts: 2 },
    { shape: { ...made(1, 1).shape, sha256: undefined }, accounts: 1 },
    { shape: { sha1: undefined, sha256: secret, sharesSalt: false }, accounts: 4 },
  ];
  assert.deepEqual(accountsWithoutKey(counted, ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"]), [
    { mechanism: "SCRAM-SHA-256", accounts: 3 },
    { mechanism: "SCRAM-SHA-1", accounts: 4 },
  ]);
  assert.deepEqual(accountsWithoutKey(counted, ["PLAIN"]), []);
});
