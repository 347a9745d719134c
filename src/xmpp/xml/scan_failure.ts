import { CausewayError } from "../../base/mod.ts";
import type { ScanFailureCondition } from "./scanner_types.ts";

/**
 * Failure of a peer's bytes to be the XML that a stream may carry. `condition` is the stream error to
 * send (RFC 6120 §4.9.3); `code` is `xmpp/scan-` and the condition.
 */
export class StreamFailure extends CausewayError {
  override readonly name = "StreamFailure";
  readonly condition: ScanFailureCondition;

  constructor(condition: ScanFailureCondition, what: string) {
    super(`xmpp/scan-${condition}`, `Cannot accept XML: ${what}`);
    this.condition = condition;
  }
}

/** Throws a `StreamFailure`; `what` describes the finding. */
export function failScan(condition: ScanFailureCondition, what: string): never {
  throw new StreamFailure(condition, what);
}
