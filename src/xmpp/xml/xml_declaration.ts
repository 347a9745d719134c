import { failScan } from "./scan_failure.ts";
import { textOf } from "./ascii_interner.ts";

/** Largest XML declaration in bytes; the longest sensible one has about 60. */
export const MAX_DECLARATION_BYTES = 256;

const DECLARATION =
  /^<\?xml[ \t\r\n]+version[ \t\r\n]*=[ \t\r\n]*(?:"([^"]*)"|'([^']*)')(?:[ \t\r\n]+encoding[ \t\r\n]*=[ \t\r\n]*(?:"([A-Za-z][\w.-]*)"|'([A-Za-z][\w.-]*)'))?(?:[ \t\r\n]+standalone[ \t\r\n]*=[ \t\r\n]*(?:"(?:yes|no)"|'(?:yes|no)'))?[ \t\r\n]*\?>$/;

/**
 * Checks the XML declaration that begins at `base` (RFC 6120 §11.5, §11.6). Returns the position after
 * it, or -1 when `end` cuts it off.
 * @throws StreamFailure
 */
export function skipDeclaration(bytes: Uint8Array, base: number, end: number): number {
  const stop = Math.min(end, base + MAX_DECLARATION_BYTES);
  for (let p = base + 2; p < stop; p++) {
    if (p < base + 5 && bytes[p] !== "<?xml".charCodeAt(p - base)) {
      failScan("restricted-xml", "a processing instruction");
    }
    if (bytes[p] === 0x3e && bytes[p - 1] === 0x3f) {
      check(textOf(bytes, base, p + 1));
      return p + 1;
    }
  }
  if (stop === base + MAX_DECLARATION_BYTES) {
    failScan("policy-violation", `an XML declaration of more than ${MAX_DECLARATION_BYTES} bytes`);
  }
  return -1;
}

function check(text: string): void {
  const match = DECLARATION.exec(text);
  if (match === null) {
    if (/^<\?xml[ \t\r\n?]/.test(text)) failScan("not-well-formed", "a malformed XML declaration");
    failScan("restricted-xml", "a processing instruction");
  }
  const version = match[1] ?? match[2];
  if (version !== "1.0") failScan("not-well-formed", `XML of version ${version}`);
  const encoding = match[3] ?? match[4];
  if (encoding !== undefined && encoding.toUpperCase() !== "UTF-8") {
    failScan("unsupported-encoding", `the encoding ${encoding}`);
  }
}
