import { tryParseJid } from "../../../xmpp/mod.ts";

/**
 * Prefix of an A-label, which stands for a label with letters beyond ASCII (IDNA, RFC 5890
 * §2.3.2.1).
 */
const A_LABEL_PREFIX = "xn--";

/**
 * True when one of `names`, the DNS names of a certificate, is `host`, a normalised domainpart. A
 * certificate writes an internationalised name as A-labels, a domainpart as U-labels (RFC 7622
 * §3.2). A domainpart in A-labels is no host of anybody.
 */
export function isCertifiedHost(host: string, names: readonly string[]): boolean {
  return names.some((name) => domainpartOf(name) === host);
}

function domainpartOf(name: string): string | undefined {
  return name.includes(A_LABEL_PREFIX) ? tryParseJid(name)?.text : name;
}
