import type { CredentialSource, FakeCredentials, SaslMechanism } from "../sasl/mod.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { C2sSession } from "./c2s_session.ts";
import type { SharedSessionDeps } from "./shared_session_deps.ts";

/** Data that all clients' streams of one listener share. */
export interface C2sStreamDeps extends SharedSessionDeps {
  /** Normalised domains that users log in to, each with the source of its accounts. */
  readonly hosts: ReadonlyMap<string, CredentialSource>;
  /** Mechanisms in the order in which they are offered. */
  readonly mechanisms: readonly SaslMechanism[];
  readonly allowPlaintext: boolean;
  readonly fake: FakeCredentials;
  /** The sessions whose streams a client may resume; undefined when stream management is not offered. */
  readonly management: StreamManagement<C2sSession> | undefined;
}
