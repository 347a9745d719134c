import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { costRatio, MAX_COST_RATIO } from "../../base/testing/cost_ratio.ts";
import { tryParsePlain } from "./plain.ts";
import { MAX_PASSWORD_LENGTH, tryPreparePassword } from "./prepare_password.ts";
import { MAX_SASL_TEXT_UNITS } from "./sasl_exchange.ts";
import { tryDecodeSaslText } from "./sasl_text.ts";
import { challengeScram, parseScramFirst, verifyScramFinal } from "./scram.ts";

function filled(units: number, unit: string): string {
  return unit.repeat(Math.floor(units / unit.length));
}

const SECRET = {
  salt: new Uint8Array(16),
  iterations: 1,
  storedKey: new Uint8Array(32),
  serverKey: new Uint8Array(32),
};
const first = parseScramFirst("n,,n=alice,r=abc");
assert(first.ok);
const CHALLENGE = challengeScram(first.value, {
  hash: "SHA-256",
  secret: SECRET,
  serverNonce: "server-nonce",
});

/**
 * Costly messages that strangers send before they prove a password: valid to the end, or wrong at the
 * end.
 */
const WORST: readonly {
  readonly what: string;
  readonly largeSize: number;
  make(size: number): string;
  work(text: string): unknown;
}[] = [
  ...([
    ["base64", (size) => filled(size, "YWJj")],
    ["base64 that ends wrong", (size) => `${filled(size, "YWJj")}!`],
    ["base64 of bytes that are not UTF-8", (size) => `${filled(size, "YWJj")}/w==`],
  ] as [string, (size: number) => string][]).map(([what, make]) => ({
    what,
    largeSize: MAX_SASL_TEXT_UNITS,
    make,
    work: tryDecodeSaslText,
  })),
  ...([
    ["a SCRAM name of escapes", (size) => `n,,n=${filled(size, "=2C=3D")},r=abc`],
    ["a SCRAM name that ends wrong", (size) => `n,,n=${filled(size, "=2C=3D")}=,r=abc`],
    ["a SCRAM name without an end", (size) => `n,,n=${filled(size, "=2C")}`],
    ["a SCRAM authzid that ends wrong", (size) => `n,a=${filled(size, "x=2C")}\0,n=a,r=abc`],
    ["SCRAM extensions", (size) => `n,,n=a,r=abc${filled(size, ",x=y")}`],
    ["SCRAM extensions that end wrong", (size) => `n,,n=a,r=abc${filled(size, ",x=y")},m=`],
    ["a SCRAM nonce that ends wrong", (size) => `n,,n=a,r=${filled(size, "x")}\0`],
    ["a SCRAM flag", (size) => `p=${filled(size, "x.")}`],
  ] as [string, (size: number) => string][]).map(([what, make]) => ({
    what,
    largeSize: MAX_SASL_TEXT_UNITS,
    make,
    work: parseScramFirst,
  })),
  ...([
    ["a SCRAM proof", (size) => `c=biws,r=abcserver-nonce,p=${filled(size, "YWJj")}`],
    ["a SCRAM proof that ends wrong", (size) => `c=biws,r=abc,p=${filled(size, "YWJj")}!`],
    ["a SCRAM binding", (size) => `c=${filled(size, "YWJj")},r=abc,p=YWJj`],
    ["extensions and no proof", (size) => `c=biws,r=abc${filled(size, ",x=y")}`],
  ] as [string, (size: number) => string][]).map(([what, make]) => ({
    what,
    largeSize: MAX_SASL_TEXT_UNITS,
    make,
    work: (text: string) => verifyScramFinal(CHALLENGE, text),
  })),
  {
    what: "PLAIN of nothing but NULs",
    largeSize: MAX_SASL_TEXT_UNITS,
    make: (size) => filled(size, "\0"),
    work: tryParsePlain,
  },
  ...([
    ["a password in right-to-left letters", (size) => filled(size, "שׁ")],
    ["a password that changes direction at its end", (size) => `${filled(size - 1, "ש")}a`],
    [
      "a password of marks",
      (size) => `a${filled(size / 2, "\u0301")}${filled(size / 2, "\u0316")}`,
    ],
    ["a password of letters with marks", (size) => filled(size, `a${"\u0301".repeat(15)}\u0316`)],
    [
      "a password of marks and half-width sound marks",
      (size) => `a${filled(size - 1, `${"\u0301".repeat(15)}\uff9e`)}`,
    ],
    ["a password that grows", (size) => filled(size, "ﷺ")],
    ["a password of characters that preparation deletes", (size) => filled(size, "\u00ad")],
  ] as [string, (size: number) => string][]).map(([what, make]) => ({
    what,
    largeSize: MAX_PASSWORD_LENGTH,
    make,
    work: tryPreparePassword,
  })),
];

for (const { what, ...measurement } of WORST) {
  Deno.test(`SASL reads ${what} in linear time`, () => {
    const ratio = costRatio(measurement);
    assert.ok(
      ratio < MAX_COST_RATIO,
      `${ratio.toFixed(1)} times the cost of the same input in pieces`,
    );
  });
}

Deno.test("MAX_SASL_TEXT_UNITS leaves room for the longest message that can succeed", () => {
  const part = "漢".repeat(341);
  const plain = `${part}@${part}/${part}\0${part}\0${"漢".repeat(MAX_PASSWORD_LENGTH)}`;
  assert.ok(Buffer.from(plain).toString("base64").length <= MAX_SASL_TEXT_UNITS);
});
