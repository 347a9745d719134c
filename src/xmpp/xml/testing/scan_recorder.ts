import type { ScannerLimits } from "../scanner_types.ts";
import { StreamFailure } from "../scan_failure.ts";
import { StreamScanner } from "../stream_scanner.ts";

/** A scanner's reports, written so that two runs can be compared. */
export interface ScanRecord {
  readonly events: readonly string[];
  /** Condition of the failure that ended it. */
  readonly failure: string | undefined;
}

/** Runs a fresh scanner over `chunks`, for tests. */
export function recordScan(
  chunks: readonly Uint8Array[],
  limits: Partial<ScannerLimits> = {},
): ScanRecord {
  const events: string[] = [];
  const decoder = new TextDecoder();
  const scanner = new StreamScanner({
    streamOpened(header) {
      events.push(`open ${JSON.stringify(header)}`);
    },
    element(element) {
      const attributes = Array.from(
        { length: element.attributeCount },
        (_, i) => [element.attributeName(i), element.attributeValue(i)],
      );
      events.push(`element ${
        JSON.stringify({
          name: element.name,
          prefix: element.prefix,
          namespace: element.namespace,
          isEmpty: element.isEmpty,
          attributes,
          inherited: element.inheritedPrefixes,
          namesContent: element.namesContentNamespace,
          startTag: decoder.decode(element.buffer.subarray(element.start, element.startTagEnd)),
          bytes: decoder.decode(element.buffer.subarray(element.start, element.end)),
        })
      }`);
    },
    streamClosed() {
      events.push("close");
    },
  }, limits);
  try {
    for (const chunk of chunks) scanner.push(chunk);
  } catch (thrown) {
    if (!(thrown instanceof StreamFailure)) throw thrown;
    return { events, failure: thrown.condition };
  }
  return { events, failure: undefined };
}

/** Splits `bytes` into pieces of one byte each. */
export function bytewise(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (byte) => Uint8Array.of(byte));
}
