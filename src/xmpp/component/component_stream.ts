import { BareJid } from "../jid/jid.ts";
import type { StreamErrorCondition } from "../stream/stream_error.ts";
import { stanzaKind } from "../stanza/stanza_parser.ts";
import { COMPONENT_NAMESPACE } from "../stream/namespaces.ts";
import { plainTextOf } from "../xml/plain_text.ts";
import { newStreamId } from "../stream/stream_id.ts";
import type { StreamEvents } from "../stream/stream_shell.ts";
import { StreamShell } from "../stream/stream_shell.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import type { ScannedElement, StreamHeader } from "../xml/scanner_types.ts";
import type { ComponentStreamDeps } from "./component_stream_deps.ts";
import { ComponentSession } from "./component_session.ts";
import type { ComponentAction, ComponentEvent, ComponentState } from "./component_state.ts";
import { stepComponent } from "./component_state.ts";
import { isRightHandshake } from "./handshake.ts";

/** One component's stream. It carries out the decisions of `stepComponent` on a transport. */
export class ComponentStream extends StreamShell<ComponentStreamDeps, ComponentSession> {
  readonly #id = newStreamId();
  #state: ComponentState = { kind: "opening" };

  constructor(transport: StreamTransport, deps: ComponentStreamDeps, events: StreamEvents) {
    super("component", transport, deps, events);
  }

  override fail(condition: StreamErrorCondition): void {
    this.#dispatch({ kind: "fail", condition });
  }

  protected override endInOrder(condition: StreamErrorCondition): void {
    this.#dispatch({ kind: "dismiss", condition });
  }

  protected override opened(header: StreamHeader): void {
    this.#dispatch({ kind: "header", header });
  }

  protected override negotiate(element: ScannedElement): void {
    this.#dispatch(this.#read(element));
  }

  protected override footer(): void {
    this.#dispatch({ kind: "footer" });
  }

  /** Never called, because XEP-0114 has no STARTTLS. */
  protected override secured(): void {
    this.fail("policy-violation");
  }

  protected override forget(session: ComponentSession): Promise<void> {
    return this.deps.registry.close(session);
  }

  protected override finish(): void {
    this.#state = { kind: "closed" };
    super.finish();
  }

  #read(element: ScannedElement): ComponentEvent {
    if (element.namespace !== COMPONENT_NAMESPACE) return { kind: "foreign" };
    if (stanzaKind(element) !== undefined) return { kind: "stanza" };
    if (element.name !== "handshake") return { kind: "foreign" };
    if (!this.deps.rates.mayLogIn(this.transport)) {
      this.deps.metrics.limitHit("login-rate");
      return { kind: "fail", condition: "policy-violation" };
    }
    const domain = this.#state.kind === "proving"
      ? this.deps.domains.get(this.#state.domain)
      : undefined;
    return {
      kind: "handshake",
      isRight: domain !== undefined &&
        isRightHandshake(plainTextOf(element), this.#id, domain.secret),
    };
  }

  #dispatch(event: ComponentEvent): void {
    const { domains } = this.deps;
    const { state, actions } = stepComponent(this.#state, event, (domain) => domains.has(domain));
    this.#state = state;
    for (const action of actions) this.#run(action);
  }

  #run(action: ComponentAction): void {
    const { metrics, log } = this.deps;
    const transport = this.transport;
    switch (action.kind) {
      case "send-header":
        return transport.sendHeader({
          contentNamespace: COMPONENT_NAMESPACE,
          from: action.domain ?? this.deps.host,
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
        return log.warn("component.auth.failed", {
          domain: action.domain,
          peer: transport.remoteAddress,
        });
      case "stream-error":
        return this.sendError(action.condition);
      case "end-output":
        return this.endOutput();
      case "end":
        return this.end();
      default:
        return action satisfies never;
    }
  }

  #register(domain: string): void {
    const { registry, domains, metrics } = this.deps;
    metrics.authSucceeded("handshake");
    this.transport.trust();
    this.events.authenticated();
    const session: ComponentSession = new ComponentSession(
      new BareJid("", domain),
      this.transport,
      {
        shared: this.deps,
        isHidden: domains.get(domain)!.isHidden, // the state names only checked domains
        opened: () => {
          this.bound(session);
          this.#dispatch({ kind: "registered" });
        },
        fail: (condition) => this.fail(condition),
      },
    );
    this.registering(session);
    registry.open(session).then((outcome) => {
      if (outcome === "conflict") this.fail("conflict");
    }, (thrown) => {
      this.broke("open", thrown);
      this.fail("internal-server-error");
    });
  }
}
