import type { CancelTimer } from "../../base/mod.ts";
import { describeError } from "../../base/mod.ts";
import { BareJid } from "../jid.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import { streamErrorContent } from "../stream_error.ts";
import { stanzaKind } from "../stanza_parser.ts";
import { COMPONENT_NAMESPACE } from "../stream/namespaces.ts";
import { treeOf } from "../stream/negotiation_reader.ts";
import { newStreamId } from "../stream/stream_id.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import type { ComponentContext } from "./component_context.ts";
import { ComponentSession } from "./component_session.ts";
import type { ComponentAction, ComponentEvent, ComponentState } from "./component_state.ts";
import { stepComponent } from "./component_state.ts";
import { isRightHandshake } from "./handshake.ts";

/** What a stream tells the listener it belongs to. */
export interface ComponentStreamOwner {
  authenticated(): void;
  /** The connection is gone; the last call. */
  closed(stream: ComponentStream): void;
}

/** One component's stream: runs what `stepComponent` decides on a transport. */
export class ComponentStream {
  readonly #transport: StreamTransport;
  readonly #context: ComponentContext;
  readonly #owner: ComponentStreamOwner;
  readonly #id = newStreamId();
  #state: ComponentState = { kind: "opening" };
  #session: ComponentSession | undefined;
  /** The session, once what is read belongs to it. */
  #receiver: ComponentSession | undefined;
  #cancelDeadline: CancelTimer | undefined;
  #reason: string = "none";
  #isSilent = false;

  constructor(transport: StreamTransport, context: ComponentContext, owner: ComponentStreamOwner) {
    this.#transport = transport;
    this.#context = context;
    this.#owner = owner;
  }

  /** Begins to listen to the component. */
  start(): void {
    const { clock, limits, metrics } = this.#context;
    metrics.opened.inc();
    this.#cancelDeadline = clock.after(limits.negotiationTimeoutMs, () => {
      metrics.limitHit("negotiation-time");
      this.fail("connection-timeout");
    });
    this.#transport.start({
      header: (header) => this.#dispatch({ kind: "header", header }),
      element: (element) => {
        this.#isSilent = false;
        if (this.#receiver !== undefined) this.#receiver.accept(element);
        else this.#dispatch(this.#read(element));
      },
      footer: () => this.#dispatch({ kind: "footer" }),
      failed: (condition, limit) => {
        if (limit !== undefined) metrics.limitHit(limit);
        this.fail(condition);
      },
      broken: (thrown) => {
        this.#context.log.error("component.stream.broken", { error: describeError(thrown) });
        this.fail("internal-server-error");
      },
      secured: () => this.fail("policy-violation"),
      drained: () => this.#session?.drained(),
      closed: (error) => {
        if (error !== undefined && this.#state.kind !== "closed") this.#reason = error.code;
        this.#finish();
        metrics.closed(this.#reason);
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
    if (this.#isSilent && this.#state.kind === "open") this.#transport.sendKeepalive();
    this.#isSilent = true;
  }

  #read(element: ScannedElement): ComponentEvent {
    if (element.namespace !== COMPONENT_NAMESPACE) return { kind: "foreign" };
    if (stanzaKind(element) !== undefined) return { kind: "stanza" };
    if (element.name !== "handshake") return { kind: "foreign" };
    const domain = this.#state.kind === "proving"
      ? this.#context.domains.get(this.#state.domain)
      : undefined;
    return {
      kind: "handshake",
      isRight: domain !== undefined &&
        isRightHandshake(treeOf(element).text, this.#id, domain.secret),
    };
  }

  #dispatch(event: ComponentEvent): void {
    const { domains } = this.#context;
    const { state, actions } = stepComponent(this.#state, event, (domain) => domains.has(domain));
    this.#state = state;
    for (const action of actions) this.#run(action);
  }

  #run(action: ComponentAction): void {
    const { metrics, log } = this.#context;
    const transport = this.#transport;
    switch (action.kind) {
      case "send-header":
        return transport.sendHeader({
          contentNamespace: COMPONENT_NAMESPACE,
          from: action.domain ?? "localhost",
          to: undefined,
          id: this.#id,
          hasVersion: false,
        });
      case "hold":
        return transport.hold();
      case "release":
        return transport.release();
      case "register":
        return this.#register(action.domain);
      case "accept":
        return transport.sendNonza("<handshake/>");
      case "refuse":
        metrics.authFailed("handshake", "not-authorized");
        return log.warn("component.auth.failed", { peer: transport.remoteAddress });
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

  #register(domain: string): void {
    const { registry, domains, log, metrics } = this.#context;
    metrics.authSucceeded("handshake");
    this.#transport.trust();
    this.#owner.authenticated();
    const session: ComponentSession = new ComponentSession(
      new BareJid("", domain),
      this.#transport,
      {
        context: this.#context,
        isHidden: domains.get(domain)!.isHidden, // the state only names domains that were checked
        opened: () => this.#opened(session),
        fail: (condition) => this.fail(condition),
      },
    );
    this.#session = session;
    registry.open(session).then((outcome) => {
      if (outcome === "conflict") this.fail("conflict");
    }, (error) => {
      log.error("component.open.broken", { error: describeError(error) });
      this.fail("internal-server-error");
    });
  }

  /** Stanzas are delivered to the session from now on. */
  #opened(session: ComponentSession): void {
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    this.#receiver = session;
    this.#context.log.info("component.session.opened", {
      domain: session.domain,
      peer: this.#transport.remoteAddress,
    });
    this.#dispatch({ kind: "registered" });
  }

  /** Lets go of everything but the connection. */
  #finish(): void {
    this.#state = { kind: "closed" };
    this.#cancelDeadline?.();
    this.#cancelDeadline = undefined;
    const session = this.#session;
    const wasOpen = this.#receiver !== undefined;
    this.#session = undefined;
    this.#receiver = undefined;
    session?.close();
    if (session === undefined || !wasOpen) return;
    const { log, registry } = this.#context;
    log.info("component.session.closed", { domain: session.domain, reason: this.#reason });
    registry.close(session).catch((error) => {
      log.error("component.close.broken", { error: describeError(error) });
    });
  }
}
