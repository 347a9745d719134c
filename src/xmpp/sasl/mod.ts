export type { CredentialSource, ScramCredentials, ScramHash, ScramSecret } from "./credentials.ts";
export { DEFAULT_SCRAM_ITERATIONS, deriveScramCredentials } from "./derive_credentials.ts";
