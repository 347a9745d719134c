import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { deriveScramCredentials } from "./derive_credentials.ts";
import { FakeCredentials } from "./fake_credentials.ts";
import type { SaslReply } from "./sasl_exchange.ts";
import { SaslExchange } from "./sasl_exchange.ts";
import type { SaslMechanism } from "./mechanism.ts";

const CREDENTIALS = await deriveScramCredentials("wonderland", 16);

/** Accounts with their remaining guesses, and a record of the calls. */
class Attempts {
  readonly left = new Map<string, number>();
  readonly begun: string[] = [];
  readonly succeeded: string[] = [];

  exchange(mechanism: SaslMechanism): SaslExchange {
    return new SaslExchange(mechanism, {
      domain: "example.com",
      source: {
        credentials: (name) => Promise.resolve(name === "alice" ? CREDENTIALS : undefined),
      },
      fake: new FakeCredentials(16, new Uint8Array(32)),
      nonce: () => "server-nonce",
      attempts: {
        begin: (account) => {
          this.begun.push(account);
          const left = this.left.get(account) ?? 1;
          this.left.set(account, left - 1);
          return left > 0;
        },
        succeeded: (account) => {
          this.succeeded.push(account);
          this.left.set(account, (this.left.get(account) ?? 0) + 1);
        },
      },
    });
  }
}

function plain(user: string, password: string): string {
  return Buffer.from(`\0${user}\0${password}`, "utf8").toString("base64");
}

function outcomeOf(reply: SaslReply): string {
  return reply.kind === "failure" ? reply.condition : reply.kind;
}

Deno.test("SaslExchange counts guesses, right or wrong, by the account's normalised name", async () => {
  const attempts = new Attempts();
  const guess = async (user: string, password: string) =>
    outcomeOf(await attempts.exchange("PLAIN").respond(plain(user, password)));
  assert.equal(await guess("alice", "wonderland"), "success");
  assert.deepEqual(attempts.succeeded, ["alice@example.com"]);
  assert.equal(await guess("ALICE", "wrong"), "not-authorized");
  assert.equal(await guess("alice", "wonderland"), "temporary-auth-failure", "also the right one");
  assert.deepEqual(attempts.begun, Array(3).fill("alice@example.com"));
});

Deno.test("SaslExchange counts guesses for nonexistent accounts too", async () => {
  const attempts = new Attempts();
  const guess = async (user: string) =>
    outcomeOf(await attempts.exchange("PLAIN").respond(plain(user, "guess")));
  for (const user of ["alice", "nobody", "no@body"]) {
    assert.equal(await guess(user), "not-authorized", user);
    assert.equal(await guess(user), "temporary-auth-failure", user);
  }
});

for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1"] as const) {
  Deno.test(`SaslExchange counts a guess by ${mechanism} when its proof arrives, not before`, async () => {
    const attempts = new Attempts();
    const finals: string[] = [];
    for (let i = 0; i < 2; i++) {
      const exchange = attempts.exchange(mechanism);
      const first = Buffer.from("n,,n=alice,r=abc").toString("base64");
      assert.equal((await exchange.respond(first)).kind, "challenge");
      assert.equal(attempts.begun.length, i);
      const proof = Buffer.alloc(mechanism === "SCRAM-SHA-1" ? 20 : 32).toString("base64");
      const final = Buffer.from(`c=biws,r=abcserver-nonce,p=${proof}`).toString("base64");
      finals.push(outcomeOf(await exchange.respond(final)));
    }
    assert.deepEqual(finals, ["not-authorized", "temporary-auth-failure"]);
  });
}
