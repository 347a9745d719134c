import { SlabAllocator } from "../../base/mod.ts";
import { tryParseJid } from "../jid/jid_parser.ts";
import { errorReply } from "../stanza/error_reply.ts";
import type { Stanza, StanzaKind } from "../stanza/stanza.ts";
import { stanzaId } from "../stanza/stanza_attributes.ts";
import { buildStanza } from "../stanza/stanza_builder.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StanzaContext } from "../stanza/stanza_parser.ts";
import { RefusedStanza, stanzaFrom } from "../stanza/stanza_parser.ts";
import { BIND_NAMESPACE, SESSION_NAMESPACE } from "../stream/namespaces.ts";
import type { StanzaSource } from "../stream/stanza_sink.ts";
import { findChild, stanzaSource } from "../xml/child_elements.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { element } from "../xml/xml_element.ts";
import type { LocalSession } from "./local_session.ts";
import { SessionPresence } from "./session_presence.ts";
import type { SharedSessionDeps } from "./shared_session_deps.ts";

/** Memory for the stamped stanzas of all sessions, which live about equally long. */
const SLAB = new SlabAllocator();

/** The stanzas that a client sends: checked, stamped (RFC 6120 §8.1, §10.3), and some answered here. */
export class ClientStanzas {
  /** The presence that the client has sent. */
  readonly presence: SessionPresence;
  readonly #session: LocalSession & StanzaSource;
  readonly #deps: SharedSessionDeps;
  readonly #context: StanzaContext;

  /** @param lang `xml:lang` of the stream's header */
  constructor(
    session: LocalSession & StanzaSource,
    deps: SharedSessionDeps,
    lang: string | undefined,
  ) {
    const { jid } = session;
    this.#session = session;
    this.#deps = deps;
    this.#context = {
      slab: SLAB,
      from: jid,
      fromAttribute: encodeAttribute("from", jid.text),
      defaultTo: jid.bare,
      defaultToAttribute: encodeAttribute("to", jid.bare.text),
      lang: lang === undefined ? undefined : encodeAttribute("xml:lang", lang),
    };
    this.presence = new SessionPresence(session, deps, this.#context);
  }

  /**
   * Returns the stanza to pass on, with bytes of its own; undefined when it goes no further. It was then
   * answered, broadcast, or ended the stream.
   *
   * @throws StreamFailure as `stampStanza`
   */
  read(element: ScannedElement, kind: StanzaKind): Stanza | undefined {
    const from = element.attribute("from");
    if (from !== undefined && !this.#isOwn(from)) {
      this.#session.end("invalid-from");
      return undefined;
    }
    const stanza = stanzaFrom(element, kind, this.#context);
    if (stanza instanceof RefusedStanza) {
      if (stanza.condition === "policy-violation") this.#deps.metrics.limitHit("id-bytes");
      return this.#answer(stanza.stanza, stanza.condition);
    }
    if (kind === "presence") return this.#readPresence(element, stanza);
    return stanza.type === "set" && this.#isBeginning(stanza) ? undefined : stanza;
  }

  #readPresence(element: ScannedElement, stanza: Stanza): Stanza | undefined {
    const taken = this.presence.accept(element, stanza);
    return typeof taken === "string" ? this.#answer(stanza, taken) : taken;
  }

  #isOwn(from: string): boolean {
    const { jid } = this.#session;
    if (from === jid.text || from === jid.bare.text) return true;
    const parsed = tryParseJid(from);
    return parsed !== undefined && (parsed.text === jid.text || parsed.text === jid.bare.text);
  }

  /** Answers a stanza with an error, where the RFC requires one. */
  #answer(stanza: Stanza, condition: StanzaErrorCondition): undefined {
    const reply = errorReply(stanza, condition);
    if (reply !== undefined) this.#session.send(reply);
  }

  /** Answers what belongs to the begin of a session, which the client already has; true when it did. */
  #isBeginning(stanza: Stanza): boolean {
    const { jid } = this.#session;
    if (stanza.to !== jid.bare && stanza.to.text !== jid.domainpart) return false;
    const source = stanzaSource(stanza.bytes);
    if (findChild(source, "session", SESSION_NAMESPACE) !== undefined) { // RFC 3921 §3
      const id = stanzaId(stanza) ?? "";
      this.#session.send(
        buildStanza(element("iq", { type: "result", id }), { from: jid.bare, to: jid }),
      );
      return true;
    }
    if (findChild(source, "bind", BIND_NAMESPACE) === undefined) return false;
    this.#answer(stanza, "not-allowed"); // RFC 6120 §7.6.2.2: one resource for a stream
    return true;
  }
}
