import { SlabAllocator } from "../../base/mod.ts";
import { errorReply } from "../stanza/error_reply.ts";
import type { BareJid } from "../jid/jid.ts";
import { tryParseJid } from "../jid/jid_parser.ts";
import type { StanzaContext } from "../stanza/stanza_parser.ts";
import { RefusedStanza, stanzaFrom, stanzaKind } from "../stanza/stanza_parser.ts";
import { COMPONENT_NAMESPACE } from "../stream/namespaces.ts";
import type { StanzaMeter } from "../stream/edge_rates.ts";
import type { StreamSessionDeps } from "../stream/stream_session.ts";
import { StreamSession } from "../stream/stream_session.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import type { ComponentStreamDeps } from "./component_stream_deps.ts";
import type { LocalComponent } from "./component_registry.ts";

/** Memory for the stamped stanzas of all components. */
const SLAB = new SlabAllocator();

/** Objects that a stream gives its session. */
export interface ComponentSessionDeps extends StreamSessionDeps<ComponentStreamDeps> {
  readonly isHidden: boolean;
}

/** An authenticated component: checks what it sends, and writes what is delivered to it. */
export class ComponentSession extends StreamSession<ComponentStreamDeps> implements LocalComponent {
  /** The component's domain. */
  override readonly jid: BareJid;
  readonly isHidden: boolean;
  /** `from` as the component last wrote it, and its parsed JID. The next stanza mostly has the same. */
  #lastFrom: string | undefined;
  #stanzaContext: StanzaContext;
  readonly #meter: StanzaMeter;

  constructor(jid: BareJid, transport: StreamTransport, deps: ComponentSessionDeps) {
    super(transport, deps);
    this.jid = jid;
    this.isHidden = deps.isHidden;
    this.#meter = deps.shared.rates.componentMeter(jid.text);
    this.#stanzaContext = { slab: SLAB, from: jid, defaultTo: jid };
  }

  get domain(): string {
    return this.jid.text;
  }

  override accept(element: ScannedElement): void {
    const waitMs = this.#meter.charge();
    if (waitMs > 0) this.slow(waitMs);
    const kind = stanzaKind(element);
    if (kind === undefined || element.namespace !== COMPONENT_NAMESPACE) {
      return this.end(
        kind === undefined ? "unsupported-stanza-type" : "invalid-namespace",
      );
    }
    this.deps.metrics.received[kind].inc();
    const from = element.attribute("from");
    if (from === undefined || (from !== this.#lastFrom && !this.#adopt(from))) {
      return this.end("invalid-from");
    }
    if (element.attributeIndex("to") === -1) return this.end("improper-addressing");
    const stanza = stanzaFrom(element, kind, this.#stanzaContext);
    if (!(stanza instanceof RefusedStanza)) return this.route(stanza);
    if (stanza.condition === "policy-violation") this.deps.metrics.limitHit("id-bytes");
    const reply = errorReply(stanza.stanza, stanza.condition);
    if (reply !== undefined) this.send(reply);
  }

  /** Stamps stanzas with `from` from now on; false when the component has no right to that address. */
  #adopt(from: string): boolean {
    const jid = tryParseJid(from);
    if (jid === undefined || jid.domainpart !== this.jid.text) return false;
    this.#lastFrom = from;
    this.#stanzaContext = {
      slab: SLAB,
      from: jid,
      fromAttribute: encodeAttribute("from", jid.text),
      defaultTo: this.jid,
      defaultToAttribute: encodeAttribute("to", this.jid.text),
    };
    return true;
  }
}
