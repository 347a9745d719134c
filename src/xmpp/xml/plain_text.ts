import { directText, scannedSource } from "./child_elements.ts";
import type { ScannedElement } from "./scanner_types.ts";

const LT = 0x3c;
const GT = 0x3e;
const AMP = 0x26;
const UTF8 = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Returns the text of an element that must hold only text. It builds no tree, because the sender has not
 * authenticated. Elements or CDATA in it are returned as written, which is neither base64 nor a digest.
 */
export function plainTextOf(element: ScannedElement): string {
  const { buffer, end } = element;
  const lastAttribute = element.attributeCount - 1;
  const from = lastAttribute < 0 ? element.start : element.valueEnd(lastAttribute) + 1;
  const tagEnd = buffer.indexOf(GT, from);
  if (tagEnd === end - 1) return ""; // <auth/>
  const textEnd = buffer.lastIndexOf(LT, end - 1);
  const content = buffer.subarray(tagEnd + 1, textEnd);
  // Without a reference, the text is what is written.
  return content.includes(AMP) && !content.includes(LT)
    ? directText(scannedSource(element))
    : UTF8.decode(content);
}
