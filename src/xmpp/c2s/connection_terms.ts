import type { ChannelBinding, ChosenMechanism } from "../sasl/mod.ts";
import { bindingMechanismsOf } from "../sasl/mod.ts";
import type { NegotiationTerms } from "./negotiation_step.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { C2sStreamDeps } from "./c2s_stream_deps.ts";

/**
 * Returns the channel binding that a connection allows; undefined when it allows none, or when the
 * listener offers none. `tls-exporter` and `tls-unique` would need what the runtime does not tell.
 */
export function channelBindingOf(
  { isEncrypted, serverEndPoint }: StreamTransport,
  { hasChannelBinding }: Pick<C2sStreamDeps, "hasChannelBinding">,
): ChannelBinding | undefined {
  return hasChannelBinding && isEncrypted && serverEndPoint !== undefined
    ? { type: "tls-server-end-point", data: serverEndPoint }
    : undefined;
}

/**
 * Returns the offers that a connection allows now (RFC 6120 §5.3.1, §13.8):
 *
 * | connection | STARTTLS | mechanisms |
 * |---|---|---|
 * | encrypted | none | all, and the -PLUS variants where it allows channel binding |
 * | plain, plaintext refused | required, where there is a certificate | none |
 * | plain, plaintext allowed | optional, where there is a certificate | SCRAM; PLAIN only on loopback |
 */
export function termsOf(transport: StreamTransport, deps: C2sStreamDeps): NegotiationTerms {
  const { isEncrypted, isLoopback, canStartTls } = transport;
  const { allowPlaintext } = deps;
  const isUsable = (mechanism: ChosenMechanism): boolean =>
    isEncrypted || (allowPlaintext && (mechanism !== "PLAIN" || isLoopback));
  const usable = deps.mechanisms.filter(isUsable);
  const binding = channelBindingOf(transport, deps);
  return {
    startTls: !canStartTls ? "none" : allowPlaintext ? "optional" : "required",
    mechanisms: binding === undefined ? usable : [...bindingMechanismsOf(usable), ...usable],
    withheld: [
      ...(isEncrypted ? [] : bindingMechanismsOf(deps.mechanisms)),
      ...deps.mechanisms.filter((mechanism) => !isUsable(mechanism)),
    ],
    offersPlainOnly: (host) => deps.hosts.get(host)?.checkPassword !== undefined,
    channelBindings: binding === undefined ? [] : [binding.type],
    hasSasl2: deps.hasSasl2,
    isManageable: deps.management !== undefined,
    hasCsi: deps.maxHeldPresence > 0,
    // A password never goes over the wire in the clear, not even to this machine.
    canCreate: (host) => isEncrypted && deps.creation?.mayCreate(host, transport) === true,
    hasCarbons: deps.hasCarbons,
    accountFeatures: deps.accountFeatures,
    maxAuthFailures: deps.limits.maxAuthFailures,
    hosts: (domain) => deps.hosts.has(domain),
  };
}
