import type { Fate } from "../../xmpp/mod.ts";
import { GaplessCount, RETAINED_OVERHEAD_BYTES, ShareTab } from "../../base/mod.ts";
import type { CancelTimer, Clock, FairShares } from "../../base/mod.ts";
import type { Logger } from "../../observe/mod.ts";
import { FullJid, OwnDelivery, recipientHolders, tryParseJid } from "../../xmpp/mod.ts";
import type {
  Arrival,
  ArrivedSession,
  Delivery,
  Fetching,
  FollowedSession,
  Jid,
  ResumeRequest,
  SessionState,
  Stanza,
} from "../../xmpp/mod.ts";
import { Envelope } from "../mod.ts";
import type { EnvelopeFields, OpenLink } from "../mod.ts";
import type { EndFields, QueueFields, SessionDetail, SessionFields } from "../wire/mod.ts";
import { haveFrame, resumeFrame } from "../wire/mod.ts";
import type { TakerStep } from "../wire/mod.ts";
import type { Peers, RepeatMemory } from "./ports.ts";
import type { SessionRecords } from "./records.ts";
import { recordsOf } from "./records.ts";
import type { ResumptionMetrics } from "./resumption_metrics.ts";
import type { ResumptionOptions } from "./resumption_options.ts";
import { FOLLOW_MS, MAX_DETAILS_IN_ALL, SETTLED_MS } from "./resumption_options.ts";
import type { TakingAction, TakingEvent, TakingFailure, TakingState } from "./taking_state.ts";
import { stepTaking } from "./taking_state.ts";

/** Bytes that a detail costs besides its address and its numbers. */
const DETAIL_BYTES = 128;

/** State and parts that all transfers to here share. */
export interface TakingDeps {
  readonly options: ResumptionOptions;
  readonly localHost: string;
  readonly memory: RepeatMemory;
  readonly peers: Peers;
  readonly metrics: ResumptionMetrics;
  /** The bound for stanzas of sessions that have no place here yet. */
  readonly budget: FairShares;
  readonly clock: Clock;
  readonly log: Logger;
  /** Returns a link to that process, of any datacenter. */
  find(process: number): OpenLink | undefined;
  linkTo(peer: Pick<OpenLink, "host" | "process">): OpenLink | undefined;
  over(taking: Taking): void;
}

/** One session on its way to this node: carries out the actions of `stepTaking`. */
export class Taking implements Fate, Fetching {
  readonly transfer: number;
  readonly arrival: Promise<Arrival>;
  readonly #deps: TakingDeps;
  readonly #request: ResumeRequest;
  readonly #resolve: (arrival: Arrival) => void;
  #process: number;
  #askedMs = 0;
  /** Epoch of the session's claim at its node, once it is read. */
  #epoch: number | undefined;
  /** Local host of the node that was asked; elsewhere the same process is only a claim. */
  #host: string | undefined;
  #link: OpenLink | undefined;
  #state: TakingState = { kind: "asking", hops: 0 };
  #session: TakenState | undefined;
  readonly #details: SessionDetail[] = [];
  #queue: Delivery[] = [];
  readonly #records: SessionRecords;
  #areRecordsForgotten = false;
  /** Bytes of the details and the queue, for the account's share of the budget. */
  readonly #tab: ShareTab;
  #queueItems = 0;
  #queueBytes = 0;
  #owedBytes = 0;
  #received = 0;
  readonly #settled = new GaplessCount();
  #followed: FollowedSession | undefined;
  /** True once nothing more follows from the old node. */
  #isCaughtUp = false;
  #end: EndFields | undefined;
  #cancelLate: CancelTimer | undefined;
  #cancelFollow: CancelTimer | undefined;
  #cancelNews: CancelTimer | undefined;

  constructor(
    transfer: number,
    { request, process }: { readonly request: ResumeRequest; readonly process: number },
    deps: TakingDeps,
  ) {
    this.transfer = transfer;
    this.#records = recordsOf(transfer);
    this.#request = request;
    this.#process = process;
    this.#deps = deps;
    this.#tab = new ShareTab(deps.budget, recipientHolders(request.account));
    const { promise, resolve } = Promise.withResolvers<Arrival>();
    this.arrival = promise;
    this.#resolve = resolve;
  }

  /** True for a link to the process that has, or had, the session. */
  isFrom(link: OpenLink): boolean {
    return link.process === this.#process && link.host === this.#host;
  }

  get link(): OpenLink | undefined {
    return this.#link;
  }

  /** True once the session has its place here. */
  get isTaken(): boolean {
    return this.#state.kind === "taken";
  }

  begin(): void {
    const { clock, options } = this.#deps;
    this.#askedMs = clock.monotonicMs();
    this.#cancelLate = clock.after(options.timeoutMs, () => this.#step({ kind: "late" }));
    this.#ask(this.#process);
  }

  get hasBegun(): boolean {
    return this.#state.kind !== "asking" && this.#state.kind !== "over";
  }

  cancel(): void {
    this.#step({ kind: "gone" });
  }

  // ---- what its node says ------------------------------------------------------------------

  session(fields: SessionFields): void {
    const state = readState(fields, this.#request.account);
    if (state === undefined) return this.#step({ kind: "broken", reason: "refused" });
    this.#session = state;
    this.#readEpoch(state.jid);
    this.#step({ kind: "session" });
  }

  /** Reads the claim that the session has at its node: a newer one, by the time it is given, is a login. */
  #readEpoch(jid: FullJid): void {
    const { peers, localHost } = this.#deps;
    if (this.#host !== localHost) return; // what other datacenters have claimed may come late
    const read = peers.claimedEpoch(jid, this.#process);
    void read.then((epoch) => this.#epoch = epoch); // `claimedEpoch` does not reject
  }

  details(details: readonly SessionDetail[]): void {
    if (this.#state.kind !== "receiving") return this.#step({ kind: "broken", reason: "refused" });
    let bytes = 0;
    for (const detail of details) bytes += costOf(detail);
    if (this.#details.length + details.length > MAX_DETAILS_IN_ALL || !this.#hasBudgetFor(bytes)) {
      return this.#step({ kind: "broken", reason: "too-large" });
    }
    this.#charge(bytes);
    for (const detail of details) this.#details.push(detail);
  }

  queue({ stanzas, isEnd, isCaughtUp, areArchived }: QueueFields): void {
    if (this.#session === undefined || this.#state.kind === "over") return;
    for (const { number, fields } of stanzas) {
      if (number <= this.#received) continue; // a repeat over another link
      const { stanza } = fields;
      if (number !== this.#received + 1 || stanza.to.bare.text !== this.#request.account) {
        this.#link?.refuse("QUEUE: a stanza is missing, or is not for the session");
        return this.#step({ kind: "broken", reason: "refused" });
      }
      this.#received = number;
      if (!this.#mayCome(fields)) {
        this.#deps.metrics.refused.inc();
        this.settle(number);
        continue;
      }
      if (!this.#hasBudgetFor(stanza.bytes.length + RETAINED_OVERHEAD_BYTES)) {
        return this.#step({ kind: "broken", reason: "too-large" });
      }
      this.#deps.metrics.stanzas.inc();
      const isArchived = areArchived && stanza.kind === "message";
      this.#take(
        fields.sequence === 0
          ? this.#own(stanza, number)
          : this.#envelope({ ...fields, isArchived }, number),
      );
    }
    const { maxItems, maxBytes, maxOwedBytes } = this.#deps.options;
    const isOver = this.#queueItems > maxItems || this.#queueBytes > maxBytes;
    if (isOver || this.#owedBytes > maxOwedBytes) {
      return this.#step({ kind: "broken", reason: "too-large" });
    }
    this.#step({ kind: "queue", isEnd });
    if (isCaughtUp) this.#caughtUp();
  }

  given(): void {
    this.#step({ kind: "given" });
  }

  ended(end: EndFields): void {
    this.#end = end;
    this.#step({ kind: "end", reason: end.reason });
  }

  lost(): void {
    this.#link = undefined;
    this.#step({ kind: "lost" });
  }

  /** Takes a new link: the last frames on the one before may not have arrived. */
  linked(link: OpenLink): void {
    this.#link = link;
    this.#step({ kind: "news" });
  }

  /** Ends all waits as this node goes down. */
  stop(): void {
    this.#step({ kind: "stopped" });
    this.#caughtUp();
  }

  /** Forgets the transfer, as its node no longer asks for settled numbers. */
  forget(): void {
    this.stop();
    this.#cancelNews?.();
  }

  /** Sends news of settled stanzas at once, if there is any. */
  tellSettled(): void {
    if (this.#cancelNews === undefined) return;
    this.#cancelNews();
    this.#cancelNews = undefined;
    this.#step({ kind: "news" });
  }

  // ---- what becomes of it here -------------------------------------------------------------

  #placed(session: FollowedSession, queue: readonly Delivery[]): void {
    const { metrics, clock } = this.#deps;
    this.#followed = session;
    metrics.resumed.inc();
    // Only now: a stanza that goes back to its old node and comes here another way is no repeat.
    this.#learn();
    for (const delivery of queue) this.#noteDelivered(delivery);
    // These stanzas came while the place was being made.
    const late = this.#takeQueue();
    for (const delivery of late) this.#follow(session, delivery);
    this.#cancelFollow = clock.after(FOLLOW_MS, () => this.#caughtUp(false));
    // After frames that our lanes have queued before: those must still reach the session's old
    // node.
    queueMicrotask(() => this.#step({ kind: "placed" }));
  }

  settle(number: number): void {
    this.#settled.add(number);
    if (this.#state.kind !== "taken") return;
    this.#cancelNews ??= this.#deps.clock.after(SETTLED_MS, () => {
      this.#cancelNews = undefined;
      this.#step({ kind: "news" });
    });
  }

  /**
   * True for an acceptable sender, as on any link: a node of our own datacenter has checked it
   * already.
   */
  #mayCome(fields: EnvelopeFields): boolean {
    const { localHost, peers } = this.#deps;
    return this.#link?.host === localHost || peers.mayBring(fields);
  }

  #take(delivery: Delivery): void {
    if (this.#followed !== undefined) return this.#follow(this.#followed, delivery);
    // The queue has been handed over by then, and what comes behind it follows once that is placed.
    if (this.#state.kind === "placing") this.#queue.push(delivery);
    else this.#enqueue(delivery);
    const bytes = delivery.stanza.bytes.length + RETAINED_OVERHEAD_BYTES;
    this.#charge(bytes);
    if (delivery.isOwed) this.#owedBytes += bytes;
    else {
      this.#queueItems++;
      this.#queueBytes += bytes;
    }
  }

  /** Queues a stanza; one whose copy is in the queue takes its place. */
  #enqueue(delivery: Delivery): void {
    if (!(delivery instanceof Envelope) || !this.#hasCome(delivery)) {
      this.#noteCome(delivery);
      this.#queue.push(delivery);
      return;
    }
    const at = this.#queue.findIndex((each) => each.isCopyOf?.(delivery) === true);
    const copy = this.#queue[at] as Envelope | undefined; // nothing else is a copy
    if (copy !== undefined) this.#queue[at] = delivery;
    (copy ?? delivery).settle();
  }

  /** True for a stanza that has come with the session before, as itself or as a copy. */
  #hasCome(delivery: Delivery): boolean {
    const { memory } = this.#deps;
    return delivery instanceof Envelope && memory.isInRecord(delivery, this.#records.came);
  }

  /** Notes a stanza that came straight, while it or, of one to the account, a copy may still follow. */
  #got(delivery: Delivery): void {
    if (this.#state.kind === "over" || !(delivery instanceof Envelope)) return;
    if (isForAccount(delivery) || !this.#isCaughtUp) this.#noteCome(delivery);
  }

  #noteCome(delivery: Delivery): void {
    if (this.#areRecordsForgotten || !(delivery instanceof Envelope)) return;
    this.#deps.memory.noteInRecord(delivery, this.#records.came);
  }

  /** Forgets what the session has had: it is not here, and would leave that behind with each move. */
  #forgetRecords(): void {
    this.#areRecordsForgotten = true;
    for (const record of Object.values(this.#records)) this.#deps.memory.forgetRecord(record);
  }

  /** Notes that a stanza to the session itself has arrived. */
  #noteDelivered(delivery: Delivery): void {
    if (!(delivery instanceof Envelope)) return;
    if (delivery.stanza.to.text === this.#session!.jid.text) {
      this.#deps.memory.noteDelivered(delivery);
    }
  }

  /** True also after GIVEN: then all further stanzas must be taken. */
  #hasBudgetFor(bytes: number): boolean {
    if (this.#state.kind === "placing" || this.#state.kind === "taken") return true;
    return this.#deps.budget.mayGrow(bytes) && this.#tab.mayAdd(bytes);
  }

  #charge(bytes: number): void {
    this.#deps.budget.grow(bytes);
    this.#tab.add(bytes);
  }

  #takeQueue(): Delivery[] {
    const queue = this.#queue;
    this.#queue = [];
    this.#deps.budget.grow(-this.#tab.bytes);
    this.#tab.remove(this.#tab.bytes);
    return queue;
  }

  #follow(session: FollowedSession, delivery: Delivery): void {
    const hasCome = this.#hasCome(delivery);
    if (!hasCome) this.#noteCome(delivery);
    this.#noteDelivered(delivery);
    session.follow(delivery, hasCome);
  }

  /**
   * True for a stanza that comes here though the session has got it, here or before. The router knows
   * what has come for this session alone, but not before the session has its place.
   */
  #hasFollowed(delivery: Delivery): boolean {
    if (!(delivery instanceof Envelope)) return false;
    if (!isForAccount(delivery)) return this.#hasCome(delivery);
    const { memory } = this.#deps;
    const { came, had, mayHaveHad } = this.#records;
    if (!delivery.isRerouted) {
      return [came, had, mayHaveHad].some((record) => memory.mayBeInRecord(delivery, record));
    }
    // A session that was to get it may have ended without it, and be the only one that had it.
    return this.#hasCome(delivery) || memory.isInRecord(delivery, had);
  }

  #envelope(fields: EnvelopeFields, number: number): Envelope {
    const envelope = new Envelope(fields, this, number);
    envelope.detach();
    return envelope;
  }

  /** Makes a delivery of a stanza of the session itself, which no other node has to keep. */
  #own(stanza: Stanza, number: number): OwnDelivery {
    const delivery = new OwnDelivery(stanza);
    delivery.detach();
    this.settle(number);
    return delivery;
  }

  #caughtUp(isSure = true): void {
    if (isSure) this.#isCaughtUp = true;
    this.#cancelFollow?.();
    this.#cancelFollow = undefined;
    this.#followed?.caughtUp(isSure);
  }

  #step(event: TakingEvent): void {
    const before = this.#state;
    const { state, actions } = stepTaking(before, event);
    this.#state = state;
    for (const action of actions) this.#run(action);
    if (state.kind === "placing" || state.kind === "over") {
      this.#cancelLate?.();
      this.#cancelLate = undefined;
    }
    if (state.kind !== "over" || before.kind === "over") return;
    if (before.kind !== "taken") this.#forgetRecords();
    this.#takeQueue(); // its old node still has them
    this.#cancelNews?.();
    this.#caughtUp();
    this.#deps.over(this);
  }

  #run(action: TakingAction): void {
    switch (action.kind) {
      case "tell":
        return this.#tell(action.step);
      case "ask-on":
        return this.#ask(this.#end!.process); // END has named it
      case "arrive":
        return this.#arrive();
      case "fail":
        return this.#fail(action.reason);
      default:
        return action satisfies never;
    }
  }

  #ask(process: number): void {
    this.#process = process;
    this.#link = this.#deps.find(process);
    this.#host = this.#link?.host;
    if (this.#link === undefined) {
      this.#state = { kind: "over" };
      this.#cancelLate?.();
      this.#fail("unreachable");
      return this.#deps.over(this);
    }
    const { transfer } = this;
    this.#link.send(resumeFrame({ transfer, ...this.#request }));
  }

  #tell(step: TakerStep): void {
    const { transfer } = this;
    const link = this.#link ?? this.#linkAgain();
    const settled = Math.min(this.#settled.done, this.#received);
    link?.send(haveFrame({ transfer, step, received: this.#received, settled }));
  }

  #linkAgain(): OpenLink | undefined {
    const [process, host] = [this.#process, this.#host];
    return host === undefined ? undefined : this.#deps.linkTo({ process, host });
  }

  #arrive(): void {
    const { isExact: _, ...state } = this.#session!; // SESSION comes before the queue
    const directed: Jid[] = [];
    for (const detail of this.#details) {
      const to = detail.kind === "directed" ? tryParseJid(detail.jid) : undefined;
      if (to !== undefined) directed.push(to);
    }
    this.#deps.log.info("resume.arrived", {
      jid: state.jid.text,
      unacknowledged: this.#queue.length,
    });
    const queue = this.#takeQueue();
    this.#queueItems = 0;
    this.#queueBytes = 0;
    this.#owedBytes = 0;
    const session: ArrivedSession = {
      state: { ...state, directed },
      queue,
      transfer: this.transfer,
      origin: { process: this.#process, askedMs: this.#askedMs, epoch: this.#epoch },
      placed: (followed) => this.#placed(followed, queue),
      hasFollowed: (delivery) => this.#hasFollowed(delivery),
      kept: (delivery) => this.#noteCome(delivery),
      got: (delivery) => this.#got(delivery),
      declined: () => this.#step({ kind: "unplaced" }),
      over: () => this.#forgetRecords(),
    };
    this.#resolve({ kind: "arrived", session });
  }

  /** Learns the numbers that its old node has delivered to it. */
  #learn(): void {
    const { memory } = this.#deps;
    const { jid, isExact } = this.#session!; // the session has arrived
    const toAccount = isExact ? this.#records.had : this.#records.mayHaveHad;
    for (const detail of this.#details.splice(0)) {
      switch (detail.kind) {
        case "directed":
          break; // it went into the session's state
        case "delivered":
          memory.learnDelivered(jid.text, detail);
          break;
        case "delivered-to-account": // other sessions of the account here may not have got it
          memory.learnDelivered(toAccount, detail);
          break;
        default:
          detail satisfies never;
      }
    }
  }

  #fail(reason: TakingFailure): void {
    const { metrics, log } = this.#deps;
    metrics.failed(reason);
    log.info("resume.failed", { account: this.#request.account, reason });
    const end = this.#end;
    if (reason === "stopped") return this.#resolve({ kind: "stopped" });
    if (reason === "handled-too-high" && end !== undefined) {
      return this.#resolve({ kind: "handled-too-high", sentCount: end.sentCount });
    }
    this.#resolve({ kind: "failed", h: end?.h ?? this.#session?.covered });
  }
}

function isForAccount({ stanza: { to } }: Envelope): boolean {
  return to === to.bare;
}

function costOf(detail: SessionDetail): number {
  return detail.kind === "directed"
    ? DETAIL_BYTES + detail.jid.length
    : DETAIL_BYTES + detail.sender.length + 8 * detail.recent.length;
}

/**
 * Longest time that any node may promise for a session; a lying node gets no place here for longer.
 */
const MAX_TOLD_MS = 86_400_000;

type TakenState = SessionState & Pick<SessionFields, "isExact">;

/** Reads SESSION's state; undefined when it is not a session of that account. */
function readState(fields: SessionFields, account: string): TakenState | undefined {
  const jid = tryParseJid(fields.jid);
  if (!(jid instanceof FullJid) || jid.text !== fields.jid) return undefined;
  if (jid.bare.text !== account) return undefined;
  const { priority } = fields;
  const presence: Stanza | undefined = priority === undefined ? undefined : {
    kind: "presence",
    type: "available",
    from: jid,
    to: jid.bare,
    bytes: fields.presence.slice(),
  };
  const { received, covered, acknowledged, resumeTimeoutMs, resendingMs } = fields;
  return {
    jid,
    received,
    covered,
    acknowledged,
    resumeTimeoutMs: Math.min(resumeTimeoutMs, MAX_TOLD_MS),
    resendingMs: Math.min(resendingMs, MAX_TOLD_MS),
    lang: fields.lang === "" ? undefined : fields.lang,
    priority,
    presence,
    directed: [],
    hasCarbons: fields.hasCarbons,
    isNewlyAvailable: fields.isNewlyAvailable,
    isExact: fields.isExact,
  };
}
