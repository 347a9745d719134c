import type { SaslMechanism } from "../sasl/mod.ts";
import type { NegotiationTerms } from "./negotiation_state.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { C2sStreamDeps } from "./c2s_stream_deps.ts";

/**
 * Returns the offers that a connection allows now (RFC 6120 §5.3.1, §13.8):
 *
 * | connection | STARTTLS | mechanisms |
 * |---|---|---|
 * | encrypted | none | all |
 * | plain, plaintext refused | required, where there is a certificate | none |
 * | plain, plaintext allowed | optional, where there is a certificate | SCRAM; PLAIN only on loopback |
 */
export function termsOf(transport: StreamTransport, deps: C2sStreamDeps): NegotiationTerms {
  const { isEncrypted, isLoopback, canStartTls } = transport;
  const { allowPlaintext } = deps;
  const isUsable = (mechanism: SaslMechanism): boolean =>
    isEncrypted || (allowPlaintext && (mechanism !== "PLAIN" || isLoopback));
  return {
    startTls: !canStartTls ? "none" : allowPlaintext ? "optional" : "required",
    mechanisms: deps.mechanisms.filter(isUsable),
    withheld: deps.mechanisms.filter((mechanism) => !isUsable(mechanism)),
    isManageable: deps.management !== undefined,
    maxAuthFailures: deps.limits.maxAuthFailures,
    hosts: (domain) => deps.hosts.has(domain),
  };
}
