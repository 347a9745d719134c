import type { CancelTimer, Clock, Random } from "../../base/mod.ts";
import { MATH_RANDOM, RateLimit, SystemClock } from "../../base/mod.ts";
import type { Counter, FinishedSpan, Metrics, ShownAddress } from "../../observe/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope, LinkTraffic, OpenLink, StanzaTrace, StanzaTracer } from "../mod.ts";
import { decodeContext } from "../wire/mod.ts";
import { OpenSpan } from "./open_span.ts";
import type { SpanHead } from "./open_span.ts";
import { Sampler } from "./sampler.ts";
import { TraceContexts } from "./trace_contexts.ts";
import { TraceIds } from "./trace_ids.ts";

/** Spans under way at once. Over this the oldest end as they are. */
const MAX_OPEN = 4_096;
/** Spans that end then: a map is slow at giving its first entry again and again. */
const ENDED_AT_ONCE = 256;
/** Contexts that wait for their stanzas. */
const MAX_CONTEXTS = 4_096;
/** Contexts that one process of another datacenter may tell in a second, and at once. */
const MAX_TOLD_PER_SEC = 1_000;
const MAX_TOLD_AT_ONCE = 2_000;
/** Interval at which spans end that are over, and have had no step since the time before. */
const SWEEP_MS = 1_000;
/** Milliseconds without a step after which a span ends whose stanza nobody settles. */
const MAX_IDLE_MS = 300_000;

export interface StanzaSpansOptions {
  /** Share of the stanzas that enter here which are traced; 0 to 1. */
  readonly sampleRatio: number;
  /** Part of the addresses that spans show. */
  readonly addresses: ShownAddress;
}

/** The parts that `StanzaSpans` works with. */
export interface StanzaSpansDeps {
  readonly localHost: string;
  readonly metrics: Metrics;
  /** Takes each span once it has ended. */
  readonly finished: (span: FinishedSpan) => void;
  /** Called when `isOn` may have changed. */
  readonly changed?: () => void;
  readonly clock?: Clock;
  readonly random?: Random;
}

/**
 * Distributed traces of stanzas (docs/operations.md, "Traces, metrics and logs by OTLP").
 *
 * A share of the stanzas that enter the mesh here gets a trace. Each node makes one span for its part
 * of the way, and tells the next node the trace and its own span in a CONTEXT frame. The node where a
 * stanza enters decides alone: the others make a span whenever a context comes.
 */
export class StanzaSpans implements StanzaTracer {
  isOn: boolean;
  readonly #options: StanzaSpansOptions;
  readonly #deps: StanzaSpansDeps;
  readonly #clock: Clock;
  readonly #sampler: Sampler;
  readonly #contexts = new TraceContexts(MAX_CONTEXTS);
  readonly #ids = new TraceIds();
  /** Oldest first. */
  readonly #open = new Set<OpenSpan>();
  readonly #lost: Counter;
  /** Bounds what one process of another datacenter has this node trace. */
  readonly #telling: RateLimit;
  #cancelSweep: CancelTimer | undefined;

  constructor(options: StanzaSpansOptions, deps: StanzaSpansDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#clock = deps.clock ?? new SystemClock();
    this.#sampler = new Sampler(options.sampleRatio, deps.random ?? MATH_RANDOM);
    this.isOn = options.sampleRatio > 0;
    const telling = { perSec: MAX_TOLD_PER_SEC, burst: MAX_TOLD_AT_ONCE };
    this.#telling = new RateLimit(telling, this.#clock);
    this.#lost = deps.metrics.counter({
      name: "causeway_trace_contexts_dropped_total",
      help:
        "Places in distributed traces that were dropped: too many waited for their stanzas, or came",
    });
    deps.metrics.gauge({
      name: "causeway_open_spans",
      help: "Stanzas whose spans of distributed traces are under way at this node",
    }, () => this.#open.size);
  }

  follow(envelope: Envelope, cause?: StanzaTrace): StanzaTrace | undefined {
    if (envelope.arrival !== "here") {
      const parent = this.#contexts.size === 0 ? undefined : this.#contexts.take(envelope);
      return parent && this.#begin(envelope, parent.traceId, parent.spanId, true);
    }
    const answered = cause?.context;
    if (answered !== undefined) {
      if (answered instanceof OpenSpan) answered.isOver = true; // its answer has taken its duty over
      const { traceId, spanId } = answered;
      return this.#begin(envelope, traceId, spanId, false);
    }
    if (!this.#sampler.next()) return undefined;
    return this.#begin(envelope, this.#ids.next(16), undefined, false);
  }

  /** Returns the taker of contexts on links; `inner` gets everything else. */
  traffic(inner?: LinkTraffic): LinkTraffic {
    return {
      accepted: (link) => inner?.accepted(link),
      dialled: (link) => inner?.dialled(link),
      frame: (link, ...frame) => inner?.frame(link, ...frame),
      context: (link, ...frame) => this.#context(link, ...frame),
      leaving: () => inner?.leaving?.(),
      ended: (link, hasLeft) => {
        this.#contexts.forget(link);
        this.#update();
        inner?.ended(link, hasLeft);
      },
    };
  }

  /** Ends all spans, for a stop of the node. */
  close(): void {
    this.#cancelSweep?.();
    for (const span of this.#open) this.#finish(span);
    this.#update();
  }

  #context(link: OpenLink, buffer: Uint8Array, start: number, end: number): void {
    const { process, sequence, isSampled, ...context } = decodeContext(buffer, start, end);
    if (!isSampled) return;
    const { host, process: peer } = link;
    if (host !== this.#deps.localHost && !this.#telling.take(`${peer} ${host}`)) {
      return this.#lost.inc();
    }
    if (!this.#contexts.add({ process, sequence }, context, link)) this.#lost.inc();
    this.#update();
  }

  #begin(
    envelope: Envelope,
    traceId: string,
    parentSpanId: string | undefined,
    hasRemoteParent: boolean,
  ): StanzaTrace {
    const { process, sequence } = envelope;
    const context = { traceId, spanId: this.#ids.next(8) };
    const head = this.#headOf(envelope, parentSpanId, hasRemoteParent);
    const span = new OpenSpan(head, context, { process, sequence }, this.#clock);
    if (this.#open.size >= MAX_OPEN) this.#makeRoom();
    this.#open.add(span);
    this.#cancelSweep ??= this.#clock.after(SWEEP_MS, () => this.#sweep());
    this.#update();
    return span;
  }

  /** Names follow OpenTelemetry's conventions for messaging where these have one. */
  #headOf(
    envelope: Envelope,
    parentSpanId: string | undefined,
    hasRemoteParent: boolean,
  ): SpanHead {
    const { stanza: { kind, type, from, to, bytes }, process, sequence, origin } = envelope;
    const isHere = envelope.arrival === "here";
    const operation = isHere ? "send" : "process";
    return {
      name: `${operation} ${kind}`,
      kind: isHere ? "producer" : "consumer",
      parentSpanId,
      hasRemoteParent,
      attributes: {
        "messaging.system": "xmpp",
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "messaging.destination.name": this.#shown(to),
        "messaging.message.id": `${process}-${sequence}`,
        "messaging.message.envelope.size": bytes.length,
        "xmpp.stanza.kind": kind,
        "xmpp.stanza.type": type,
        "xmpp.from": this.#shown(from),
        "xmpp.to": this.#shown(to),
        "causeway.origin": origin,
        "causeway.datacenter": this.#deps.localHost,
      },
    };
  }

  #shown(jid: Jid): string {
    switch (this.#options.addresses) {
      case "domain":
        return jid.domainpart;
      case "bare":
        return jid.bare.text;
      case "full":
        return jid.text;
    }
  }

  /** Ends the spans that are over: copies of a stanza may still have told of steps in between. */
  #sweep(): void {
    this.#cancelSweep = undefined;
    const nowMs = this.#clock.monotonicMs();
    for (const span of this.#open) {
      if (span.isFresh) {
        span.isFresh = false;
        span.lastMs = nowMs;
        continue;
      }
      if (span.isOver || nowMs - span.lastMs >= MAX_IDLE_MS) this.#finish(span);
    }
    if (this.#open.size > 0) {
      this.#cancelSweep = this.#clock.after(SWEEP_MS, () => this.#sweep());
    }
    this.#update();
  }

  #makeRoom(): void {
    let left = ENDED_AT_ONCE;
    for (const oldest of this.#open) {
      this.#finish(oldest);
      if (--left === 0) return;
    }
  }

  #finish(span: OpenSpan): void {
    this.#open.delete(span);
    this.#deps.finished(span.finish());
  }

  /**
   * Answers to stanzas of other nodes' traces belong to those traces: so all stanzas are looked at
   * while there are any.
   */
  #update(): void {
    const isOn = this.#options.sampleRatio > 0 || this.#contexts.size > 0 || this.#open.size > 0;
    if (isOn === this.isOn) return;
    this.isOn = isOn;
    this.#deps.changed?.();
  }
}
