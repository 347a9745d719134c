import type { CancelTimer } from "../../base/mod.ts";
import { CausewayError, SlabAllocator } from "../../base/mod.ts";
import { errorReply } from "../stanza/error_reply.ts";
import type { FullJid } from "../jid/jid.ts";
import { tryParseJid } from "../jid/jid_parser.ts";
import { isRefusal, isStreamError } from "../sm/client_refusal.ts";
import { parseHandled } from "../sm/counter.ts";
import type { Delivery } from "../sm/delivery.ts";
import type {
  ArrivedSession,
  FollowedSession,
  FreezeOwner,
  FrozenSession,
} from "../sm/moving_session.ts";
import type { AckLink, SessionAcksEvents } from "../sm/session_acks.ts";
import { failedXml, handledTooHighContent, resumedXml, SM_NAMESPACE } from "../sm/sm_xml.ts";
import type { ManagedSession, StreamManagement } from "../sm/stream_management.ts";
import type { Stanza, StanzaKind } from "../stanza/stanza.ts";
import { stanzaId } from "../stanza/stanza_attributes.ts";
import { buildStanza } from "../stanza/stanza_builder.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import type { StanzaContext } from "../stanza/stanza_parser.ts";
import { RefusedStanza, stanzaFrom, stanzaKind } from "../stanza/stanza_parser.ts";
import { CLIENT_NAMESPACE, SESSION_NAMESPACE } from "../stream/namespaces.ts";
import type { StanzaMeter } from "../stream/edge_rates.ts";
import type { StreamSessionDeps } from "../stream/stream_session.ts";
import { StreamSession } from "../stream/stream_session.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import { findChild, stanzaSource } from "../xml/child_elements.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { element } from "../xml/xml_element.ts";
import type { LocalSession } from "./local_session.ts";
import { FrozenC2sSession } from "./frozen_c2s_session.ts";
import type { SharedSessionDeps } from "./shared_session_deps.ts";
import { SessionManagement } from "./session_management.ts";
import { SessionPresence } from "./session_presence.ts";

/** Memory for the stamped stanzas of all sessions, which live about equally long. */
const SLAB = new SlabAllocator();

/**
 * Milliseconds in which a client resends the stanzas that a stream left open when resuming it failed.
 * The time decides which stanzas are compared. It bounds no memory: `limits.resend_max_messages` does.
 */
export const RESENDING_MS = 60_000;

/** Objects that a stream gives its session. */
export interface C2sSessionDeps extends StreamSessionDeps<SharedSessionDeps> {
  /** `xml:lang` of the stream's header. */
  readonly lang: string | undefined;
  /** True when its client tried in vain to resume a stream, and will resend what that stream left open. */
  readonly hasFailedToResume: boolean;
  /** Called when another stream carries the session from now on: this stream must close. */
  moved(): void;
}

/**
 * A client with a bound resource. It stamps and checks what the client sends (RFC 6120 §8.1, §10.3),
 * keeps its presence (RFC 6121 §4), and writes what is delivered to the client.
 */
export class C2sSession extends StreamSession<SharedSessionDeps>
  implements LocalSession, ManagedSession, FollowedSession {
  override readonly jid: FullJid;
  readonly #presence: SessionPresence;
  readonly #stanzaContext: StanzaContext;
  #stream: C2sSessionDeps;
  #management: SessionManagement | undefined;
  #meter: StanzaMeter | undefined;
  /** The session's priority when it ended. Until it has lost its place, its queue takes stanzas for it. */
  #lastPriority: number | undefined;
  readonly #lang: string | undefined;
  #resendingUntilMs: number;
  /**
   * True when nobody takes the client's stanzas any more and `h` does not count them, so that it resends
   * them.
   */
  #isSettling = false;

  constructor(jid: FullJid, transport: StreamTransport, deps: C2sSessionDeps) {
    super(transport, deps);
    this.#stream = deps;
    this.jid = jid;
    this.#lang = deps.lang;
    this.#resendingUntilMs = deps.hasFailedToResume
      ? deps.shared.clock.monotonicMs() + RESENDING_MS
      : 0;
    this.#meter = deps.shared.rates.stanzaMeter(transport, jid.bare.text);
    this.#stanzaContext = {
      slab: SLAB,
      from: jid,
      fromAttribute: encodeAttribute("from", jid.text),
      defaultTo: jid.bare,
      defaultToAttribute: encodeAttribute("to", jid.bare.text),
      lang: deps.lang === undefined ? undefined : encodeAttribute("xml:lang", deps.lang),
    };
    this.#presence = new SessionPresence(this, deps.shared, this.#stanzaContext);
  }

  get isResending(): boolean {
    return this.#resendingUntilMs > 0 &&
      this.deps.clock.monotonicMs() < this.#resendingUntilMs;
  }

  get priority(): number | undefined {
    return this.isOpen ? this.#presence.state.priority : this.#lastPriority;
  }

  get lastPresence(): Stanza | undefined {
    return this.#presence.state.last;
  }

  get isManaged(): boolean {
    return this.#management !== undefined;
  }

  /** True while the session waits, without a connection, to be resumed. */
  get isHibernating(): boolean {
    return this.#management?.isHibernating ?? false;
  }

  /** Writes `stanza`; with stream management the session also keeps it, while there is room. */
  override send(stanza: Stanza, delivery?: Delivery): boolean {
    const acks = this.#management?.acks;
    if (acks === undefined) return super.send(stanza, delivery);
    const isOwed = delivery?.isOwed ?? stanza.type === "error";
    const refusal = acks.refusal(stanza, isOwed);
    if (refusal !== undefined || (!this.isOpen && acks.isFull)) {
      const ownLimit = isOwed ? "owed-bytes" : "unacknowledged-stanzas";
      this.deps.metrics.limitHit(refusal === "budget" ? "waiting-bytes" : ownLimit);
      return false;
    }
    acks.deliver(stanza, delivery);
    return true;
  }

  override drained(): void {
    super.drained();
    this.#management?.acks.drained();
  }

  /** Ends the stream with `condition`; without a stream, only the session. */
  override end(condition: StreamErrorCondition, content?: string): void {
    if (this.#management?.isGiven === true) return this.#management.lost();
    if (!this.isHibernating) return super.end(condition, content);
    this.#endWithoutStream();
  }

  /** Number of stanzas written to its client and not acknowledged. */
  get owed(): number {
    return this.#management?.acks.unacknowledgedWrites ?? 0;
  }

  settleUp(): void {
    this.#isSettling = true;
    this.#management?.acks.settleUp();
    // Acknowledgements follow stanzas that the client has sent meanwhile, so those must be read too.
    this.resume();
  }

  get keptBytes(): number {
    return this.#management?.acks.unacknowledgedBytes ?? 0;
  }

  giveWay(): void {
    if (this.#management !== undefined) this.#management.endReason = "budget";
    this.end("resource-constraint");
  }

  /** Ends the session because the session table has this full JID elsewhere. */
  moved(): void {
    if (this.#management !== undefined) this.#management.endReason = "moved";
    this.end("conflict");
  }

  /**
   * Handles the loss of a connection without the end of its stream.
   * @returns true when the session waits for its client to come back
   */
  hibernate(): boolean {
    const management = this.#management;
    if (!this.isOpen || management === undefined || !management.isResumable) return false;
    this.unplug();
    management.hibernate(() => this.#endWithoutStream());
    return true;
  }

  /**
   * Continues on another stream, whose client has handled `h` stanzas.
   * @returns false, and nothing has happened, when the client cannot have handled so many
   */
  resumeOn(
    transport: StreamTransport,
    resumption: { readonly deps: C2sSessionDeps; readonly previd: string; readonly h: number },
  ): boolean {
    const management = this.#management!; // found by its id, so it has one
    const { shared, acks } = management;
    const { deps, previd, h } = resumption;
    if (!acks.canResume(h)) return false;
    if (!management.isHibernating) this.#stream.moved();
    management.wake();
    this.#stream = deps;
    this.#meter = deps.shared.rates.stanzaMeter(transport, this.jid.bare.text);
    this.carryOn(transport, deps);
    shared.metrics.resumed.inc();
    shared.log.info("sm.resumed", { jid: this.jid.text, unacknowledged: acks.unacknowledged });
    transport.sendNonza(resumedXml(previd, acks.receivedH));
    acks.resume(this.#link());
    return true;
  }

  freeze(h: number, owner: FreezeOwner): FrozenSession | undefined {
    const management = this.#management!; // found by its id, so it has one
    if (!management.acks.canResume(h)) return undefined;
    if (!management.isHibernating) {
      this.#stream.moved();
      this.unplug();
    }
    management.freeze(owner);
    return new FrozenC2sSession(this, {
      management,
      presence: this.#presence.state,
      lang: this.#lang,
      resendingMs: Math.max(0, this.#resendingUntilMs - this.deps.clock.monotonicMs()),
      expired: () => this.#endWithoutStream(),
      vanish: () => {
        super.close();
        return this.deps.registry.close(this);
      },
    });
  }

  /** Becomes the session of its full JID that another node had; called before the session opens. */
  adopt({ state, queue }: ArrivedSession, id: string): void {
    const shared = this.deps.management!; // asked for it
    this.#presence.state.restore(state);
    if (state.resendingMs > 0) {
      this.#resendingUntilMs = this.deps.clock.monotonicMs() + state.resendingMs;
    }
    this.#management = SessionManagement.adopt(this, {
      state,
      id,
      shared,
      events: this.#acksEvents(shared),
    });
    for (const delivery of queue) this.follow(delivery);
    this.#management.acks.holdBack();
  }

  /** Takes its place and writes the unacknowledged stanzas. Without a stream it hibernates. */
  beginHere(previd: string, hasStream: boolean): void {
    const management = this.#management!; // set by `adopt`
    const { shared, acks } = management;
    management.adopted();
    this.deps.registry.arrived(this);
    if (!hasStream) return void this.hibernate();
    shared.metrics.resumed.inc();
    shared.log.info("sm.resumed", {
      jid: this.jid.text,
      unacknowledged: acks.unacknowledged,
      isFromElsewhere: true,
    });
    this.transport.sendNonza(resumedXml(previd, acks.receivedH));
    acks.resume(this.#link());
  }

  follow(delivery: Delivery): void {
    const { acks, shared } = this.#management!; // set by `adopt`
    if (!acks.isOver) return acks.follow(delivery);
    delivery.retain();
    shared.giveBack([delivery]);
  }

  caughtUp(): void {
    this.#management?.acks.caughtUp();
  }

  /** Ends a session that got no place and that nobody has heard of. Its old node keeps the queue. */
  abandon(): void {
    super.close();
    this.#management?.acks.end();
  }

  /** The largest number of stanzas that the client may have handled of the stream it wants to resume. */
  get sentCount(): number {
    return this.#management?.acks.sentCount ?? 0;
  }

  /**
   * Calls `go` once the client may forget all that it has sent: when all is covered, or after
   * `endHoldMs` at the latest. Without stream management it calls `go` at once.
   * @returns a function that stops waiting
   */
  whenCovered(go: () => void): CancelTimer {
    if (this.#management === undefined || this.#management.acks.isCovered) {
      go();
      return () => {};
    }
    const { acks, shared } = this.#management;
    const cancel = this.deps.clock.after(shared.options.endHoldMs, () => {
      acks.watchCovered(undefined);
      acks.coverAll();
      go();
    });
    acks.watchCovered(() => {
      acks.watchCovered(undefined);
      cancel();
      go();
    });
    return cancel;
  }

  /**
   * Handles the end of the client's stream, which a stanza that it was sent may have caused.
   * @param isRefused true when the client has said so
   */
  streamEnded(isRefused: boolean): void {
    this.#management?.acks.streamEnded(isRefused);
  }

  /** Sends the client the number of handled stanzas, as the last thing before its stream ends. */
  farewell(): void {
    this.#management?.acks.farewell();
  }

  /**
   * Takes the session out of the registry, and returns the stanzas that its client has not acknowledged.
   */
  bury(): Promise<void> {
    return this.deps.registry.close(this);
  }

  giveBack(): void {
    if (this.#management?.isGiven === false) this.#management.giveBack();
  }

  /** Sends the end of the session's presence to all who knew of it (RFC 6121 §4.5.2, §4.6.3). */
  override close(): void {
    const wasOpen = this.isOpen;
    super.close();
    if (!wasOpen) return;
    this.#management?.close();
    this.#lastPriority = this.#presence.state.priority;
    this.#presence.end();
  }

  override accept(element: ScannedElement): void {
    if (this.#isSettling && element.namespace !== SM_NAMESPACE) return;
    if (this.#meter !== undefined) this.#count(this.#meter, element);
    const kind = stanzaKind(element);
    if (kind === undefined || element.namespace !== CLIENT_NAMESPACE) {
      if (element.namespace === SM_NAMESPACE && this.deps.management !== undefined) {
        return this.#acceptManagement(element, this.deps.management);
      }
      if (isStreamError(element)) this.streamEnded(isRefusal(element));
      return this.end(
        kind === undefined ? "unsupported-stanza-type" : "invalid-namespace",
      );
    }
    this.deps.metrics.received[kind].inc();
    const acks = this.#management?.acks;
    if (acks === undefined) {
      this.#acceptStanza(element, kind, 0);
      return;
    }
    const number = acks.receive();
    if (this.#acceptStanza(element, kind, number)) acks.passedOn();
    else acks.settle(number);
  }

  /** Slows a client down that exceeds its rate. Acknowledgements are free, because the client owes them. */
  #count(meter: StanzaMeter, element: ScannedElement): void {
    if (element.namespace === SM_NAMESPACE && element.name === "a") return;
    const waitMs = meter.charge();
    if (waitMs > 0) this.slow(waitMs);
  }

  /** Returns true when the stanza was passed on; its number then reports its fate. */
  #acceptStanza(element: ScannedElement, kind: StanzaKind, number: number): boolean {
    const from = element.attribute("from");
    if (from !== undefined && !this.#isOwn(from)) {
      this.end("invalid-from");
      return false;
    }
    const stanza = stanzaFrom(element, kind, this.#stanzaContext);
    if (stanza instanceof RefusedStanza) {
      if (stanza.condition === "policy-violation") this.deps.metrics.limitHit("id-bytes");
      this.#answer(stanza.stanza, stanza.condition);
      return false;
    }
    if (kind === "presence") return this.#acceptPresence(element, stanza, number);
    if (stanza.type === "set" && this.#isSessionRequest(stanza)) return false;
    return this.#passOn(stanza, number);
  }

  #passOn(stanza: Stanza, number: number): boolean {
    if (number === 0) this.route(stanza);
    else this.deps.sink.accept(stanza, this, this.#management!.acks, number);
    return number > 0;
  }

  #acceptPresence(element: ScannedElement, stanza: Stanza, number: number): boolean {
    const taken = this.#presence.accept(element, stanza);
    if (typeof taken === "object") return this.#passOn(taken, number);
    if (taken !== undefined) this.#answer(stanza, taken);
    return false;
  }

  /** Takes a nonza of stream management (XEP-0198 §3, §4). */
  #acceptManagement(element: ScannedElement, shared: StreamManagement): void {
    const acks = this.#management?.acks;
    switch (element.name) {
      case "enable":
        // We can no longer answer `<enable/>`. From here on the client counts stanzas, and resends them
        // itself.
        if (!this.isOpen) return this.end("policy-violation");
        if (acks !== undefined) return this.#refuseManagement("unexpected-request");
        return this.#enable(element, shared);
      case "resume":
        return this.#refuseManagement("unexpected-request");
      case "r":
        if (acks === undefined) return this.#refuseManagement("unexpected-request");
        return acks.requested();
      case "a": {
        if (acks === undefined) return this.#refuseManagement("unexpected-request");
        const h = parseHandled(element.attribute("h"));
        if (h === undefined) return this.end("bad-format");
        if (acks.acknowledged(h)) return;
        return this.end("undefined-condition", handledTooHighContent(h, acks.sentCount));
      }
      default:
        return this.end("unsupported-stanza-type");
    }
  }

  #refuseManagement(condition: StanzaErrorCondition): void {
    this.sendNonza(failedXml(condition));
  }

  #enable(element: ScannedElement, shared: StreamManagement): void {
    this.#management = SessionManagement.enable(this, element, {
      shared,
      link: this.#link(),
      events: this.#acksEvents(shared),
    });
  }

  #acksEvents(shared: StreamManagement): SessionAcksEvents {
    return {
      overflowed: () => {
        this.#management!.endReason = "overflow"; // the queue is that of `#management`
        this.deps.metrics.limitHit("unacknowledged-stanzas");
        this.end("resource-constraint");
      },
      unresponsive: () => {
        this.deps.metrics.limitHit("unacknowledged-time");
        this.transport.destroy(
          new CausewayError(
            "stream/unresponsive",
            `Cannot wait longer for ${this.transport.remoteAddress} to acknowledge stanzas`,
          ),
        );
      },
      lookAround: () => shared.lookFor(this),
    };
  }

  #link(): AckLink {
    const readingMs = () => this.readingMs;
    return {
      get readingMs(): number {
        return readingMs();
      },
      sendNonza: (xml: string) => this.sendNonza(xml),
      write: (stanza: Stanza) => this.write(stanza, false), // the queue does the waiting
    };
  }

  /** Ends the session where no stream does. */
  #endWithoutStream(): void {
    const { shared } = this.#management!; // only a managed session lives without a stream
    this.close();
    shared.track(this.bury());
  }

  #isOwn(from: string): boolean {
    if (from === this.jid.text || from === this.jid.bare.text) return true;
    const jid = tryParseJid(from);
    return jid !== undefined && (jid.text === this.jid.text || jid.text === this.jid.bare.text);
  }

  /** Answers a stanza with an error, where the RFC requires one. */
  #answer(stanza: Stanza, condition: StanzaErrorCondition): void {
    const reply = errorReply(stanza, condition);
    if (reply !== undefined) this.send(reply);
  }

  /** Answers a session request at once, because the client already has a session (RFC 3921 §3). */
  #isSessionRequest(stanza: Stanza): boolean {
    if (stanza.to !== this.jid.bare && stanza.to.text !== this.jid.domainpart) return false;
    if (findChild(stanzaSource(stanza.bytes), "session", SESSION_NAMESPACE) === undefined) {
      return false;
    }
    const id = stanzaId(stanza) ?? "";
    this.send(
      buildStanza(element("iq", { type: "result", id }), { from: this.jid.bare, to: this.jid }),
    );
    return true;
  }
}
