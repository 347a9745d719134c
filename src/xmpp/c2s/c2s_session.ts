import type { CancelTimer } from "../../base/mod.ts";
import { CausewayError } from "../../base/mod.ts";
import type { FullJid, Jid } from "../jid/jid.ts";
import { isRefusal, isStreamError } from "../sm/client_refusal.ts";
import type { Delivery } from "../sm/delivery.ts";
import type { EnableRequest } from "../sm/enable_request.ts";
import { readEnable } from "../sm/enable_request.ts";
import type {
  ArrivedSession,
  FollowedSession,
  FreezeOwner,
  FrozenSession,
  SessionOrigin,
} from "../sm/moving_session.ts";
import type { AckLink } from "../sm/session_acks.ts";
import { failedXml, resumedXml, SM_NAMESPACE } from "../sm/sm_xml.ts";
import type { StreamManagement } from "../sm/stream_management.ts";
import type { Stanza } from "../stanza/stanza.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import { stanzaKind } from "../stanza/stanza_parser.ts";
import { CLIENT_NAMESPACE } from "../stream/namespaces.ts";
import type { SessionMeter } from "../stream/edge_rates.ts";
import type { StreamSessionDeps } from "../stream/stream_session.ts";
import { StreamSession } from "../stream/stream_session.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import { ClientStanzas } from "./client_stanzas.ts";
import { FrozenC2sSession } from "./frozen_c2s_session.ts";
import { CSI_NAMESPACE, HeldPresence } from "./held_presence.ts";
import { LateStanzas } from "./late_stanzas.ts";
import type { LocalSession } from "./local_session.ts";
import type { SharedSessionDeps } from "./shared_session_deps.ts";
import type { ManagedStreamSession } from "./session_management.ts";
import { SessionManagement } from "./session_management.ts";

/**
 * Milliseconds in which a client resends the stanzas that a stream left open when resuming it failed.
 * The time decides which stanzas are compared. It bounds no memory: `limits.resend_max_messages` does.
 */
export const RESENDING_MS = 60_000;

/** Objects that a stream gives its session. */
export interface C2sSessionDeps extends StreamSessionDeps<SharedSessionDeps> {
  /** `xml:lang` of the stream's header. */
  readonly lang: string | undefined;
  /** See `LocalSession.creation`. @default empty */
  readonly creation?: string;
  /** True when its client tried in vain to resume a stream, and will resend what that stream left open. */
  readonly hasFailedToResume: boolean;
  /** Tells the client that its stream is resumed, before any stanza: takes `<resumed/>`. */
  resumed(xml: string): void;
  /** Called when another stream carries the session from now on: this stream must close. */
  moved(): void;
}

/**
 * A client with a bound resource, over all its streams. What the client sends goes to `ClientStanzas` or
 * `SessionManagement`. What is delivered to the client is written, and with stream management kept.
 */
export class C2sSession extends StreamSession<SharedSessionDeps>
  implements LocalSession, ManagedStreamSession, FollowedSession {
  override readonly jid: FullJid;
  readonly creation: string;
  loneUntilMs = 0;
  readonly #stanzas: ClientStanzas;
  #stream: C2sSessionDeps;
  #management: SessionManagement | undefined;
  #meter: SessionMeter;
  /** Set while the client says that it is inactive. */
  #held: HeldPresence | undefined;
  /** The session's priority when it ended. Until it has lost its place, its queue takes stanzas for it. */
  #lastPriority: number | undefined;
  readonly #lang: string | undefined;
  #resendingUntilMs: number;
  /** Knows the stanzas that have followed the session from another node. */
  #arrived: Omit<ArrivedSession, "state" | "queue" | "placed" | "declined"> | undefined;
  /** True while the session has come from another node and is to get its place here. */
  #isArriving = false;
  /** Stanzas that have followed since the session ended; undefined once no more follow. */
  #late: LateStanzas | undefined;
  /**
   * True when nobody takes the client's stanzas any more and `h` does not count them, so that it resends
   * them.
   */
  #isSettling = false;
  #hasCarbons = false;

  constructor(jid: FullJid, transport: StreamTransport, deps: C2sSessionDeps) {
    super(transport, deps);
    this.#stream = deps;
    this.jid = jid;
    this.creation = deps.creation ?? "";
    this.#lang = deps.lang;
    this.#resendingUntilMs = deps.hasFailedToResume
      ? deps.shared.clock.monotonicMs() + RESENDING_MS
      : 0;
    this.#meter = deps.shared.rates.stanzaMeter(transport, jid.bare.text);
    this.#stanzas = new ClientStanzas(this, deps.shared, deps.lang);
  }

  get hasCarbons(): boolean {
    return this.#hasCarbons;
  }

  set hasCarbons(hasThem: boolean) {
    this.#hasCarbons = hasThem;
    if (hasThem) this.deps.registry.usesCarbons = true;
  }

  get isResending(): boolean {
    return this.#resendingUntilMs > 0 &&
      this.deps.clock.monotonicMs() < this.#resendingUntilMs;
  }

  get priority(): number | undefined {
    return this.isOpen ? this.#stanzas.presence.state.priority : this.#lastPriority;
  }

  get lastPresence(): Stanza | undefined {
    return this.#stanzas.presence.state.last;
  }

  get directed(): readonly Jid[] {
    return this.#stanzas.presence.state.directed;
  }

  get isConfidential(): boolean {
    return this.transport.isEncrypted || this.transport.isLoopback;
  }

  get isManaged(): boolean {
    return this.#management !== undefined;
  }

  override get keepsStanzas(): boolean {
    return this.isManaged;
  }

  /** True once the session belongs to another node, and only passes on what still comes here. */
  get isGiven(): boolean {
    return this.#management?.isGiven ?? false;
  }

  get origin(): SessionOrigin | undefined {
    return this.#arrived?.origin;
  }

  /** True while the session waits, without a connection, to be resumed. */
  get isHibernating(): boolean {
    return this.#management?.isHibernating ?? false;
  }

  /**
   * Writes `stanza`; with stream management the session also keeps it, while there is room. Presence
   * for an inactive client is held back until anything else is written, and its delivery is done.
   */
  override send(stanza: Stanza, delivery?: Delivery): boolean {
    if (this.#held !== undefined) {
      if (this.#held.hold(stanza)) return true;
      this.#releasePresence(this.#held);
    }
    return this.#sendNow(stanza, delivery);
  }

  replaceCopy(delivery: Delivery): boolean {
    const management = this.#management;
    // What another node gives back would go there again for as long as the session has a place here.
    const hasLeft = this.isGiven && !this.isOpen;
    return management !== undefined && !management.acks.isOver && !hasLeft &&
      management.acks.repeated(management.shared.told(delivery), delivery);
  }

  repeatPresence(): void {
    if (this.isOpen) this.#stanzas.presence.repeat();
  }

  repeatDirected(account: Jid): void {
    if (this.isOpen) this.#stanzas.presence.repeatDirected(account);
  }

  #releasePresence(held: HeldPresence): void {
    for (const presence of held.takeAll()) {
      if (!this.#sendNow(presence, undefined)) this.deps.metrics.limitHit("held-presence");
    }
  }

  /** Ends the inactivity of the client, and writes what was held back. */
  #becomeActive(): void {
    const held = this.#held;
    this.#held = undefined;
    if (held !== undefined) this.#releasePresence(held);
  }

  #sendNow(stanza: Stanza, delivery: Delivery | undefined): boolean {
    const acks = this.#management?.acks;
    if (acks === undefined) return super.send(stanza, delivery);
    if (delivery !== undefined && this.#arrived?.hasFollowed(delivery) === true) {
      acks.repeated(stanza, delivery);
      return true;
    }
    const isOwed = delivery?.isOwed ?? stanza.type === "error";
    const refusal = acks.refusal(stanza, isOwed);
    if (refusal !== undefined || (!this.isOpen && acks.isFull)) {
      const ownLimit = isOwed ? "owed-bytes" : "unacknowledged-stanzas";
      this.deps.metrics.limitHit(refusal === "budget" ? "waiting-bytes" : ownLimit);
      return false;
    }
    const isWaiting = !acks.deliver(stanza, delivery);
    if (delivery !== undefined && !isWaiting) this.#arrived?.got(delivery);
    return true;
  }

  override drained(): void {
    super.drained();
    this.#management?.acks.drained();
  }

  /** Ends the stream with `condition`; without a stream, only the session. */
  override end(condition: StreamErrorCondition, content?: string): void {
    if (this.#management?.isGiven === true) {
      this.caughtUp(false); // a newer session takes its place
      return this.#management.lost();
    }
    if (this.isHibernating) return this.#endWithoutStream();
    super.end(condition, content);
    if (this.#isArriving) super.close(); // no stream ends it, and it gets no place
  }

  /** Number of stanzas written to its client and not acknowledged. */
  get owed(): number {
    return this.#management?.acks.unacknowledgedWrites ?? 0;
  }

  get kept(): readonly Delivery[] {
    return this.#management?.acks.all ?? [];
  }

  get isCovered(): boolean {
    return this.#management?.covered.isComplete ?? true;
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
    this.#becomeActive(); // into the queue; a client that resumes is active (XEP-0352 §5)
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
    this.#becomeActive();
    if (!management.isHibernating) this.#stream.moved();
    management.wake();
    this.#stream = deps;
    this.#meter = deps.shared.rates.stanzaMeter(transport, this.jid.bare.text);
    this.carryOn(transport, deps);
    shared.metrics.resumed.inc();
    shared.log.info("sm.resumed", { jid: this.jid.text, unacknowledged: acks.unacknowledged });
    deps.resumed(resumedXml(previd, management.covered.receivedH));
    management.resume(this.#link());
    return true;
  }

  freeze(h: number, owner: FreezeOwner): FrozenSession | undefined {
    const management = this.#management!; // found by its id, so it has one
    if (!management.acks.canResume(h)) return undefined;
    this.#becomeActive();
    if (!management.isHibernating) {
      this.#stream.moved();
      this.unplug();
    }
    management.freeze(owner);
    return new FrozenC2sSession(this, {
      management,
      presence: this.#stanzas.presence.state,
      lang: this.#lang,
      resendingMs: Math.max(0, this.#resendingUntilMs - this.deps.clock.monotonicMs()),
      cameBy: this.#arrived?.transfer,
      hasFollowed: (delivery) => this.#arrived?.hasFollowed(delivery) === true,
      keptByOthers: () =>
        this.deps.registry.ofAccount(this.jid.bare.text)
          .flatMap((each) => each === this ? [] : each.kept ?? []),
      isNewlyAvailable: () => {
        const { state } = this.#stanzas.presence;
        const isTelling = state.last !== undefined && this.deps.registry.isTelling(this.jid);
        return isTelling || state.isNew(this.deps.clock.wallUs());
      },
      expired: () => this.#endWithoutStream(),
      caughtUp: () => this.caughtUp(false),
      over: () => this.#arrived?.over(),
      vanish: () => {
        this.deps.registry.leaving(this);
        super.close();
        return this.deps.registry.close(this);
      },
    });
  }

  /** Becomes the session of its full JID that another node had; called before the session opens. */
  adopt(arrived: ArrivedSession, id: string): void {
    const { state, queue, transfer, origin, hasFollowed, kept, got, over } = arrived;
    const shared = this.deps.management!; // asked for it
    this.#arrived = { transfer, origin, hasFollowed, kept, got, over };
    this.#late = new LateStanzas(this.jid, { management: shared, metrics: this.deps.metrics });
    this.#isArriving = true;
    this.#stanzas.presence.state.restore(state, this.deps.clock.wallUs());
    this.hasCarbons = state.hasCarbons;
    if (state.resendingMs > 0) {
      this.#resendingUntilMs = this.deps.clock.monotonicMs() + state.resendingMs;
    }
    this.#management = SessionManagement.adopt(this, {
      state,
      id,
      shared,
      metrics: this.deps.metrics,
    });
    this.#management.acks.holdBack();
    for (const delivery of queue) this.follow(delivery);
  }

  /** Takes its place and writes the unacknowledged stanzas. Without a stream it hibernates. */
  beginHere(previd: string, hasStream: boolean): void {
    const management = this.#management!; // set by `adopt`
    const { shared, acks } = management;
    this.#isArriving = false;
    management.adopted();
    const { state } = this.#stanzas.presence;
    this.deps.registry.arrived(this, state.isNew(this.deps.clock.wallUs()));
    if (!hasStream) return void this.hibernate();
    shared.metrics.resumed.inc();
    shared.log.info("sm.resumed", {
      jid: this.jid.text,
      unacknowledged: acks.unacknowledged,
      isFromElsewhere: true,
    });
    this.#stream.resumed(resumedXml(previd, management.covered.receivedH));
    management.resume(this.#link());
  }

  follow(delivery: Delivery, hasCome = false): void {
    const { acks, shared } = this.#management!; // set by `adopt`
    if (!acks.isOver && !hasCome) return acks.follow(delivery);
    if (!acks.isOver && acks.repeated(shared.told(delivery), delivery)) return;
    delivery.retain();
    if (!acks.isOver) delivery.acknowledged();
    else if (this.#late === undefined) shared.giveBack([delivery]);
    else this.#late.keep(delivery);
  }

  caughtUp(isSure = true): void {
    if (this.#arrived === undefined) return;
    this.#management!.acks.caughtUp(this.#arrived, isSure); // set by `adopt`
    const late = this.#late;
    this.#late = undefined;
    late?.giveBack();
  }

  /**
   * Ends a session that got no place. Its old node keeps the queue that came. What came straight here
   * meanwhile is routed again.
   */
  abandon({ queue }: Pick<ArrivedSession, "queue">): void {
    super.close();
    const { shared } = this.#management!; // set by `adopt`
    const arrived = new Set(queue);
    shared.giveBack(this.#management!.end().filter((each) => !arrived.has(each)));
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
    if (this.#management !== undefined) return this.#management.whenCovered(go);
    go();
    return () => {};
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
    this.#management?.covered.tell();
  }

  /**
   * Takes the session out of the registry, and returns the stanzas that its client has not acknowledged.
   */
  bury(): Promise<void> {
    return this.deps.registry.close(this);
  }

  giveBack(): void {
    if (this.#management?.isGiven !== false) return;
    this.#management.giveBack();
    this.#arrived?.over();
  }

  /** Sends the end of the session's presence to all who knew of it (RFC 6121 §4.5.2, §4.6.3). */
  override close(): void {
    const wasOpen = this.isOpen;
    super.close();
    if (!wasOpen) return;
    this.#held?.takeAll();
    this.#held = undefined;
    this.#management?.close();
    this.#lastPriority = this.#stanzas.presence.state.priority;
    this.#stanzas.presence.end();
  }

  override accept(element: ScannedElement): void {
    if (this.#isSettling && element.namespace !== SM_NAMESPACE) return;
    if (this.#meter.isOn) this.#count(this.#meter, element);
    const kind = stanzaKind(element);
    if (kind === undefined || element.namespace !== CLIENT_NAMESPACE) {
      if (element.namespace === SM_NAMESPACE && this.deps.management !== undefined) {
        return this.#acceptManagement(element, this.deps.management);
      }
      if (element.namespace === CSI_NAMESPACE && this.deps.maxHeldPresence > 0) {
        return this.#acceptState(element);
      }
      if (isStreamError(element)) this.streamEnded(isRefusal(element));
      return this.end(
        kind === undefined ? "unsupported-stanza-type" : "invalid-namespace",
      );
    }
    this.deps.metrics.received[kind].inc();
    const covered = this.#management?.covered;
    if (covered === undefined) {
      const stanza = this.#stanzas.read(element, kind);
      if (stanza !== undefined) this.route(stanza);
      return;
    }
    const number = covered.receive();
    const stanza = this.#stanzas.read(element, kind);
    if (stanza === undefined) return covered.settle(number);
    this.deps.sink.accept(stanza, this, covered, number);
    covered.passedOn();
  }

  /** Takes what the client says of its state (XEP-0352 §4). */
  #acceptState({ name }: ScannedElement): void {
    if (name === "active") this.#becomeActive();
    else if (name === "inactive") this.becomeInactive();
    else this.end("unsupported-stanza-type");
  }

  /** Holds presence back until the client is active again, where client state indication is on. */
  becomeInactive(): void {
    const { maxHeldPresence: maxItems, heldPresence: budget } = this.deps;
    if (maxItems === 0 || !this.isOpen) return;
    this.#held ??= new HeldPresence({ maxItems, budget, jid: this.jid });
  }

  /** Slows a client down that exceeds its rate. Acknowledgements are free, because the client owes them. */
  #count(meter: SessionMeter, element: ScannedElement): void {
    if (element.namespace === SM_NAMESPACE && element.name === "a") return;
    const waitMs = meter.charge();
    if (waitMs > 0) this.slow(waitMs);
  }

  /** Takes a nonza of stream management (XEP-0198 §3, §4). */
  #acceptManagement(element: ScannedElement, shared: StreamManagement): void {
    const management = this.#management;
    switch (element.name) {
      case "enable":
        // We can no longer answer `<enable/>`. From here on the client counts stanzas, and resends them
        // itself.
        if (!this.isOpen) return this.end("policy-violation");
        if (management !== undefined) break;
        return this.sendNonza(
          this.#enable(readEnable((name) => element.attribute(name)), shared),
        );
      case "resume":
        break;
      case "r":
        if (management === undefined) break;
        return management.covered.requested();
      case "a":
        if (management === undefined) break;
        return management.acknowledged(element);
      default:
        return this.end("unsupported-stanza-type");
    }
    this.sendNonza(failedXml("unexpected-request"));
  }

  /** Enables stream management on a session that has just opened; returns the answer (XEP-0386 §3). */
  enable(request: EnableRequest): string {
    const shared = this.deps.management;
    return shared === undefined
      ? failedXml("feature-not-implemented")
      : this.#enable(request, shared);
  }

  #enable(request: EnableRequest, shared: StreamManagement): string {
    const { management, answer } = SessionManagement.enable(this, request, {
      shared,
      metrics: this.deps.metrics,
      link: this.#link(),
    });
    this.#management = management;
    return answer;
  }

  /** Ends the connection of a client that acknowledges nothing. */
  cutOff(): void {
    this.transport.destroy(
      new CausewayError(
        "stream/unresponsive",
        `Cannot wait longer for ${this.transport.remoteAddress} to acknowledge stanzas`,
      ),
    );
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
}
