/**
 * Viramas: the marks after which a joiner changes how a conjunct is drawn (RFC 5892 A.1, A.2). These are
 * the characters with canonical combining class 9.
 */
const VIRAMA =
  /^[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d3b\u0d3c\u0d4d\u0dca\u0e3a\u0eba\u0f84\u1039\u103a\u1714\u1715\u1734\u17d2\u1a60\u1b44\u1baa\u1bab\u1bf2\u1bf3\u2d7f\ua806\ua82c\ua8c4\ua953\ua9c0\uaaf6\uabed\u{10a3f}\u{11046}\u{11070}\u{1107f}\u{110b9}\u{11133}\u{11134}\u{111c0}\u{11235}\u{112ea}\u{1134d}\u{11442}\u{114c2}\u{115bf}\u{1163f}\u{116b6}\u{1172b}\u{11839}\u{1193d}\u{1193e}\u{119e0}\u{11a34}\u{11a47}\u{11a99}\u{11c3f}\u{11d44}\u{11d45}\u{11d97}]$/u;

/** Letters of scripts whose letters join; a non-joiner may stand between two of them. */
const JOINING =
  /^[\p{Script=Arabic}\p{Script=Syriac}\p{Script=Mongolian}\p{Script=Nko}\p{Script=Mandaic}\p{Script=Phags_Pa}\p{Script=Manichaean}\p{Script=Adlam}]$/u;
const NONSPACING_MARK = /^\p{Mn}$/u;
const GREEK = /^\p{Script=Greek}$/u;
const HEBREW = /^\p{Script=Hebrew}$/u;
const KANA_OR_HAN = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u;

const CONTEXTUAL = /[\u00b7\u0375\u05f3\u05f4\u30fb\u0660-\u0669\u06f0-\u06f9\u200c\u200d]/u;

/** Requirement on the beginning of the remaining characters. */
type Awaited = "anything" | "l" | "a Greek letter" | "a joining letter";

/**
 * True when every code point whose validity depends on its neighbours is allowed there by RFC 5892,
 * appendix A. Both IDNA (domainpart) and PRECIS (localpart) use it. Reads the text once.
 *
 * The script decides the joining type, because JavaScript has no Joining_Type property.
 */
export function followsContextRules(text: string): boolean {
  if (!CONTEXTUAL.test(text)) return true;
  const hasNonJoiner = text.includes("\u200c");
  let previous = "";
  let awaited: Awaited = "anything";
  /** True when the last character that is not a mark is a joining letter. */
  let isBehindJoining = false;
  let hasMiddleDot = false;
  let hasArabicDigit = false;
  let hasExtendedDigit = false;
  for (const char of text) {
    const isJoining = hasNonJoiner && JOINING.test(char);
    const isMark = hasNonJoiner && NONSPACING_MARK.test(char);
    switch (awaited) {
      case "l":
        if (char !== "l") return false;
        awaited = "anything";
        break;
      case "a Greek letter":
        if (!GREEK.test(char)) return false;
        awaited = "anything";
        break;
      case "a joining letter":
        if (isJoining) awaited = "anything";
        else if (!isMark) return false;
        break;
      case "anything":
        break;
      default:
        return awaited satisfies never;
    }
    switch (char) {
      case "\u00b7":
        if (previous !== "l") return false;
        awaited = "l";
        break;
      case "\u0375":
        awaited = "a Greek letter";
        break;
      case "\u05f3":
      case "\u05f4":
        if (!HEBREW.test(previous)) return false;
        break;
      case "\u30fb":
        hasMiddleDot = true;
        break;
      case "\u200c":
        if (VIRAMA.test(previous)) break;
        if (!isBehindJoining) return false;
        awaited = "a joining letter";
        break;
      case "\u200d":
        if (!VIRAMA.test(previous)) return false;
        break;
      default:
        if (char >= "\u0660" && char <= "\u0669") hasArabicDigit = true;
        else if (char >= "\u06f0" && char <= "\u06f9") hasExtendedDigit = true;
    }
    isBehindJoining = isJoining || (isBehindJoining && isMark);
    previous = char;
  }
  // Two sets of digits that look alike must not meet in one string.
  if (hasArabicDigit && hasExtendedDigit) return false;
  return awaited === "anything" && (!hasMiddleDot || KANA_OR_HAN.test(text));
}
