export type { CredentialSource, ScramCredentials, ScramHash, ScramSecret } from "./credentials.ts";
export { DEFAULT_SCRAM_ITERATIONS, deriveScramCredentials } from "./derive_credentials.ts";
export { FakeCredentials } from "./fake_credentials.ts";
export { ScramRounds } from "./scram_rounds.ts";
export type { SaslMechanism } from "./mechanism.ts";
export { SASL_MECHANISMS } from "./mechanism.ts";
export type { SaslCondition } from "./sasl_condition.ts";
export type { LoginAttempts, SaslExchangeDeps, SaslReply } from "./sasl_exchange.ts";
export { SaslExchange } from "./sasl_exchange.ts";
