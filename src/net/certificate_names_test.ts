import "reflect-metadata"; // @peculiar/x509 refuses to load without it
import type { JsonGeneralNames } from "@peculiar/x509";
import {
  Extension,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import assert from "node:assert/strict";
import { certificateNames, MAX_CERTIFICATE_BYTES } from "./certificate_names.ts";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const KEYS = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
const SUBJECT_ALTERNATIVE_NAME = "2.5.29.17";

async function certificate(...extensions: readonly Extension[]): Promise<Uint8Array> {
  const { rawData } = await X509CertificateGenerator.createSelfSigned({
    name: "CN=dc9.example.com",
    keys: KEYS,
    signingAlgorithm: ALGORITHM,
    extensions: [...extensions],
  });
  return new Uint8Array(rawData);
}

function naming(names: JsonGeneralNames): Promise<Uint8Array> {
  return certificate(new SubjectAlternativeNameExtension(names));
}

const dns = (...values: readonly string[]): JsonGeneralNames =>
  values.map((value) => ({ type: "dns", value }));

Deno.test("certificateNames() gives each dNSName once, in lower case", async () => {
  const names = ["dc1.example.com", "DC2.Example.COM", "dc1.EXAMPLE.com", "xn--bcher-kva.example"];
  assert.deepEqual(certificateNames(await naming(dns(...names))), [
    "dc1.example.com",
    "dc2.example.com",
    "xn--bcher-kva.example",
  ]);
  assert.deepEqual(certificateNames(await naming(dns("localhost"))), ["localhost"]);
});

const INNOCENT = "evil.example.net";
const NOT_DC9: readonly (readonly [string, JsonGeneralNames])[] = [
  ["a URI", [{ type: "url", value: `https://${INNOCENT}/?, DNS:dc9.example.com` }]],
  ["an address", [{ type: "email", value: `"x, DNS:dc9.example.com"@${INNOCENT}` }]],
  ["a directory name", [{ type: "dn", value: "CN=x\\, DNS:dc9.example.com" }]],
  ["a DNS name", dns(`${INNOCENT}, DNS:dc9.example.com`)],
  ["a wildcard", dns("*.example.com", "dc*.example.com", "*")],
  ["an address of IPv4", [{ type: "ip", value: "192.0.2.9" }, ...dns("192.0.2.9")]],
  ["an address of IPv6", [{ type: "ip", value: "2001:db8::9" }, ...dns("2001:db8::9")]],
  ["a trailing dot", dns("dc9.example.com.")],
  ["a leading dot", dns(".dc9.example.com")],
  ["NUL", dns("dc9.example.com\0.evil.net", "\0", "dc9.example.com\0")],
  ["white space", dns(" dc9.example.com", "dc9.example.com\n", "dc9 .example.com")],
  ["quotes", dns('"dc9.example.com"')],
  ["beyond ASCII", dns("dc\u{b9}9.example.com", "b\u{fc}cher.example")],
  ["an empty label", dns("", "dc9..example.com")],
  ["an underscore", dns("_dc9.example.com")],
  ["too long a label", dns(`${"a".repeat(64)}.example.com`)],
  ["too long a name", dns("a.".repeat(127))],
  ["nothing", []],
];
for (const [what, names] of NOT_DC9) {
  Deno.test(`certificateNames() takes no name from ${what}, nor from the common name`, async () => {
    assert.deepEqual(certificateNames(await naming(names)), []);
    const beside = certificateNames(await naming([...names, ...dns("dc8.example.com")]));
    assert.deepEqual(beside, ["dc8.example.com"], "the name beside it counts");
  });
}

Deno.test("certificateNames() takes nothing from the common name, even without any other name", async () => {
  assert.deepEqual(certificateNames(await certificate()), []);
});

Deno.test("certificateNames() returns no names for two lists of names, or for an unreadable list", async () => {
  const lists = ["a.example", "b.example"].map((name) =>
    new SubjectAlternativeNameExtension(dns(name))
  );
  assert.deepEqual(certificateNames(await certificate(...lists)), []);
  const broken = Uint8Array.of(0x30, 0x84, 0xff, 0xff, 0xff, 0xff);
  const extension = new Extension(SUBJECT_ALTERNATIVE_NAME, false, broken);
  assert.deepEqual(certificateNames(await certificate(extension)), []);
  assert.deepEqual(certificateNames(new Uint8Array(0)), []);
  const whole = await naming(dns("a.example"));
  for (let length = 0; length < whole.length; length++) {
    assert.deepEqual(certificateNames(whole.subarray(0, length)), [], `cut at ${length}`);
  }
});

Deno.test("certificateNames() reads nothing of a certificate above MAX_CERTIFICATE_BYTES", async () => {
  const padded = (bytes: number) =>
    certificate(
      new SubjectAlternativeNameExtension(dns("dc9.example.com")),
      new Extension("1.3.6.1.4.1.99999.1", false, new Uint8Array(bytes)),
    );
  const room = MAX_CERTIFICATE_BYTES - (await padded(1000)).length + 1000;
  const few = await padded(room - 10); // signatures differ by a few bytes in length
  assert.ok(few.length <= MAX_CERTIFICATE_BYTES);
  assert.deepEqual(certificateNames(few), ["dc9.example.com"]);
  const many = await padded(room + 10);
  assert.ok(many.length > MAX_CERTIFICATE_BYTES);
  assert.deepEqual(certificateNames(many), []);
});

Deno.test("certificateNames() survives nesting as deep as fits", async () => {
  let nested = new Uint8Array(0);
  while (nested.length < MAX_CERTIFICATE_BYTES - 1000) {
    const { length } = nested;
    const header = length < 128 ? [0x30, length] : [0x30, 0x82, length >> 8, length & 0xff];
    nested = Uint8Array.from([...header, ...nested]);
  }
  const extension = new Extension(SUBJECT_ALTERNATIVE_NAME, false, nested);
  assert.deepEqual(certificateNames(await certificate(extension)), []);
});
