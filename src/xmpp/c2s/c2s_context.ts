import type { CredentialSource, FakeCredentials, SaslMechanism } from "../sasl/mod.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { StreamContext } from "../stream/stream_context.ts";
import type { C2sSession } from "./c2s_session.ts";
import type { SessionRegistry } from "./session_registry.ts";

/** Data that all clients' streams of one listener share. */
export interface C2sContext extends StreamContext {
  /** Normalised domains that users log in to, each with the source of its accounts. */
  readonly hosts: ReadonlyMap<string, CredentialSource>;
  /** Mechanisms in the order in which they are offered. */
  readonly mechanisms: readonly SaslMechanism[];
  readonly allowPlaintext: boolean;
  readonly registry: SessionRegistry;
  readonly fake: FakeCredentials;
  readonly maxDirectedPresence: number;
  /** Undefined when stream management is not offered. */
  readonly management: StreamManagement<C2sSession> | undefined;
}
