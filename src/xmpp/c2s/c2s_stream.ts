import type { CancelTimer } from "../../base/mod.ts";
import { describeError, randomHex } from "../../base/mod.ts";
import type { BareJid } from "../jid.ts";
import { FullJid } from "../jid.ts";
import { tryMakeJid, tryParseJid } from "../jid_parser.ts";
import type { SaslMechanism, SaslReply } from "../sasl/mod.ts";
import { SaslExchange } from "../sasl/mod.ts";
import type { StanzaErrorCondition } from "../stanza_error.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import { streamErrorContent } from "../stream_error.ts";
import { CLIENT_NAMESPACE } from "../stream/namespaces.ts";
import type {
  NegotiationAction,
  NegotiationEvent,
  NegotiationState,
} from "../stream/negotiation_state.ts";
import { stepNegotiation } from "../stream/negotiation_state.ts";
import { readNegotiationEvent } from "../stream/negotiation_reader.ts";
import {
  bindErrorXml,
  bindResultXml,
  featuresXml,
  saslFailureXml,
  saslXml,
  TLS_FAILURE_XML,
} from "../stream/negotiation_xml.ts";
import { newStreamId } from "../stream/stream_id.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import { C2sSession } from "./c2s_session.ts";
import type { C2sContext } from "./c2s_context.ts";
import { termsOf } from "./connection_terms.ts";

const UTF8 = new TextEncoder();

/** What a stream tells the listener it belongs to. */
export interface C2sStreamOwner {
  authenticated(): void;
  /** The connection is gone; the last call. */
  closed(stream: C2sStream): void;
}

/**
 * One client's stream: runs what `stepNegotiation` decides on a transport, and once a resource is bound
 * gives what is read to its session.
 */
export class C2sStream {
  readonly #transport: StreamTransport;
  readonly #context: C2sContext;
  readonly #owner: C2sStreamOwner;
  #state: NegotiationState = { kind: "opening" };
  #exchange: SaslExchange | undefined;
  /** From the bind request on. */
  #session: C2sSession | undefined;
  /** The session, once what is read belongs to it. */
  #receiver: C2sSession | undefined;
  #cancelDeadline: CancelTimer | undefined;
  #peer: string | undefined;
  #lang: string | undefined;
  #reason: string = "none";
  #isSilent = false;

  constructor(
    transport: StreamTransport,
    context: C2sContext,
    owner: C2sStreamOwner,
  ) {
    this.#transport = transport;
    this.#context = context;
    this.#owner = owner;
  }

  /** Begins to listen to the client. */
  start(): void {
    const { clock, limits, metrics } = this.#context;
    metrics.opened.inc();
    this.#cancelDeadline = clock.after(limits.negotiationTimeoutMs, () => {
      metrics.limitHit("negotiation-time");
      this.fail("connection-timeout");
    });
    this.#transport.start({
      header: (header) => {
        this.#isSilent = false;
        this.#lang = header.lang;
        this.#peer = header.from === undefined ? undefined : tryParseJid(header.from)?.text;
        this.#dispatch({ kind: "header", header });
      },
      element: (element) => {
        this.#isSilent = false;
        if (this.#receiver !== undefined) this.#receiver.accept(element);
        else this.#dispatch(readNegotiationEvent(element));
      },
      footer: () => this.#dispatch({ kind: "footer" }),
      failed: (condition, limit) => {
        if (limit !== undefined) metrics.limitHit(limit);
        this.fail(condition);
      },
      broken: (thrown) => {
        this.#context.log.error("c2s.stream.broken", { error: describeError(thrown) });
        this.fail("internal-server-error");
      },
      secured: () => this.#dispatch({ kind: "secured" }),
      drained: () => this.#session?.drained(),
      closed: (error) => {
        if (error !== undefined && this.#state.kind !== "closed") this.#reason = error.code;
        this.#finish();
        metrics.closed(this.#reason);
        this.#context.log.debug("c2s.stream.closed", {
          peer: this.#transport.remoteAddress,
          reason: this.#reason,
        });
        this.#owner.closed(this);
      },
    });
  }

  /** Ends the stream with an error. */
  fail(condition: StreamErrorCondition): void {
    this.#dispatch({ kind: "fail", condition });
  }

  /** Sends whitespace when nothing was read since the last call. */
  keepAlive(): void {
    if (this.#isSilent && this.#state.kind === "bound") this.#transport.sendKeepalive();
    this.#isSilent = true;
  }

  #dispatch(event: NegotiationEvent): void {
    const terms = termsOf(this.#transport, this.#context);
    const { state, actions } = stepNegotiation(this.#state, event, terms);
    this.#state = state;
    for (const action of actions) this.#run(action);
  }

  #run(action: NegotiationAction): void {
    const transport = this.#transport;
    switch (action.kind) {
      case "send-header":
        return transport.sendHeader({
          contentNamespace: CLIENT_NAMESPACE,
          from: action.host ?? this.#defaultHost,
          // Whom we speak to is repeated only to someone who has said so where nobody else hears.
          to: transport.isEncrypted ? this.#peer : undefined,
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
        return this.#authenticate(action.host, action.mechanism, action.text);
      case "respond":
        return this.#respond(action.text);
      case "challenge":
      case "success":
        return transport.sendNonza(saslXml(action.kind, action.text));
      case "sasl-failure":
        return this.#authFailed(action);
      case "restart":
        return transport.restart();
      case "register":
        return this.#register(action.account, action.resource);
      case "bind-result":
        return transport.sendStanza(UTF8.encode(bindResultXml(action.iqId, action.jid)));
      case "bind-error":
        return transport.sendStanza(UTF8.encode(bindErrorXml(action.iqId, action.condition)));
      case "hold":
        return transport.hold();
      case "release":
        return transport.release();
      case "stream-error":
        this.#reason = action.condition;
        return transport.sendStreamElement("error", streamErrorContent(action.condition));
      case "end":
        this.#finish();
        return transport.end();
      default:
        return action satisfies never;
    }
  }

  get #defaultHost(): string {
    const [first] = this.#context.hosts.keys();
    return first ?? "localhost";
  }

  #authenticate(host: string, mechanism: SaslMechanism, text: string | undefined): void {
    const source = this.#context.hosts.get(host)!; // the state only names hosts that were checked
    this.#exchange = new SaslExchange(mechanism, {
      domain: host,
      source,
      fake: this.#context.fake,
      nonce: () => randomHex(18),
    });
    this.#respond(text);
  }

  #respond(text: string | undefined): void {
    const exchange = this.#exchange!; // `respond` follows `authenticate`
    exchange.respond(text).then((reply) => this.#replied(exchange, reply), (error) => {
      this.#context.log.error("c2s.auth.broken", { error: describeError(error) });
      this.fail("internal-server-error");
    });
  }

  #replied(exchange: SaslExchange, reply: SaslReply): void {
    if (reply.kind === "success") {
      this.#context.metrics.authSucceeded(exchange.mechanism);
      this.#transport.trust();
      this.#owner.authenticated();
    }
    this.#dispatch({ kind: "sasl", reply });
  }

  #authFailed(action: NegotiationAction & { kind: "sasl-failure" }): void {
    const { metrics, log } = this.#context;
    const mechanism = action.mechanism ?? "none";
    metrics.authFailed(mechanism, action.condition);
    log.info("c2s.auth.failed", {
      peer: this.#transport.remoteAddress,
      mechanism,
      condition: action.condition,
    });
    this.#transport.sendNonza(saslFailureXml(action.condition));
  }

  #register(account: BareJid, resource: string | undefined): void {
    const jid = tryMakeJid(account.localpart, account.domainpart, resource ?? randomHex(8));
    if (!(jid instanceof FullJid)) {
      return this.#dispatch({ kind: "refused", condition: "bad-request" });
    }
    const session: C2sSession = new C2sSession(jid, this.#transport, {
      context: this.#context,
      lang: this.#lang,
      opened: () => this.#bound(session, jid),
      fail: (condition) => this.fail(condition),
    });
    this.#session = session;
    this.#context.registry.open(session).then((outcome) => {
      if (outcome === "opened") return;
      if (outcome === "resource-constraint") {
        this.#context.metrics.limitHit("sessions-per-account");
      }
      this.#unbind(session, outcome);
    }, (error) => {
      this.#context.log.error("c2s.bind.broken", { error: describeError(error) });
      this.#unbind(session, "internal-server-error");
    });
  }

  /** The session can be delivered to from now on. */
  #bound(session: C2sSession, jid: FullJid): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    this.#receiver = session;
    this.#context.log.info("c2s.session.opened", {
      jid: jid.text,
      peer: this.#transport.remoteAddress,
    });
    this.#dispatch({ kind: "registered", jid });
  }

  #unbind(session: C2sSession, condition: StanzaErrorCondition): void {
    session.close();
    if (this.#session === session) this.#session = undefined;
    this.#dispatch({ kind: "refused", condition });
  }

  /** Lets go of everything but the connection; called at the stream's end and at the connection's. */
  #finish(): void {
    this.#state = { kind: "closed" };
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    const session = this.#session;
    const wasBound = this.#receiver !== undefined;
    this.#session = undefined;
    // What is still read belongs to nobody; the state, which is closed, ignores it.
    this.#receiver = undefined;
    session?.close();
    if (session === undefined || !wasBound) return;
    this.#context.log.info("c2s.session.closed", { jid: session.jid.text, reason: this.#reason });
    this.#context.registry.close(session).catch((error) => {
      this.#context.log.error("c2s.close.broken", { error: describeError(error) });
    });
  }
}
