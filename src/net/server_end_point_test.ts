import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { X509Certificate } from "node:crypto";
import { TestCertificates } from "./testing/certificates.ts";
import { openssl } from "./testing/openssl.ts";
import { serverEndPoint } from "./server_end_point.ts";

type KeyKind = "rsa" | "ec" | "ed25519" | "ed448";

const NEW_KEY: Readonly<Record<KeyKind, readonly string[]>> = {
  rsa: ["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
  ec: ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
  ed25519: ["genpkey", "-algorithm", "ED25519"],
  ed448: ["genpkey", "-algorithm", "ED448"],
};

const PSS = ["-sigopt", "rsa_padding_mode:pss"];

/** Ways to sign a certificate, and the hash function that RFC 5929 §4.1 then asks for. */
const SIGNATURES: readonly [
  what: string,
  key: KeyKind,
  args: readonly string[],
  hash: string | undefined,
][] = [
  ["RSA with MD5", "rsa", ["-md5"], "sha256"],
  ["RSA with SHA-1", "rsa", ["-sha1"], "sha256"],
  ["RSA with SHA-224", "rsa", ["-sha224"], "sha224"],
  ["RSA with SHA-256", "rsa", ["-sha256"], "sha256"],
  ["RSA with SHA-384", "rsa", ["-sha384"], "sha384"],
  ["RSA with SHA-512", "rsa", ["-sha512"], "sha512"],
  ["RSASSA-PSS with SHA-1", "rsa", [...PSS, "-sha1"], "sha256"],
  ["RSASSA-PSS with SHA-256", "rsa", [...PSS, "-sha256"], "sha256"],
  ["RSASSA-PSS with SHA-384", "rsa", [...PSS, "-sha384"], "sha384"],
  ["RSASSA-PSS with SHA-512", "rsa", [...PSS, "-sha512"], "sha512"],
  ["ECDSA with SHA-1", "ec", ["-sha1"], "sha256"],
  ["ECDSA with SHA-224", "ec", ["-sha224"], "sha224"],
  ["ECDSA with SHA-256", "ec", ["-sha256"], "sha256"],
  ["ECDSA with SHA-384", "ec", ["-sha384"], "sha384"],
  ["ECDSA with SHA-512", "ec", ["-sha512"], "sha512"],
  ["Ed25519", "ed25519", [], undefined],
  ["Ed448", "ed448", [], undefined],
];

Deno.test("serverEndPoint() hashes a certificate by its signature's hash function", async (t) => {
  await using certificates = await TestCertificates.create();
  for (const [kind, args] of Object.entries(NEW_KEY)) {
    await openssl([...args, "-out", certificates.path(`${kind}.key`)]);
  }
  for (const [what, kind, args, hash] of SIGNATURES) {
    await t.step(what, async () => {
      const base = certificates.nextBase();
      await openssl([
        ...["req", "-x509", "-subj", "/CN=example.com", ...args],
        ...["-key", certificates.path(`${kind}.key`), "-out", `${base}.pem`],
      ]);
      const der = new X509Certificate(await Deno.readTextFile(`${base}.pem`)).raw;
      const binding = serverEndPoint(new Uint8Array(der));
      if (hash === undefined) return assert.equal(binding, undefined);
      assert.ok(binding);
      await Deno.writeFile(`${base}.der`, new Uint8Array(der));
      const digest = await openssl(["dgst", "-r", `-${hash}`, `${base}.der`]);
      assert.equal(Buffer.from(binding).toString("hex"), digest.split(" ")[0]);
    });
  }
});

Deno.test("serverEndPoint() knows none for what is no certificate", async () => {
  assert.equal(serverEndPoint(new Uint8Array()), undefined);
  assert.equal(serverEndPoint(new TextEncoder().encode("certificate")), undefined);
  await using certificates = await TestCertificates.create();
  const { certfile } = await (await certificates.authority()).issue({ names: ["example.com"] });
  const der = new Uint8Array(new X509Certificate(await Deno.readTextFile(certfile)).raw);
  assert.ok(serverEndPoint(der));
  assert.equal(serverEndPoint(der.subarray(0, der.length - 1)), undefined);
});
