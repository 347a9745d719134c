import type { BareJid, FullJid } from "../jid/jid.ts";
import type { SaslCondition, SaslMechanism, SaslReply } from "../sasl/mod.ts";
import type { EnableRequest } from "../sm/enable_request.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StreamHeader } from "../xml/scanner_types.ts";

/** Framing of a SASL exchange: elements of RFC 6120 §6, or of XEP-0388. */
export type SaslProfile = "sasl" | "sasl2";

/** A request to resume an earlier stream (XEP-0198 §5); a value is undefined when it is invalid. */
export interface ResumeRequest {
  readonly previd: string | undefined;
  readonly h: number | undefined;
}

/** A request to bind a resource together with the login (XEP-0386). */
export interface InlineBind {
  /** Begin of the resource that the client wishes for. */
  readonly tag: string | undefined;
  /** Id of the client's installation; undefined when it gives none that nobody can guess. */
  readonly clientId: string | undefined;
  /** Request for stream management. */
  readonly enable: EnableRequest | undefined;
  /** True when the client wants carbons from the first message on (XEP-0280). */
  readonly wantsCarbons: boolean;
  /** True when the client begins in the background (XEP-0352). */
  readonly isInactive: boolean;
}

/** A request of a client without an account (XEP-0077 §3.1). */
export interface CreationRequest {
  readonly iqId: string;
  /** `get` asks which fields there are. */
  readonly type: "get" | "set";
  /** Undefined when it is missing, stands there twice, or is too long. */
  readonly username: string | undefined;
  readonly password: string | undefined;
}

/** Outcome of making an account: `made`, or the error. */
export type CreationOutcome = "made" | StanzaErrorCondition;

/** Requests that a client makes together with its login (XEP-0388 §2.5). */
export interface InlineRequests {
  /** Comes before `bind`, which is ignored when it succeeds. */
  readonly resume: ResumeRequest | undefined;
  readonly bind: InlineBind | undefined;
}

/** An answer of `<failed/>` (XEP-0198 §5). `h` is the handled count, where known. */
export interface ManagementFailure {
  readonly condition: StanzaErrorCondition;
  readonly h: number | undefined;
}

/** A `<success/>` of XEP-0388 that waits for what the client asked for together with its login. */
export interface PendingSuccess {
  /** Last message of the SASL mechanism in base64, if it has one. */
  readonly text: string | undefined;
  readonly bind: InlineBind | undefined;
  /** Answer to a request to resume that failed. */
  readonly failedResume: ManagementFailure | undefined;
}

/** Events of a stream's negotiation. */
export type NegotiationEvent =
  | { readonly kind: "header"; readonly header: StreamHeader }
  | { readonly kind: "starttls" }
  | {
    readonly kind: "auth";
    readonly profile: SaslProfile;
    readonly mechanism: string | undefined;
    /** Base64; undefined without an initial response. */
    readonly text: string | undefined;
    readonly inline: InlineRequests;
  }
  | { readonly kind: "response"; readonly profile: SaslProfile; readonly text: string }
  | { readonly kind: "abort"; readonly profile: SaslProfile }
  /** `resource` is undefined when the server chooses it. */
  | { readonly kind: "bind"; readonly iqId: string; readonly resource: string | undefined }
  /** A request to make an account (XEP-0077 §3.1). */
  | ({ readonly kind: "create" } & CreationRequest)
  /** The outcome of making an account. */
  | { readonly kind: "created"; readonly outcome: CreationOutcome }
  | ({ readonly kind: "resume" } & ResumeRequest)
  /** Any other nonza of stream management. */
  | { readonly kind: "management" }
  /** A message, presence or iq that is not a bind request. */
  | { readonly kind: "stanza" }
  /** Anything else at the top level. */
  | { readonly kind: "foreign" }
  /** The SASL exchange answered the message of `authenticate` or `respond`. */
  | { readonly kind: "sasl"; readonly reply: SaslReply }
  | { readonly kind: "secured" }
  | { readonly kind: "registered"; readonly jid: FullJid }
  | { readonly kind: "refused"; readonly condition: StanzaErrorCondition }
  /** The earlier stream continues here, and its client has been told. */
  | { readonly kind: "resumed"; readonly jid: FullJid }
  | ({ readonly kind: "resume-failed" } & ManagementFailure)
  /** The peer ended its stream. */
  | { readonly kind: "footer" }
  /** The server ends the stream, and still reads a bound peer's remaining stanzas. */
  | { readonly kind: "dismiss"; readonly condition: StreamErrorCondition }
  /** The peer broke a rule, ran out of time, or the server ends the stream. */
  | { readonly kind: "fail"; readonly condition: StreamErrorCondition };

/** Features of the accounts of a host (RFC 6121 §2.6.1, §3.4). */
export type AccountFeature = "roster-versions" | "pre-approval";

/** Features that a client may ask for together with its login by XEP-0388. */
export interface InlineFeatures {
  readonly isManageable: boolean;
  /** True when the host's accounts have carbons (XEP-0280). */
  readonly hasCarbons: boolean;
  /** True when the client may say that it is inactive (XEP-0352). */
  readonly hasCsi: boolean;
}

/** Features offered after a header (RFC 6120 §4.3.2). */
export interface OfferedFeatures {
  readonly startTls: "required" | "optional" | "none";
  readonly mechanisms: readonly SaslMechanism[];
  /** Types of channel binding for the -PLUS mechanisms (XEP-0440). */
  readonly channelBindings: readonly string[];
  /** Present when the mechanisms are offered by XEP-0388 too, with what may be asked for besides. */
  readonly sasl2: InlineFeatures | undefined;
  readonly isBindable: boolean;
  /** True when stream management is offered. */
  readonly isManageable: boolean;
  /** True when clients may say that they are inactive (XEP-0352). */
  readonly hasCsi: boolean;
  /** True when clients may make accounts (XEP-0077). @default false */
  readonly isCreatable?: boolean;
  /** Features of the account's host. @default none */
  readonly account?: readonly AccountFeature[];
}

/** Features of a stream that offers nothing more. */
export const NO_FEATURES: OfferedFeatures = {
  startTls: "none",
  mechanisms: [],
  channelBindings: [],
  sasl2: undefined,
  isBindable: false,
  isManageable: false,
  hasCsi: false,
};

/** Actions of the shell, in order. */
export type NegotiationAction =
  | { readonly kind: "send-header"; readonly host: string | undefined }
  | { readonly kind: "send-features"; readonly features: OfferedFeatures }
  | { readonly kind: "proceed" }
  | { readonly kind: "tls-failure" }
  | {
    readonly kind: "authenticate";
    readonly profile: SaslProfile;
    readonly host: string;
    readonly mechanism: SaslMechanism;
    readonly text: string | undefined;
  }
  | { readonly kind: "respond"; readonly text: string }
  /** Answer which fields an account needs. */
  | { readonly kind: "creation-form"; readonly iqId: string; readonly host: string }
  | {
    readonly kind: "create-account";
    readonly host: string;
    readonly username: string;
    readonly password: string;
  }
  | {
    readonly kind: "creation-answer";
    readonly iqId: string;
    readonly host: string;
    readonly outcome: CreationOutcome;
  }
  | { readonly kind: "challenge"; readonly profile: SaslProfile; readonly text: string }
  /** RFC 6120 §6.4.6. */
  | { readonly kind: "success"; readonly text: string | undefined }
  /** XEP-0388 §2.6.1, with the answers to what the client asked for besides. */
  | {
    readonly kind: "success2";
    /** A full JID when a resource is bound. */
    readonly jid: BareJid | FullJid;
    readonly success: PendingSuccess;
  }
  | {
    readonly kind: "sasl-failure";
    readonly profile: SaslProfile;
    readonly condition: SaslCondition;
    /** Undefined for a mechanism that does not exist. */
    readonly mechanism: SaslMechanism | undefined;
  }
  /** The next input is a new stream header. */
  | { readonly kind: "restart" }
  | {
    readonly kind: "register";
    readonly account: BareJid;
    /** The resource that the client wishes for, or its request by XEP-0386. */
    readonly resource: string | InlineBind | undefined;
  }
  | { readonly kind: "bind-result"; readonly iqId: string; readonly jid: FullJid }
  | {
    readonly kind: "bind-error";
    readonly iqId: string;
    readonly condition: StanzaErrorCondition;
  }
  | {
    readonly kind: "resume";
    readonly account: BareJid;
    readonly previd: string;
    readonly h: number;
    /** Carries the answer when the stream is resumed together with the login. */
    readonly success: PendingSuccess | undefined;
  }
  | ({ readonly kind: "management-failure" } & ManagementFailure)
  /** Stop the input, or continue it. */
  | { readonly kind: "hold" }
  | { readonly kind: "release" }
  | { readonly kind: "stream-error"; readonly condition: StreamErrorCondition }
  /** Send the end of the stream, and keep reading. */
  | { readonly kind: "end-output" }
  /** Send the end of the stream, unless that was sent already, and close the connection. */
  | { readonly kind: "end" };
