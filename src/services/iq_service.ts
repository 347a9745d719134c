import type { Jid, Stanza, StanzaErrorCondition, XmlElement } from "../xmpp/mod.ts";

/** Kind of addressee of a request: a host of this datacenter, or the bare JID of an account. */
export type IqTarget = "host" | "account";

/** Use of an account's data by a session of it. */
export type AccountUse = "read" | "change";

/** The client at this node that sent a request. */
export interface OwnClient {
  /** See `LocalSession.creation`. @default empty */
  readonly creation?: string;
  /** True when nobody on the way can read what the client writes: over TLS, or on loopback. */
  readonly isConfidential: boolean;
  /** True while the client gets copies of its account's other messages (XEP-0280). */
  hasCarbons: boolean;
}

/** One `<iq type='get'/>` or `set` for a service, with its payload parsed. */
export interface IqRequest {
  readonly stanza: Stanza;
  /** The `id` of the request, which its answer repeats (RFC 6120 §8.2.3). */
  readonly id: string | undefined;
  readonly target: IqTarget;
  /** The only child element (RFC 6120 §8.2.3). */
  readonly payload: XmlElement;
  /** Undefined when the request came from another node, datacenter or component. */
  readonly client: OwnClient | undefined;
  /**
   * Resolves once it is known whether the client's account still exists; undefined: nobody asks. The
   * answer goes out no earlier. A service whose answer a push must not overtake waits for it before
   * the last read.
   */
  readonly checked?: Promise<unknown>;
  /**
   * True while the client's account exists; undefined: nobody asks. Set for changes. Who has written
   * something asks again: the next owner of the name must not have it. Never rejects.
   */
  readonly isCurrent?: () => Promise<boolean>;
}

/** Steps that follow the last result of an account that has been deleted. */
export interface Farewell {
  /** Ends the account's sessions. Called once the client has been sent the result. */
  endSessions(): void;
  /** Called behind all requests that the sessions had sent by then. */
  cleanUp(): Promise<void>;
}

/**
 * Answer of a service: the payload of the result, as a tree or already written as XML in the
 * namespace of clients, `"empty"` for a result without a payload, an empty result with a farewell, or
 * the condition of the error with what the protocol adds to it.
 */
export type IqAnswer =
  | { readonly payload: XmlElement }
  | { readonly written: string }
  | { readonly error: StanzaErrorCondition; readonly detail?: XmlElement }
  | { readonly farewell: Farewell }
  | "empty";

/** Modules of the configuration that a host may have turned off. */
export type ServiceModule =
  | "mod_carboncopy"
  | "mod_blocking"
  | "mod_disco"
  | "mod_last"
  | "mod_mam"
  | "mod_offline"
  | "mod_ping"
  | "mod_privacy"
  | "mod_private"
  | "mod_pubsub"
  | "mod_register"
  | "mod_roster"
  | "mod_time"
  | "mod_vcard"
  | "mod_version"
  | "vcard_search";

/** Answers of service discovery about accounts, besides the features of services (XEP-0030). */
export interface AccountDisco {
  /** Identities of the accounts of a host, besides that of an account. */
  identities(host: string): readonly XmlElement[];
  /** Features of the accounts of a host, besides those of its services. */
  features(host: string): readonly string[];
  /**
   * True when `asker` may discover an account: its owner, and those who see its presence. It takes
   * the same steps for accounts that do not exist.
   */
  mayAsk(owner: Jid, asker: Jid): Promise<boolean>;
  /** Returns the nodes of an account that `asker` may see. */
  nodes(owner: Jid, asker: Jid): Promise<readonly string[]>;
  /** Returns what a node shows of itself; undefined for one that `asker` may not see. */
  node(owner: Jid, asker: Jid, name: string): Promise<readonly XmlElement[] | undefined>;
}

/**
 * One protocol that the server answers itself. To add another, implement this in a file of its own
 * and hand it to `HostServices`.
 */
export interface IqService {
  /**
   * Namespace of the payload. Namespace, `name` and `type` together select the service of a
   * request.
   */
  readonly namespace: string;
  /** Name of the payload element. */
  readonly name: string;
  readonly type: "get" | "set";
  /** Module that turns the service off for a host. Without one, the service is always on. */
  readonly module?: ServiceModule;
  /**
   * Kinds of addressees that the service answers for. Requests to an account are answered to its
   * owner alone.
   */
  readonly targets: readonly IqTarget[];
  /**
   * Features that disco#info lists for the service (XEP-0030 §3.1): at the host, which offers the
   * service to its accounts, and at the kinds of addressees that the service answers for.
   */
  readonly features: readonly string[];
  /**
   * Features that disco#info lists for accounts alone, beside `features`.
   * @default none
   */
  readonly accountFeatures?: readonly string[];
  /**
   * Returns features that the service has at a host, beside `features`.
   * @default none
   */
  featuresAt?(host: string): readonly string[];
  /**
   * True for services whose requests from one account are answered one after another, in their
   * order.
   * @default false
   */
  readonly isOrdered?: boolean;
  /**
   * True for an ordered service of type `set` that does nothing to the new owner of a name when a
   * session of the former owner asks. All others refuse such a session, which costs a query. So do
   * those of type `get` that read data of an account.
   * @default false
   */
  readonly isForFormerOwners?: boolean;
  /**
   * Returns the bytes that the payload of a request may have at a host.
   * @default `maxIqBytes` of the options
   */
  maxBytes?(host: string): number;
  /**
   * Answers one request. A thrown error or a rejection becomes `internal-server-error`, or
   * `resource-constraint` for `storage/pool-full`.
   */
  answer(request: IqRequest): IqAnswer | Promise<IqAnswer>;
  /**
   * Answers for the bare JID of an account that is not the requester's own, existing or not. The
   * answer and its time must reveal nothing but what the account shows to everybody.
   * @default `service-unavailable`
   */
  answerStranger?(request: IqRequest): IqAnswer | Promise<IqAnswer>;
}
