import type { SaslMechanism } from "../sasl/mod.ts";
import type { NegotiationTerms } from "./negotiation_state.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { C2sContext } from "./c2s_context.ts";

/**
 * Returns the offers that a connection allows now (RFC 6120 §5.3.1, §13.8):
 *
 * | connection | STARTTLS | mechanisms |
 * |---|---|---|
 * | encrypted | none | all |
 * | plain, plaintext refused | required, where there is a certificate | none |
 * | plain, plaintext allowed | optional, where there is a certificate | SCRAM; PLAIN only on loopback |
 */
export function termsOf(transport: StreamTransport, context: C2sContext): NegotiationTerms {
  const { isEncrypted, isLoopback, canStartTls } = transport;
  const { allowPlaintext } = context;
  const isUsable = (mechanism: SaslMechanism): boolean =>
    isEncrypted || (allowPlaintext && (mechanism !== "PLAIN" || isLoopback));
  return {
    startTls: !canStartTls ? "none" : allowPlaintext ? "optional" : "required",
    mechanisms: context.mechanisms.filter(isUsable),
    withheld: context.mechanisms.filter((mechanism) => !isUsable(mechanism)),
    isManageable: context.management !== undefined,
    maxAuthFailures: context.limits.maxAuthFailures,
    hosts: (domain) => context.hosts.has(domain),
  };
}
