/** Reasons why an authentication attempt failed (RFC 6120 §6.5). */
export type SaslCondition =
  | "aborted"
  | "account-disabled"
  | "credentials-expired"
  | "encryption-required"
  | "incorrect-encoding"
  | "invalid-authzid"
  | "invalid-mechanism"
  | "malformed-request"
  | "mechanism-too-weak"
  | "not-authorized"
  | "temporary-auth-failure";
