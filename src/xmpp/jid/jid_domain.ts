import { domainToASCII, domainToUnicode } from "node:url";
import { followsContextRules } from "./jid_context_rules.ts";

const MAX_LABEL_BYTES = 63;
/**
 * Longest label as written, in UTF-16 units, because Punycode takes time that grows with the square of a
 * label. No label that fits into `MAX_LABEL_BYTES` is longer: a letter has at most three marks to
 * compose with.
 */
const MAX_WRITTEN_LABEL_UNITS = 4 * MAX_LABEL_BYTES;
/** Characters that IDNA treats as dots. */
const DOTS = /[.\u3002\uff0e\uff61]/;

/**
 * Code points of a U-label: letters, digits and marks without case or compatibility mappings (RFC 5892
 * §2.1), the exceptions listed in §2.6, and code points that depend on their neighbours.
 */
const U_LABEL =
  /^[-\p{Ll}\p{Lo}\p{Lm}\p{Mn}\p{Mc}\p{Nd}\u00b7\u0375\u05f3\u05f4\u06fd\u06fe\u0f0b\u3007\u30fb\u200c\u200d]+$/u;
const U_LABEL_EXCLUDED = /[\u0640\u07fa\u302e\u302f\u3031-\u3035\u303b]/u;

/**
 * Returns the domainpart in its one form (RFC 7622 §3.2): lower-case, U-labels instead of A-labels, NFC,
 * no trailing dot; or an IP address in canonical form. Undefined when it is neither.
 */
export function prepareDomainpart(part: string): string | undefined {
  const domain = part.endsWith(".") ? part.slice(0, -1) : part;
  if (domain.startsWith("[")) return ipv6Literal(domain);
  const plain = asciiDomain(domain);
  if (plain !== undefined) return plain === "" ? undefined : plain;
  return internationalDomain(domain);
}

/** Returns lower-case LDH labels as they are; "" when invalid; undefined when IDNA must decide. */
function asciiDomain(domain: string): string | undefined {
  let labelStart = 0;
  let hasUpper = false;
  for (let i = 0; i <= domain.length; i++) {
    const code = i === domain.length ? 0x2e : domain.charCodeAt(i);
    if (code > 0x7f) return undefined;
    if (code === 0x2e) {
      const length = i - labelStart;
      if (length === 0 || length > MAX_LABEL_BYTES) return "";
      if (domain.charCodeAt(labelStart) === 0x2d || domain.charCodeAt(i - 1) === 0x2d) return "";
      if (length > 3 && domain.startsWith("--", labelStart + 2)) return undefined;
      labelStart = i + 1;
    } else if (code >= 0x41 && code <= 0x5a) {
      hasUpper = true;
    } else if (
      !(code >= 0x61 && code <= 0x7a) && !(code >= 0x30 && code <= 0x39) && code !== 0x2d
    ) {
      // A forbidden character ends the check here. If a later character needs IDNA anyway, IDNA forbids
      // the same characters.
      return "";
    }
  }
  return hasUpper ? domain.toLowerCase() : domain;
}

function internationalDomain(domain: string): string | undefined {
  if (domain.split(DOTS).some((label) => label.length > MAX_WRITTEN_LABEL_UNITS)) return undefined;
  const ascii = domainToASCII(domain);
  const plain = ascii.endsWith(".") ? ascii.slice(0, -1) : ascii;
  if (plain === "" || plain.startsWith("[")) return undefined;
  for (const label of plain.split(".")) {
    if (!isLdhLabel(label)) return undefined;
  }
  const unicode = domainToUnicode(plain).normalize("NFC");
  for (const label of unicode.split(".")) {
    if (!isLabel(label)) return undefined;
  }
  return unicode;
}

function isLdhLabel(label: string): boolean {
  return label.length <= MAX_LABEL_BYTES && /^[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$/.test(label);
}

function isLabel(label: string): boolean {
  if (label.startsWith("xn--")) return false; // an A-label without a U-label
  return U_LABEL.test(label) && !U_LABEL_EXCLUDED.test(label) && followsContextRules(label);
}

/**
 * Returns an IPv6 address in canonical form. Zone identifiers are refused, because they mean something
 * on one machine only (RFC 7622 §3.2).
 */
function ipv6Literal(domain: string): string | undefined {
  if (!/^\[[0-9a-fA-F:.]+\]$/.test(domain)) return undefined;
  const url = `http://${domain}/`;
  return URL.canParse(url) ? new URL(url).hostname : undefined;
}
