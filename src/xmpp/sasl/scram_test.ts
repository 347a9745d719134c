import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { pbkdf2Sync } from "node:crypto";
import type { ScramHash } from "./credentials.ts";
import { deriveSecret, digest, HASH_BYTES, hmac } from "./derive_credentials.ts";
import type { SaslCondition } from "./sasl_condition.ts";
import type { ScramBinding } from "./scram.ts";
import { challengeScram, parseScramFirst, verifyScramFinal } from "./scram.ts";

interface Vector {
  readonly hash: ScramHash;
  readonly salt: string;
  readonly clientFirst: string;
  readonly serverNonce: string;
  readonly serverFirst: string;
  readonly clientFinal: string;
  readonly serverFinal: string;
}

const VECTORS: readonly Vector[] = [
  { // RFC 5802 §5
    hash: "SHA-1",
    salt: "QSXCR+Q6sek8bf92",
    clientFirst: "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
    serverNonce: "3rfcNHYJY1ZVvWVs7j",
    serverFirst: "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
    clientFinal:
      "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
    serverFinal: "v=rmF9pqV8S7suAoZWja4dJRkFsKQ=",
  },
  { // RFC 7677 §3
    hash: "SHA-256",
    salt: "W22ZaJ0SNY7soEsUEjb6gQ==",
    clientFirst: "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
    serverNonce: "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0",
    serverFirst: "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0," +
      "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
    clientFinal: "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0," +
      "p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
    serverFinal: "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
  },
];

async function challengeOf(vector: Vector, clientFirst = vector.clientFirst) {
  const secret = await deriveSecret(
    vector.hash,
    "pencil",
    new Uint8Array(Buffer.from(vector.salt, "base64")),
    4096,
  );
  const first = parseScramFirst(clientFirst);
  assert(first.ok);
  return challengeScram(first.value, {
    hash: vector.hash,
    secret,
    serverNonce: vector.serverNonce,
  });
}

for (const vector of VECTORS) {
  Deno.test(`SCRAM-${vector.hash} answers as in the RFC's example`, async () => {
    const challenge = await challengeOf(vector);
    assert.equal(challenge.message, vector.serverFirst);
    assert.deepEqual(verifyScramFinal(challenge, vector.clientFinal), {
      ok: true,
      value: vector.serverFinal,
    });
  });

  Deno.test(`verifyScramFinal() refuses messages that differ from the RFC's ${vector.hash} example`, async () => {
    const challenge = await challengeOf(vector);
    const proof = vector.clientFinal.slice(vector.clientFinal.indexOf(",p=") + 3);
    const outcomes: [string, string][] = [
      [vector.clientFinal.replace(proof, proof.replace(/^./, "A")), "not-authorized"],
      [vector.clientFinal.replace(proof, proof.slice(0, -4)), "not-authorized"],
      [vector.clientFinal.replace(",r=", ",r=x"), "not-authorized"],
      [vector.clientFinal.replace("c=biws", "c=eSws"), "malformed-request"],
      [vector.clientFinal.replace(",p=", ",m=x,p="), "malformed-request"],
      [vector.clientFinal.replace(/,p=.*/, ""), "malformed-request"],
      ["", "malformed-request"],
    ];
    for (const [message, condition] of outcomes) {
      assert.deepEqual(verifyScramFinal(challenge, message), { ok: false, condition }, message);
    }
  });
}

for (const vector of VECTORS) {
  Deno.test(`verifyScramFinal() refuses a proof for another nonce by SCRAM-${vector.hash}`, async () => {
    const challenge = await challengeOf(vector);
    const answer = (nonce: string) => {
      const { hash, secret, first, message } = challenge;
      const unproven = `c=biws,r=${nonce}`;
      const signed = `${first.bare},${message},${unproven}`;
      const salted = pbkdf2Sync(
        "pencil",
        secret.salt,
        secret.iterations,
        HASH_BYTES[hash],
        hash.replace("-", "").toLowerCase(),
      );
      const clientKey = hmac(hash, new Uint8Array(salted), "Client Key");
      const signature = hmac(hash, digest(hash, clientKey), signed);
      const proof = Buffer.from(clientKey.map((byte, i) => byte ^ signature[i]!));
      return verifyScramFinal(challenge, `${unproven},p=${proof.toString("base64")}`);
    };
    const refused = { ok: false, condition: "not-authorized" };
    assert.deepEqual(answer(challenge.nonce), { ok: true, value: vector.serverFinal });
    for (const nonce of [`${challenge.nonce}x`, challenge.nonce.slice(0, -1), "x"]) {
      assert.deepEqual(answer(nonce), refused, nonce);
    }
  });
}

Deno.test("verifyScramFinal() signs the gs2 header that the exchange began with", async () => {
  const vector = VECTORS[0]!;
  const challenge = await challengeOf(vector, vector.clientFirst.replace("n,,", "y,,"));
  assert.deepEqual(verifyScramFinal(challenge, vector.clientFinal), {
    ok: false,
    condition: "malformed-request",
  });
});

Deno.test("parseScramFirst() reads flags, authzid, escapes and extensions", () => {
  const parsed = parseScramFirst("y,a=al=2Cice@example.com,n=a=3Db=2Cc,r=abc,x=1");
  assert.deepEqual(parsed, {
    ok: true,
    value: {
      gs2Header: "y,a=al=2Cice@example.com,",
      authzid: "al,ice@example.com",
      username: "a=b,c",
      clientNonce: "abc",
      bare: "n=a=3Db=2Cc,r=abc,x=1",
      channelData: undefined,
    },
  });
});

const OFFERED = { type: "tls-server-end-point", data: Uint8Array.of(1, 2, 3) } as const;

/** Flags of a client, and the answer under each mechanism. */
const FLAGS: readonly [
  flag: string,
  binding: ScramBinding,
  condition: SaslCondition | undefined,
][] = [
  ["n", { offered: undefined, isRequired: false }, undefined],
  ["n", { offered: OFFERED, isRequired: false }, undefined],
  ["n", { offered: OFFERED, isRequired: true }, "malformed-request"],
  ["y", { offered: undefined, isRequired: false }, undefined],
  ["y", { offered: OFFERED, isRequired: false }, "mechanism-too-weak"],
  ["y", { offered: OFFERED, isRequired: true }, "malformed-request"],
  ["p=tls-server-end-point", { offered: undefined, isRequired: false }, "malformed-request"],
  ["p=tls-server-end-point", { offered: OFFERED, isRequired: false }, "malformed-request"],
  ["p=tls-server-end-point", { offered: OFFERED, isRequired: true }, undefined],
  ["p=tls-server-end-point", { offered: undefined, isRequired: true }, "malformed-request"],
  ["p=undefined", { offered: undefined, isRequired: true }, "malformed-request"],
  ["p=TLS-server-end-point", { offered: OFFERED, isRequired: true }, "malformed-request"],
  ["p=tls-unique", { offered: OFFERED, isRequired: true }, "malformed-request"],
  ["p=tls-exporter", { offered: OFFERED, isRequired: true }, "malformed-request"],
];

for (const [flag, binding, condition] of FLAGS) {
  const name = `${binding.isRequired ? "a -PLUS mechanism" : "no -PLUS"}, ` +
    (binding.offered === undefined ? "nothing to bind to" : "a binding offered");
  Deno.test(`parseScramFirst() ${condition ?? "accepts"} for flag ${flag} with ${name}`, () => {
    const parsed = parseScramFirst(`${flag},,n=user,r=abc`, binding);
    if (condition !== undefined) return assert.deepEqual(parsed, { ok: false, condition });
    assert(parsed.ok);
    const data = binding.isRequired ? OFFERED.data : undefined;
    assert.equal(parsed.value.channelData, data);
  });
}

Deno.test("parseScramFirst() refuses bindings, mandatory extensions and broken messages", () => {
  const refused = [
    "p=tls-unique,,n=user,r=abc",
    "n,,m=x,n=user,r=abc",
    "n,,n=user,m=x,r=abc",
    "n,,n=user,r=abc,m=x",
    "n,,n=us=er,r=abc",
    "n,,n=,r=abc",
    "n,,n=user,r=",
    "n,,n=user,r=a\tb",
    "n,,n=us\0er,r=abc",
    "x,,n=user,r=abc",
    "n=user,r=abc",
    "n,user,n=user,r=abc",
    "",
  ];
  for (const message of refused) {
    assert.deepEqual(
      parseScramFirst(message),
      { ok: false, condition: "malformed-request" },
      message,
    );
  }
});
