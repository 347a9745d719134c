import { SlabAllocator } from "../../base/mod.ts";
import { errorReply } from "../error_reply.ts";
import type { FullJid, Jid } from "../jid.ts";
import { tryParseJid } from "../jid_parser.ts";
import type { Stanza } from "../stanza.ts";
import { isSubscription } from "../stanza.ts";
import { stanzaId } from "../stanza_attributes.ts";
import { buildStanza, stanzaElement } from "../stanza_builder.ts";
import type { StanzaErrorCondition } from "../stanza_error.ts";
import type { StanzaContext } from "../stanza_parser.ts";
import { RefusedStanza, stanzaFrom, stanzaKind } from "../stanza_parser.ts";
import { CLIENT_NAMESPACE, SESSION_NAMESPACE } from "../stream/namespaces.ts";
import type { SessionWiring } from "../stream/stream_session.ts";
import { StreamSession } from "../stream/stream_session.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { stampStanza } from "../xml/stamp.ts";
import { element } from "../xml/xml_element.ts";
import type { C2sContext } from "./c2s_context.ts";
import type { LocalSession } from "./local_session.ts";
import { PresenceState } from "./presence_state.ts";
import { readPriority } from "./priority.ts";

/** Stamped stanzas of all sessions: they live about as long as each other. */
const SLAB = new SlabAllocator();

/** What a session is given by its stream. */
export interface C2sWiring extends SessionWiring<C2sContext> {
  /** `xml:lang` of the stream's header. */
  readonly lang: string | undefined;
}

/**
 * A client with a bound resource: stamps and checks what it sends (RFC 6120 §8.1, §10.3), keeps its
 * presence (RFC 6121 §4), and writes what is delivered to it.
 */
export class C2sSession extends StreamSession<C2sContext> implements LocalSession {
  override readonly jid: FullJid;
  readonly #presence: PresenceState;
  readonly #stanzaContext: StanzaContext;

  constructor(jid: FullJid, transport: StreamTransport, wiring: C2sWiring) {
    super(transport, wiring);
    this.jid = jid;
    this.#presence = new PresenceState(wiring.context.maxDirectedPresence);
    this.#stanzaContext = {
      slab: SLAB,
      from: jid,
      fromAttribute: encodeAttribute("from", jid.text),
      defaultTo: jid.bare,
      defaultToAttribute: encodeAttribute("to", jid.bare.text),
      lang: wiring.lang === undefined ? undefined : encodeAttribute("xml:lang", wiring.lang),
    };
  }

  get priority(): number | undefined {
    return this.#presence.priority;
  }

  get lastPresence(): Stanza | undefined {
    return this.#presence.last;
  }

  /** Tells those who knew of the session's presence that it is over (RFC 6121 §4.5.2, §4.6.3). */
  override close(): void {
    if (!this.isOpen) return;
    super.close();
    const wasAvailable = this.#presence.last !== undefined;
    const told = this.#presence.becomeUnavailable();
    if (wasAvailable) this.#broadcast(this.#unavailableTo(this.jid.bare));
    for (const to of told) this.context.sink.accept(this.#unavailableTo(to), this);
  }

  override accept(element: ScannedElement): void {
    const kind = stanzaKind(element);
    if (kind === undefined || element.namespace !== CLIENT_NAMESPACE) {
      return this.end(
        kind === undefined ? "unsupported-stanza-type" : "invalid-namespace",
      );
    }
    this.context.metrics.received[kind].inc();
    const from = element.attribute("from");
    if (from !== undefined && !this.#isOwn(from)) return this.end("invalid-from");
    const stanza = stanzaFrom(element, kind, this.#stanzaContext);
    if (stanza instanceof RefusedStanza) return this.#answer(stanza.stanza, stanza.condition);
    if (kind === "presence") return this.#acceptPresence(element, stanza);
    if (stanza.type === "set" && this.#isSessionRequest(stanza)) return;
    this.context.sink.accept(stanza, this);
  }

  #acceptPresence(element: ScannedElement, stanza: Stanza): void {
    if (element.attributeIndex("to") === -1) return this.#acceptBroadcast(stanza);
    if (isSubscription(stanza) || stanza.type === "probe") {
      // RFC 6121 §3: between accounts, whatever the client wrote.
      return this.context.sink.accept(this.#betweenAccounts(element, stanza), this);
    }
    if (stanza.type !== "error" && !this.#presence.direct(stanza)) {
      this.context.metrics.limitHit("directed-presence");
      return this.#answer(stanza, "resource-constraint");
    }
    this.context.sink.accept(stanza, this);
  }

  #acceptBroadcast(stanza: Stanza): void {
    switch (stanza.type) {
      case "available":
        return this.#becomeAvailable(stanza);
      case "unavailable": {
        if (this.#presence.last === undefined) return this.#tellDirected(stanza);
        this.#broadcast(stanza);
        return this.#tellDirected(stanza);
      }
      case "error":
        return;
      default:
        return this.#answer(stanza, "bad-request");
    }
  }

  #becomeAvailable(stanza: Stanza): void {
    const priority = readPriority(stanza);
    if (priority === undefined) return this.#answer(stanza, "bad-request");
    const isInitial = this.#presence.last === undefined;
    this.#presence.becomeAvailable(stanza, priority);
    this.#broadcast(stanza);
    if (!isInitial) return;
    for (const other of this.context.registry.ofAccount(this.jid.bare.text)) {
      if (other !== this && other.lastPresence !== undefined) this.send(other.lastPresence);
    }
    this.context.registry.becameAvailable(this);
  }

  /** To all available resources of the account that are here, its own included (§4.2.2, §4.4.2). */
  #broadcast(stanza: Stanza): void {
    for (const session of this.context.registry.ofAccount(this.jid.bare.text)) {
      if (session.priority !== undefined && session.isOpen) session.send(stanza);
    }
  }

  #tellDirected(stanza: Stanza): void {
    for (const to of this.#presence.becomeUnavailable()) {
      this.context.sink.accept(readdress(stanza, to), this);
    }
  }

  #betweenAccounts(element: ScannedElement, stanza: Stanza): Stanza {
    const { bare } = this.jid;
    const bytes = stampStanza(element, {
      slab: SLAB,
      from: encodeAttribute("from", bare.text),
      to: encodeAttribute("to", stanza.to.bare.text),
      replacesTo: true,
      lang: this.#stanzaContext.lang,
    });
    return { ...stanza, from: bare, to: stanza.to.bare, bytes };
  }

  #isOwn(from: string): boolean {
    if (from === this.jid.text || from === this.jid.bare.text) return true;
    const jid = tryParseJid(from);
    return jid !== undefined && (jid.text === this.jid.text || jid.text === this.jid.bare.text);
  }

  /** Answers a stanza with an error, where the RFC wants one. */
  #answer(stanza: Stanza, condition: StanzaErrorCondition): void {
    const reply = errorReply(stanza, condition);
    if (reply !== undefined) this.send(reply);
  }

  /** RFC 3921 §3: answered at once, as a session is what the client already has. */
  #isSessionRequest(stanza: Stanza): boolean {
    if (stanza.to !== this.jid.bare && stanza.to.text !== this.jid.domainpart) return false;
    if (stanzaElement(stanza).child("session", SESSION_NAMESPACE) === undefined) return false;
    const id = stanzaId(stanza) ?? "";
    this.send(
      buildStanza(element("iq", { type: "result", id }), { from: this.jid.bare, to: this.jid }),
    );
    return true;
  }

  /** What the server says for a client that has gone without saying so. */
  #unavailableTo(to: Jid): Stanza {
    return buildStanza(element("presence", { type: "unavailable" }), { from: this.jid, to });
  }
}

/** The same presence, to someone else. */
function readdress(stanza: Stanza, to: Jid): Stanza {
  return buildStanza(stanzaElement(stanza), { from: stanza.from, to });
}
