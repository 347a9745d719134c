import { FairShares } from "../../base/mod.ts";
import type { Holders } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import { isReply } from "../../xmpp/mod.ts";
import type { Fate, Jid, Stanza } from "../../xmpp/mod.ts";
import { NO_TRACER, senderKey } from "../mod.ts";
import type { ReturnReason, StanzaEntry, StanzaTrace, StanzaTracer } from "../mod.ts";
import { Envelope } from "../envelope.ts";
import { queueKey } from "./addresses.ts";
import { resolveBounceOptions } from "./bounce_options.ts";
import type { BounceOptions } from "./bounce_options.ts";
import type { BouncingAddress } from "./bounce_store.ts";
import type { Domains } from "./decision.ts";
import { DeliveryMemory } from "./delivery_memory.ts";
import { Dispatcher } from "./dispatcher.ts";
import { costOf, holdersOf } from "./holders_of.ts";
import { LookupRates } from "./lookup_rates.ts";
import { Lookups } from "./lookups.ts";
import type { EntryPoint, Keeper } from "./ports.ts";
import { Refusals } from "./refusals.ts";
import { ReturnedStanzas } from "./returned_stanzas.ts";
import { ROUTER_QUEUE_DEFAULTS } from "./router_options.ts";
import type { RouterDeps, RouterOptions } from "./router_options.ts";
import { bindRoutingMetrics } from "./routing_metrics.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";
import { SenderWorkers } from "./sender_workers.ts";
import type { Pending } from "./sender_workers.ts";
import { StopOrder } from "./stop_order.ts";

/** Datacenter hops that a stanza which enters here may take. */
const DEFAULT_MESSAGE_TTL = 4;

/** A stanza in a worker's queue. */
interface Waiting {
  readonly envelope: Envelope;
  /** Holders of the stanza's shares of the bounds. */
  readonly holders: Holders;
  /** Monotonic milliseconds when it came from a link; −1 for one from this datacenter. */
  readonly sinceMs: number;
}

/**
 * Decides where each stanza goes (docs/promises.md, "Routing"), and keeps each sender's order.
 *
 * Every envelope handed in ends delivered, passed on, answered with an error, or counted as dropped.
 * When the cache knows the answer, all of it happens within the call.
 */
export class Router {
  /** Stanzas that this node has delivered. */
  readonly memory: DeliveryMemory;
  readonly #domains: Domains;
  #messageTtl: number;
  readonly #deps: RouterDeps;
  readonly #metrics: RoutingMetrics;
  readonly #stop: StopOrder;
  readonly #tracer: StanzaTracer;
  readonly #refusals: Refusals;
  readonly #lookups: Lookups;
  readonly #dispatcher: Dispatcher;
  readonly #workers: SenderWorkers<Waiting>;
  readonly #rates: LookupRates;
  readonly #returns: ReturnedStanzas;
  #sequence = 0;

  constructor(options: RouterOptions, deps: RouterDeps) {
    const { domains } = options;
    const { clock, local, locations } = deps;
    const memory = this.memory = new DeliveryMemory(options.memory ?? {}, clock);
    this.#domains = domains;
    this.#messageTtl = options.messageTtl ?? DEFAULT_MESSAGE_TTL;
    this.#deps = deps;
    this.#tracer = deps.tracer ?? NO_TRACER;
    const metrics = this.#metrics = bindRoutingMetrics(deps.metrics);
    const stop = this.#stop = new StopOrder(domains, local, metrics);
    const refusals = this.#refusals = new Refusals({
      hosts: domains,
      stop,
      metrics,
      log: deps.log ?? SILENT_LOGGER,
      passBy: (envelope) => this.#dispatcher.fanOut.passBy(envelope),
      takeBack: (envelope) => this.#dispatcher.takeBackAbsent(envelope),
      answer: (reply, request) => this.answer(reply, request),
      offline: deps.offline,
      archive: deps.archive,
    });
    const bounce = options.bounce === false ? undefined : options.bounce ?? {};
    const rates = this.#rates = new LookupRates(options.lookupRates ?? {}, {
      domains,
      clock,
      maxRetries: retriesOf(bounce),
    });
    const lookups = this.#lookups = new Lookups({ domains, locations, rates, metrics, clock });
    const parts = { domains, memory, lookups, rates, refusals, stop, metrics };
    const slow = (envelope: Envelope) => {
      const waiting = { envelope, sinceMs: -1, holders: holdersOf(envelope, domains) };
      this.#workers.slow(queueKey(envelope.stanza, domains), waiting);
    };
    this.#dispatcher = new Dispatcher(bounce, { ...deps, ...parts, slow });
    this.#workers = this.#senderWorkers(options);
    this.#returns = new ReturnedStanzas({
      local,
      dispatcher: this.#dispatcher,
      lookups,
      refusals,
      stop,
      messageTtl: () => this.#messageTtl,
      isBusy: ({ stanza }) => this.#workers.isBusy(queueKey(stanza, domains)),
      submit: (envelope) => this.#submit(envelope, -1, true),
    });
    deps.metrics.gauge({
      name: "causeway_lookup_queue_size",
      help: "Stanzas that wait for a lookup in the session table",
    }, () => this.#workers.queued);
    deps.metrics.gauge({
      name: "causeway_lookup_queue_bytes",
      help: "Bytes of the stanzas that wait for a lookup in the session table",
    }, () => this.#workers.queuedBytes);
  }

  /** Takes other times, retries and rates from now on. Bouncing stays on, or off. */
  change(
    { messageTtl = DEFAULT_MESSAGE_TTL, lookupRates = {}, bounce }: Pick<
      RouterOptions,
      "messageTtl" | "lookupRates" | "bounce"
    >,
  ): void {
    this.#messageTtl = messageTtl;
    const store = this.#dispatcher.bounce;
    const kept = store === undefined || bounce === false ? undefined : bounce ?? {};
    if (kept !== undefined) store!.change(kept);
    this.#rates.change(lookupRates, retriesOf(kept));
  }

  /** Addresses that stanzas held for bouncing wait for. */
  get bouncingAddresses(): number {
    return this.#dispatcher.bounce?.addresses ?? 0;
  }

  /** Returns those addresses from the place `from` on, at most `most` of them, for an operator. */
  inspectBounce(from: number, most: number): readonly BouncingAddress[] {
    return this.#dispatcher.bounce?.inspect(from, most) ?? [];
  }

  /** Stanzas held for bouncing that wait for this very address. */
  bouncingFor(jid: Jid): number {
    return this.#dispatcher.bounce?.waitingFor(jid) ?? 0;
  }

  /** Stanzas held for bouncing. */
  get bouncing(): number {
    return this.#dispatcher.bounce?.size ?? 0;
  }

  /** Stanzas that wait for a lookup. */
  get queued(): number {
    return this.#workers.queued;
  }

  /**
   * Takes a stanza from a session, component or service of this node.
   *
   * @param fate called with `number` once the stanza's fate is final
   * @param entry by default, a stanza whose fate nobody asks for is never sent again
   * @returns the stanza's number among all of this process
   */
  accept(
    stanza: Stanza,
    fate?: Fate,
    number = 0,
    entry: StanzaEntry = fate === undefined ? "sent-once" : "ordinary",
  ): number {
    const envelope = this.#envelop(stanza, entry, fate, number);
    this.#submit(envelope, -1);
    return envelope.sequence;
  }

  /**
   * Takes one message of a service for several sessions of an account, each addressed by its full JID.
   * All have the same id, so that the account's archive has it once.
   *
   * @param fate asked for each of them
   */
  acceptForSessions(messages: readonly Stanza[], fate: Fate): void {
    let first: Envelope | undefined;
    for (const message of messages) {
      const envelope = this.#envelop(message, "ordinary", fate);
      first ??= envelope;
      const { sequence, sentAtUs } = first;
      const next = new Envelope({ ...envelope, sequence, sentAtUs }, fate);
      next.trace = envelope.trace;
      this.#submit(next, -1);
    }
  }

  /**
   * Takes a stanza that was delivered to its recipient on this node, for the datacenter's other
   * nodes. It keeps its place among its sender's other stanzas.
   */
  copy(stanza: Stanza): void {
    this.#submit(this.envelopCopy(stanza), -1);
  }

  /** Makes the envelope of a stanza that nobody is answered for, to be delivered on this node. */
  envelopCopy(stanza: Stanza): Envelope {
    const envelope = this.#envelop(stanza, "ordinary");
    const copy = new Envelope({ ...envelope, isCopy: true });
    copy.trace = envelope.trace;
    return copy;
  }

  /**
   * Takes a carbon of an account's own message, from and to its bare JID, for its sessions at other
   * nodes of all datacenters (XEP-0280 §6). Carbons keep their order.
   * @param session of this node that has sent or got the message
   */
  carbon(stanza: Stanza, session: Jid): void {
    this.#submitCarbon(stanza, session, undefined);
  }

  /**
   * Makes the account's sessions at other nodes get the carbon of a message that was accepted within
   * this event-loop turn. The message brings it along where it goes to their datacenter.
   *
   * @param sequence that `accept` has returned
   * @param wrapped returns the carbon, for the other nodes; undefined when there can be none
   */
  carbonOfSent(message: Stanza, sequence: number, wrapped: () => Stanza | undefined): void {
    const { from } = message;
    let broughtTo: string | undefined;
    // No carbon may overtake those that wait.
    if (!this.#workers.isBusy(queueKey({ from: from.bare, to: from.bare }, this.#domains))) {
      const brought = this.#dispatcher.fanOut.bringCarbon(from, {
        process: this.#deps.process,
        sequence,
      });
      if (brought?.isAll === true) return;
      broughtTo = brought?.host;
    }
    const stanza = wrapped();
    if (stanza !== undefined) this.#submitCarbon(stanza, from, broughtTo);
  }

  /**
   * Takes a request for a subscription that `keeper` has kept from before, to bring it to its
   * contact.
   * @param entryPoint the one that the keeper got with the request
   */
  acceptKept(stanza: Stanza, keeper: Keeper, entryPoint: EntryPoint): void {
    const envelope = this.#envelop(stanza, "sent-once", keeper);
    // Other datacenters accept a stanza from another datacenter's user only with that one as its
    // origin.
    const isAnothers = this.#domains.isOtherLocalHost(stanza.from.domainpart);
    const { origin, process, sequence } = entryPoint;
    if (!isAnothers) return this.#submit(envelope, -1);
    const kept = new Envelope({ ...envelope, origin, process, sequence }, keeper);
    kept.trace = envelope.trace;
    this.#submit(kept, -1);
  }

  /**
   * Makes the envelope of a message that `keeper` has kept, to be delivered on this node.
   * @param number comes back with its fate
   * @param sentAtMs wall-clock milliseconds when the message was first accepted
   */
  envelopKept(stanza: Stanza, keeper: Keeper, number: number, sentAtMs: number): Envelope {
    const envelope = this.#envelop(stanza, "sent-once");
    const kept = new Envelope({ ...envelope, sentAtUs: sentAtMs * 1000 }, keeper, number);
    kept.trace = envelope.trace;
    return kept;
  }

  /**
   * Takes presence of the server's own for the sessions that an account has at the datacenter
   * `host`. It does not wait for earlier stanzas of its sender.
   */
  sendTo(host: string, stanza: Stanza): void {
    this.#dispatcher.routeTo(host, this.#envelop(stanza, "sent-once"));
  }

  /**
   * Takes a service's answer to `request`. The answer takes over the duty to settle the request.
   */
  answer(reply: Stanza, request: Envelope | undefined): void {
    const entry = reply.type === "error" ? "owed" : "ordinary";
    const envelope = this.#envelop(reply, entry, undefined, 0, request?.trace);
    if (request !== undefined) {
      envelope.adoptDuty(request);
      if (envelope.isOwed) envelope.answersTo = request.origin;
    }
    this.#submit(envelope, -1);
  }

  /**
   * Takes a stanza that has just come to this node, as its `arrival` says. Remembers where its
   * sender is, unless the stanza is an error or unavailable presence (docs/promises.md, "The session
   * table").
   */
  route(envelope: Envelope): void {
    if (this.#tracer.isOn) this.#follow(envelope);
    const isNews = this.#lookups.learnFrom(envelope);
    if (isNews && this.bouncing > 0) this.revealed(envelope.stanza.from);
    const isFromLink = envelope.arrival === "link";
    this.#submit(envelope, isFromLink ? this.#deps.clock.monotonicMs() : -1);
  }

  /** Takes back a stanza that did not come to its end where the router had sent it. */
  returned(envelope: Envelope, reason: ReturnReason): void {
    this.#returns.take(envelope, reason);
  }

  /** Looks `to` up anew; returns its local host, or undefined when it is not in the table. */
  whereabouts(to: Jid): Promise<string | undefined> {
    return this.#lookups.whereabouts(to);
  }

  /** Sends what bounces for `jid`, after the table, a login or traffic has shown where it is. */
  revealed(jid: Jid): void {
    if (this.bouncing > 0) this.#dispatcher.bounce!.reveal(this.#lookups.keyOf(jid));
  }

  /** Waits for pending lookups. */
  idle(): Promise<void> {
    return this.#workers.idle();
  }

  /**
   * Waits for pending lookups. Bouncing stanzas go to another node of this datacenter, or back to
   * their senders if there is none. From now on a stanza that came over a link and finds no
   * recipient here is left open: the node before routes it anew once this one is gone, and an error
   * from here might cross that.
   */
  async drain(): Promise<void> {
    this.#stop.begin();
    this.#lookups.hurry();
    this.#dispatcher.hurry();
    await this.#workers.idle();
    for (const envelope of this.#deps.local.giveUpWaiting?.() ?? []) {
      this.#dispatcher.giveUpBounced(envelope, "stopping");
    }
    await this.#dispatcher.bounce?.stop();
    await this.#workers.idle();
  }

  /** @param cause the trace of the stanza that it answers */
  #envelop(
    stanza: Stanza,
    entry: StanzaEntry,
    fate?: Fate,
    number = 0,
    cause?: StanzaTrace,
  ): Envelope {
    const envelope = new Envelope(
      {
        stanza,
        process: this.#deps.process,
        sequence: ++this.#sequence,
        origin: this.#domains.localHost,
        sentAtUs: stanza.sinceUs ?? this.#deps.clock.wallUs(),
        ttl: this.#messageTtl,
        bounces: 0,
        mayBeRepeat: false,
        entry,
      },
      fate,
      number,
    );
    if (this.#tracer.isOn) this.#follow(envelope, cause);
    return envelope;
  }

  #submitCarbon(stanza: Stanza, session: Jid, broughtTo: string | undefined): void {
    const envelope = this.#envelop(stanza, "sent-once");
    envelope.isCopy = true;
    envelope.isCarbon = true;
    envelope.boundAs = senderKey(session, this.#domains);
    envelope.broughtTo = broughtTo;
    this.#submit(envelope, -1);
  }

  /** Follows a stanza that has come to this node, if somebody wants that. */
  #follow(envelope: Envelope, cause?: StanzaTrace): void {
    const trace = this.#tracer.follow(envelope, cause);
    if (trace === undefined) return;
    envelope.trace = trace;
    if (envelope.arrival === "here") {
      const reason = envelope.entry === "ordinary" ? undefined : envelope.entry;
      return trace.note("accepted", { reason });
    }
    const place = envelope.cameFrom ?? this.#domains.localHost;
    trace.note("arrived", { place, number: envelope.number });
  }

  /** @param sinceMs monotonic milliseconds when it came from a link; −1 if it did not */
  #submit(envelope: Envelope, sinceMs: number, isReturned = false): void {
    const key = queueKey(envelope.stanza, this.#domains);
    if (!this.#workers.isBusy(key)) {
      // The usual case: nothing to wait for, and no queue item to make.
      const pending = this.#dispatcher.route(envelope);
      if (sinceMs >= 0) this.#metrics.incomingQueueTimeUs.observe(0);
      if (pending === undefined) return;
      envelope.trace?.note("waiting", { reason: "for a lookup or an archive" });
      const waiting = { envelope, sinceMs, holders: holdersOf(envelope, this.#domains) };
      if (this.#workers.begin(key, waiting, pending, { isReturned })) return;
      this.#dispatcher.turnAway(envelope);
    } else {
      const waiting = { envelope, sinceMs, holders: holdersOf(envelope, this.#domains) };
      if (this.#workers.enqueue(key, waiting, { isReturned })) {
        envelope.trace?.note("waiting", { reason: "behind earlier stanzas of its sender" });
        return this.#dispatcher.foresee(envelope);
      }
    }
    this.#refusals.refuseForRoom(envelope, "lookup");
  }

  #work(waiting: Waiting): Pending | undefined {
    if (waiting.sinceMs >= 0) {
      const waitedMs = this.#deps.clock.monotonicMs() - waiting.sinceMs;
      this.#metrics.incomingQueueTimeUs.observe(waitedMs * 1000);
    }
    return this.#dispatcher.route(waiting.envelope);
  }

  #senderWorkers(options: RouterOptions): SenderWorkers<Waiting> {
    const lookedUp = this.#deps.budget?.lookup ?? new FairShares();
    const bounds = {
      maxItems: options.maxQueued ?? ROUTER_QUEUE_DEFAULTS.maxQueued,
      maxBytes: options.maxQueuedBytes ?? ROUTER_QUEUE_DEFAULTS.maxQueuedBytes,
      within: lookedUp,
    };
    const [stanzas, answers] = [new FairShares(bounds), new FairShares(bounds)];
    return new SenderWorkers(
      (waiting) => this.#work(waiting),
      {
        // Answers have room of their own, so that the error for a full queue still gets through.
        sharesOf: ({ envelope }) => isReply(envelope.stanza) ? answers : stanzas,
        lookedUp,
        holdersOf: ({ holders }) => holders,
        bytesOf: ({ envelope }) => costOf(envelope),
        isOlder: ({ envelope }, other) => envelope.isOlderThan(other.envelope),
        foresee: ({ envelope }, { before, head }) =>
          this.#dispatcher.foreseeDelivery(envelope, before.envelope, head.envelope),
        slowAfar: ({ envelope }) => envelope.slowSender(),
      },
      ({ envelope }, isOver) => {
        this.#deps.pressure?.(senderKey(envelope.stanza.from, this.#domains), isOver);
      },
    );
  }
}

/** Retries of a stanza whose recipient is not found; none where bouncing is off. */
function retriesOf(bounce: BounceOptions | undefined): number {
  return bounce === undefined ? 0 : resolveBounceOptions(bounce).maxRetries;
}
