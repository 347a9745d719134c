const ARABIC_NUMBER = /^[\u0600-\u0605\u0660-\u0669\u066b\u066c\u06dd\u{10e60}-\u{10e7e}]$/u;
const EUROPEAN_NUMBER = /^[0-9\u06f0-\u06f9]$/;
const NONSPACING = /^\p{Mn}$/u;
/** The blocks that Unicode reserves for right-to-left scripts. */
const RIGHT_TO_LEFT =
  /^[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]$/u;
/** Characters that make a check necessary: class R or AN, or a mark from their blocks. */
const ANY_RIGHT_TO_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const LETTER = /^[\p{L}\p{Mc}\p{Nd}]$/u;

type BidiClass = "L" | "R" | "AN" | "EN" | "NSM" | "other";

/**
 * True when `text` keeps the Bidi Rule of RFC 5893 §2. A localpart must keep it if it holds any
 * right-to-left character (RFC 8265 §3.3.2).
 *
 * JavaScript has no Bidi_Class property. Blocks and general categories replace it, exactly for the
 * letters, digits and marks that a localpart can hold.
 */
export function followsBidiRule(text: string): boolean {
  if (!ANY_RIGHT_TO_LEFT.test(text)) return true;
  const classes = Array.from(text, bidiClass);
  if (!classes.includes("R") && !classes.includes("AN")) return true;
  const last = classes.findLast((found) => found !== "NSM");
  switch (classes[0]) {
    case "R":
      return !classes.includes("L") && (last === "R" || last === "EN" || last === "AN") &&
        !(classes.includes("EN") && classes.includes("AN"));
    default:
      // A left-to-right string may hold no right-to-left character, and no other start is allowed.
      return false;
  }
}

function bidiClass(char: string): BidiClass {
  if (EUROPEAN_NUMBER.test(char)) return "EN";
  if (ARABIC_NUMBER.test(char)) return "AN";
  if (NONSPACING.test(char)) return "NSM";
  if (RIGHT_TO_LEFT.test(char)) return "R";
  return LETTER.test(char) ? "L" : "other";
}
