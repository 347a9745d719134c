import type { Clock } from "../../base/mod.ts";
import { RateLimit, SystemClock } from "../../base/mod.ts";
import type { Counter, Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import { tryParseJid } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { LinkBook, trafficBefore } from "../mod.ts";
import type {
  Envelope,
  FrameRange,
  LinkTraffic,
  OpenLink,
  StanzaTrace,
  StanzaTracer,
} from "../mod.ts";
import {
  decodeTrace,
  decodeTraced,
  decodeTracing,
  FRAME_TYPE,
  isTraceType,
  tracedFrame,
  traceFrame,
  tracingFrame,
} from "../wire/mod.ts";
import type { TraceFields, TracingState } from "../wire/mod.ts";
import { MAX_ASKED_AT_ONCE, MAX_ASKED_PER_SEC, resolveTracing } from "./tracing_options.ts";
import type { TracingOptions } from "./tracing_options.ts";
import { Watch } from "./watch.ts";
import type { Step } from "./watch.ts";
import { Watches } from "./watches.ts";

/** A node of the mesh, and its datacenter's local host. */
export interface TracedNode {
  readonly node: string;
  readonly datacenter: string;
}

/**
 * State of a trace at one node: `asked` until the node answers. A node of an older version never
 * does.
 */
export type NodeTracing = TracingState | "asked";

/** Receiver of what a trace finds. */
export interface TraceListener {
  step(at: TracedNode, step: Step): void;
  /** Called when the state at another node has changed. @param missed steps that it did not tell */
  node(at: TracedNode, state: NodeTracing, missed: number): void;
  /** Called once, last. @param missed steps that this node did not tell */
  ended(missed: number): void;
}

/** A trace under way. */
export interface Trace {
  /** Wall-clock milliseconds at which it ends by itself. */
  readonly endsAtMs: number;
  /** Ends it now. */
  stop(): void;
}

/** The parts that `Tracing` works with. */
export interface TracingDeps {
  readonly nodeName: string;
  readonly localHost: string;
  readonly globalHost: string;
  /** All hosts of this datacenter: the global host, the local host and further ones. */
  readonly hosts: ReadonlySet<string>;
  /** True for a domain that names another datacenter of the mesh. */
  isOtherLocalHost(domain: string): boolean;
  readonly metrics: Metrics;
  /** Called when `isOn` may have changed. */
  readonly changed?: () => void;
  readonly log?: Logger;
  readonly clock?: Clock;
}

/** A trace that an operator of this node has asked for. */
interface OwnTrace {
  readonly fields: Pick<TraceFields, "address" | "who">;
  readonly watch: Watch;
  readonly listener: TraceListener;
  /** Monotonic milliseconds. */
  readonly endsMs: number;
  /** States at other nodes, by `keyOf`. */
  readonly states: Map<string, NodeTracing>;
}

/** A trace that another node has asked for. */
interface ForeignTrace {
  readonly watch: Watch;
  readonly host: string;
  readonly process: number;
  readonly trace: number;
  /** Monotonic milliseconds after which it runs no longer, however often it is asked for. */
  readonly latestMs: number;
}

/**
 * Traces: an operator follows the stanzas from and to one address, at this node and at all nodes
 * that it is linked with (docs/protocol.md, "Traces").
 *
 * The asked node sends TRACE to each of them, and each sends its own steps back. A node tells only
 * of stanzas that it handles itself, never of a body, and so many in a second that neither it nor
 * the links notice. A trace ends by itself.
 */
export class Tracing implements StanzaTracer {
  isOn = false;
  readonly #options: Required<TracingOptions>;
  readonly #deps: TracingDeps;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #watches: Watches;
  readonly #own = new Map<number, OwnTrace>();
  readonly #foreign = new Map<string, ForeignTrace>();
  readonly #links: LinkBook;
  /** Bounds what one other process may ask. */
  readonly #asking: RateLimit;
  /** Bounds what one other process may tell. */
  readonly #arriving: RateLimit;
  readonly #dropped: Readonly<Record<"trace" | "tracing" | "traced", Counter>>;
  #lastTrace = 0;
  #isClosed = false;

  constructor(options: TracingOptions, deps: TracingDeps) {
    this.#options = resolveTracing(options);
    this.#deps = deps;
    const clock = this.#clock = deps.clock ?? new SystemClock();
    this.#log = deps.log ?? SILENT_LOGGER;
    this.#watches = new Watches(deps.metrics, clock);
    this.#links = new LinkBook(deps.localHost);
    const perSec = 2 * this.#options.maxStepsPerSec * this.#options.maxTraces;
    this.#arriving = new RateLimit({ perSec, burst: perSec }, clock);
    const asking = { perSec: MAX_ASKED_PER_SEC, burst: MAX_ASKED_AT_ONCE };
    this.#asking = new RateLimit(asking, clock);
    const droppedFrames = (frame: string) =>
      deps.metrics.counter({
        name: "causeway_trace_frames_dropped_total",
        help: "Frames of traces that were dropped, as their process sent too many",
        labels: { frame },
      });
    this.#dropped = {
      trace: droppedFrames("trace"),
      tracing: droppedFrames("tracing"),
      traced: droppedFrames("traced"),
    };
    for (
      const [asker, read] of [
        ["here", () => this.#own.size],
        ["elsewhere", () => this.#foreign.size],
      ] as const
    ) {
      deps.metrics.gauge({
        name: "causeway_traces",
        help: "Traces under way at this node, by where they were asked for",
        labels: { asker },
      }, read);
    }
  }

  /** True while no operator of this node may begin another trace. */
  get isFull(): boolean {
    return this.#isClosed || this.#own.size >= this.#options.maxTraces;
  }

  follow(envelope: Envelope): StanzaTrace | undefined {
    return this.#watches.follow(envelope);
  }

  /**
   * Begins a trace here and at all nodes that are linked, or will be.
   * @param forMs at most `maxForMs` counts
   * @returns undefined when there are as many traces as there may be
   */
  open(
    { jid, forMs, who }: { readonly jid: Jid; readonly forMs: number; readonly who: string },
    listener: TraceListener,
  ): Trace | undefined {
    if (this.isFull) return undefined;
    const lifeMs = Math.min(forMs, this.#options.maxForMs);
    const trace = ++this.#lastTrace;
    const here = { node: this.#deps.nodeName, datacenter: this.#deps.localHost };
    const watch = this.#watch(jid, (step) => listener.step(here, step));
    const own: OwnTrace = {
      fields: { address: jid.text, who },
      watch,
      listener,
      endsMs: this.#clock.monotonicMs() + lifeMs,
      states: new Map(),
    };
    this.#own.set(trace, own);
    watch.cancelEnd = this.#clock.after(lifeMs, () => this.#close(trace));
    this.#log.audit("trace.begun", { address: jid.text, who, forMs: lifeMs });
    for (const link of this.#links.peers()) this.#ask(link, trace, own);
    return {
      endsAtMs: this.#clock.wallMs() + lifeMs,
      stop: () => this.#close(trace),
    };
  }

  /** Ends all traces, for a stop of the node. No other one begins. */
  close(): void {
    this.#isClosed = true;
    for (const trace of [...this.#own.keys()]) this.#close(trace);
    for (const key of [...this.#foreign.keys()]) this.#drop(key);
  }

  /** Returns the taker of frames on links; `inner` gets the frames of others. */
  traffic(inner?: LinkTraffic): LinkTraffic {
    return trafficBefore({
      linked: (link, isDialled) => this.#linked(link, isDialled),
      takes: isTraceType,
      frame: (link, type, buffer, range) => this.#frame(link, type, buffer, range),
      unlinked: (link) => this.#unlinked(link),
    }, inner);
  }

  #linked(link: OpenLink, isDialled: boolean): void {
    const isNew = this.#links.to(link) === undefined;
    this.#links.add(link, isDialled);
    if (isNew) { for (const [trace, own] of this.#own) this.#ask(link, trace, own); }
  }

  #unlinked(link: OpenLink): void {
    this.#links.remove(link);
    if (this.#links.to(link) !== undefined) return;
    for (const [key, { host, process }] of this.#foreign) {
      if (host === link.host && process === link.process) this.#drop(key);
    }
    for (const own of this.#own.values()) {
      if (!own.states.delete(keyOf(link)) || this.#isAskedAnew(link, own)) continue;
      own.listener.node(nodeOf(link), "ended", 0);
    }
  }

  /** True when the node has been restarted, and its new process has been asked. */
  #isAskedAnew({ host, nodeName }: OpenLink, { states }: OwnTrace): boolean {
    return [...this.#links.peers()].some((each) =>
      each.host === host && each.nodeName === nodeName && states.has(keyOf(each))
    );
  }

  #frame(
    link: OpenLink,
    type: number,
    buffer: Uint8Array,
    { start, end }: FrameRange,
  ): void {
    if (type === FRAME_TYPE.trace) return this.#asked(link, decodeTrace(buffer, start, end));
    // The other side has a limit of its own. The one here is for peers that keep none.
    if (type === FRAME_TYPE.tracing) {
      const { trace, state, missed } = decodeTracing(buffer, start, end);
      const own = this.#own.get(trace);
      if (own?.states.has(keyOf(link)) !== true) return; // it has ended here
      if (!this.#arriving.take(keyOf(link))) return this.#dropped.tracing.inc();
      own.states.set(keyOf(link), state);
      own.listener.node(nodeOf(link), state, missed);
      return;
    }
    const { trace, ...step } = decodeTraced(buffer, start, end);
    const own = this.#own.get(trace);
    if (own?.states.get(keyOf(link)) !== "watching") return;
    if (!this.#arriving.take(keyOf(link))) return this.#dropped.traced.inc();
    own.listener.step(nodeOf(link), step);
  }

  #ask(link: OpenLink, trace: number, { fields, endsMs, states, listener }: OwnTrace): void {
    const forMs = Math.ceil(endsMs - this.#clock.monotonicMs());
    if (forMs <= 0) return;
    states.set(keyOf(link), "asked");
    listener.node(nodeOf(link), "asked", 0);
    link.send(traceFrame({ trace, forMs, ...fields }));
  }

  #asked(link: OpenLink, { trace, forMs, address, who }: TraceFields): void {
    const { host, process, nodeName } = link;
    const key = `${trace} ${keyOf(link)}`;
    const known = this.#foreign.get(key);
    if (forMs === 0) return known && this.#drop(key);
    if (!this.#asking.take(keyOf(link))) return this.#dropped.trace.inc();
    const answer = (state: TracingState, missed = 0) =>
      link.send(tracingFrame({ trace, state, missed }));
    if (known !== undefined) {
      this.#endAfter(forMs, key, known);
      return answer("watching", known.watch.missed);
    }
    if (this.#isClosed) return answer("ended");
    const fields = { address, who, datacenter: host, node: nodeName };
    const jid = tryParseJid(address);
    if (jid === undefined || !this.#mayTrace(host, jid)) {
      this.#log.warn("trace.forbidden", fields);
      return answer("forbidden");
    }
    if (this.#isBusy(host)) return answer("busy");
    const watch = this.#watch(jid, (step) => {
      this.#links.to(link)?.send(tracedFrame({ trace, ...step }));
    }, (missed) => {
      this.#links.to(link)?.send(tracingFrame({ trace, state: "watching", missed }));
    });
    const latestMs = this.#clock.monotonicMs() + this.#options.maxForMs;
    const foreign: ForeignTrace = { watch, host, process, trace, latestMs };
    this.#foreign.set(key, foreign);
    const lifeMs = this.#endAfter(forMs, key, foreign);
    this.#log.audit("trace.asked", { ...fields, forMs: lifeMs });
    answer("watching");
  }

  /**
   * Lets a trace of another node end after `forMs`, or earlier when it would last too long.
   * @returns milliseconds until it ends
   */
  #endAfter(forMs: number, key: string, { watch, latestMs }: ForeignTrace): number {
    const lifeMs = Math.max(0, Math.min(forMs, latestMs - this.#clock.monotonicMs()));
    watch.cancelEnd?.();
    watch.cancelEnd = this.#clock.after(lifeMs, () => this.#drop(key));
    return lifeMs;
  }

  /**
   * True when nodes of `host` may follow an address. Nodes of our datacenter may follow all addresses.
   * Nodes of others may follow addresses that all datacenters share, and their own. A domain under
   * several hosts belongs to the nearest of them.
   */
  #mayTrace(host: string, { domainpart }: Jid): boolean {
    const { localHost, globalHost, hosts } = this.#deps;
    if (host === localHost) return true;
    if (!this.#options.forOthers) return false;
    for (let domain = domainpart;; domain = domain.slice(domain.indexOf(".") + 1)) {
      if (domain === globalHost || domain === host) return true;
      if (hosts.has(domain) || this.#deps.isOtherLocalHost(domain)) return false;
      if (!domain.includes(".")) return false;
    }
  }

  /** True when no further trace for nodes of `host` may begin. */
  #isBusy(host: string): boolean {
    const { maxForDatacenter, maxForOthers } = this.#options;
    const { localHost } = this.#deps;
    const all = [...this.#foreign.values()];
    const count = (isCounted: (each: ForeignTrace) => boolean) => all.filter(isCounted).length;
    return count((each) => each.host === host) >= maxForDatacenter ||
      (host !== localHost && count((each) => each.host !== localHost) >= maxForOthers);
  }

  #watch(jid: Jid, tell: (step: Step) => void, overran?: (missed: number) => void): Watch {
    const { maxStepsPerSec: maxPerSec } = this.#options;
    const watch = new Watch(jid, { clock: this.#clock, maxPerSec, tell, overran });
    this.#watches.add(watch);
    this.isOn = true;
    this.#deps.changed?.();
    return watch;
  }

  #unwatch(watch: Watch): void {
    watch.cancelEnd?.();
    this.#watches.remove(watch);
    this.isOn = !this.#watches.isEmpty;
    this.#deps.changed?.();
  }

  #close(trace: number): void {
    const own = this.#own.get(trace);
    if (own === undefined) return;
    this.#own.delete(trace);
    this.#unwatch(own.watch);
    const { fields, watch: { missed } } = own;
    this.#log.audit("trace.ended", { ...fields, missed });
    for (const link of this.#links.peers()) {
      if (own.states.has(keyOf(link))) link.send(traceFrame({ trace, forMs: 0, ...fields }));
    }
    own.listener.ended(missed);
  }

  /** Ends a trace of another node, and tells that node. */
  #drop(key: string): void {
    const foreign = this.#foreign.get(key);
    if (foreign === undefined) return;
    this.#forget(key, foreign);
    const { trace, watch: { missed } } = foreign;
    this.#links.to(foreign)?.send(tracingFrame({ trace, state: "ended", missed }));
  }

  #forget(key: string, { watch }: ForeignTrace): void {
    this.#foreign.delete(key);
    this.#unwatch(watch);
  }
}

/** Returns what stands for the process at the other end of a link. */
function keyOf({ host, process }: OpenLink): string {
  return `${process} ${host}`;
}

function nodeOf({ host, nodeName }: OpenLink): TracedNode {
  return { node: nodeName, datacenter: host };
}
