import type { Clock, FairShares } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type { OfflineBounds, OfflineStore } from "../../storage/mod.ts";
import type { BareJid, Fate, FullJid, Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";

/** Options of the offline messages of one host. */
export interface OfflineHostOptions extends OfflineBounds {
  /** Milliseconds for which a message waits. */
  readonly lifetimeMs: number;
}

/** A session at this node, as delivery needs it. */
export interface OfflineSession {
  readonly jid: FullJid;
  /** Undefined while it is not available. */
  readonly priority: number | undefined;
  readonly isOpen: boolean;
}

/** Result of keeping a message. One of the three is called. */
export interface KeepOutcome {
  /** The message is on the disk. */
  kept(): void;
  /** The message was not kept. */
  refused(condition: StanzaErrorCondition): void;
  /** The message was not kept, and its sender must not see it. */
  dropped(): void;
}

/** Objects behind the offline messages. */
export interface OfflineMessagesDeps {
  /** Hosts that keep messages, with their options. */
  readonly hosts: ReadonlyMap<string, OfflineHostOptions>;
  /** Returns the waiting messages of such a host. */
  storeOf(domainpart: string): OfflineStore;
  /** Returns the `AccountCredentials.creation` of an account. Undefined when it does not exist. */
  creationOf(account: BareJid): Promise<string | undefined>;
  /** True for those who may know whether an account is online. */
  maySee(asker: Jid, account: BareJid): Promise<boolean>;
  /** True for a domain whose people log in at this node. */
  isUserHost(domainpart: string): boolean;
  /** True for a domain whose people have rosters at this node. */
  hasRosters(domainpart: string): boolean;
  /** Sessions of an account at this node. */
  sessionsOf(account: string): readonly OfflineSession[];
  /** True while the account of a session here exists: its name may have a new owner. Never rejects. */
  isCurrent(session: FullJid): Promise<boolean>;
  /** Stanzas for the account that found nobody may try again. */
  revealed(account: BareJid): void;
  /**
   * Gives a message to a session. False when the session does not take it. Otherwise `fate` is
   * told its end under `number`.
   */
  deliver(
    to: FullJid,
    message: Stanza,
    options: {
      readonly fate: Fate & { stays(number: number): void };
      readonly number: number;
      readonly sentAtMs: number;
    },
  ): boolean;
  /** Returns 16 random bytes. */
  randomId(): Uint8Array;
  /** Bound on the memory of messages that are being written. */
  readonly budget: FairShares;
  readonly metrics: Metrics;
  readonly logger: Logger;
  readonly clock: Clock;
}
