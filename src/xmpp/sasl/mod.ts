export type {
  AccountCredentials,
  CompleteCredentials,
  CredentialSource,
  ScramCredentials,
  ScramHash,
  ScramSecret,
} from "./credentials.ts";
export { DEFAULT_SCRAM_ITERATIONS, deriveScramCredentials } from "./derive_credentials.ts";
export { derivePasswordLike } from "./plain.ts";
export { FakeCredentials } from "./fake_credentials.ts";
export { HashGate } from "./hash_gate.ts";
export type { CountedShape, CredentialShape, SecretShape } from "./credential_shapes.ts";
export { accountsWithoutKey, CredentialShapes } from "./credential_shapes.ts";
export type { ChosenMechanism, SaslMechanism } from "./mechanism.ts";
export { bindingMechanismsOf, bindsChannel, SASL_MECHANISMS } from "./mechanism.ts";
export type { SaslCondition } from "./sasl_condition.ts";
export type { LoginAttempts, SaslExchangeDeps, SaslReply } from "./sasl_exchange.ts";
export { SaslExchange } from "./sasl_exchange.ts";
export type { ChannelBinding } from "./scram.ts";
