import type { CancelTimer } from "../../../base/mod.ts";
import type { Connection } from "../../../net/mod.ts";
import { isAsItSays } from "../../../xmpp/mod.ts";
import { Envelope } from "../../mod.ts";
import type { OpenLink } from "../../mod.ts";
import {
  ackFrame,
  decodeRetire,
  decodeStanza,
  decodeWritten,
  FRAME_TYPE,
  FrameError,
  helloFrame,
  isResumeType,
  isSurveyType,
  isTraceType,
  malformed,
  OUR_VERSIONS,
  readNumber,
  slowFrame,
} from "../../wire/mod.ts";
import type { InboundLane } from "../lanes/inbound_lane.ts";
import { LinkConnection } from "./link_connection.ts";
import type { LinkConnectionEvents } from "./link_connection.ts";
import type { HostMetrics } from "../link_metrics.ts";
import { UNKNOWN_HOST } from "../link_metrics.ts";
import { destinationOf, doubtsIdentity } from "./link_scope.ts";
import type { LinkDeps } from "./link_deps.ts";
import type { CloseReason, LinkPeer } from "./link_state.ts";
import { isOrderlyEnd } from "./link_state.ts";
import type { StanzaRefusal } from "./sender_rules.ts";
import { checkStanza } from "./sender_rules.ts";

/**
 * No ACK is added while more than this many bytes wait for the peer to read; a later ACK covers
 * all. There is room for many of the largest ACKs.
 */
const MAX_PENDING_BYTES = 262_144;

/** Callbacks on the life of an incoming link. */
export interface IncomingLinkEvents {
  /** False when the peer's datacenter has as many links as it may. */
  mayOpen(host: string): boolean;
  authenticated(link: IncomingLink): void;
  ended(link: IncomingLink): void;
}

/** The accepting side of one link: takes stanzas, acknowledges them, grants credit. */
export class IncomingLink implements LinkConnectionEvents {
  readonly #shared: LinkDeps;
  readonly #events: IncomingLinkEvents;
  readonly #link: LinkConnection;
  #metrics: HostMetrics | undefined;
  #peer: LinkPeer | undefined;
  #lane: InboundLane | undefined;
  #openLink: OpenLink | undefined;
  #receivedBytes = 0;
  #grantedBytes = 0;
  #isFrozen = false;
  /** True when this side ends the link. The peer lives on. */
  #isLeaving = false;
  #isUrgent = false;
  #cancelAck: CancelTimer | undefined;
  #chunkMs = -1;
  #chunkUs = 0;
  /** Wall-clock microseconds when the peer wrote the coming frames; 0 while it has not told. */
  #writtenUs = 0;
  /** Stanzas that all took this time between the nodes and are not in the histogram yet. */
  #transfers = 0;
  #transferUs = 0;
  #hasLoggedRefusal = false;
  /** True when the stanza that was decoded last brings its carbon. */
  #bringsCarbon = false;
  readonly #acknowledge = () => this.#sendAcks();

  constructor(connection: Connection, shared: LinkDeps, events: IncomingLinkEvents) {
    this.#shared = shared;
    this.#events = events;
    this.#link = new LinkConnection(connection, this, { shared, role: "acceptor" });
    this.#link.start();
  }

  /** The destination that the peer belongs to; undefined before HELLO. */
  get destination(): string | undefined {
    return this.#peer === undefined ? undefined : destinationOf(this.#shared.scope, this.#peer);
  }

  /** The peer's local host; undefined before HELLO. */
  get host(): string | undefined {
    return this.#peer?.localHost;
  }

  get nodeName(): string | undefined {
    return this.#peer?.nodeName;
  }

  /** Incarnation of the peer's process; undefined before HELLO. */
  get process(): number | undefined {
    return this.#peer?.process;
  }

  get remoteAddress(): string {
    return this.#link.remoteAddress;
  }

  /**
   * Returns a function that is true once all stanzas received until now are settled or left open.
   */
  watchSettling(): () => boolean {
    const lane = this.#lane;
    if (lane === undefined) return () => true;
    const { received } = lane;
    return () => this.#lane !== lane || lane.isDoneUpTo(received);
  }

  /** Stanzas received over this link whose fate is open. */
  get unsettled(): number {
    return this.#lane?.unsettled ?? 0;
  }

  tick(nowMs: number): void {
    this.#link.tick(nowMs);
  }

  /** Grants no more credit, so that the peer stops sending. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** Acknowledges all that is settled, says GOODBYE and ends. */
  leave(reason: "leaving" | "busy" | "superseded", detail: string): void {
    this.#isLeaving = true;
    if (this.#lane !== undefined && this.#link.state === "open") this.#sendAcks(true);
    this.#link.leave(reason, detail);
  }

  opened(peer: LinkPeer): void {
    const { inbound, identity, mesh, metrics, clock, lives, scope } = this.#shared;
    if (!this.#events.mayOpen(peer.localHost)) {
      this.#link.leave("busy", "too many links of one datacenter");
      return;
    }
    const attachment = inbound.attach({
      process: peer.process,
      lane: peer.lane,
      host: peer.localHost,
      lastGone: peer.lastNumber,
      wake: (isUrgent) => this.#wake(isUrgent),
      cut: () => this.#cut(),
    }, clock.monotonicMs());
    if (attachment.kind === "busy") {
      this.#link.leave("busy", "too many lanes");
      return;
    }
    this.#peer = peer;
    this.#lane = attachment.lane;
    this.#metrics = metrics.host(destinationOf(scope, peer));
    this.#metrics.incomingFirstPacket.inc();
    mesh.linkOpened(peer.localHost, peer.datacenterId);
    if (doubtsIdentity(this.#shared, peer)) this.#shared.events.identityDoubted?.();
    this.#link.send(helloFrame({
      ...OUR_VERSIONS,
      process: identity.process,
      lane: peer.lane,
      lastNumber: attachment.lane.received,
      datacenterId: identity.datacenterId(),
      localHost: identity.localHost,
      nodeName: identity.nodeName,
    }));
    this.#sendAcks(true);
    lives.info("link.accepted", peer.localHost, {
      host: peer.localHost,
      node: peer.nodeName,
      remote: this.#link.remoteAddress,
    });
    this.#events.authenticated(this);
    this.#openLink = this.#link.toOpenLink(peer);
    this.#shared.traffic?.accepted(this.#openLink);
  }

  frame(type: number, buffer: Uint8Array, start: number, end: number): void {
    if (type === FRAME_TYPE.stanza) this.#stanza(buffer, start, end);
    else if (type === FRAME_TYPE.written) this.#writtenUs = decodeWritten(buffer, start, end);
    else if (type === FRAME_TYPE.retire) {
      const lane = decodeRetire(buffer, start, end);
      if (lane === this.#lane!.lane) throw malformed("RETIRE", "a lane cannot end itself");
      const { localHost: host, process } = this.#peer!;
      this.#shared.inbound.retire({ host, process, lane });
    } else if (
      type === FRAME_TYPE.lease || type === FRAME_TYPE.changes || type === FRAME_TYPE.snapshot ||
      type === FRAME_TYPE.position || type === FRAME_TYPE.invalidate || isResumeType(type) ||
      isTraceType(type) || isSurveyType(type)
    ) this.#shared.traffic?.frame(this.#openLink!, type, buffer, start, end);
    else if (type === FRAME_TYPE.context) {
      this.#shared.traffic?.context?.(this.#openLink!, buffer, start, end);
    } else throw malformed("this", `the accepting side takes none of type ${type}`);
  }

  ended(reason: CloseReason, detail: string): void {
    this.#cancelAck?.();
    this.#cancelAck = undefined;
    this.#tellTransfers();
    const { metrics, lives, mesh } = this.#shared;
    const isOrderly = isOrderlyEnd(reason);
    const counted = this.#metrics ?? metrics.host(UNKNOWN_HOST);
    (isOrderly ? counted.incomingClosed : counted.incomingErrored).inc();
    if (!isOrderly && reason !== "lost") metrics.refused(reason).inc();
    const fields = { host: this.host, remote: this.#link.remoteAddress, reason, detail };
    if (this.#openLink !== undefined) {
      this.#shared.traffic?.ended(this.#openLink, reason === "leaving" && !this.#isLeaving);
    }
    if (this.#peer !== undefined) {
      lives.info("link.closed", this.#peer.localHost, { ...fields, direction: "in" });
      mesh.linkClosed(this.#peer.localHost, this.#peer.datacenterId);
    } else if (reason === "lost") lives.info("link.abandoned", this.#link.certificate, fields);
    else lives.warn("link.refused", this.#link.certificate, fields);
    this.#detach();
    this.#events.ended(this);
  }

  /** Ends the connection, which is over a while later, when another one may have the lane. */
  #cut(): void {
    this.#detach();
    this.#link.cut("superseded", "another connection took this lane");
  }

  #detach(): void {
    const { inbound, clock } = this.#shared;
    if (this.#lane !== undefined) inbound.detach(this.#lane, clock.monotonicMs());
    this.#lane = undefined;
  }

  #stanza(buffer: Uint8Array, start: number, end: number): void {
    const lane = this.#lane!; // the decoder refuses any frame before HELLO
    const metrics = this.#metrics!;
    if (this.#receivedBytes >= this.#grantedBytes) {
      this.#link.leave("overload", `more than the ${this.#grantedBytes} bytes of credit`);
      return;
    }
    this.#receivedBytes += end - start;
    if (this.#isCreditLow()) this.#hurry();
    const number = readNumber(buffer, start);
    const receipt = lane.receive(number);
    if (receipt !== "new") {
      if (receipt === "repeat") metrics.incomingRepeats.inc();
      else if (receipt === "gap") {
        this.#link.leave("number-gap", `number ${number} follows ${lane.received}`);
      } else this.#link.leave("overload", "too many stanzas are unsettled");
      return;
    }
    const envelope = this.#decode(buffer, start, end, number);
    if (envelope === undefined) return;
    if (this.#writtenUs > 0) this.#countTransfer(Math.max(0, this.#nowUs() - this.#writtenUs));
    metrics.incomingMessages.inc();
    // Its bytes may be gone once it was handed on.
    const carbon = this.#bringsCarbon ? this.#shared.carbonOf?.(envelope) : undefined;
    this.#shared.events.received(envelope, lane.host);
    if (carbon !== undefined) this.#shared.events.received(carbon, lane.host);
  }

  /**
   * Returns the stanza with its duty; undefined when it was refused, which settles it, or waits for
   * proof.
   */
  #decode(buffer: Uint8Array, start: number, end: number, number: number): Envelope | undefined {
    const lane = this.#lane!;
    try {
      const fields = decodeStanza(buffer, start, end);
      const { scope, mesh } = this.#shared;
      // A node of our own datacenter has checked the stanza when it came in, as this node would
      // have.
      const refusal = scope === "mesh" ? checkStanza(fields, mesh) : undefined;
      this.#bringsCarbon = fields.bringsCarbon;
      const envelope = new Envelope(fields, lane, number);
      if (this.#waitsForProof(envelope, refusal)) return undefined;
      if (refusal === undefined) return envelope;
      this.#shared.events.refused?.(envelope, lane.host, refusal);
      this.#refuseStanza(number, refusal, fields.stanza.from.domainpart);
      return undefined;
    } catch (error) {
      // The frame would come again on every connection: refuse it for good, then end this
      // connection.
      if (error instanceof FrameError) this.#refuseStanza(number, "malformed", undefined);
      throw error;
    }
  }

  /** True when the stanza waits for a lookup of whether its sender is a component. */
  #waitsForProof(envelope: Envelope, refusal: StanzaRefusal | undefined): boolean {
    const { unproven, events } = this.#shared;
    if (unproven === undefined) return false;
    const { stanza } = envelope;
    const domain = stanza.from.domainpart;
    if (refusal === undefined) {
      if (!unproven.isWaiting(domain)) return false;
    } else if (refusal !== "sender-foreign" || !isAsItSays(stanza)) return false;
    envelope.detach();
    const { host } = this.#lane!;
    const metrics = this.#metrics!;
    return unproven.hold(domain, {
      host,
      stanzaBytes: stanza.bytes.length,
      take: () => {
        metrics.incomingMessages.inc();
        events.received(envelope, host);
      },
      refuse: () => {
        envelope.settle();
        this.#countRefusal(metrics, "sender-foreign", domain);
      },
    });
  }

  #refuseStanza(number: number, reason: string, domain: string | undefined): void {
    this.#lane!.settle(number);
    this.#countRefusal(this.#metrics!, reason, domain);
  }

  #countRefusal(metrics: HostMetrics, reason: string, domain: string | undefined): void {
    metrics.incomingRefused.inc();
    if (this.#hasLoggedRefusal) return;
    this.#hasLoggedRefusal = true; // one line for each link, of which the peer may make many
    const { host } = this;
    this.#shared.lives.warn("link.stanza-refused", host ?? "", { host, reason, domain });
  }

  /** Counts the time that one stanza took. Stanzas that came together took the same. */
  #countTransfer(tookUs: number): void {
    if (tookUs !== this.#transferUs) {
      this.#tellTransfers();
      this.#transferUs = tookUs;
    }
    this.#transfers++;
  }

  #tellTransfers(): void {
    if (this.#transfers === 0) return;
    this.#metrics!.incomingTransferTime.observe(this.#transferUs, this.#transfers);
    this.#transfers = 0;
  }

  /** Wall time, read once for each chunk. */
  #nowUs(): number {
    if (this.#chunkMs !== this.#link.heardMs) {
      this.#chunkMs = this.#link.heardMs;
      this.#chunkUs = this.#shared.clock.wallUs();
    }
    return this.#chunkUs;
  }

  #isCreditLow(): boolean {
    return !this.#isFrozen &&
      this.#grantedBytes - this.#receivedBytes <= this.#shared.options.creditBytes >> 1;
  }

  #wake(isUrgent = false): void {
    if (isUrgent) return this.#hurry();
    this.#cancelAck ??= this.#shared.clock.after(
      this.#shared.options.ackDelayMs,
      this.#acknowledge,
    );
  }

  /** Acknowledges at the end of this turn. */
  #hurry(): void {
    if (this.#isUrgent) return;
    this.#isUrgent = true;
    queueMicrotask(this.#acknowledge);
  }

  #sendAcks(isFinal = false): void {
    this.#cancelAck?.();
    this.#cancelAck = undefined;
    this.#isUrgent = false;
    this.#tellTransfers();
    const lane = this.#lane;
    if (lane === undefined || this.#link.state !== "open") return;
    if (!isFinal && this.#link.pendingBytes > MAX_PENDING_BYTES) {
      this.#wake();
      return;
    }
    if (!this.#isFrozen) {
      // Credit is never taken back, even if operators have lowered it.
      this.#grantedBytes = Math.max(
        this.#grantedBytes,
        this.#receivedBytes + this.#shared.options.creditBytes,
      );
    }
    // A sender is slowed for a stanza until that is settled, so this comes first.
    for (const slow of lane.takeSlowNews()) this.#link.send(slowFrame(slow));
    for (const ack of lane.takeAcks(this.#grantedBytes)) this.#link.send(ackFrame(ack));
  }
}
