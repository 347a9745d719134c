import { integerIn } from "../../base/mod.ts";
import type { ScannerLimits } from "./scanner_types.ts";

/**
 * Nesting that every parser reads, where a stanza's root is 1: libxml2 reads down to 256, the stream
 * included.
 */
export const MAX_READABLE_DEPTH = 250;

const DEFAULTS: ScannerLimits = Object.freeze({
  maxStanzaBytes: 262_144,
  maxDepth: 64,
  maxAttributes: 64,
});

/** Fills in the defaults; throws `RangeError` for a limit that no stanza could meet. */
export function resolveScannerLimits(limits: Partial<ScannerLimits> = {}): ScannerLimits {
  const resolved = { ...DEFAULTS, ...limits };
  for (const [name, value] of Object.entries(resolved)) {
    integerIn(name, value, { min: 1 });
  }
  return Object.freeze(resolved);
}
