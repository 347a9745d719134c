import "reflect-metadata"; // @peculiar/x509 resolves its parts through it and refuses to load without
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  type JsonGeneralName,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { join } from "node:path";

/** P-256: made in under a millisecond, and every TLS library verifies it. */
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

/** Content of a certificate. */
export interface CertificateRequest {
  /** DNS names; the first one is the subject too. At least one. */
  readonly names: readonly string[];
  /** IP addresses it is good for besides. @default [] */
  readonly addresses?: readonly string[];
  /** Milliseconds from now to the start of validity; negative lies in the past. @default −1 day */
  readonly validFromMs?: number;
  /** Milliseconds from now to the end of validity; negative: expired already. @default 30 days */
  readonly validUntilMs?: number;
}

/** A certificate with its private key, both in PEM. */
export interface Certificate {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

/** Paths of the files from `writeCertificate`. */
export interface CertificateFiles {
  readonly certfile: string;
  readonly keyfile: string;
}

/** An authority that exists for one run of the harness; its key never touches the disk. */
export class CertificateAuthority {
  /** Its own certificate, for `cafile`. */
  readonly certificatePem: string;
  readonly #certificate: X509Certificate;
  readonly #keys: CryptoKeyPair;

  private constructor(certificate: X509Certificate, keys: CryptoKeyPair) {
    this.#certificate = certificate;
    this.#keys = keys;
    this.certificatePem = toPem(certificate);
  }

  /** A new authority. Two of the same `name` are still strangers to each other. */
  static async create(name = "Causeway cluster CA"): Promise<CertificateAuthority> {
    const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    const certificate = await X509CertificateGenerator.createSelfSigned({
      serialNumber: randomSerial(),
      name: [{ CN: [name] }],
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + 365 * DAY_MS),
      signingAlgorithm: ALGORITHM,
      keys,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new CertificateAuthority(certificate, keys);
  }

  /** Issues a certificate for both ends of TLS, since a node is client and server at once. */
  async issue(request: CertificateRequest): Promise<Certificate> {
    const [subject] = request.names;
    if (subject === undefined) throw new RangeError("Cannot issue a certificate: it names no host");
    const keys = await crypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
    const alternatives: JsonGeneralName[] = [
      ...request.names.map((value) => ({ type: "dns" as const, value })),
      ...(request.addresses ?? []).map((value) => ({ type: "ip" as const, value })),
    ];
    const certificate = await X509CertificateGenerator.create({
      serialNumber: randomSerial(),
      subject: [{ CN: [subject] }],
      issuer: this.#certificate.subject,
      // A day back by default, so that a node whose clock is minutes off still accepts it.
      notBefore: new Date(Date.now() + (request.validFromMs ?? -DAY_MS)),
      notAfter: new Date(Date.now() + (request.validUntilMs ?? 30 * DAY_MS)),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth, ExtendedKeyUsage.clientAuth]),
        new SubjectAlternativeNameExtension(alternatives),
        await SubjectKeyIdentifierExtension.create(keys.publicKey),
        await AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
      ],
    });
    const privateKey = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
    return {
      certificatePem: toPem(certificate),
      privateKeyPem: PemConverter.encode(privateKey, "PRIVATE KEY") + "\n",
    };
  }
}

/** Writes `NAME.pem` and, readable by the owner alone, `NAME.key` into `directory`. */
export async function writeCertificate(
  certificate: Certificate,
  place: { readonly directory: string; readonly name: string },
): Promise<CertificateFiles> {
  const certfile = join(place.directory, `${place.name}.pem`);
  const keyfile = join(place.directory, `${place.name}.key`);
  await Deno.writeTextFile(certfile, certificate.certificatePem);
  await Deno.writeTextFile(keyfile, certificate.privateKeyPem, { mode: 0o600 });
  return { certfile, keyfile };
}

function toPem(certificate: X509Certificate): string {
  return certificate.toString("pem") + "\n";
}

/** A positive serial number in hexadecimal; 16 random bytes never meet twice in a run. */
function randomSerial(): string {
  return "01" + crypto.getRandomValues(new Uint8Array(15)).toHex();
}
