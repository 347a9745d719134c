// SCRAM client of the PostgreSQL driver `pg`; the module has no types of its own.

import type { TLSSocket } from "node:tls";

export interface PgSaslSession {
  readonly mechanism: string;
  /** Next message for the server. */
  readonly response: string;
}

declare const sasl: {
  startSession(mechanisms: readonly string[], stream: TLSSocket): PgSaslSession;
  continueSession(
    session: PgSaslSession,
    password: string,
    serverFirst: string,
    stream: TLSSocket,
  ): Promise<void>;
  /** @throws when the server has not proved that it knows the password */
  finalizeSession(session: PgSaslSession, serverFinal: string): void;
};
export default sasl;
