import type { Clock } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type { CredentialSource, FakeCredentials, SaslMechanism } from "../sasl/mod.ts";
import type { StanzaSink } from "../stream/stanza_sink.ts";
import type { ResolvedStreamLimits } from "../stream/stream_limits.ts";
import type { StreamMetrics } from "../stream/stream_metrics.ts";
import type { SessionRegistry } from "./session_registry.ts";

/** What all clients' streams of one listener share. */
export interface C2sContext {
  /** Domains that users log in to, normalised, and where their accounts are. */
  readonly hosts: ReadonlyMap<string, CredentialSource>;
  readonly mechanisms: readonly SaslMechanism[];
  readonly allowPlaintext: boolean;
  readonly registry: SessionRegistry;
  readonly sink: StanzaSink;
  readonly fake: FakeCredentials;
  readonly limits: ResolvedStreamLimits;
  readonly maxDirectedPresence: number;
  readonly clock: Clock;
  readonly metrics: StreamMetrics;
  readonly log: Logger;
}
