/**
 * Viramas: the marks behind which a joiner changes how a conjunct is drawn (RFC 5892 A.1, A.2).
 * These are the characters with canonical combining class 9.
 */
const VIRAMA =
  /[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0e3a\u0eba\u0f84\u1039\u103a\u1714\u1715\u1734\u17d2\u1a60\u1b44\u1baa\u1bab\u1bf2\u1bf3\u2d7f\ua806\ua82c\ua8c4\ua953\ua9c0\uaaf6\uabed\u{10a3f}\u{11046}\u{11070}\u{1107f}\u{110b9}\u{11133}\u{11134}\u{111c0}\u{11235}\u{112ea}\u{1134d}\u{11442}\u{114c2}\u{115bf}\u{1163f}\u{116b6}\u{1172b}\u{11839}\u{1193d}\u{1193e}\u{119e0}\u{11a34}\u{11a47}\u{11a99}\u{11c3f}\u{11d44}\u{11d45}\u{11d97}]$/u;

/** Letters of scripts whose letters join; what lies between may be a non-joiner. */
const JOINING = "[\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Mongolian}\\p{Script=Nko}" +
  "\\p{Script=Mandaic}\\p{Script=Phags_Pa}\\p{Script=Manichaean}\\p{Script=Adlam}]";
const JOINS_BEFORE = new RegExp(`${JOINING}\\p{Mn}*$`, "u");
const JOINS_AFTER = new RegExp(`^\\p{Mn}*${JOINING}`, "u");

const CONTEXTUAL = /[\u00b7\u0375\u05f3\u05f4\u30fb\u0660-\u0669\u06f0-\u06f9\u200c\u200d]/gu;

/**
 * True when every code point whose validity hangs on its neighbours is where RFC 5892, appendix A,
 * lets it be; used by IDNA (domainpart) and PRECIS (localpart) alike.
 *
 * Joining types are judged by script: JavaScript has no Joining_Type property.
 */
export function followsContextRules(text: string): boolean {
  for (const match of text.matchAll(CONTEXTUAL)) {
    const before = text.slice(0, match.index);
    const after = text.slice(match.index + 1);
    if (!isAllowedBetween(match[0], before, after, text)) return false;
  }
  return true;
}

function isAllowedBetween(char: string, before: string, after: string, whole: string): boolean {
  switch (char) {
    case "\u00b7":
      return before.endsWith("l") && after.startsWith("l");
    case "\u0375":
      return /^\p{Script=Greek}/u.test(after);
    case "\u05f3":
    case "\u05f4":
      return /\p{Script=Hebrew}$/u.test(before);
    case "\u30fb":
      return /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u.test(whole);
    case "\u200c":
      return VIRAMA.test(before) || (JOINS_BEFORE.test(before) && JOINS_AFTER.test(after));
    case "\u200d":
      return VIRAMA.test(before);
    default:
      // Two sets of digits that look alike must not meet in one string.
      return !(/[\u0660-\u0669]/u.test(whole) && /[\u06f0-\u06f9]/u.test(whole));
  }
}
