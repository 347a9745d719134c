import { escapeValue } from "../xml/escape.ts";
import type { ResponseHeader } from "./stream_transport.ts";

/** The attributes of our header that are the same whatever carries the stream (RFC 6120 §4.7). */
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
