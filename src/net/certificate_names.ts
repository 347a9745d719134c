import type { X509Certificate } from "node:crypto";
import { domainToASCII } from "node:url";
import { AsnConvert } from "@peculiar/asn1-schema";
import { Certificate, id_ce_subjectAltName, SubjectAlternativeName } from "@peculiar/asn1-x509";

/**
 * Largest certificate whose names are read, in bytes of DER: 300 names fit. A larger one counts as one
 * without names, because the cost of reading grows with its bytes and anybody may present it again and
 * again.
 */
export const MAX_CERTIFICATE_BYTES = 8192;

/** One label of a DNS name in lower case: letters, digits and inner hyphens. */
const LABEL = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
const DNS_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);
const MAX_DNS_NAME_LENGTH = 253;

/**
 * Returns the DNS names that a certificate carries as subject alternative names (RFC 5280 §4.2.1.6), in
 * lower case, each once. The names are read from the DER, because the text forms of TLS libraries join
 * all names with commas: a name that contains `, DNS:` looks like two.
 *
 * Only entries of type dNSName count, and only DNS names in preferred syntax: no wildcard, no trailing
 * dot, no IP address, no NUL, nothing beyond ASCII (an internationalised name is written as A-labels).
 * The subject's common name never counts (RFC 9525 §2). A certificate that cannot be read, or is larger
 * than `MAX_CERTIFICATE_BYTES`, has no names.
 */
export function certificateNames(der: Uint8Array): readonly string[] {
  if (der.length > MAX_CERTIFICATE_BYTES) return [];
  try {
    const { extensions = [] } = AsnConvert.parse(der, Certificate).tbsCertificate;
    const [alternatives, another] = extensions.filter(({ extnID }) =>
      extnID === id_ce_subjectAltName
    );
    if (alternatives === undefined || another !== undefined) return [];
    const names = new Set<string>();
    for (const { dNSName } of AsnConvert.parse(alternatives.extnValue, SubjectAlternativeName)) {
      const name = dNSName?.toLowerCase();
      if (name !== undefined && isDnsName(name)) names.add(name);
    }
    return [...names];
  } catch {
    return []; // an unreadable certificate proves nothing
  }
}

/** Names with a wildcard. No peer may use one, so that what this text can hide does not matter. */
export function wildcardNames({ subjectAltName = "" }: X509Certificate): readonly string[] {
  return Array.from(subjectAltName.matchAll(/DNS:(\*\.[a-z0-9.-]+)(?=,|$)/gi), ([, name]) => {
    return name!.toLowerCase();
  });
}

/**
 * True for a name by which clients accept a host: a wildcard stands for one label (RFC 9525 §6.3).
 * Certificates write names in A-labels, however the host is written.
 */
export function coversHost(name: string, host: string): boolean {
  const ascii = domainToASCII(host);
  return name === ascii ||
    name.startsWith("*.") && ascii.slice(ascii.indexOf(".") + 1) === name.slice(2);
}

function isDnsName(name: string): boolean {
  if (name.length > MAX_DNS_NAME_LENGTH || !DNS_NAME.test(name)) return false;
  const lastLabel = name.slice(name.lastIndexOf(".") + 1);
  return !/^[0-9]+$/.test(lastLabel); // an IPv4 address, or a name that some resolvers read as one
}
