import type { Stanza, StanzaErrorCondition, XmlElement } from "../xmpp/mod.ts";

/** What a request is addressed to: a host of this datacenter, or the bare JID of an account. */
export type IqTarget = "host" | "account";

/** One `<iq type='get'/>` or `set` for a service, with its payload parsed. */
export interface IqRequest {
  readonly stanza: Stanza;
  /** Its `id`, which the answer bears too (RFC 6120 §8.2.3). */
  readonly id: string | undefined;
  readonly target: IqTarget;
  /** The only child element (RFC 6120 §8.2.3). */
  readonly payload: XmlElement;
}

/**
 * What a service says: the payload of the result, `"empty"` for a result without one, or the
 * condition of the error.
 */
export type IqAnswer =
  | { readonly payload: XmlElement }
  | { readonly error: StanzaErrorCondition }
  | "empty";

/** Modules of the configuration that a host may have turned off. */
export type ServiceModule = "mod_disco" | "mod_ping" | "mod_time" | "mod_version";

/**
 * One protocol that the server answers itself. To add another, implement this in a file of its own
 * and hand it to `HostServices`.
 */
export interface IqService {
  /** Namespace of the payload; with `name` and `type` it is what requests are told apart by. */
  readonly namespace: string;
  /** Name of the payload element. */
  readonly name: string;
  readonly type: "get" | "set";
  /** Module that turns it off for a host; left out, it is always on. */
  readonly module?: ServiceModule;
  /** What requests may be addressed to. An account's are answered to its owner alone. */
  readonly targets: readonly IqTarget[];
  /** What disco#info lists for it (XEP-0030 §3.1). */
  readonly features: readonly string[];
  /** Answers one request. What it throws or rejects with becomes `internal-server-error`. */
  answer(request: IqRequest): IqAnswer | Promise<IqAnswer>;
  /**
   * Answers for the bare JID of an account that is not the requester's own, existing or not: the answer
   * must tell nothing of the account. @default `service-unavailable`
   */
  answerStranger?(request: IqRequest): IqAnswer;
}
