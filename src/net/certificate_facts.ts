import { X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { CausewayError } from "../base/mod.ts";
import { certificateNames, wildcardNames } from "./certificate_names.ts";
import { isTrustedBySystem } from "./system_trust.ts";
import type { TlsFiles } from "./tls_context.ts";
import { certificatesIn, loadTlsContext } from "./tls_context.ts";

/** Content of a certificate, as far as an operator has to know it. */
export interface CertificateFacts {
  /** Distinguished names, such as `CN=dc1.example.com`. */
  readonly subject: string;
  readonly issuer: string;
  /** DNS names that it carries, wildcards such as `*.example.com` last. */
  readonly names: readonly string[];
  /** Milliseconds since the Unix epoch. */
  readonly validFromMs: number;
  readonly validUntilMs: number;
}

/** Files of a certificate as they lie on the disk. */
export type TlsFilesFacts =
  /** They cannot be used, and `problem` says why. */
  | { readonly kind: "broken"; readonly problem: string }
  | {
    readonly kind: "readable";
    /** Our certificate, then the intermediates that are sent with it. */
    readonly chain: readonly CertificateFacts[];
    /**
     * Distinguished name of the authority where the chain breaks off; undefined when it leads to one
     * of the authorities that it was checked against.
     */
    readonly missingIssuer: string | undefined;
    /** Certificates of `cafile`. */
    readonly authorities: readonly CertificateFacts[];
    /** Permission bits of the key's file; undefined where the system has none. */
    readonly keyMode: number | undefined;
  };

/** Longest chain that is followed. */
const MAX_CHAIN = 16;

/**
 * Reads the files of a certificate without judging its time or names. The chain is checked against
 * `cafile`, or without one against the authorities that this system trusts.
 */
export async function inspectTlsFiles(files: TlsFiles): Promise<TlsFilesFacts> {
  let isTrusted = false;
  try {
    const context = await loadTlsContext(files, 0); // checks everything but the certificate's end
    if (files.cafile === undefined) isTrusted = await isTrustedBySystem(context);
  } catch (thrown) {
    if (!(thrown instanceof CausewayError)) throw thrown;
    return { kind: "broken", problem: thrown.message };
  }
  const chain = await readCertificates(files.certfile);
  const authorities = files.cafile === undefined ? [] : await readCertificates(files.cafile);
  const { mode } = await stat(files.keyfile ?? files.certfile);
  return {
    kind: "readable",
    chain: chain.map(certificateFacts),
    missingIssuer: isTrusted ? undefined : missingIssuer(chain, authorities),
    authorities: authorities.map(certificateFacts),
    keyMode: Deno.build.os === "windows" ? undefined : mode & 0o777,
  };
}

export function certificateFacts(certificate: X509Certificate): CertificateFacts {
  return {
    subject: oneLine(certificate.subject),
    issuer: oneLine(certificate.issuer),
    names: [...certificateNames(certificate.raw), ...wildcardNames(certificate)],
    validFromMs: Date.parse(certificate.validFrom),
    validUntilMs: Date.parse(certificate.validTo),
  };
}

/**
 * Follows `chain` from its first certificate to one that an authority has issued. Returns the name
 * of the issuer that is neither in the chain nor among the authorities; undefined for a chain
 * without a gap.
 */
export function missingIssuer(
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): string | undefined {
  const [first] = chain;
  if (first === undefined) return "";
  let current: X509Certificate = first;
  for (let length = 0; length < MAX_CHAIN; length++) {
    const reached = current;
    const isSame = (other: X509Certificate) => other.raw.equals(reached.raw);
    const isIssuer = (other: X509Certificate) => hasIssued(other, reached);
    if (authorities.some((other) => isSame(other) || isIssuer(other))) return undefined;
    const next = chain.find((other) => !isSame(other) && isIssuer(other));
    if (next === undefined) break;
    current = next;
  }
  return oneLine(current.issuer);
}

function hasIssued(issuer: X509Certificate, certificate: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
  } catch {
    return false; // a key of a kind that cannot be read has issued nothing that we can use
  }
}

async function readCertificates(file: string): Promise<readonly X509Certificate[]> {
  return certificatesIn(await readFile(file, "utf8"), file);
}

function oneLine(name: string): string {
  return name.split("\n").join(", ");
}
