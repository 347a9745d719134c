import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import type {
  CompleteCredentials,
  CredentialSource,
  ScramCredentials,
  ScramHash,
} from "./credentials.ts";
import { deriveScramCredentials, digest, HASH_BYTES, hmac } from "./derive_credentials.ts";
import { FakeCredentials } from "./fake_credentials.ts";
import type { SaslMechanism } from "./mechanism.ts";
import { scramHashOf } from "./mechanism.ts";
import type { SaslReply } from "./sasl_exchange.ts";
import { MAX_SASL_TEXT_UNITS, SaslExchange } from "./sasl_exchange.ts";
import { tryDecodeSaslText } from "./sasl_text.ts";
import { pbkdf2Sync } from "node:crypto";

const ITERATIONS = 1000;

const ACCOUNTS = new Map([["alice", await deriveScramCredentials("wonder land", ITERATIONS)]]);

const SOURCE: CredentialSource = {
  credentials: (localpart) => Promise.resolve(ACCOUNTS.get(localpart)),
};

function begin(
  mechanism: SaslMechanism,
  source: CredentialSource = SOURCE,
  domain = "example.com",
): SaslExchange {
  return new SaslExchange(mechanism, {
    domain,
    source,
    fake: new FakeCredentials(ITERATIONS, new Uint8Array(32)),
    nonce: () => "server-nonce",
  });
}

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

/** A SCRAM client of the test's own, so that our server does not only judge itself. */
async function scram(
  mechanism: SaslMechanism,
  username: string,
  password: string,
  gs2 = "n,,",
  source?: CredentialSource,
): Promise<SaslReply & { serverFirst?: string }> {
  const hash = scramHashOf(mechanism)!;
  const exchange = begin(mechanism, source);
  const bare = `n=${username},r=client-nonce`;
  const reply = await exchange.respond(base64(gs2 + bare));
  if (reply.kind !== "challenge") return reply;
  const serverFirst = tryDecodeSaslText(reply.text)!;
  const [, nonce, salt, iterations] = /^r=(.*),s=(.*),i=(.*)$/.exec(serverFirst)!;
  const salted = pbkdf2Sync(
    password,
    Buffer.from(salt!, "base64"),
    Number(iterations),
    HASH_BYTES[hash],
    hash.replace("-", "").toLowerCase(),
  );
  const clientKey = hmac(hash, new Uint8Array(salted), "Client Key");
  const unproven = `c=${base64(gs2)},r=${nonce}`;
  const signature = clientSignature(hash, clientKey, `${bare},${serverFirst},${unproven}`);
  const proof = Buffer.from(clientKey.map((byte, i) => byte ^ signature[i]!)).toString("base64");
  return { ...await exchange.respond(base64(`${unproven},p=${proof}`)), serverFirst };
}

function clientSignature(hash: ScramHash, clientKey: Uint8Array, signed: string): Uint8Array {
  return createHmac(hash.replace("-", "").toLowerCase(), digest(hash, clientKey)).update(signed)
    .digest();
}

for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1"] as const) {
  Deno.test(`SaslExchange lets an account in by ${mechanism}`, async () => {
    const reply = await scram(mechanism, "Alice", "wonder land");
    assert.equal(reply.kind, "success");
    assert(reply.kind === "success");
    assert.equal(reply.account.text, "alice@example.com");
    assert.match(tryDecodeSaslText(reply.text!)!, /^v=/);
  });

  Deno.test(`SaslExchange refuses a wrong password by ${mechanism}`, async () => {
    const reply = await scram(mechanism, "alice", "wonderland");
    assert(reply.kind === "failure");
    assert.equal(reply.condition, "not-authorized");
  });

  Deno.test(`SaslExchange answers the same for a nonexistent account by ${mechanism}`, async () => {
    const [first, again, real] = [
      await scram(mechanism, "nobody", "wonder land"),
      await scram(mechanism, "nobody", "wonder land"),
      await scram(mechanism, "alice", "wrong"),
    ];
    assert(first.kind === "failure" && real.kind === "failure");
    assert.equal(first.condition, real.condition);
    assert.equal(first.serverFirst, again.serverFirst);
    assert.equal(first.serverFirst!.length, real.serverFirst!.length);
    // Names that would be the same account share its salt.
    const inCapitals = await scram(mechanism, "NoBody", "wonder land");
    assert.equal(inCapitals.serverFirst, first.serverFirst);
  });

  Deno.test(`SaslExchange shows a nonexistent account another salt at each host by ${mechanism}`, async () => {
    // An account has a salt of its own at each host: equal salts would tell that there is none.
    const saltOf = async (username: string, domain: string) => {
      const reply = await begin(mechanism, SOURCE, domain).respond(base64(`n,,n=${username},r=c`));
      assert(reply.kind === "challenge");
      return /,s=(.*),/.exec(tryDecodeSaslText(reply.text)!)![1]!;
    };
    const salts = await Promise.all([
      saltOf("nobody", "example.com"),
      saltOf("nobody", "dc1.example.com"),
      saltOf("nobody@example.com", "example.com"), // no localpart
      saltOf("nobody@example.com", "dc1.example.com"),
    ]);
    assert.equal(new Set(salts).size, salts.length, salts.join(" "));
  });

  Deno.test(`SaslExchange refuses another account's authzid by ${mechanism}`, async () => {
    const reply = await scram(mechanism, "alice", "wonder land", "n,a=bob@example.com,");
    assert(reply.kind === "failure");
    assert.equal(reply.condition, "invalid-authzid");
  });

  Deno.test(`SaslExchange accepts an account's own authzid by ${mechanism}`, async () => {
    const reply = await scram(mechanism, "alice", "wonder land", "y,a=ALICE@example.com,");
    assert.equal(reply.kind, "success");
  });

  Deno.test(`SaslExchange asks for an initial response by ${mechanism}`, async () => {
    const exchange = begin(mechanism);
    assert.deepEqual(await exchange.respond(undefined), { kind: "challenge", text: "" });
    const reply = await exchange.respond(base64("n,,n=alice,r=abc"));
    assert.equal(reply.kind, "challenge");
  });
}

const PLAIN_CASES: readonly [what: string, message: string, outcome: string][] = [
  ["an account", "\0alice\0wonder land", "alice@example.com"],
  ["an account in capitals", "\0ALICE\0wonder land", "alice@example.com"],
  ["its own authzid", "alice@example.com\0alice\0wonder land", "alice@example.com"],
  ["another account's authzid", "bob@example.com\0alice\0wonder land", "invalid-authzid"],
  [
    "another account's authzid with a wrong password",
    "bob@example.com\0alice\0x",
    "not-authorized",
  ],
  ["a full JID as authzid", "alice@example.com/x\0alice\0wonder land", "invalid-authzid"],
  ["a wrong password", "\0alice\0wonderland", "not-authorized"],
  ["a nonexistent account", "\0bob\0wonder land", "not-authorized"],
  ["a name that no account can have", "\0alice@example.com\0wonder land", "not-authorized"],
  ["no name", "\0\0wonder land", "malformed-request"],
  ["no password", "\0alice\0", "malformed-request"],
  ["too few parts", "alice\0wonder land", "malformed-request"],
  ["too many parts", "\0alice\0wonder\0land", "malformed-request"],
  ["nothing", "", "malformed-request"],
];

for (const [what, message, outcome] of PLAIN_CASES) {
  Deno.test(`SaslExchange answers PLAIN with ${what}: ${outcome}`, async () => {
    const reply = await begin("PLAIN").respond(base64(message));
    assert.equal(
      reply.kind === "success" ? reply.account.text : reply.kind === "failure" && reply.condition,
      outcome,
    );
  });
}

Deno.test("SaslExchange refuses text that is not base64", async () => {
  const reply = await begin("PLAIN").respond("!!!");
  assert.deepEqual(reply, { kind: "failure", condition: "incorrect-encoding" });
});

Deno.test("SaslExchange refuses messages after its end", async () => {
  const exchange = begin("PLAIN");
  assert.equal((await exchange.respond(base64("\0alice\0x"))).kind, "failure");
  const reply = await exchange.respond(base64("\0alice\0wonder land"));
  assert.deepEqual(reply, { kind: "failure", condition: "malformed-request" });
});

Deno.test("SaslExchange reports a store that fails as temporary", async () => {
  const broken: CredentialSource = { credentials: () => Promise.reject(new Error("disk is gone")) };
  const failure = { kind: "failure", condition: "temporary-auth-failure" };
  assert.deepEqual(await begin("PLAIN", broken).respond(base64("\0alice\0x")), failure);
  assert.deepEqual(await scram("SCRAM-SHA-1", "alice", "x", "n,,", broken), failure);
});

Deno.test("SaslExchange also looks up names that no account can have", async () => {
  let asked = 0;
  const counting: CredentialSource = {
    credentials: () => {
      asked++;
      return Promise.resolve(undefined);
    },
  };
  await begin("PLAIN", counting).respond(base64("\0a@b\0x"));
  await begin("PLAIN", counting).respond(base64("\0nobody\0x"));
  assert.equal(asked, 2);
});

for (const mechanism of ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"] as const) {
  Deno.test(`SaslExchange takes the same steps by ${mechanism} whether or not there is an account`, async () => {
    const stepsFor = async (user: string): Promise<string[]> => {
      const steps: string[] = [];
      class Noting extends FakeCredentials {
        override secretsOf(...args: Parameters<FakeCredentials["secretsOf"]>) {
          steps.push("make fake credentials");
          return super.secretsOf(...args);
        }
      }
      const exchange = new SaslExchange(mechanism, {
        domain: "example.com",
        source: {
          credentials: (localpart) => {
            steps.push("ask the store");
            return SOURCE.credentials(localpart);
          },
        },
        fake: new Noting(ITERATIONS, new Uint8Array(32)),
        nonce: () => {
          steps.push("make a nonce");
          return "server-nonce";
        },
        verify: ({ salt, iterations, storedKey }) => {
          steps.push(`hash with ${salt.length} bytes, ${iterations} times, ${storedKey.length}`);
          return Promise.resolve(false);
        },
        attempts: {
          begin: () => steps.push("count the guess") > 0,
          succeeded: () => void steps.push("take the guess back"),
        },
      });
      const hash = scramHashOf(mechanism);
      const messages = hash === undefined ? [`\0${user}\0guess`] : [
        `n,,n=${user},r=abc`,
        `c=biws,r=abcserver-nonce,p=${Buffer.alloc(HASH_BYTES[hash]).toString("base64")}`,
      ];
      for (const message of messages) {
        const reply = await exchange.respond(base64(message));
        steps.push(
          reply.kind === "failure"
            ? reply.condition
            : `${reply.kind} ${reply.kind === "challenge" ? reply.text.length : ""}`,
        );
      }
      return steps;
    };
    const expected = await stepsFor("alice");
    assert.equal(expected.at(-1), "not-authorized");
    assert.ok(expected.includes("count the guess"));
    for (const user of ["nobody", "al@ice", "a/b", "\u30fb", "x".repeat(1030)]) {
      assert.deepEqual(await stepsFor(user), expected, user);
    }
  });
}

Deno.test("SaslExchange ignores a message that is longer than any that could succeed", async () => {
  let asked = 0;
  const counting: CredentialSource = {
    credentials: () => {
      asked++;
      return Promise.resolve(undefined);
    },
  };
  const longest = `\0${"x".repeat(MAX_SASL_TEXT_UNITS / 4 * 3 - 7)}\0guess`;
  for (
    const [message, condition] of [
      [longest, "not-authorized"],
      [`${longest}!`, "malformed-request"],
    ] as const
  ) {
    const reply = await begin("PLAIN", counting).respond(base64(message));
    assert.deepEqual(reply, { kind: "failure", condition });
  }
  assert.equal(asked, 1);
});

Deno.test("SaslExchange hashes a PLAIN password once, with the same rounds for every account", async () => {
  const hashed: { readonly iterations: number; readonly password: string }[] = [];
  const users = ["alice", "nobody", "al@ice", "a/b", "x".repeat(1030)];
  for (const user of users) {
    const exchange = new SaslExchange("PLAIN", {
      domain: "example.com",
      source: SOURCE,
      fake: new FakeCredentials(ITERATIONS, new Uint8Array(32)),
      nonce: () => "server-nonce",
      verify: ({ iterations }, password) => {
        hashed.push({ iterations, password });
        return Promise.resolve(user !== "alice"); // right only for a nonexistent account
      },
    });
    const reply = await exchange.respond(base64(`\0${user}\0guess`));
    assert.deepEqual(reply, { kind: "failure", condition: "not-authorized" }, user);
  }
  assert.deepEqual(hashed, users.map(() => ({ iterations: ITERATIONS, password: "guess" })));
});

/** A source with one account, alice, that lacks a key. */
class Lacking implements CredentialSource {
  readonly completed: unknown[] = [];
  stored: ScramCredentials;

  constructor(stored: ScramCredentials) {
    this.stored = stored;
  }

  credentials(localpart: string) {
    return Promise.resolve(localpart === "alice" ? this.stored : undefined);
  }

  complete(localpart: string, credentials: CompleteCredentials): Promise<void> {
    this.completed.push(localpart);
    this.stored = credentials;
    return Promise.resolve();
  }
}

const WHOLE = await deriveScramCredentials("wonder land", ITERATIONS);
const LACKING = [
  {
    own: "SCRAM-SHA-1",
    other: "SCRAM-SHA-256",
    stored: { sha1: WHOLE.sha1, sha256: undefined },
  },
  {
    own: "SCRAM-SHA-256",
    other: "SCRAM-SHA-1",
    stored: { sha1: undefined, sha256: WHOLE.sha256 },
  },
] as const;

for (const { own, other, stored } of LACKING) {
  Deno.test(`SaslExchange refuses ${other} like a wrong password without its key`, async () => {
    const source = new Lacking(stored);
    assert.equal((await scram(own, "alice", "wonder land", "n,,", source)).kind, "success");
    const refused = await scram(other, "alice", "wonder land", "n,,", source);
    assert(refused.kind === "failure");
    assert.equal(refused.condition, "not-authorized");
    const nobody = await scram(other, "nobody", "wonder land", "n,,", source);
    assert.equal(refused.serverFirst!.length, nobody.serverFirst!.length);
    const again = await scram(other, "alice", "wonder land", "n,,", source);
    assert.equal(again.serverFirst, refused.serverFirst, "the salt stays the same");
    assert.deepEqual(source.completed, []);
  });

  Deno.test(`SaslExchange adds the key for ${other} at a login with PLAIN`, async () => {
    const source = new Lacking(stored);
    const before = await scram(other, "alice", "wonder land", "n,,", source);
    const wrong = await begin("PLAIN", source).respond(base64("\0alice\0wrong"));
    assert.deepEqual(wrong, { kind: "failure", condition: "not-authorized" });
    assert.deepEqual(source.completed, [], "nothing is added for a wrong password");
    const reply = await begin("PLAIN", source).respond(base64("\0alice\0wonder land"));
    assert.equal(reply.kind, "success");
    assert.deepEqual(source.completed, ["alice"]);
    const after = await scram(other, "alice", "wonder land", "n,,", source);
    assert.equal(after.kind, "success");
    assert.equal(after.serverFirst, before.serverFirst, "strangers see no change");
    assert.equal((await scram(own, "alice", "wonder land", "n,,", source)).kind, "success");
    await begin("PLAIN", source).respond(base64("\0alice\0wonder land"));
    assert.deepEqual(source.completed, ["alice"], "nothing is missing any more");
  });
}

Deno.test("SaslExchange lets an account in whose missing key cannot be stored", async () => {
  const source = new Lacking(LACKING[0].stored);
  source.complete = () => Promise.reject(new Error("disk is full"));
  const reply = await begin("PLAIN", source).respond(base64("\0alice\0wonder land"));
  assert.equal(reply.kind, "success");
});

/** A source that checks passwords by itself, and notes what it is asked. */
function checkingSource(asked: string[]): CredentialSource {
  return {
    credentials: () => Promise.reject(new Error("it keeps no keys")),
    checkPassword(localpart, password) {
      asked.push(`${localpart} ${password}`);
      if (localpart === "broken") return Promise.reject(new Error("it is down"));
      const isRight = localpart === "alice" && password === "wonder land";
      return Promise.resolve(isRight ? { creation: "0a" } : undefined);
    },
  };
}

Deno.test("SaslExchange lets a source check the password, whoever the account is", async () => {
  const asked: string[] = [];
  const logIn = (name: string, password: string) =>
    begin("PLAIN", checkingSource(asked)).respond(base64(`\0${name}\0${password}`));
  const success = await logIn("Alice", "wonder\u00a0land");
  assert.equal(success.kind === "success" && success.account.text, "alice@example.com");
  assert.equal(success.kind === "success" && success.creation, "0a");
  const refused = { kind: "failure", condition: "not-authorized" };
  assert.deepEqual(await logIn("alice", "other"), refused);
  assert.deepEqual(await logIn("nobody", "other"), refused);
  assert.deepEqual(await logIn("no name@", "other"), refused);
  assert.deepEqual(await logIn("broken", "other"), {
    kind: "failure",
    condition: "temporary-auth-failure",
  });
  assert.deepEqual(asked, [
    "alice wonder land",
    "alice other",
    "nobody other",
    " other",
    "broken other",
  ]);
});

Deno.test("SaslExchange asks a source nothing for an account with too many wrong guesses", async () => {
  const asked: string[] = [];
  const exchange = new SaslExchange("PLAIN", {
    domain: "example.com",
    source: checkingSource(asked),
    fake: new FakeCredentials(ITERATIONS, new Uint8Array(32)),
    nonce: () => "server-nonce",
    attempts: { begin: () => false, succeeded: () => {} },
  });
  assert.deepEqual(await exchange.respond(base64("\0alice\0wonder land")), {
    kind: "failure",
    condition: "temporary-auth-failure",
  });
  assert.deepEqual(asked, []);
});
