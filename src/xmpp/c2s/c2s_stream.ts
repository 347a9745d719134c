import type { CancelTimer, CausewayError } from "../../base/mod.ts";
import { randomHex } from "../../base/mod.ts";
import type { BareJid } from "../jid/jid.ts";
import { FullJid } from "../jid/jid.ts";
import { tryMakeJid, tryParseJid } from "../jid/jid_parser.ts";
import type { SaslReply } from "../sasl/mod.ts";
import { SaslExchange } from "../sasl/mod.ts";
import type { StanzaErrorCondition } from "../stanza/stanza_error.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import { CLIENT_NAMESPACE, TLS_FAILURE_XML } from "../stream/namespaces.ts";
import { lastingFeatures } from "./binding_state.ts";
import { inlineJid } from "./inline_resource.ts";
import type {
  InlineBind,
  NegotiationAction,
  NegotiationEvent,
  PendingSuccess,
} from "./negotiation_events.ts";
import type { NegotiationState, NegotiationTerms } from "./negotiation_step.ts";
import { stepNegotiation } from "./negotiation_state.ts";
import { readNegotiationEvent } from "./negotiation_reader.ts";
import {
  bindErrorXml,
  bindResultXml,
  boundXml,
  challengeXml,
  creationAnswerXml,
  creationFormXml,
  featuresXml,
  saslFailureXml,
  success2Xml,
  successXml,
} from "./negotiation_xml.ts";
import type { Arrival, ArrivedSession, Fetching } from "../sm/moving_session.ts";
import { failedXml, handledTooHighContent } from "../sm/sm_xml.ts";
import { newStreamId } from "../stream/stream_id.ts";
import type { StreamEvents } from "../stream/stream_shell.ts";
import { StreamShell } from "../stream/stream_shell.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";
import type { C2sSessionDeps } from "./c2s_session.ts";
import { C2sSession } from "./c2s_session.ts";
import type { C2sStreamDeps } from "./c2s_stream_deps.ts";
import { channelBindingOf, termsOf } from "./connection_terms.ts";

const UTF8 = new TextEncoder();

/** Milliseconds for which a client waits for its session: some hang up after 15 seconds. */
const MAX_SESSION_DELAY_MS = 10_000;

/**
 * One client's stream. It carries out the decisions of `stepNegotiation` on a transport. Once a resource
 * is bound, it passes everything it reads to the session.
 */
export class C2sStream extends StreamShell<C2sStreamDeps, C2sSession> {
  #state: NegotiationState = { kind: "opening" };
  /** Offers that the connection allows; TLS changes them. */
  #terms: NegotiationTerms | undefined;
  #exchange: SaslExchange | undefined;
  /** JID and language that the client claimed in its last header. */
  #claimedFrom: string | undefined;
  #lang: string | undefined;
  /** See `LocalSession.creation`; set by a login. */
  #creation = "";
  /** Content of the next stream error besides its condition. */
  #errorContent: string | undefined;
  /** True once the client has ended its side. */
  #isEnding = false;
  #cancelEnd: CancelTimer | undefined;
  /** Set while a session waits until it may begin. */
  #cancelDelay: CancelTimer | undefined;
  #hasSaidFarewell = false;
  #hasFailedToResume = false;
  /** Request for another node's session, which the client wants to resume here. */
  #fetching: Fetching | undefined;

  constructor(transport: StreamTransport, deps: C2sStreamDeps, events: StreamEvents) {
    super("c2s", transport, deps, events);
  }

  override fail(condition: StreamErrorCondition): void {
    this.#dispatch({ kind: "fail", condition });
  }

  /**
   * Ends the stream. A client with stream management learns how many stanzas were handled, and resends
   * the rest elsewhere.
   */
  protected override endInOrder(condition: StreamErrorCondition): void {
    if (this.receiver?.isManaged === false) this.#dispatch({ kind: "dismiss", condition });
    else this.fail(condition);
  }

  protected override opened(header: StreamHeader): void {
    this.#lang = header.lang;
    const from = header.from === undefined ? undefined : tryParseJid(header.from);
    this.#claimedFrom = from?.localpart === "" ? undefined : from?.text;
    this.#dispatch({ kind: "header", header });
  }

  protected override negotiate(element: ScannedElement): void {
    this.#dispatch(readNegotiationEvent(element));
  }

  /**
   * Ends the stream once everything that the client sent is covered, so that the client repeats nothing.
   */
  protected override footer(): void {
    this.#isEnding = true;
    this.receiver?.streamEnded(false);
    const end = () => {
      if (this.#state.kind !== "closed") this.#dispatch({ kind: "footer" });
    };
    if (this.receiver === undefined) end();
    else this.#cancelEnd = this.receiver.whenCovered(end);
  }

  protected override secured(): void {
    this.#terms = undefined;
    this.#dispatch({ kind: "secured" });
  }

  protected override forget(session: C2sSession): Promise<void> {
    const burial = session.bury();
    this.deps.management?.track(burial);
    return burial;
  }

  protected override outlives(session: C2sSession, error: CausewayError | undefined): boolean {
    // Any other error that ends a connection is not the client's doing.
    if (error === undefined || error.code === "net/reset") session.streamEnded(false);
    return !this.#isEnding && session.hibernate();
  }

  protected override finish(): void {
    this.#state = { kind: "closed" };
    this.#cancelEnd?.();
    if (this.#cancelDelay !== undefined) {
      this.#cancelDelay();
      this.#cancelDelay = undefined;
      this.deps.rates.sessionGivenUp();
    }
    this.#fetching?.cancel();
    this.#fetching = undefined;
    super.finish();
  }

  #dispatch(event: NegotiationEvent): void {
    this.#terms ??= termsOf(this.transport, this.deps);
    const { state, actions } = stepNegotiation(this.#state, event, this.#terms);
    this.#state = state;
    for (const action of actions) this.#run(action);
  }

  #run(action: NegotiationAction): void {
    const transport = this.transport;
    switch (action.kind) {
      case "send-header":
        return transport.sendHeader({
          contentNamespace: CLIENT_NAMESPACE,
          from: action.host ?? this.#defaultHost,
          // The client's JID is repeated only on an encrypted stream, where it claimed that JID itself.
          to: transport.isEncrypted ? this.#claimedFrom : undefined,
          id: newStreamId(),
          hasVersion: true,
        });
      case "send-features":
        return transport.sendStreamElement("features", featuresXml(action.features));
      case "proceed":
        return transport.startTls();
      case "tls-failure":
        return transport.sendNonza(TLS_FAILURE_XML);
      case "authenticate":
        return this.#authenticate(action);
      case "respond":
        return this.#respond(action.text);
      case "challenge":
        return transport.sendNonza(challengeXml(action.profile, action.text));
      case "success":
        return transport.sendNonza(successXml(action.text));
      case "success2":
        return this.#succeed(action.success, action.jid);
      case "sasl-failure":
        return this.#authFailed(action);
      case "creation-form":
        return transport.sendStanza(UTF8.encode(creationFormXml(action.iqId, action.host)));
      case "create-account":
        return this.#create(action);
      case "creation-answer":
        return transport.sendStanza(
          UTF8.encode(creationAnswerXml(action.iqId, action.host, action.outcome)),
        );
      case "restart":
        return transport.restart();
      case "register":
        return this.#registerInTime(action.account, action.resource);
      case "bind-result":
        return transport.sendStanza(UTF8.encode(bindResultXml(action.iqId, action.jid)));
      case "bind-error":
        return transport.sendStanza(UTF8.encode(bindErrorXml(action.iqId, action.condition)));
      case "hold":
        return transport.hold();
      case "release":
        return transport.release();
      case "resume":
        return this.#resume(action);
      case "management-failure":
        return transport.sendNonza(failedXml(action.condition, action.h));
      case "stream-error":
        this.#sayFarewell();
        return this.sendError(action.condition, this.#errorContent);
      case "end-output":
        return this.endOutput();
      case "end":
        this.#sayFarewell();
        return this.end();
      default:
        return action satisfies never;
    }
  }

  /** Sends a client with stream management the number of handled stanzas, once and before the end. */
  #sayFarewell(): void {
    if (this.#hasSaidFarewell) return;
    this.#hasSaidFarewell = true;
    this.receiver?.farewell();
  }

  get #isClosed(): boolean {
    return this.#state.kind === "closed";
  }

  get #defaultHost(): string {
    const [first] = this.deps.hosts.keys();
    return first ?? "localhost";
  }

  #authenticate(
    { profile, host, mechanism, text }: NegotiationAction & { kind: "authenticate" },
  ): void {
    const source = this.deps.hosts.get(host)!; // the state names only checked hosts
    const { rates, metrics } = this.deps;
    this.#exchange = new SaslExchange(mechanism, {
      domain: host,
      source,
      fake: this.deps.fake,
      channelBinding: channelBindingOf(this.transport, this.deps),
      // By RFC 6120 the header after the login is compared, and there the claim must be true.
      claimed: profile === "sasl2" ? this.#claimedFrom : undefined,
      nonce: () => randomHex(18),
      attempts: {
        begin: (account) => {
          const mayTry = rates.begin(account);
          if (!mayTry) metrics.limitHit("failed-logins");
          return mayTry;
        },
        succeeded: (account) => rates.succeeded(account),
      },
    });
    if (rates.mayLogIn(this.transport)) return this.#respond(text);
    metrics.limitHit("login-rate");
    this.#dispatch({
      kind: "sasl",
      reply: { kind: "failure", condition: "temporary-auth-failure" },
    });
  }

  /** Makes an account. An attempt costs as much of the address's rate as one to log in. */
  #create(account: NegotiationAction & { kind: "create-account" }): void {
    const { creation, rates, metrics } = this.deps;
    if (!rates.mayLogIn(this.transport)) {
      metrics.limitHit("login-rate");
      return this.#dispatch({ kind: "created", outcome: "resource-constraint" });
    }
    // Offered, or the state would not ask.
    creation!.create(account, this.transport)
      .then((outcome) => this.#dispatch({ kind: "created", outcome })).catch((thrown) => {
        this.broke("auth", thrown);
        this.fail("internal-server-error");
      });
  }

  #respond(text: string | undefined): void {
    const exchange = this.#exchange!; // `authenticate` came before `respond`
    // Covers what follows a success too: binding and resuming may begin with it.
    this.deps.paced.run(() => this.#isClosed ? undefined : exchange.respond(text), "stranger")
      .then((reply) => reply && this.#replied(exchange, reply)).catch((thrown) => {
        this.broke("auth", thrown);
        this.fail("internal-server-error");
      });
  }

  #replied(exchange: SaslExchange, reply: SaslReply): void {
    if (reply.kind === "success") {
      this.#creation = reply.creation ?? "";
      this.deps.metrics.authSucceeded(exchange.mechanism);
      this.transport.trust();
      this.events.authenticated();
    }
    this.#dispatch({ kind: "sasl", reply });
  }

  #authFailed(action: NegotiationAction & { kind: "sasl-failure" }): void {
    const { metrics, log } = this.deps;
    const mechanism = action.mechanism ?? "none";
    metrics.authFailed(mechanism, action.condition);
    log.info("c2s.auth.failed", {
      peer: this.transport.remoteAddress,
      mechanism,
      condition: action.condition,
    });
    this.transport.sendNonza(saslFailureXml(action.profile, action.condition));
  }

  /** Answers a login by XEP-0388, with what was asked for together with it. */
  #succeed(success: PendingSuccess, jid: BareJid | FullJid, resumed = ""): void {
    const isBound = resumed === "" && jid instanceof FullJid;
    const content = isBound ? boundXml(this.#enableInline(success.bind)) : resumed;
    this.transport.sendNonza(success2Xml(jid, success, content));
  }

  /** Turns on what a client has asked for together with its resource; returns the answers. */
  #enableInline(bind: InlineBind | undefined): string {
    const session = this.receiver!; // just bound
    // XEP-0386 has no answer to carbons: the offer was one.
    if (bind?.wantsCarbons === true && this.deps.hasCarbons(session.jid.domainpart)) {
      session.hasCarbons = true;
    }
    if (bind?.isInactive === true) session.becomeInactive();
    return bind?.enable === undefined ? "" : session.enable(bind.enable);
  }

  /** Begins a session as soon as the node's rate of sessions lets it. */
  #registerInTime(account: BareJid, resource: string | InlineBind | undefined): void {
    const { rates, metrics, clock, limits } = this.deps;
    const atMostMs = Math.min(MAX_SESSION_DELAY_MS, limits.negotiationTimeoutMs / 3);
    const delayMs = rates.sessionDelay(atMostMs);
    if (delayMs === undefined) {
      metrics.limitHit("session-rate");
      return this.#dispatch({ kind: "refused", condition: "resource-constraint" });
    }
    if (delayMs === 0) return this.#registerInTurn(account, resource);
    this.#cancelDelay = clock.after(delayMs, () => {
      this.#cancelDelay = undefined;
      this.#registerInTurn(account, resource);
    });
  }

  #registerInTurn(account: BareJid, resource: string | InlineBind | undefined): void {
    this.deps.paced.run(() => this.#isClosed ? undefined : this.#register(account, resource))
      .catch((thrown) => {
        this.broke("open", thrown);
        this.fail("internal-server-error");
      });
  }

  /** Resolves when the resource is bound, or refused. */
  async #register(account: BareJid, resource: string | InlineBind | undefined): Promise<void> {
    const jid = typeof resource === "object"
      ? inlineJid(account, resource)
      : tryMakeJid(account.localpart, account.domainpart, resource ?? randomHex(8));
    if (!(jid instanceof FullJid)) {
      return this.#dispatch({ kind: "refused", condition: "bad-request" });
    }
    const session: C2sSession = new C2sSession(
      jid,
      this.transport,
      this.#sessionDeps(jid, () => {
        this.bound(session);
        this.#dispatch({ kind: "registered", jid });
      }),
    );
    this.registering(session);
    await this.deps.registry.open(session).then((outcome) => {
      if (outcome !== "opened") this.#unbind(session, outcome);
    }, (thrown) => {
      this.broke("open", thrown);
      this.#unbind(session, "internal-server-error");
    });
  }

  /** @param success carries the answer when the session is resumed together with a login */
  #sessionDeps(jid: FullJid, opened: () => void, success?: PendingSuccess): C2sSessionDeps {
    return {
      shared: this.deps,
      lang: this.#lang,
      creation: this.#creation,
      hasFailedToResume: this.#hasFailedToResume,
      opened,
      resumed: (xml) => {
        if (success === undefined) return this.transport.sendNonza(xml);
        this.#succeed(success, jid, xml);
        const features = lastingFeatures(this.#terms!, jid.bare); // it has taken a step by them
        this.transport.sendStreamElement("features", featuresXml(features));
      },
      fail: (condition, content) => {
        this.#errorContent = content;
        this.fail(condition);
      },
      moved: () => {
        this.letGo();
        this.fail("conflict");
      },
    };
  }

  /** Takes a session over from its earlier stream (XEP-0198 §5). */
  #resume(action: NegotiationAction & { kind: "resume" }): void {
    const { account, previd, h, success } = action;
    const management = this.deps.management!; // offered, or the state would not ask
    const found = management.find({ previd, account: account.text, h });
    if (found.kind === "failed") return this.#resumeFailed(found.h);
    if (found.kind === "coming") {
      return this.#undertake(found.over.then(() => {
        if (this.#state.kind !== "closed") this.#resume(action);
      }));
    }
    if (found.kind === "elsewhere") {
      const { fetching } = found;
      this.#fetching = fetching;
      const arrived = fetching.arrival.then((arrival) => this.#arrived(arrival, action));
      return this.#undertake(arrived.finally(() => fetching.over()));
    }
    const { session } = found;
    const deps = this.#sessionDeps(session.jid, () => {}, success);
    this.registering(session);
    this.bound(session);
    if (session.resumeOn(this.transport, { deps, previd, h })) {
      return this.#dispatch({ kind: "resumed", jid: session.jid });
    }
    this.letGo();
    this.#failTooHigh(h, session.sentCount);
  }

  /** Ends the stream if `task` fails. */
  #undertake(task: Promise<void>): void {
    task.catch((thrown) => {
      this.broke("open", thrown);
      this.fail("internal-server-error");
    });
  }

  /**
   * Handles the answer to a fetch: the session came from another node, or did not. Resolves when it has
   * its place here, or gets none.
   */
  async #arrived(
    arrival: Arrival,
    action: NegotiationAction & { kind: "resume" },
  ): Promise<void> {
    this.#fetching = undefined;
    const isOver = this.#state.kind === "closed";
    switch (arrival.kind) {
      case "failed":
        return isOver ? undefined : this.#resumeFailed(arrival.h);
      case "stopped": // it resumes at another node
        return isOver ? undefined : this.fail("system-shutdown");
      case "handled-too-high":
        return isOver ? undefined : this.#failTooHigh(action.h, arrival.sentCount);
      case "arrived":
        return await this.#place(arrival.session, action);
      default:
        return arrival satisfies never;
    }
  }

  /** Gives a session that came from another node its place here. */
  async #place(
    arrived: ArrivedSession,
    action: NegotiationAction & { kind: "resume" },
  ): Promise<void> {
    const { previd, success } = action;
    const { jid } = arrived.state;
    const { registry } = this.deps;
    const session: C2sSession = new C2sSession(
      jid,
      this.transport,
      {
        ...this.#sessionDeps(jid, () => {
          const hasStream = this.#state.kind !== "closed";
          if (hasStream) {
            this.registering(session);
            this.bound(session);
          }
          session.beginHere(previd, hasStream);
          arrived.placed(session);
          if (hasStream) this.#dispatch({ kind: "resumed", jid });
        }, success),
        lang: arrived.state.lang,
        hasFailedToResume: false,
      },
    );
    session.adopt(arrived, previd);
    await registry.open(session).then((outcome) => {
      if (outcome !== "opened") this.#notPlaced(arrived, session, action);
    }, (thrown) => {
      this.broke("open", thrown);
      this.#notPlaced(arrived, session, action);
    });
  }

  #notPlaced(
    arrived: ArrivedSession,
    session: C2sSession,
    { previd, account }: NegotiationAction & { kind: "resume" },
  ): void {
    const { covered } = arrived.state;
    session.abandon(arrived);
    arrived.declined();
    this.deps.management!.unplaced({ previd, account: account.text }, covered);
    if (this.#state.kind !== "closed") this.#resumeFailed(covered);
  }

  #resumeFailed(h: number | undefined): void {
    this.#hasFailedToResume = true;
    this.#dispatch({ kind: "resume-failed", condition: "item-not-found", h });
  }

  #failTooHigh(h: number, sentCount: number): void {
    this.deps.management!.metrics.resumeFailed("handled-count-too-high");
    this.#errorContent = handledTooHighContent(h, sentCount);
    this.fail("undefined-condition");
  }

  /** Handles a session that got no place; the client may request another. */
  #unbind(session: C2sSession, condition: StanzaErrorCondition): void {
    if (condition === "resource-constraint") {
      this.deps.metrics.limitHit("sessions-per-account");
    }
    this.refused(session);
    this.#dispatch({ kind: "refused", condition });
  }
}
