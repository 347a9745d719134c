import { followsBidiRule } from "./jid_bidi.ts";
import { followsContextRules } from "./jid_context_rules.ts";

/** Passes after which a still changing string is refused (RFC 8264 §7). */
const MAX_PASSES = 4;

// Both string classes below share three sets. First, code points valid despite their category, or
// dependent on neighbours (RFC 5892 §2.6): U+00DF, U+03C2, U+06FD … U+200D. Second, those disallowed by
// the same section: U+0640, U+07FA, U+302E … U+303B. Third, those disallowed otherwise (RFC 8264 §9):
// ignorable characters, line and paragraph separators, and old Hangul Jamo (U+1100, U+A960, U+D7B0 and
// the ones after them).

/** Code points outside of the IdentifierClass of RFC 8264 §4.2, except compatibility characters. */
const NOT_IDENTIFIER =
  /[^[[\p{Ll}\p{Lu}\p{Lo}\p{Nd}\p{Lm}\p{Mn}\p{Mc}\x21-\x7e]--[\p{Default_Ignorable_Code_Point}\u2028\u2029\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\u0640\u07fa\u302e\u302f\u3031-\u3035\u303b]][\u00df\u03c2\u06fd\u06fe\u0f0b\u3007\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d]]/v;
/** Code points outside of the FreeformClass of RFC 8264 §4.3. */
const NOT_FREEFORM =
  /[^[[\p{L}\p{N}\p{M}\p{Zs}\p{S}\p{P}]--[\p{Default_Ignorable_Code_Point}\u2028\u2029\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff\u0640\u07fa\u302e\u302f\u3031-\u3035\u303b]][\u00df\u03c2\u06fd\u06fe\u0f0b\u3007\u00b7\u0375\u05f3\u05f4\u30fb\u200c\u200d]]/v;

/** Characters that RFC 7622 §3.3.1 excludes from a localpart, although PRECIS allows them. */
const LOCALPART_EXCLUDED = /["&'/:<>@]/;

/**
 * Returns the localpart in its one form: the UsernameCaseMapped profile (RFC 8265 §3.3) with the
 * exclusions of RFC 7622 §3.3.1. Undefined when it has none.
 */
export function enforceUsername(part: string): string | undefined {
  const plain = asciiUsername(part);
  if (plain !== undefined) return plain === "" ? undefined : plain;
  const settled = untilStable(part, mapUsername);
  if (settled === undefined || LOCALPART_EXCLUDED.test(settled)) return undefined;
  // In a text in NFC, NFKC changes only compatibility characters.
  if (NOT_IDENTIFIER.test(settled) || settled.normalize("NFKC") !== settled) return undefined;
  if (!followsContextRules(settled) || !followsBidiRule(settled)) return undefined;
  return settled;
}

/** Returns the resourcepart in its one form: the OpaqueString profile (RFC 8265 §4.2). */
export function enforceOpaqueString(part: string): string | undefined {
  if (part.length === 0) return undefined;
  if (isPrintableAscii(part)) return part;
  const settled = untilStable(part, mapOpaqueString);
  if (settled === undefined) return undefined;
  return !NOT_FREEFORM.test(settled) && followsContextRules(settled) ? settled : undefined;
}

/** Returns lower-case ASCII as it is; "" when invalid; undefined when PRECIS must decide. */
function asciiUsername(part: string): string | undefined {
  let hasUpper = false;
  let isValid = part.length > 0;
  for (let i = 0; i < part.length; i++) {
    const code = part.charCodeAt(i);
    if (code > 0x7f) return undefined;
    if (code >= 0x61 && code <= 0x7a) continue;
    if (code >= 0x41 && code <= 0x5a) {
      hasUpper = true;
      continue;
    }
    switch (code) {
      case 0x22: // "
      case 0x26: // &
      case 0x27: // '
      case 0x2f: // /
      case 0x3a: // :
      case 0x3c: // <
      case 0x3e: // >
      case 0x40: // @
      case 0x7f:
        isValid = false;
        break;
      default:
        if (code <= 0x20) isValid = false;
    }
  }
  if (!isValid) return "";
  return hasUpper ? part.toLowerCase() : part;
}

function isPrintableAscii(part: string): boolean {
  for (let i = 0; i < part.length; i++) {
    const code = part.charCodeAt(i);
    if (code < 0x20 || code > 0x7e) return false;
  }
  return true;
}

/** Applies `map` until nothing changes, so that a normalised JID normalises to itself. */
function untilStable(text: string, map: (text: string) => string): string | undefined {
  let current = text;
  for (let pass = 0; pass < MAX_PASSES; pass++) {
    const next = map(current);
    if (next === current) return current;
    current = next;
  }
  return undefined;
}

function mapUsername(text: string): string {
  // Width mapping: only full-width and half-width forms and the ideographic space are <wide> or
  // <narrow>. NFKC of one such character is exactly that mapping.
  const narrow = text.replace(/[\u3000\uff01-\uffee]/g, (char) => char.normalize("NFKC"));
  return narrow.toLowerCase().normalize("NFC");
}

function mapOpaqueString(text: string): string {
  return text.replace(/\p{Zs}/gu, " ").normalize("NFC");
}
