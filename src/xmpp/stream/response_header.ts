import { escapeValue } from "../xml/escape.ts";
import type { ResponseHeader } from "./stream_transport.ts";

/** Returns the attributes of our header that do not depend on the stream's transport (RFC 6120 §4.7). */
export function responseAttributes(header: ResponseHeader): string {
  const attributes = [
    ["from", header.from],
    ["to", header.to],
    ["id", header.id],
    ["version", header.hasVersion ? "1.0" : undefined],
    ["xml:lang", header.hasVersion ? "en" : undefined],
  ] as const;
  return attributes.map(([name, value]) =>
    value === undefined ? "" : ` ${name}='${escapeValue(value)}'`
  ).join("");
}
