import { FrameScanner } from "./frame_scanner.ts";
import { StreamFailure } from "./scan_failure.ts";
import type { ScannedElement } from "./scanner_types.ts";
import { MAX_READABLE_DEPTH } from "./scanner_limits.ts";

/**
 * More than any configuration lets a client write, with what is stamped on it, so that servers that are
 * configured differently understand each other. A frame of a link says how long a stanza may be.
 */
const LIMITS = {
  maxStanzaBytes: Number.MAX_SAFE_INTEGER,
  maxDepth: MAX_READABLE_DEPTH,
  maxAttributes: 2_048,
};

/** Scratch: nothing in it is read after the call that filled it. */
const SCANNER = new FrameScanner(LIMITS);

/**
 * Scans bytes that are to be a stanza as it travels (see `Stanza`): one whole element and nothing else,
 * whose root has neither a prefix nor a namespace of its own, and which declares every prefix it uses.
 * The result is valid until the next call; undefined for other bytes.
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
