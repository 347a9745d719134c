import type { Inbox } from "./inbox.ts";
import type { ReceivedStanza, StanzaPredicate } from "./received_stanza.ts";
import { describeStanza } from "./received_stanza.ts";
import { PATIENCE_MS } from "../until.ts";

/** Milliseconds that a wait for a stanza takes at most, unless told otherwise. */
export const EXPECT_WITHIN_MS = PATIENCE_MS;

/** Security of a client's stream: plaintext on loopback, STARTTLS, or TLS from the first byte. */
export type ClientSecurity = "none" | "starttls" | "direct";

/** Account and server of a login. */
export interface ChatClientOptions {
  /** @default "127.0.0.1" */
  readonly host?: string;
  readonly port: number;
  /** Domain of the account, which the server's certificate must name. */
  readonly domain: string;
  readonly localpart: string;
  readonly password: string;
  /** @default chosen by the server */
  readonly resource?: string;
  readonly security: ClientSecurity;
  /** PEM file of the authority that the server's certificate is checked against. */
  readonly caFile?: string;
  /** Milliseconds within which it must be let in. @default EXPECT_WITHIN_MS */
  readonly loginWithinMs?: number;
}

export interface MessageOptions {
  /** @default a new one */
  readonly id?: string;
  /** @default "chat" */
  readonly type?: string;
}

export interface PresenceOptions {
  readonly to?: string;
  /** @default available */
  readonly type?: string;
  readonly priority?: number;
}

export interface IqOptions {
  readonly type: "get" | "set";
  /** @default the server itself, by leaving the address out */
  readonly to?: string;
  /** One XML element. */
  readonly payload: string;
  readonly withinMs?: number;
}

/** A stanza that declares its namespace, as one in a WebSocket message has to (RFC 7395 §3.3.3). */
export function selfContained(xml: string): string {
  return xml.replace(/^<\w+/, "$& xmlns='jabber:client'");
}

/**
 * A logged-in client or component, whichever library it is made of. Scenarios speak to this, so
 * that each can be run with every library.
 */
export abstract class ChatClient implements AsyncDisposable {
  /** The address that the server has given it: a full JID, or the domain of a component. */
  abstract readonly jid: string;
  protected abstract readonly inbox: Inbox;

  /** Hands one XML element to the stream. */
  protected abstract sendXml(xml: string): Promise<void>;
  /** Sends a message and gives its id. */
  abstract sendMessage(to: string, body: string, options?: MessageOptions): Promise<string>;
  abstract presence(options?: PresenceOptions): Promise<void>;
  /** Ends the stream in order. */
  abstract disconnect(): Promise<void>;
  /** Cuts the connection without a word, as a lost network does. */
  abstract kill(): Promise<void>;
  abstract [Symbol.asyncDispose](): Promise<void>;

  /** Every stanza so far, oldest first. */
  get received(): readonly ReceivedStanza[] {
    return this.inbox.received;
  }

  /**
   * Asks to be let into a room (XEP-0045 §7.2.2) as `occupant`, which is the room's address with the
   * nickname as resource.
   */
  joinRoom(occupant: string): Promise<void> {
    const x = "<x xmlns='http://jabber.org/protocol/muc'/>";
    return this.sendXml(`<presence to='${escapeXml(occupant)}'>${x}</presence>`);
  }

  /** Sends a stanza that is written out. */
  sendStanza(xml: string): Promise<void> {
    return this.sendXml(xml);
  }

  /** Sends a request and gives its answer, a result or an error. */
  async iq(options: IqOptions): Promise<ReceivedStanza> {
    const id = newId("iq");
    const to = options.to === undefined ? "" : ` to='${escapeXml(options.to)}'`;
    await this.sendXml(`<iq id='${id}' type='${options.type}'${to}>${options.payload}</iq>`);
    const isAnswer = (stanza: ReceivedStanza) =>
      stanza.kind === "iq" && stanza.id === id &&
      (stanza.type === "result" || stanza.type === "error");
    return await this.inbox.take(
      isAnswer,
      `the answer of ${options.to ?? "the server"} to ${options.payload}`,
      options.withinMs ?? EXPECT_WITHIN_MS,
    );
  }

  /** Takes the oldest unclaimed message that fits: by its body, or by a claim about it. */
  expectMessage(
    predicate: StanzaPredicate,
    withinMs: number = EXPECT_WITHIN_MS,
  ): Promise<ReceivedStanza> {
    const isIt = (stanza: ReceivedStanza) =>
      stanza.kind === "message" &&
      (typeof predicate === "string" ? stanza.body === predicate : predicate(stanza));
    return this.inbox.take(isIt, `a message at ${this.jid}: ${predicate}`, withinMs);
  }

  /** As `expectMessage`, for a stanza of any kind. */
  expectStanza(
    predicate: StanzaPredicate,
    withinMs: number = EXPECT_WITHIN_MS,
  ): Promise<ReceivedStanza> {
    return this.inbox.take(predicate, `a stanza at ${this.jid}: ${predicate}`, withinMs);
  }

  /** Takes the error that came back for the stanza with this id, and checks its condition. */
  async expectError(
    id: string,
    condition: string,
    withinMs: number = EXPECT_WITHIN_MS,
  ): Promise<ReceivedStanza> {
    const isIt = (stanza: ReceivedStanza) => stanza.type === "error" && stanza.id === id;
    const what = `an error ${condition} at ${this.jid} for ${id}`;
    const error = await this.inbox.take(isIt, what, withinMs);
    if (error.errorCondition === condition) return error;
    throw new Error(`Expected the error ${condition} for ${id}: got ${describeStanza(error)}`);
  }

  /**
   * Throws when a message or an IQ arrived that nobody has claimed. `from` (by default this client
   * itself) sends a last message; as stanzas between two addresses keep their order, nothing that
   * `from` sent before can still be on its way when it arrives.
   */
  async expectNothingElse(
    from: ChatClient = this,
    withinMs: number = EXPECT_WITHIN_MS,
  ): Promise<void> {
    const marker = newId("nothing-else");
    await from.sendMessage(this.jid, marker);
    await this.expectMessage(marker, withinMs);
    const surplus = this.inbox.untaken.filter((stanza) => stanza.kind !== "presence");
    if (surplus.length === 0) return;
    throw new Error(
      `Expected nothing else at ${this.jid}: got ${surplus.map(describeStanza).join(" ")}`,
    );
  }
}

/** An id that no other stanza of this process bears. */
export function newId(prefix: string): string {
  return `${prefix}-${crypto.randomUUID()}`;
}

/** `text` as it stands in XML, in an attribute in single quotes too. */
export function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll("'", "&apos;");
}
