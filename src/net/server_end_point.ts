import { createHash } from "node:crypto";
import { AsnConvert } from "@peculiar/asn1-schema";
import { AlgorithmIdentifier, Certificate } from "@peculiar/asn1-x509";

/** Hash functions of `node:crypto` that a certificate's signature algorithm names. */
type EndPointHash = "sha224" | "sha256" | "sha384" | "sha512";

/**
 * Hash function of the channel binding for each signature algorithm, by its object identifier. RFC 5929
 * §4.1 replaces MD5 and SHA-1 by SHA-256.
 */
const BY_SIGNATURE: Readonly<Record<string, EndPointHash>> = {
  "1.2.840.113549.1.1.4": "sha256", // md5WithRSAEncryption
  "1.2.840.113549.1.1.5": "sha256", // sha1WithRSAEncryption
  "1.2.840.113549.1.1.14": "sha224", // sha224WithRSAEncryption
  "1.2.840.113549.1.1.11": "sha256", // sha256WithRSAEncryption
  "1.2.840.113549.1.1.12": "sha384", // sha384WithRSAEncryption
  "1.2.840.113549.1.1.13": "sha512", // sha512WithRSAEncryption
  "1.2.840.10045.4.1": "sha256", // ecdsa-with-SHA1
  "1.2.840.10045.4.3.1": "sha224", // ecdsa-with-SHA224
  "1.2.840.10045.4.3.2": "sha256", // ecdsa-with-SHA256
  "1.2.840.10045.4.3.3": "sha384", // ecdsa-with-SHA384
  "1.2.840.10045.4.3.4": "sha512", // ecdsa-with-SHA512
};

/** RSASSA-PSS names its hash function in its parameters (RFC 4055 §3.1). */
const RSASSA_PSS = "1.2.840.113549.1.1.10";

/** Hash functions that RSASSA-PSS may name. */
const BY_HASH: Readonly<Record<string, EndPointHash>> = {
  "1.2.840.113549.2.5": "sha256", // MD5
  "1.3.14.3.2.26": "sha256", // SHA-1
  "2.16.840.1.101.3.4.2.4": "sha224",
  "2.16.840.1.101.3.4.2.1": "sha256",
  "2.16.840.1.101.3.4.2.2": "sha384",
  "2.16.840.1.101.3.4.2.3": "sha512",
};

/**
 * Returns the channel binding `tls-server-end-point` of connections on which a server presents the
 * certificate `der` (RFC 5929 §4.1): the certificate's hash, by the hash function of its signature.
 *
 * @returns undefined where the RFC defines no hash function, as for Ed25519 and Ed448: clients would
 *   disagree about it
 */
export function serverEndPoint(der: Uint8Array): Uint8Array | undefined {
  const hash = hashOf(der);
  return hash === undefined ? undefined : new Uint8Array(createHash(hash).update(der).digest());
}

function hashOf(der: Uint8Array): EndPointHash | undefined {
  try {
    const { algorithm, parameters } = AsnConvert.parse(der, Certificate).signatureAlgorithm;
    if (algorithm !== RSASSA_PSS) return BY_SIGNATURE[algorithm];
    return parameters === undefined || parameters === null
      ? undefined
      : pssHash(new Uint8Array(parameters));
  } catch {
    return undefined; // a certificate that we cannot read has no binding, and serves all the same
  }
}

/** Reads `RSASSA-PSS-params`; a field `[0]` that is absent stands for SHA-1. */
function pssHash(parameters: Uint8Array): EndPointHash | undefined {
  const fields = contentOf(parameters, 0x30);
  if (fields === undefined) return undefined;
  if (fields[0] !== 0xa0) return "sha256";
  const hash = contentOf(fields, 0xa0);
  return hash && BY_HASH[AsnConvert.parse(hash, AlgorithmIdentifier).algorithm];
}

/** Returns the content of the first element, if it has this tag and is as short as PSS parameters are. */
function contentOf(der: Uint8Array, tag: number): Uint8Array | undefined {
  const [found, length = 0x80] = der;
  return found === tag && length < 0x80 ? der.slice(2, 2 + length) : undefined;
}
