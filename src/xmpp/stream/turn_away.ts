import type { CausewayError } from "../../base/mod.ts";
import type { StreamTransport } from "./stream_transport.ts";

/** Ends a connection that gets no stream. */
export function turnAway(transport: StreamTransport, reason: CausewayError): void {
  const nothing = () => {};
  transport.start({
    header: nothing,
    element: nothing,
    footer: nothing,
    failed: nothing,
    broken: nothing,
    secured: nothing,
    drained: nothing,
    closed: nothing,
  });
  transport.destroy(reason);
}
