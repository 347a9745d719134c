import type { Jid } from "../jid/jid.ts";
import { readdress } from "../stanza/readdress.ts";
import type { Stanza } from "../stanza/stanza.ts";
import { isSubscription } from "../stanza/stanza.ts";
import { buildStanza } from "../stanza/stanza_builder.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StanzaContext } from "../stanza/stanza_parser.ts";
import type { StanzaSource } from "../stream/stanza_sink.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { stampStanza } from "../xml/stamp.ts";
import { element } from "../xml/xml_element.ts";
import type { LocalSession } from "./local_session.ts";
import { PresenceState } from "./presence_state.ts";
import { readPriority } from "./priority.ts";
import type { SharedSessionDeps } from "./shared_session_deps.ts";

/** The presence that a session sends, and its recipients (RFC 6121 §4). */
export class SessionPresence {
  readonly state: PresenceState;
  readonly #session: LocalSession & StanzaSource;
  readonly #deps: SharedSessionDeps;
  readonly #stanzaContext: StanzaContext;
  #isOver = false;
  /** The last broadcast as the client wrote it. */
  #written: Stanza | undefined;

  constructor(
    session: LocalSession & StanzaSource,
    deps: SharedSessionDeps,
    stanzaContext: StanzaContext,
  ) {
    this.state = new PresenceState(deps.maxDirectedPresence);
    this.#session = session;
    this.#deps = deps;
    this.#stanzaContext = stanzaContext;
  }

  /**
   * Takes a presence from the client.
   * @returns the stanza to pass on, or the error to answer with; undefined after a broadcast
   */
  accept(presence: ScannedElement, stanza: Stanza): Stanza | StanzaErrorCondition | undefined {
    // The end of the presence has been sent to everybody. Nobody would revoke a later presence.
    if (this.#isOver && isOfResource(stanza)) return undefined;
    if (presence.attributeIndex("to") === -1) return this.#acceptBroadcast(stanza);
    if (isSubscription(stanza) || stanza.type === "probe") {
      // RFC 6121 §3: a subscription goes from account to account, whatever the client wrote.
      return this.#betweenAccounts(presence, stanza);
    }
    if (stanza.type !== "error" && !this.state.direct(stanza, this.#deps.clock.wallUs())) {
      this.#deps.metrics.limitHit("directed-presence");
      return "resource-constraint";
    }
    return stanza.type === "available" ? this.#deps.registry.completed(stanza) : stanza;
  }

  /** Sends the last broadcast anew, with what the server adds to it by now. */
  repeat(): void {
    const { last, priority } = this.state;
    if (last === undefined || priority === undefined || this.#isOver) return;
    const completed = this.#deps.registry.completed(this.#written ?? last);
    // It is no newer than a login elsewhere that has taken the full JID meanwhile.
    const { sinceUs = this.#deps.clock.wallUs() } = last;
    const presence = { ...completed, sinceUs };
    this.state.becomeAvailable(presence, priority);
    this.#broadcast(presence);
  }

  /** Sends directed presence for an account and its resources again, as it was sent. */
  repeatDirected(account: Jid): void {
    if (this.#isOver) return;
    const { jid: from } = this.#session;
    for (const { to, presence } of this.state.directedTo(account)) {
      const again = presence ?? buildStanza(element("presence"), { from, to });
      // It is no newer than a login elsewhere that has taken the full JID meanwhile.
      const { sinceUs = this.state.toldAtUs } = again;
      this.#deps.sink.accept({ ...this.#deps.registry.completed(again), sinceUs }, this.#session);
    }
  }

  /**
   * Sends the end of the session's presence to all who knew of it (§4.5.2, §4.6.3). It carries the
   * time of that presence: a login elsewhere may have taken the full JID since, and its presence
   * does not end.
   */
  end(): void {
    this.#isOver = true;
    const { last, toldAtUs } = this.state;
    const told = this.state.becomeUnavailable();
    if (last !== undefined) {
      this.#broadcast(this.#unavailableTo(this.#session.jid.bare, last.sinceUs));
    }
    for (const to of told) this.#deps.sink.accept(this.#unavailableTo(to, toldAtUs), this.#session);
  }

  #acceptBroadcast(stanza: Stanza): StanzaErrorCondition | undefined {
    switch (stanza.type) {
      case "available":
        return this.#becomeAvailable(stanza);
      case "unavailable":
        return this.#becomeUnavailable(stanza);
      case "error":
        return undefined;
      default:
        return "bad-request";
    }
  }

  #becomeAvailable(stanza: Stanza): "bad-request" | undefined {
    const priority = readPriority(stanza);
    if (priority === undefined) return "bad-request";
    const session = this.#session;
    const { registry } = this.#deps;
    const isInitial = this.state.last === undefined;
    this.#written = stanza;
    const presence = { ...registry.completed(stanza), sinceUs: this.#deps.clock.wallUs() };
    this.state.becomeAvailable(presence, priority);
    this.#broadcast(presence);
    if (!isInitial) return undefined;
    for (const other of registry.ofAccount(session.jid.bare.text)) {
      if (other !== session && other.lastPresence !== undefined) session.send(other.lastPresence);
    }
    registry.becameAvailable(session);
    return undefined;
  }

  /** Sends to all available resources of the account that are here, including its own (§4.2.2, §4.4.2). */
  #broadcast(stanza: Stanza): void {
    const { registry } = this.#deps;
    if (registry.isNews(stanza)) {
      for (const session of registry.ofAccount(this.#session.jid.bare.text)) {
        if (session.priority !== undefined && session.isOpen) session.send(stanza);
      }
    }
    registry.toldPresence(this.#session, stanza);
  }

  #becomeUnavailable(stanza: Stanza): undefined {
    const { last, toldAtUs } = this.state;
    if (last !== undefined) this.#broadcast(endOf(stanza, last.sinceUs));
    const end = endOf(stanza, toldAtUs);
    for (const to of this.state.becomeUnavailable()) {
      this.#deps.sink.accept(readdress(end, to), this.#session);
    }
    return undefined;
  }

  #betweenAccounts(presence: ScannedElement, stanza: Stanza): Stanza {
    const { bare } = this.#session.jid;
    const bytes = stampStanza(presence, {
      slab: this.#stanzaContext.slab,
      from: encodeAttribute("from", bare.text),
      to: encodeAttribute("to", stanza.to.bare.text),
      replacesTo: true,
      lang: this.#stanzaContext.lang,
    });
    return { ...stanza, from: bare, to: stanza.to.bare, bytes };
  }

  /** Builds the unavailable presence for a client that vanished. */
  #unavailableTo(to: Jid, sinceUs: number | undefined): Stanza {
    const unavailable = element("presence", { type: "unavailable" });
    return endOf(buildStanza(unavailable, { from: this.#session.jid, to }), sinceUs);
  }
}

/** Returns the unavailable presence as the end of one that began at that time. */
function endOf(unavailable: Stanza, sinceUs: number | undefined): Stanza {
  return sinceUs === undefined ? unavailable : { ...unavailable, sinceUs };
}

/** True for presence of a resource, false for presence of its account. */
function isOfResource({ type }: Stanza): boolean {
  return type === "available" || type === "unavailable";
}
