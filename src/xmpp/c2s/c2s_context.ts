import type { CredentialSource, FakeCredentials, SaslMechanism } from "../sasl/mod.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { StreamContext } from "../stream/stream_context.ts";
import type { C2sSession } from "./c2s_session.ts";
import type { SessionRegistry } from "./session_registry.ts";

/** What all clients' streams of one listener share. */
export interface C2sContext extends StreamContext {
  /** Domains that users log in to, normalised, and where their accounts are. */
  readonly hosts: ReadonlyMap<string, CredentialSource>;
  /** In the order in which they are offered. */
  readonly mechanisms: readonly SaslMechanism[];
  readonly allowPlaintext: boolean;
  readonly registry: SessionRegistry;
  readonly fake: FakeCredentials;
  readonly maxDirectedPresence: number;
  /** Undefined when stream management is not offered. */
  readonly management: StreamManagement<C2sSession> | undefined;
}
