const ENCODER = new TextEncoder();

const IN_TEXT = /[&<>\r]|[^\t\n\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const IN_VALUE = /[&<>'"\t\n\r]|[^\x20-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;

/** Finds what may need an escape, as fast as can be: most texts have nothing of it. */
const SUSPECT = /[^ !#-%(-;=?-~]/;

/**
 * Escapes `text` as character data. A character that would be read as another becomes a reference; one
 * that XML cannot carry becomes U+FFFD.
 */
export function escapeText(text: string): string {
  return SUSPECT.test(text) ? text.replace(IN_TEXT, escapeChar) : text;
}

/** Escapes `value` as an attribute value between quotes of either kind. */
export function escapeValue(value: string): string {
  return SUSPECT.test(value) ? value.replace(IN_VALUE, escapeChar) : value;
}

/**
 * Returns the bytes ` name='value'`, with the space, for `stampStanza`. Made once for each session, not
 * for each stanza.
 */
export function encodeAttribute(name: string, value: string): Uint8Array {
  return ENCODER.encode(` ${name}='${escapeValue(value)}'`);
}

function escapeChar(char: string): string {
  switch (char) {
    case "&":
      return "&amp;";
    case "<":
      return "&lt;";
    case ">":
      return "&gt;";
    case "'":
      return "&apos;";
    case '"':
      return "&quot;";
    case "\t":
      return "&#9;";
    case "\n":
      return "&#10;";
    case "\r":
      return "&#13;";
    default:
      return "\ufffd";
  }
}
