import { tryParseJid } from "../jid/jid_parser.ts";
import type { StreamErrorCondition } from "./stream_error.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";
import { STREAM_NAMESPACE } from "./namespaces.ts";

/** Requirements on a stream header. */
export interface ExpectedHeader {
  readonly contentNamespace: string;
  /** Domains that the peer may open a stream to. */
  hosts(domain: string): boolean;
  /** False for XEP-0114, whose headers carry no version. */
  readonly hasVersion: boolean;
}

/** A valid header, or the stream error that answers it (RFC 6120 §4.7, §4.9.3). */
export type CheckedHeader =
  | { readonly ok: true; readonly host: string }
  | { readonly ok: false; readonly condition: StreamErrorCondition };

/** Checks a stream header; `host` is the normalised domain in its `to`. */
export function checkStreamHeader(header: StreamHeader, expected: ExpectedHeader): CheckedHeader {
  if (
    header.namespace !== STREAM_NAMESPACE || header.contentNamespace !== expected.contentNamespace
  ) return { ok: false, condition: "invalid-namespace" };
  if (header.name !== "stream") return { ok: false, condition: "bad-format" };
  if (expected.hasVersion && !isSupportedVersion(header.version)) {
    return { ok: false, condition: "unsupported-version" };
  }
  if (header.to === undefined) return { ok: false, condition: "improper-addressing" };
  const to = tryParseJid(header.to);
  if (to === undefined || to.text !== to.domainpart) {
    return { ok: false, condition: "improper-addressing" };
  }
  if (!expected.hosts(to.text)) return { ok: false, condition: "host-unknown" };
  return { ok: true, host: to.text };
}

/** Accepts later versions too, because we answer them with ours (RFC 6120 §4.7.5). */
function isSupportedVersion(version: string | undefined): boolean {
  const match = /^(\d{1,5})\.\d{1,5}$/.exec(version ?? "");
  return match !== null && Number(match[1]) >= 1;
}
