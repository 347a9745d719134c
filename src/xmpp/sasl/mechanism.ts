import type { ScramHash } from "./credentials.ts";

/** SASL mechanisms that an operator chooses. Each SCRAM has a variant with channel binding. */
export type ChosenMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-1" | "PLAIN";

/** SCRAM with channel binding (RFC 5802 §6). */
export type BindingMechanism = "SCRAM-SHA-256-PLUS" | "SCRAM-SHA-1-PLUS";

/** The SASL mechanisms that clients may be offered. */
export type SaslMechanism = ChosenMechanism | BindingMechanism;

/** Chosen mechanisms by default, in the order in which they are offered: strongest first. */
export const SASL_MECHANISMS: readonly ChosenMechanism[] = [
  "SCRAM-SHA-256",
  "SCRAM-SHA-1",
  "PLAIN",
];

/** Returns the variants with channel binding of the mechanisms that have one, in their order. */
export function bindingMechanismsOf(chosen: readonly ChosenMechanism[]): BindingMechanism[] {
  return chosen.flatMap((mechanism) => mechanism === "PLAIN" ? [] : [`${mechanism}-PLUS` as const]);
}

/** True for a mechanism that binds the authentication to the connection's TLS. */
export function bindsChannel(mechanism: SaslMechanism): mechanism is BindingMechanism {
  return mechanism === "SCRAM-SHA-256-PLUS" || mechanism === "SCRAM-SHA-1-PLUS";
}

/** Returns the hash function of a SCRAM mechanism; undefined for PLAIN. */
export function scramHashOf(mechanism: SaslMechanism): ScramHash | undefined {
  switch (mechanism) {
    case "SCRAM-SHA-256":
    case "SCRAM-SHA-256-PLUS":
      return "SHA-256";
    case "SCRAM-SHA-1":
    case "SCRAM-SHA-1-PLUS":
      return "SHA-1";
    case "PLAIN":
      return undefined;
    default:
      return mechanism satisfies never;
  }
}
