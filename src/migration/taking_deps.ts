import type { PepLimits } from "../services/pep/mod.ts";
import type { OfflineBounds, PrivateBounds, Stores } from "../storage/mod.ts";
import type { TakenPrivacyOptions } from "./take_privacy.ts";
import type { CompleteCredentials, ScramCredentials } from "../xmpp/mod.ts";

/** Stores that accounts are taken to, with the rules for it. */
export interface TakingDeps {
  readonly stores: Pick<
    Stores,
    | "users"
    | "rosters"
    | "vcards"
    | "privateStorage"
    | "privacyLists"
    | "pep"
    | "lastLogouts"
    | "offlineMessages"
    | "archives"
  >;
  /** Hosts whose accounts are taken. */
  readonly hosts: readonly string[];
  /** Returns the limits on the private storage of an account of a host. */
  privateBoundsOf(host: string): PrivateBounds;
  /** Returns the rules for the privacy lists of a host; undefined: it has neither them nor block lists. */
  privacyOptionsOf(host: string): TakenPrivacyOptions | undefined;
  /** Returns the limits on the personal eventing of an account of a host; undefined: it has none. */
  pepLimitsOf(host: string): PepLimits | undefined;
  /** Returns the limits on messages that wait at a host, and milliseconds for which they do. */
  offlineOptionsOf(host: string): OfflineBounds & { readonly lifetimeMs: number } | undefined;
  /** Wall-clock milliseconds. */
  nowMs(): number;
  /** Derives the keys of a new password. Rejects with `sasl/password-unusable` for a bad one. */
  derive(password: string): Promise<CompleteCredentials>;
  /** Returns true when a password belongs to these keys. */
  verify(credentials: ScramCredentials, password: string): Promise<boolean>;
  /** Waits for a second, in which another import may go on with accounts that it has reserved. */
  waitForOther(): Promise<void>;
}

/** An import that takes accounts. */
export interface TakingImport extends TakingDeps {
  /** Text that no other import has. It stays the same when this one is continued. */
  readonly importId: string;
  /** True: takes accounts that another import has reserved. That one has come to an end. */
  readonly takesReserved: boolean;
}
