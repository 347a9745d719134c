import { FrameScanner } from "./frame_scanner.ts";
import { StreamFailure } from "./scan_failure.ts";
import type { ScannedElement } from "./scanner_types.ts";
import { MAX_READABLE_DEPTH } from "./scanner_limits.ts";

/**
 * Limits above those that any configuration sets for clients, stamped attributes included, so that
 * differently configured servers understand each other. A link's frame bounds the length of a stanza.
 */
const LIMITS = {
  maxStanzaBytes: Number.MAX_SAFE_INTEGER,
  maxDepth: MAX_READABLE_DEPTH,
  maxAttributes: 2_048,
};

/** Scratch scanner: nothing in it is read after the call that filled it. */
const SCANNER = new FrameScanner(LIMITS);

/**
 * Scans the bytes of a stanza as it travels (see `Stanza`): one whole element and nothing else. Its root
 * has neither a prefix nor a namespace of its own, and it declares every prefix it uses. The result is
 * valid until the next call; undefined for other bytes.
 */
export function scanSelfContained(bytes: Uint8Array): ScannedElement | undefined {
  const element = tryScan(bytes);
  if (element === undefined || element.end !== bytes.length) return undefined;
  return element.prefix === "" && element.attributeIndex("xmlns") === -1 ? element : undefined;
}

function tryScan(bytes: Uint8Array): ScannedElement | undefined {
  try {
    return SCANNER.scan(bytes);
  } catch (error) {
    if (error instanceof StreamFailure) return undefined;
    throw error;
  }
}
