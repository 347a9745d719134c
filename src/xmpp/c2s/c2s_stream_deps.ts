import type { ChosenMechanism, CredentialSource, FakeCredentials } from "../sasl/mod.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { C2sSession } from "./c2s_session.ts";
import type { PacedWork, PeerAddress } from "../../base/mod.ts";
import type { AccountFeature, CreationOutcome } from "./negotiation_events.ts";
import type { SharedSessionDeps } from "./shared_session_deps.ts";

/** Makes accounts for clients that have none (XEP-0077). */
export interface AccountCreation {
  /** Returns true when a client at this address may make accounts at `host`. */
  mayCreate(host: string, peer: PeerAddress): boolean;
  /** Makes an account. Never rejects. */
  create(
    account: { readonly username: string; readonly password: string; readonly host: string },
    peer: PeerAddress,
  ): Promise<CreationOutcome>;
}

/** Data that all clients' streams of one listener share. */
export interface C2sStreamDeps extends SharedSessionDeps {
  /** Normalised domains that users log in to, each with the source of its accounts. */
  readonly hosts: ReadonlyMap<string, CredentialSource>;
  /** Mechanisms in the order in which they are offered, besides their -PLUS variants. */
  readonly mechanisms: readonly ChosenMechanism[];
  /** True when SCRAM is offered with channel binding, where the connection allows it. */
  readonly hasChannelBinding: boolean;
  /** True when clients may log in by XEP-0388 too. */
  readonly hasSasl2: boolean;
  readonly allowPlaintext: boolean;
  /** Returns the features that a host's accounts have beside those of the stream. */
  readonly accountFeatures: (domain: string) => readonly AccountFeature[];
  /** Makes accounts for clients that have none; undefined where nobody may. */
  readonly creation: AccountCreation | undefined;
  /** True when the accounts of a host have carbons (XEP-0280). */
  readonly hasCarbons: (domain: string) => boolean;
  readonly fake: FakeCredentials;
  /** Does the steps of logins, a little at a time. */
  readonly paced: PacedWork;
  /** The sessions whose streams a client may resume; undefined when stream management is not offered. */
  readonly management: StreamManagement<C2sSession> | undefined;
}
