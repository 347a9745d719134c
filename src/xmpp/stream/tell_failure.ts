import { StreamFailure } from "../xml/scan_failure.ts";
import type { TransportEvents } from "./stream_transport.ts";

/**
 * Reports an error from reading a peer's bytes: a rule that the peer broke, or a bug of ours. Either
 * ends only that peer's stream.
 */
export function tellFailure(thrown: unknown, events: TransportEvents): void {
  if (!(thrown instanceof StreamFailure)) {
    events.broken(thrown);
    return;
  }
  const { condition } = thrown;
  events.failed(condition, condition === "policy-violation" ? "stanza-bounds" : undefined);
}
