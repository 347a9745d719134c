import type { CancelTimer } from "../../../base/mod.ts";
import { CausewayError, describeError } from "../../../base/mod.ts";
import type { Connection } from "../../../net/mod.ts";
import type { OpenLink } from "../../mod.ts";
import {
  CARBON_MINOR_VERSION,
  CONTEXT_MINOR_VERSION,
  decodeAck,
  decodeSlow,
  encodeWritten,
  FRAME_TYPE,
  helloFrame,
  isResumeType,
  isSurveyType,
  isTraceType,
  malformed,
  OUR_VERSIONS,
  retireFrame,
  WRITTEN_BYTES,
} from "../../wire/mod.ts";
import type { GoodbyeReason } from "../../wire/mod.ts";
import { isCertifiedHost } from "./certified_host.ts";
import { dialPeer } from "./dial_peer.ts";
import type { LaneEntry } from "../lanes/lane_entry.ts";
import type { LaneEvents, TakenEntry } from "../lanes/lane.ts";
import { Lane } from "../lanes/lane.ts";
import { LinkConnection } from "./link_connection.ts";
import type { LinkConnectionEvents } from "./link_connection.ts";
import type { HostMetrics } from "../link_metrics.ts";
import { doubtsIdentity, expectedPeer } from "./link_scope.ts";
import type { LinkDeps } from "./link_deps.ts";
import type { CloseReason, LinkPeer } from "./link_state.ts";
import { isOrderlyEnd } from "./link_state.ts";
import type { EndpointAddress } from "../ports.ts";
import { LaneAges } from "../lanes/lane_ages.ts";
import { QueueTimes } from "../lanes/queue_times.ts";
import { Redial } from "./redial.ts";

/** Callbacks on the life of an outgoing link. */
export interface OutgoingLinkEvents {
  /** Called as soon as `isLive` or `isGone` of its lane may have changed. */
  reachChanged(link: OutgoingLink): void;
  opened(link: OutgoingLink): void;
  /** Called when the connection has ended, or could not be made. */
  closed(link: OutgoingLink): void;
  /**
   * Called when the peer's process is a new one, with the stanzas that the old one may not have
   * finished.
   */
  restarted(link: OutgoingLink, taken: readonly TakenEntry[]): void;
  levelChanged(lane: Lane): void;
  /**
   * Slows the sender of a stanza for which the peer has no room.
   * @returns a function that ends it
   */
  slows(entry: LaneEntry): () => void;
}

type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "waiting"; readonly cancel: CancelTimer; readonly untilMs: number }
  /** It waits for its turn among all calls of the node. */
  | { readonly kind: "queued"; readonly cancel: CancelTimer }
  | { readonly kind: "dialling"; readonly abort: AbortController }
  | { readonly kind: "connected"; readonly link: LinkConnection; readonly sinceMs: number }
  | { readonly kind: "stopped" };

/** The last reason why a link ended or could not be made. */
export interface LinkFailure {
  readonly reason: CloseReason | "unreachable";
  readonly detail: string;
  /** Monotonic milliseconds. */
  readonly atMs: number;
}

/**
 * The dialling side of one link, with its lane. It connects, and connects again with growing waits,
 * until it is stopped. The lane outlives the connections.
 */
export class OutgoingLink implements LaneEvents, LinkConnectionEvents {
  readonly destination: string;
  readonly address: EndpointAddress;
  readonly lane: Lane;
  readonly #shared: LinkDeps;
  readonly #events: OutgoingLinkEvents;
  readonly #metrics: HostMetrics;
  readonly #queueTimes: QueueTimes;
  readonly #ages = new LaneAges();
  #phase: Phase = { kind: "idle" };
  #peer: LinkPeer | undefined;
  #lastProcess = 0;
  #openLink: OpenLink | undefined;
  /** Monotonic milliseconds when the last connection received bytes. */
  #heardMs = 0;
  #timesOpened = 0;
  readonly #redial: Redial;
  #lastRefusal: CloseReason | undefined;
  #lastFailure: LinkFailure | undefined;
  #isPaused = false;
  #sentBytes = 0;
  #creditBytes = 0;
  #isStopping = false;
  #isFlushScheduled = false;
  #appendedMs = 0;
  /** Reused for each write: a connection copies the bytes that it sends. */
  readonly #written = new Uint8Array(WRITTEN_BYTES);
  readonly #flushLater = () => this.#flush();
  readonly #write = (bytes: Uint8Array) => this.#send(bytes);

  constructor(
    destination: string,
    address: EndpointAddress,
    options: { readonly shared: LinkDeps; readonly events: OutgoingLinkEvents },
  ) {
    this.destination = destination;
    this.address = address;
    this.#shared = options.shared;
    this.#events = options.events;
    this.#redial = new Redial(this.#shared.options, this.#shared.random);
    const { budget, carbonOf } = this.#shared;
    const deps = { events: this, budget, carbonOf };
    this.lane = new Lane(this.#shared.nextLane(), this.#shared.options, deps);
    this.lane.downSinceMs = this.#shared.clock.monotonicMs();
    this.#metrics = this.#shared.metrics.host(destination);
    this.#queueTimes = new QueueTimes(this.#metrics.outgoingQueueTime);
  }

  /** True once the peer has said HELLO and passed all checks. */
  get isOpen(): boolean {
    return this.lane.isLive;
  }

  get phase(): Exclude<Phase["kind"], "queued"> | "open" {
    if (this.isOpen) return "open";
    const { kind } = this.#phase;
    return kind === "queued" ? "waiting" : kind;
  }

  /** True while an operator keeps it down. */
  get isPaused(): boolean {
    return this.#isPaused;
  }

  /** Monotonic milliseconds since when it has been open; undefined while it is not. */
  get openSinceMs(): number | undefined {
    return this.isOpen && this.#phase.kind === "connected" ? this.#phase.sinceMs : undefined;
  }

  /** Milliseconds of the last measured round trip; undefined while there is none. */
  get roundTripMs(): number | undefined {
    return this.#phase.kind === "connected" ? this.#phase.link.roundTripMs : undefined;
  }

  /** Monotonic milliseconds of the next attempt to connect; undefined while none is planned. */
  get nextAttemptMs(): number | undefined {
    return this.#phase.kind === "waiting" ? this.#phase.untilMs : undefined;
  }

  /** The last failure. It stays after the link has come up again. */
  get lastFailure(): LinkFailure | undefined {
    return this.#lastFailure;
  }

  /** Monotonic milliseconds since when the oldest stanza that the peer has not received is here. */
  get oldestMs(): number | undefined {
    return this.#ages.oldestMs(this.lane.received);
  }

  /** Number of times that it has come up. */
  get timesOpened(): number {
    return this.#timesOpened;
  }

  /** The node at the other end; undefined while there is none. */
  get nodeName(): string | undefined {
    return this.#peer?.nodeName;
  }

  /** Incarnation of the last process at the other end; 0 before there was one. */
  get lastProcess(): number {
    return this.#lastProcess;
  }

  /**
   * Connects as soon as the node's pace of calls allows, unless it is connecting, connected or
   * stopped.
   */
  connect(): void {
    if (this.#isPaused) return;
    if (this.#phase.kind !== "idle" && this.#phase.kind !== "waiting") return;
    if (this.#phase.kind === "waiting") this.#phase.cancel();
    const cancel = this.#shared.calls.begin(this.destination, () => this.#dial());
    if (cancel !== undefined) this.#phase = { kind: "queued", cancel };
  }

  #dial(): void {
    const abort = new AbortController();
    const phase: Phase = { kind: "dialling", abort };
    this.#phase = phase;
    dialPeer(this.address, { shared: this.#shared, signal: abort.signal }).then((connection) => {
      if (this.#phase === phase) this.#connected(connection);
      else connection.destroy(new CausewayError("link/ended", "Ended link: it is not needed"));
    }, (error) => {
      if (this.#phase === phase) this.#failed(error);
    });
  }

  tick(nowMs: number): void {
    if (this.#phase.kind === "connected") this.#phase.link.tick(nowMs);
  }

  /** Says GOODBYE, ends the connection and does not connect again. */
  stop(reason: GoodbyeReason, detail: string): void {
    const phase = this.#phase;
    this.#isStopping = true;
    if (phase.kind === "connected") {
      phase.link.leave(reason, detail); // `stopped` once it has ended
      return;
    }
    this.#phase = { kind: "stopped" };
    if (phase.kind === "waiting" || phase.kind === "queued") phase.cancel();
    if (phase.kind === "dialling") phase.abort.abort();
  }

  /** Ends the connection in order, and makes no other one until `unpause`. The lane stays. */
  pause(): void {
    this.#isPaused = true;
    const phase = this.#phase;
    if (phase.kind === "connected") phase.link.leave("superseded", "paused by an operator");
    if (phase.kind === "waiting" || phase.kind === "queued") phase.cancel();
    if (phase.kind === "dialling") phase.abort.abort();
    if (phase.kind !== "connected" && phase.kind !== "stopped") this.#phase = { kind: "idle" };
  }

  /** Ends a pause, and connects. */
  unpause(): void {
    this.#isPaused = false;
    this.connect();
  }

  /** True when nothing is connected and nothing will be. */
  get isStopped(): boolean {
    return this.#phase.kind === "stopped";
  }

  /** Ends the connection in order and makes another one; the lane resumes. */
  renew(): void {
    if (this.#phase.kind === "connected") this.#phase.link.leave("superseded", "connecting anew");
  }

  laneHasWork(): void {
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    this.#appendedMs = this.#shared.clock.monotonicMs();
    queueMicrotask(this.#flushLater);
  }

  laneLevelChanged(lane: Lane): void {
    this.#events.levelChanged(lane);
  }

  laneSlows(entry: LaneEntry): () => void {
    return this.#events.slows(entry);
  }

  opened(peer: LinkPeer): void {
    const { lives, mesh } = this.#shared;
    const link = (this.#phase as Phase & { kind: "connected" }).link; // only it calls this
    const resumption = this.lane.resume(
      peer.process,
      peer.lastNumber,
      peer.minorVersion >= CARBON_MINOR_VERSION,
    );
    if (resumption === "impossible") {
      link.leave("number-gap", `received ${peer.lastNumber}, which was never sent`);
      return;
    }
    const taken = resumption === "restarted" ? this.lane.takeForRestart() : [];
    // A process that was suspended notices late that its peers had given up waiting for it.
    const silentMs = this.#shared.clock.monotonicMs() - this.#heardMs;
    if (silentMs >= this.#shared.options.rehomeAfterMs) this.lane.markLate();
    if (resumption === "restarted") {
      this.#queueTimes.reset();
      this.#ages.reset();
    }
    this.#peer = peer;
    this.#lastProcess = peer.process;
    this.lane.takesContexts = peer.minorVersion >= CONTEXT_MINOR_VERSION;
    this.lane.isLive = true;
    this.lane.isGone = false;
    this.#events.reachChanged(this);
    this.#timesOpened++;
    this.#redial.answered();
    this.#lastRefusal = undefined;
    this.#metrics.outgoingEstablished.inc();
    mesh.linkOpened(peer.localHost, peer.datacenterId);
    if (doubtsIdentity(this.#shared, peer)) this.#shared.events.identityDoubted?.();
    lives.info("link.opened", this.destination, {
      host: this.destination,
      node: peer.nodeName,
      remote: link.remoteAddress,
      resumption,
      held: this.lane.items,
    });
    this.#events.opened(this);
    if (taken.length > 0) this.#events.restarted(this, taken);
    this.#openLink = link.toOpenLink(peer);
    this.#shared.traffic?.dialled(this.#openLink);
  }

  frame(type: number, buffer: Uint8Array, start: number, end: number): void {
    if (isTraffic(type)) {
      this.#shared.traffic?.frame(this.#openLink!, type, buffer, start, end);
      return;
    }
    if (type === FRAME_TYPE.slow) {
      const slow = decodeSlow(buffer, start, end);
      if (!this.lane.slow(slow)) throw malformed("SLOW", `${slow.number} was never sent`);
      return;
    }
    if (type !== FRAME_TYPE.ack) {
      throw malformed("this", `the dialling side takes none of type ${type}`);
    }
    const ack = decodeAck(buffer, start, end);
    if (ack.creditBytes < this.#creditBytes) throw malformed("ACK", "it takes credit back");
    this.#creditBytes = ack.creditBytes;
    if (!this.lane.acknowledge(ack)) {
      throw malformed("ACK", `${ack.received} is received of ${this.lane.sent} sent`);
    }
    if (this.lane.waiting > 0) this.laneHasWork();
  }

  ended(reason: CloseReason, detail: string): void {
    const phase = this.#phase;
    const wasOpen = this.lane.isLive;
    this.lane.isLive = false;
    this.lane.endSlowing();
    if (wasOpen) this.lane.downSinceMs = this.#shared.clock.monotonicMs();
    if (wasOpen && phase.kind === "connected") {
      this.#heardMs = phase.link.heardMs;
      this.#redial.broke(this.#shared.clock.monotonicMs() - phase.sinceMs);
    }
    const hasLeft = reason === "leaving" && !this.#isStopping; // otherwise we said GOODBYE
    if (hasLeft) this.lane.isGone = true;
    this.#events.reachChanged(this);
    this.#countEnd(wasOpen, isOrderlyEnd(reason));
    if (wasOpen) this.#shared.mesh.linkClosed(this.#peer!.localHost, this.#peer!.datacenterId);
    const fields = { host: this.destination, endpoint: this.#endpoint, reason, detail };
    const { lives, log } = this.#shared;
    if (wasOpen) lives.info("link.closed", this.destination, { ...fields, direction: "out" });
    else {
      if (reason !== "lost") this.#shared.metrics.refused(reason).inc();
      // Every attempt ends alike until somebody does something about it: one line is enough.
      if (reason === this.#lastRefusal) log.debug("link.refused", fields);
      else lives.warn("link.refused", this.destination, fields);
      this.#lastRefusal = reason;
    }
    if (reason !== "superseded") { // which is our own wish
      this.#lastFailure = { reason, detail, atMs: this.#shared.clock.monotonicMs() };
    }
    if (reason === "host-conflict") this.#shared.events.identityDoubted?.();
    this.#peer = undefined;
    if (this.#openLink !== undefined) {
      this.#shared.traffic?.ended(this.#openLink, hasLeft);
    }
    this.#openLink = undefined;
    this.#wait();
    this.#events.closed(this);
  }

  #connected(connection: Connection): void {
    const { tls, identity, clock, scope } = this.#shared;
    const link = new LinkConnection(connection, this, {
      shared: this.#shared,
      role: "dialler",
      destination: this.destination,
      lane: this.lane.id,
    });
    this.#phase = { kind: "connected", link, sinceMs: clock.monotonicMs() };
    this.#sentBytes = 0;
    this.#creditBytes = 0;
    link.start();
    const { host } = expectedPeer(scope, this.destination, identity);
    if (tls !== undefined && !isCertifiedHost(host, connection.peerNames)) {
      link.leave("identity", `the certificate does not name ${host}`);
      return;
    }
    link.send(helloFrame({
      ...OUR_VERSIONS,
      process: identity.process,
      lane: this.lane.id,
      lastNumber: this.lane.lastGone,
      datacenterId: identity.datacenterId(),
      localHost: identity.localHost,
      nodeName: identity.nodeName,
    }));
  }

  #failed(error: unknown): void {
    const detail = describeError(error);
    // The endpoint refuses: unlike a process that is slow or cut off, one that has ended cannot
    // deliver late.
    if (error instanceof CausewayError && error.code === "net/refused") {
      this.lane.isGone = true;
      this.#events.reachChanged(this);
    }
    this.#metrics.outgoingDialsFailed.inc();
    const { lives, log, clock } = this.#shared;
    this.#lastFailure = { reason: "unreachable", detail, atMs: clock.monotonicMs() };
    const fields = { host: this.destination, endpoint: this.#endpoint, detail };
    if (this.#redial.failed()) lives.warn("link.unreachable", this.destination, fields);
    else log.debug("link.unreachable", fields);
    this.#wait();
    this.#events.closed(this);
  }

  /** Counts the end so that `established` equals `closed` + `errored` + open links. */
  #countEnd(wasOpen: boolean, isOrderly: boolean): void {
    const { outgoingClosed, outgoingErrored, outgoingDialsFailed } = this.#metrics;
    if (!wasOpen) outgoingDialsFailed.inc();
    else if (isOrderly) outgoingClosed.inc();
    else outgoingErrored.inc();
  }

  #wait(): void {
    if (this.#isStopping) {
      this.#phase = { kind: "stopped" };
      return;
    }
    if (this.#isPaused) {
      this.#phase = { kind: "idle" };
      return;
    }
    const { clock } = this.#shared;
    const forMs = this.#redial.next();
    this.#phase = {
      kind: "waiting",
      cancel: clock.after(forMs, () => this.connect()),
      untilMs: clock.monotonicMs() + forMs,
    };
  }

  get #endpoint(): string {
    return `${this.address.host}#${this.address.port}`;
  }

  #send(bytes: Uint8Array): void {
    if (this.#phase.kind === "connected") this.#phase.link.send(bytes);
  }

  /** Runs once for each event-loop turn in which there was something to send. */
  #flush(): void {
    this.#isFlushScheduled = false;
    const { lane } = this;
    if (lane.waiting === 0) return;
    this.#queueTimes.appended(lane.sent + lane.waiting, this.#appendedMs);
    this.#ages.note(lane.last, lane.received, this.#appendedMs);
    if (!lane.isLive) return;
    for (const retired of lane.retired.takeUntold()) this.#send(retireFrame(retired));
    const creditBytes = this.#creditBytes - this.#sentBytes;
    if (creditBytes > 0) {
      encodeWritten(this.#written, this.#shared.clock.wallUs());
      this.#send(this.#written);
    }
    const { bytes, fresh } = lane.flush(creditBytes, this.#write);
    this.#sentBytes += bytes;
    this.#queueTimes.written(lane.sent, fresh, this.#shared.clock.monotonicMs());
    if (fresh > 0) this.#metrics.outgoingMessages.inc(fresh);
  }
}

/**
 * True for replication frames that an acceptor sends: acknowledgements, and news of peers that
 * cannot reach us otherwise. Also true for frames of session moves, traces and surveys, which work in
 * both directions of a link.
 */
function isTraffic(type: number): boolean {
  return type === FRAME_TYPE.position || type === FRAME_TYPE.mesh || type === FRAME_TYPE.lease ||
    type === FRAME_TYPE.changes || type === FRAME_TYPE.snapshot || isResumeType(type) ||
    isTraceType(type) || isSurveyType(type);
}
