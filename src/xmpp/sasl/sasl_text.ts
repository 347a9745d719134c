import { Buffer } from "node:buffer";

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * Decodes the text inside an `<auth/>` or `<response/>` (RFC 6120 §6.4.2): base64 of UTF-8, `=` for an
 * empty message.
 *
 * @returns undefined when it is not strictly base64 or not UTF-8
 */
export function tryDecodeSaslText(text: string): string | undefined {
  if (text === "=" || text === "") return "";
  if (!BASE64.test(text)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      new Uint8Array(Buffer.from(text, "base64")),
    );
  } catch {
    return undefined; // not UTF-8; the error of TextDecoder adds nothing
  }
}

/** Encodes the text of a `<challenge/>` or `<success/>`. */
export function encodeSaslText(message: string): string {
  return message === "" ? "=" : Buffer.from(message, "utf8").toString("base64");
}
