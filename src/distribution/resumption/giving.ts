import type { CancelTimer, Clock } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import type {
  Delivery,
  FreezeOwner,
  FrozenSession,
  FullJid,
  ResumeRequest,
  Unfreezing,
} from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { EnvelopeFields, OpenLink } from "../mod.ts";
import type { HaveFields, QueuedStanza, SessionDetail, TransferEnd } from "../wire/mod.ts";
import {
  detailsFrames,
  endFrame,
  givenFrame,
  MAX_LANG_BYTES,
  sessionFrame,
  utf8Bytes,
} from "../wire/mod.ts";
import type { GivingAction, GivingEvent, GivingState } from "./giving_state.ts";
import { stepGiving } from "./giving_state.ts";
import type { FreezableSessions, RepeatMemory } from "./ports.ts";
import { QueueSender } from "./queue_sender.ts";
import { recordsOf } from "./records.ts";
import type { ResumptionMetrics } from "./resumption_metrics.ts";
import type { ResumptionOptions } from "./resumption_options.ts";
import {
  COVER_MS,
  GRACE_MS,
  KNOWN_CHECK_MS,
  KNOWN_MS,
  MAX_DETAILS_IN_ALL,
  MAX_SENDERS,
} from "./resumption_options.ts";

/** Kinds of details that have numbers. */
type DeliveredKind = Exclude<SessionDetail["kind"], "directed">;

/** State and parts that all transfers from here share. */
export interface GivingDeps {
  readonly options: ResumptionOptions;
  /** This process's incarnation. */
  readonly process: number;
  readonly localHost: string;
  readonly sessions: FreezableSessions;
  readonly memory: RepeatMemory;
  readonly metrics: ResumptionMetrics;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called when the session is the taker's, and stanzas that come here for it follow it. */
  follows(jid: FullJid, giving: Giving): void;
  /** Called when they no longer do. The session may have come back and gone again meanwhile. */
  followsNoMore(jid: FullJid, giving: Giving): void;
  /** Returns the transfers by which sessions of an account, a bare JID, went and are not all settled. */
  goneOf(account: string): Iterable<Giving>;
  /** Called when no stanza of a session that went is kept here any more. */
  emptied(giving: Giving): void;
  /** Called when the transfer is over, and can be forgotten. */
  over(giving: Giving): void;
}

/** A taker's request for a session, under the taker's number for the transfer. */
export type TransferRequest = ResumeRequest & { readonly transfer: number };

/** One session of this node on its way to another: carries out the actions of `stepGiving`. */
export class Giving implements FreezeOwner {
  readonly transfer: number;
  /** Process and node of the taker. */
  readonly process: number;
  readonly host: string;
  readonly nodeName: string;
  readonly #request: TransferRequest;
  readonly #deps: GivingDeps;
  #link: OpenLink | undefined;
  #state: GivingState = { kind: "covering" };
  #session: FrozenSession | undefined;
  readonly #queue: QueueSender;
  /** Stanzas that the taker was sent while it may still decline the session. */
  #sent: EnvelopeFields[] = [];
  /** The highest number that the taker was sent. */
  #sentCount = 0;
  #received = 0;
  #lostAtMs: number | undefined;
  #knownUntilMs = 0;
  #leaving: Promise<void> | undefined;
  readonly #cancels = new Set<CancelTimer>();

  /** @param link a link to the taker */
  constructor(request: TransferRequest, link: OpenLink, deps: GivingDeps) {
    const { transfer } = request;
    this.transfer = transfer;
    this.#request = request;
    this.process = link.process;
    this.host = link.host;
    this.nodeName = link.nodeName;
    this.#link = link;
    this.#deps = deps;
    this.#queue = new QueueSender({
      transfer,
      process: deps.process,
      localHost: deps.localHost,
      maxFrameBytes: deps.options.maxFrameBytes,
      tooLarge: ({ to, bytes }) => {
        deps.metrics.tooLarge.inc();
        deps.log.warn("resume.stanza-too-large", { jid: to.text, bytes: bytes.length });
      },
      isLinked: () => this.#link !== undefined && this.#state.kind !== "over",
      waiting: () => this.#session?.unrelayed ?? 0,
      send: (frame) => this.#link?.send(frame),
      sent: (stanzas) => this.#noteSent(stanzas),
    });
  }

  /** Freezes the session, or tells the taker why there is none. */
  begin(): void {
    const freezing = this.#deps.sessions.freeze(this.#request, this);
    switch (freezing.kind) {
      case "frozen":
        this.#session = freezing.session;
        break;
      case "stale":
        return this.#refuse("stale", { h: freezing.h });
      case "handled-too-high":
        return this.#refuse("handled-too-high", { sentCount: freezing.sentCount });
      case "moved":
        return this.#refuse("moved", { process: freezing.process });
      case "unknown":
      case "other-account":
        return this.#refuse(freezing.kind, {});
      default:
        return freezing satisfies never;
    }
    this.#after(this.#deps.options.timeoutMs, { kind: "late" });
    if (freezing.session.isCovered) return this.#step({ kind: "covered" });
    this.#after(Math.min(COVER_MS, this.#deps.options.timeoutMs / 4), { kind: "waited" });
  }

  /** Bare JID of the account that asks, whose session this is. */
  get account(): string {
    return this.#request.account;
  }

  /** True once the session is the taker's. */
  get isGiven(): boolean {
    return this.#state.kind === "given" || this.#state.kind === "taken";
  }

  /**
   * Monotonic milliseconds since when there is no link to the taker; undefined while there is one.
   */
  get lostAtMs(): number | undefined {
    return this.#lostAtMs;
  }

  get link(): OpenLink | undefined {
    return this.#link;
  }

  /** Full JID of the session; undefined while there is none. */
  get jid(): FullJid | undefined {
    return this.#session?.jid;
  }

  /** Stanzas that came here and have not been sent to the taker. */
  get waiting(): readonly Delivery[] {
    return this.#session?.waiting ?? [];
  }

  covered(): void {
    this.#step({ kind: "covered" });
  }

  ended(reason: Unfreezing): void {
    this.#step({ kind: "ended", reason });
  }

  /** Takes the taker's progress. */
  have({ step, received, settled }: HaveFields): void {
    this.#received = Math.max(this.#received, received);
    this.#queue.confirmed(received);
    if (this.isGiven && settled > 0) this.#session?.settle(settled);
    if (step === "taken" && this.#state.kind === "given" && this.#leaving !== undefined) {
      this.#queue.caughtUp();
    }
    this.#step({ kind: "have", step });
    this.#checkSettled();
  }

  /** Notes that there is no link to the taker. */
  lost(): void {
    this.#link = undefined;
    this.#lostAtMs ??= this.#deps.clock.monotonicMs();
    this.#step({ kind: "lost" });
  }

  /** Takes a new link. What the taker has not confirmed is sent again once it has sent HAVE. */
  linked(link: OpenLink): void {
    this.#link = link;
    this.#lostAtMs = undefined;
    this.#queue.restart();
    this.#session?.relay(this.#queue, this.#received);
    this.#step({ kind: "linked" });
  }

  peerGone(isCertain: boolean): void {
    this.#step({ kind: "peer-gone", isCertain });
  }

  /**
   * Ends the transfer as this node goes down: a taker that has placed the session owns what it has
   * received, the rest is routed again. Before, it may still decline, and nobody would have it. The
   * taker lives on, and may deliver what it has not yet confirmed.
   */
  stop(): void {
    if (this.#state.kind === "taken") this.#session?.settle(this.#received);
    this.#step(this.isGiven ? { kind: "peer-gone", isCertain: false } : { kind: "lost" });
  }

  #step(event: GivingEvent): void {
    const before = this.#state;
    const { state, actions } = stepGiving(before, event);
    this.#state = state;
    for (const action of actions) this.#run(action);
    if (state.kind === "over" && before.kind !== "over") {
      this.#endTimers();
      this.#deps.over(this);
    }
  }

  #run(action: GivingAction): void {
    const session = this.#session!; // steps begin once it is frozen
    const { metrics, log } = this.#deps;
    switch (action.kind) {
      case "send-session":
        return this.#sendSession(session);
      case "send-more":
        session.relayMore();
        return this.#queue.flushSoon();
      case "check":
        return this.#check(session);
      case "give":
        this.#endTimers();
        log.info("resume.given", { jid: session.jid.text, host: this.host, node: this.nodeName });
        this.#deps.follows(session.jid, this);
        this.#forgetDelivered(this.#sent.splice(0));
        return session.give(this.process);
      case "tell-given":
        return this.#link?.send(givenFrame(this.transfer));
      case "leave-when-known":
        metrics.asked("taken");
        this.#knownUntilMs = this.#deps.clock.monotonicMs() + KNOWN_MS;
        // The nodes of one datacenter have one table, and the taker has written it.
        return this.host === this.#deps.localHost ? this.#leaveSoon() : this.#lookAround(session);
      case "leave":
        // Displaced, in most cases by the taker's own claim. A full session can keep no more
        // stanzas.
        return session.isFull ? this.#leave() : this.#leaveSoon();
      case "thaw":
        metrics.asked("taken-back");
        return session.thaw();
      case "tell-end":
        if (action.reason === "ended") metrics.asked("ended");
        return this.#tellEnd(action.reason, {});
      case "give-back":
        return this.#giveBack(session, action.mayBeRepeat);
      default:
        return action satisfies never;
    }
  }

  #sendSession(session: FrozenSession): void {
    const { transfer } = this;
    const state = session.state();
    const { lang = "" } = state;
    this.#link?.send(sessionFrame({
      transfer,
      jid: state.jid.text,
      received: state.received,
      covered: state.covered,
      acknowledged: state.acknowledged,
      resumeTimeoutMs: state.resumeTimeoutMs,
      resendingMs: Math.ceil(state.resendingMs),
      // No language has so long a name, but a client may claim it.
      lang: utf8Bytes(lang) > MAX_LANG_BYTES ? "" : lang,
      priority: state.priority,
      presence: state.presence?.bytes ?? new Uint8Array(0),
      hasCarbons: state.hasCarbons,
      isNewlyAvailable: state.isNewlyAvailable,
      isExact: true,
    }));
    const details: SessionDetail[] = state.directed.map(({ text }) => ({
      kind: "directed",
      jid: text,
    }));
    const { memory } = this.#deps;
    // The taker has not got them. If they never follow, because a node dies, they come another way.
    const waiting = this.#waitingFor(session);
    // Nobody but these others may ever have got them.
    const waitingForAny = new Set([...waiting, ...this.#untakenOfOthers(session)]);
    const { jid, cameBy } = session;
    const records: (readonly [DeliveredKind, name: string, except: ReadonlySet<string>])[] = [
      ["delivered", jid.text, waiting],
      ["delivered-to-account", jid.bare.text, waitingForAny],
    ];
    if (cameBy !== undefined) {
      const { came, had } = recordsOf(cameBy);
      for (const name of [came, had]) records.push(["delivered-to-account", name, waiting]);
    }
    for (const [kind, name, except] of records) {
      for (const each of memory.deliveredTo(name, MAX_SENDERS)) {
        const recent = each.recent.filter((number) => !except.has(`${each.process} ${number}`));
        details.push({ kind, ...each, recent });
      }
    }
    const told = details.slice(0, MAX_DETAILS_IN_ALL);
    for (const frame of detailsFrames(transfer, told)) this.#link?.send(frame);
    session.relay(this.#queue, 0);
    this.#queue.flushSoon();
  }

  /** Ids of stanzas that wait here for the session, in its queue and in those of earlier moves. */
  #waitingFor(session: FrozenSession): Set<string> {
    const ids = idsOf(session.waiting);
    for (const giving of this.#deps.goneOf(this.account)) {
      if (giving.jid?.text === session.jid.text) {
        for (const id of idsOf(giving.waiting)) ids.add(id);
      }
    }
    return ids;
  }

  /**
   * Ids of stanzas that no client has taken, and that other sessions of the account keep here. One that
   * this node does not remember on account of them came here another way, too: clients may have that.
   */
  #untakenOfOthers(session: FrozenSession): Set<string> {
    const kept = [...session.keptByOthers()];
    for (const giving of this.#deps.goneOf(this.account)) kept.push(...giving.waiting);
    return idsOf(
      kept.filter((each) =>
        each instanceof Envelope && !each.isTaken && each.rememberedBy !== undefined
      ),
    );
  }

  /** Checks whether a client has logged in elsewhere with the same resource meanwhile. */
  #check(session: FrozenSession): void {
    session.isElsewhere().then(
      (isElsewhere) => this.#step({ kind: "checked", isElsewhere }),
      () => this.#step({ kind: "checked", isElsewhere: false }), // no answer counts as no
    );
  }

  /**
   * Stays registered for stanzas that other nodes send here, until the table names the new place.
   */
  #lookAround(session: FrozenSession): void {
    const { clock } = this.#deps;
    if (this.#leaving !== undefined || this.#state.kind !== "taken") return;
    if (clock.monotonicMs() >= this.#knownUntilMs) return this.#leave();
    const goOn = (isElsewhere: boolean) => {
      if (this.#state.kind !== "taken") return; // over meanwhile
      if (isElsewhere) return this.#leaveSoon();
      const cancel = clock.after(KNOWN_CHECK_MS, () => {
        this.#cancels.delete(cancel);
        this.#lookAround(session);
      });
      this.#cancels.add(cancel);
    };
    session.isElsewhere().then(goOn, () => goOn(false));
  }

  #leaveSoon(): void {
    if (this.#leaving !== undefined || this.#state.kind === "over") return;
    this.#cancels.add(this.#deps.clock.after(GRACE_MS, () => this.#leave()));
  }

  #leave(): void {
    if (this.#leaving !== undefined || this.#state.kind === "over") return;
    const session = this.#session!; // given
    this.#deps.followsNoMore(session.jid, this);
    this.#leaving = session.leave();
    if (this.#state.kind === "taken") this.#queue.caughtUp();
    this.#leaving.then(() => {
      this.#step({ kind: "left" });
      this.#checkSettled();
    }, (thrown) => this.#deps.log.error("resume.broken", { error: String(thrown) }));
  }

  #giveBack(session: FrozenSession, mayBeRepeat: boolean): void {
    this.#deps.followsNoMore(session.jid, this);
    this.#leaving ??= session.leave();
    const { metrics, log } = this.#deps;
    const { jid, kept } = session;
    if (kept > 0) {
      metrics.asked("given-back");
      log.info("resume.given-back", { jid: jid.text, unsettled: kept });
    }
    this.#leaving.then(
      () => session.giveBack(this.#sentCount, mayBeRepeat),
      (thrown) => log.error("resume.broken", { error: String(thrown) }),
    ).finally(() => this.#deps.emptied(this));
  }

  #noteSent(stanzas: readonly QueuedStanza[]): void {
    // What is sent again may have come back with the session since it was sent first.
    const fields = stanzas.filter((each) => each.number > this.#sentCount)
      .map((each) => each.fields);
    this.#sentCount = Math.max(this.#sentCount, stanzas.at(-1)?.number ?? 0);
    if (this.isGiven) this.#forgetDelivered(fields);
    else this.#sent.push(...fields);
  }

  #checkSettled(): void {
    if (this.isGiven && this.#session?.kept === 0) this.#step({ kind: "settled" });
  }

  /**
   * Forgets stanzas that move with the session: they were not delivered here, and may come back. One that
   * another session here has must not come to that one again.
   */
  #forgetDelivered(stanzas: readonly EnvelopeFields[]): void {
    const { memory } = this.#deps;
    for (const each of stanzas) {
      if (!(each instanceof Envelope)) continue;
      each.goneOn();
      if (!each.isHere) each.rememberedBy?.forgetDelivered(each);
      else if (each.rememberedBy === undefined) memory.noteDelivered(each);
    }
  }

  #refuse(
    reason: TransferEnd,
    more: { readonly h?: number; readonly sentCount?: number; readonly process?: number },
  ): void {
    this.#deps.metrics.asked("refused");
    this.#tellEnd(reason, more);
    this.#state = { kind: "over" };
    this.#deps.over(this);
  }

  #tellEnd(
    reason: TransferEnd,
    { h, sentCount = 0, process = 0 }: {
      readonly h?: number;
      readonly sentCount?: number;
      readonly process?: number;
    },
  ): void {
    this.#link?.send(endFrame({ transfer: this.transfer, reason, h, sentCount, process }));
  }

  #after(delayMs: number, event: GivingEvent): void {
    this.#cancels.add(this.#deps.clock.after(delayMs, () => this.#step(event)));
  }

  #endTimers(): void {
    for (const cancel of this.#cancels) cancel();
    this.#cancels.clear();
  }
}

/** Returns process and sequence of each stanza, except those of the session itself. */
function idsOf(deliveries: readonly Delivery[]): Set<string> {
  const envelopes = deliveries.filter((each) => each instanceof Envelope);
  return new Set(envelopes.map(({ process, sequence }) => `${process} ${sequence}`));
}
