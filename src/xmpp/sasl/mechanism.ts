import type { ScramHash } from "./credentials.ts";

/** The SASL mechanisms on offer, strongest first. */
export type SaslMechanism = "SCRAM-SHA-256" | "SCRAM-SHA-1" | "PLAIN";

/** Mechanisms in the order in which they are offered. */
export const SASL_MECHANISMS: readonly SaslMechanism[] = ["SCRAM-SHA-256", "SCRAM-SHA-1", "PLAIN"];

/** Returns the hash function of a SCRAM mechanism; undefined for PLAIN. */
export function scramHashOf(mechanism: SaslMechanism): ScramHash | undefined {
  switch (mechanism) {
    case "SCRAM-SHA-256":
      return "SHA-256";
    case "SCRAM-SHA-1":
      return "SHA-1";
    case "PLAIN":
      return undefined;
    default:
      return mechanism satisfies never;
  }
}
