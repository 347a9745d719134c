import { SlabAllocator } from "../../base/mod.ts";
import { errorReply } from "../error_reply.ts";
import type { BareJid } from "../jid.ts";
import { tryParseJid } from "../jid_parser.ts";
import type { Stanza } from "../stanza.ts";
import type { StanzaContext } from "../stanza_parser.ts";
import { RefusedStanza, stanzaFrom, stanzaKind } from "../stanza_parser.ts";
import type { StreamErrorCondition } from "../stream_error.ts";
import { COMPONENT_NAMESPACE } from "../stream/namespaces.ts";
import { StanzaOutput } from "../stream/stanza_output.ts";
import type { StanzaSource } from "../stream/stanza_sink.ts";
import type { StreamTransport } from "../stream/stream_transport.ts";
import { encodeAttribute } from "../xml/escape.ts";
import type { ScannedElement } from "../xml/scanner_types.ts";
import type { ComponentContext } from "./component_context.ts";
import type { LocalComponent } from "./component_registry.ts";

/** Stamped stanzas of all components. */
const SLAB = new SlabAllocator();

/** What a session is given by its stream. */
export interface ComponentWiring {
  readonly context: ComponentContext;
  readonly isHidden: boolean;
  opened(): void;
  /** Ends the stream. */
  fail(condition: StreamErrorCondition): void;
}

/** A component that has proven itself: checks what it sends, and writes what is delivered to it. */
export class ComponentSession implements LocalComponent, StanzaSource {
  /** The component's domain. */
  readonly jid: BareJid;
  readonly #transport: StreamTransport;
  readonly #wiring: ComponentWiring;
  readonly #context: ComponentContext;
  readonly #output: StanzaOutput;
  #isOpen = true;
  /** `from` as the component last wrote it, and what it stands for: mostly the same again. */
  #lastFrom: string | undefined;
  #stanzaContext: StanzaContext;

  constructor(jid: BareJid, transport: StreamTransport, wiring: ComponentWiring) {
    this.jid = jid;
    this.#transport = transport;
    this.#wiring = wiring;
    this.#context = wiring.context;
    this.#output = new StanzaOutput(transport, wiring.context);
    this.#stanzaContext = { slab: SLAB, from: jid, defaultTo: jid };
  }

  get domain(): string {
    return this.jid.text;
  }

  get isHidden(): boolean {
    return this.#wiring.isHidden;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  opened(): void {
    this.#wiring.opened();
  }

  send(stanza: Stanza): boolean {
    return this.#output.send(stanza);
  }

  end(condition: StreamErrorCondition): void {
    this.#wiring.fail(condition);
  }

  pause(): void {
    if (this.#isOpen) this.#transport.pause();
  }

  resume(): void {
    if (this.#isOpen) this.#transport.resume();
  }

  drained(): void {
    this.#output.drained();
  }

  close(): void {
    this.#isOpen = false;
    this.#output.close();
  }

  /** Takes what the component sent; called for every top-level element. */
  accept(element: ScannedElement): void {
    const kind = stanzaKind(element);
    if (kind === undefined || element.namespace !== COMPONENT_NAMESPACE) {
      return this.#wiring.fail(
        kind === undefined ? "unsupported-stanza-type" : "invalid-namespace",
      );
    }
    this.#context.metrics.received[kind].inc();
    const from = element.attribute("from");
    if (from === undefined || (from !== this.#lastFrom && !this.#adopt(from))) {
      return this.#wiring.fail("invalid-from");
    }
    if (element.attributeIndex("to") === -1) return this.#wiring.fail("improper-addressing");
    const stanza = stanzaFrom(element, kind, this.#stanzaContext);
    if (!(stanza instanceof RefusedStanza)) return this.#context.sink.accept(stanza, this);
    const reply = errorReply(stanza.stanza, stanza.condition);
    if (reply !== undefined) this.#output.send(reply);
  }

  /** Speaks as `from` from now on; false when that is not the component's to say. */
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
