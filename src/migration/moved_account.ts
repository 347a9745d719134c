import type { FormValues } from "../services/pep/mod.ts";
import type { PrivacyItem } from "../services/privacy/mod.ts";
import type { LastLogout, PepItem, PrivateChange, RosterItem } from "../storage/mod.ts";
import type { BareJid, ScramCredentials } from "../xmpp/mod.ts";

/** Kinds of data of an account, as a report names them. */
export const MOVED_KINDS = [
  "account",
  "password",
  "roster",
  "vcard",
  "private",
  "privacy",
  "pep",
  "last",
  "offline",
  "other",
] as const;
/** One of them. */
export type MovedKind = (typeof MOVED_KINDS)[number];

/** Something that was not taken, or not as it stood. */
export interface MoveFinding {
  /** Address of the account as its source wrote it; empty for the source as a whole. */
  readonly account: string;
  readonly kind: MovedKind;
  /** The event and its object, without any content: `contact "a b": the address is malformed`. */
  readonly reason: string;
}

/** The login of an account as its source has it. */
export type MovedLogin =
  | { readonly kind: "keys"; readonly credentials: ScramCredentials }
  /** The keys are derived when the account is taken. */
  | { readonly kind: "password"; readonly password: string };

/** A message that waits for the account. */
export interface MovedMessage {
  /** Bare JID of the sender, or its domain. */
  readonly sender: string;
  /** The stanza as our store keeps it. */
  readonly stanza: Uint8Array;
  /** Wall-clock milliseconds when the other server took it; undefined: it does not say. */
  readonly sentAtMs: number | undefined;
  /** Wall-clock milliseconds when it is no longer wanted. @default as that of every message */
  readonly expiresAtMs?: number | undefined;
}

/** A node of personal eventing (XEP-0163) as its source has it. */
export interface MovedNode {
  readonly name: string;
  /** Values of the form by which it was configured; undefined: the source does not say. */
  readonly options: FormValues | undefined;
  /** Affiliations by JID, as they are written there. */
  readonly affiliations: ReadonlyMap<string, string>;
  /** Each id once, the oldest item first. */
  readonly items: readonly PepItem[];
}

/** A privacy list (XEP-0016). */
export interface MovedPrivacyList {
  readonly name: string;
  /** Each order once. */
  readonly items: readonly PrivacyItem[];
}

/** The privacy lists of an account. The block list (XEP-0191) is the default one. */
export interface MovedPrivacy {
  /** Name of the default list; undefined: there is none. */
  readonly defaultName: string | undefined;
  /** Each name once. */
  readonly lists: readonly MovedPrivacyList[];
}

/** An account of another server with all that is taken of it. */
export interface MovedAccount {
  readonly jid: BareJid;
  /** Undefined: the source has no login that can be used. */
  readonly login: MovedLogin | undefined;
  /** Each contact once. */
  readonly roster: readonly RosterItem[];
  readonly vcard: string | undefined;
  readonly privateElements: readonly PrivateChange[];
  readonly privacy: MovedPrivacy;
  /** Each name once. */
  readonly nodes: readonly MovedNode[];
  readonly last: LastLogout | undefined;
  /** In their order. */
  readonly messages: readonly MovedMessage[];
}

/** The next thing that a source says. */
export type SourceItem =
  | {
    readonly kind: "account";
    readonly account: MovedAccount;
    /** Findings about parts of this account that could not be taken. */
    readonly findings: readonly MoveFinding[];
  }
  /** An account that cannot be taken at all, or something else about the source. */
  | { readonly kind: "finding"; readonly finding: MoveFinding };
