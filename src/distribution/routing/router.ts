import { FairShares, MATH_RANDOM, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { Clock, Holders, Random } from "../../base/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import {
  errorReply,
  FullJid,
  isReply,
  isSubscription,
  parseJid,
  ruleForAccount,
} from "../../xmpp/mod.ts";
import type { Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { isUserHost, senderKey } from "../mod.ts";
import type { Settler } from "../mod.ts";
import { Envelope } from "../envelope.ts";
import { BounceStore, resolveBounceOptions } from "./bounce_store.ts";
import type { BounceFailure, BounceOptions } from "./bounce_store.ts";
import { decide } from "./decision.ts";
import type { Decision, Domains } from "./decision.ts";
import { DeliveryMemory } from "./delivery_memory.ts";
import type { DeliveryMemoryOptions } from "./delivery_memory.ts";
import { holdersOf } from "./holders_of.ts";
import { LookupRates } from "./lookup_rates.ts";
import type { LookupRateOptions } from "./lookup_rates.ts";
import type {
  Keeper,
  LocalDelivery,
  Locations,
  Outbound,
  RequestKeeper,
  StanzaEntry,
} from "./ports.ts";
import { bindRoutingMetrics } from "./routing_metrics.ts";
import type { DropReason, RoutingMetrics, WaitingPlace } from "./routing_metrics.ts";
import { SenderPairs } from "./sender_pairs.ts";
import { SenderWorkers } from "./sender_workers.ts";
import type { Finish } from "./sender_workers.ts";

/** Options of the router; docs/promises.md, "Routing". */
export interface RouterOptions {
  readonly domains: Domains;
  /** Datacenter hops a stanza that enters here may take; at least 0. @default 4 */
  readonly messageTtl?: number;
  /** False turns bouncing off. */
  readonly bounce?: BounceOptions | false;
  /**
   * Stanzas that may wait behind lookups, over all senders. Answers have as much room again.
   * @default 100000
   */
  readonly maxQueued?: number;
  /** Bytes of waiting stanzas, counting what each costs besides its text. @default 67108864 */
  readonly maxQueuedBytes?: number;
  /** Lookups that one sender may cause. @default no limit */
  readonly lookupRates?: LookupRateOptions;
  readonly memory?: DeliveryMemoryOptions;
}

/** Defaults of the bounds on stanzas that wait for lookups. */
export const ROUTER_QUEUE_DEFAULTS = {
  maxQueued: 100_000,
  maxQueuedBytes: 64 * 1024 * 1024,
} as const;

/** The parts that the router works with. */
export interface RouterDeps {
  /** This process's incarnation, the first half of every stanza id given here. */
  readonly process: number;
  readonly outbound: Outbound;
  readonly locations: Locations;
  readonly local: LocalDelivery;
  /** @default requests for subscriptions are routed like messages */
  readonly requests?: RequestKeeper;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log?: Logger;
  readonly random?: Random;
  /**
   * Wider bounds that stanzas waiting for lookups, or bouncing, count for too. @default no bound
   */
  readonly budget?: { readonly lookup: FairShares; readonly bounce: FairShares };
  /**
   * Called when a sender has too much waiting for lookups, and when that is over. The sender is a
   * full JID at the global host, else a domain.
   */
  readonly pressure?: (sender: string, isOver: boolean) => void;
}

/** Reason why a lane could not carry a stanza to its end. */
export type ReturnReason = "peer-restarted" | "peer-gone" | "full" | "expired" | "leaving";

/** A stanza in a worker's queue. */
interface Waiting {
  readonly envelope: Envelope;
  /** Holders of the stanza's shares of the bounds. */
  readonly holders: Holders;
  /** Monotonic milliseconds when it came from a link; −1 for one from this datacenter. */
  readonly sinceMs: number;
}

/**
 * Decides for each stanza where it goes (docs/promises.md, "Routing"), in the order of its sender.
 *
 * Every envelope handed in ends delivered, passed on, answered with an error, or counted as dropped.
 * When the cache knows the answer, all of it happens within the call.
 */
export class Router {
  /** Stanzas that this node has delivered. */
  readonly memory: DeliveryMemory;
  readonly #domains: Domains;
  readonly #messageTtl: number;
  readonly #deps: RouterDeps;
  readonly #log: Logger;
  readonly #metrics: RoutingMetrics;
  readonly #bounce: BounceStore | undefined;
  readonly #workers: SenderWorkers<Waiting>;
  readonly #lookupRates: LookupRates;
  /** Ends the waits of lookups that are over their payer's rate. */
  readonly #paced = new Set<() => void>();
  /** Requests for subscriptions that found no room while their keeper was writing them. */
  readonly #turnedAway = new WeakSet<Envelope>();
  #sequence = 0;
  #isStopping = false;
  /** Pairs with a stanza that a stop has left open: later ones are left open too. */
  readonly #leftOpen = new SenderPairs();
  /** Pairs with a stanza that a stop has handed on to another node: later ones go there too. */
  readonly #handedOn = new SenderPairs();

  constructor(options: RouterOptions, deps: RouterDeps) {
    this.memory = new DeliveryMemory(options.memory ?? {}, deps.clock);
    this.#domains = options.domains;
    this.#messageTtl = options.messageTtl ?? 4;
    this.#deps = deps;
    this.#log = deps.log ?? SILENT_LOGGER;
    this.#metrics = bindRoutingMetrics(deps.metrics);
    const lookedUp = deps.budget?.lookup ?? new FairShares();
    const bounds = {
      maxItems: options.maxQueued ?? ROUTER_QUEUE_DEFAULTS.maxQueued,
      maxBytes: options.maxQueuedBytes ?? ROUTER_QUEUE_DEFAULTS.maxQueuedBytes,
      within: lookedUp,
    };
    const [stanzas, answers] = [new FairShares(bounds), new FairShares(bounds)];
    this.#workers = new SenderWorkers(
      (waiting) => this.#work(waiting),
      {
        // Answers have room of their own, so that the error for a full queue still gets through.
        sharesOf: ({ envelope }) => isReply(envelope.stanza) ? answers : stanzas,
        lookedUp,
        holdersOf: ({ holders }) => holders,
        bytesOf: ({ envelope }) => envelope.stanza.bytes.length + RETAINED_OVERHEAD_BYTES,
        isOlder: ({ envelope }, other) => envelope.isOlderThan(other.envelope),
      },
      ({ envelope }, isOver) => {
        deps.pressure?.(this.#senderOf(envelope.stanza.from), isOver);
      },
    );
    deps.metrics.gauge({
      name: "causeway_lookup_queue_size",
      help: "Stanzas that wait for a lookup in the session table",
    }, () => this.#workers.queued);
    deps.metrics.gauge({
      name: "causeway_lookup_queue_bytes",
      help: "Bytes of the stanzas that wait for a lookup in the session table",
    }, () => this.#workers.queuedBytes);
    const bounce = options.bounce === false ? undefined : options.bounce ?? {};
    const lookupRates = this.#lookupRates = new LookupRates(options.lookupRates ?? {}, {
      domains: options.domains,
      clock: deps.clock,
      maxRetries: bounce === undefined ? 0 : resolveBounceOptions(bounce).maxRetries,
    });
    this.#bounce = bounce && new BounceStore(bounce, {
      cached: (key) =>
        this.#isLocalUser(key) || deps.local.servesDomain(key.domainpart)
          ? options.domains.localHost
          : deps.locations.cached(key),
      relocate: (keys) => this.#relocate(keys),
      release: (envelope, key, host) => this.#deliverOrForward(envelope, key, host),
      giveUp: (envelope, why) => this.#giveUpBounced(envelope, why),
      senderOf: ({ stanza }) => this.#senderOf(stanza.from),
      holdersOf: (envelope) => this.#holdersOf(envelope),
      payerOf: ({ stanza }) => lookupRates.payerOf(stanza.from),
      takeRetry: ({ stanza }) => lookupRates.takeRetry(stanza.from),
      bookRetry: ({ stanza }) => lookupRates.bookRetry(stanza.from),
    }, {
      metrics: this.#metrics,
      clock: deps.clock,
      random: deps.random ?? MATH_RANDOM,
      ...(deps.budget !== undefined && { budget: deps.budget.bounce }),
    });
  }

  /** Stanzas held for bouncing. */
  get bouncing(): number {
    return this.#bounce?.size ?? 0;
  }

  /** Stanzas that wait for a lookup. */
  get queued(): number {
    return this.#workers.queued;
  }

  /**
   * Takes a stanza from a session, component or service of this node.
   *
   * @param settler called with `number` once the stanza's fate is final. A stanza without one, or
   *   with `isSentOnce`, is never sent again
   */
  accept(stanza: Stanza, settler?: Settler & { readonly isSentOnce?: boolean }, number = 0): void {
    const isSentOnce = settler === undefined || settler.isSentOnce === true;
    const envelope = this.#envelop(stanza, settler, number, isSentOnce);
    this.#submit(envelope, -1);
  }

  /** Like `accept`, for a stanza that the client may have sent before to a node that died. */
  acceptResent(stanza: Stanza, settler?: Settler, number = 0): void {
    const envelope = this.#envelop(stanza);
    this.#submit(new Envelope({ ...envelope, isResent: true }, settler, number), -1);
  }

  /**
   * Takes a stanza that was delivered to its recipient on this node, for the datacenter's other
   * nodes. It keeps its place among its sender's other stanzas.
   */
  copy(stanza: Stanza): void {
    const envelope = this.#envelop(stanza);
    this.#submit(new Envelope({ ...envelope, isCopy: true }), -1);
  }

  /**
   * Takes a request for a subscription that `keeper` has kept from before, to bring it to its
   * contact.
   * @param entry the one that the keeper got with the request
   */
  acceptKept(stanza: Stanza, keeper: Keeper, entry: StanzaEntry): void {
    const envelope = this.#envelop(stanza, keeper, 0, true);
    // Other datacenters accept a stanza from another datacenter's user only with that one as its
    // origin.
    const isAnothers = this.#domains.isOtherLocalHost(stanza.from.domainpart);
    this.#submit(isAnothers ? new Envelope({ ...envelope, ...entry }, keeper) : envelope, -1);
  }

  /**
   * Takes a service's answer to `request`. The answer takes over the duty to settle the request.
   */
  answer(reply: Stanza, request: Envelope | undefined): void {
    const isOwed = reply.type === "error";
    const envelope = isOwed
      ? new Envelope({ ...this.#envelop(reply), isOwed })
      : this.#envelop(reply);
    if (request !== undefined) envelope.adoptDuty(request);
    this.#submit(envelope, -1);
  }

  /**
   * Takes a stanza from a link. Remembers where its sender is, unless the stanza is an error or
   * unavailable presence (docs/promises.md, "The session table").
   *
   * @param peerHost the datacenter that has passed it on
   */
  received(envelope: Envelope, peerHost?: string): void {
    envelope.cameFrom = peerHost;
    this.#learnFrom(envelope);
    this.#submit(envelope, this.#deps.clock.monotonicMs());
  }

  /** Takes a stanza that another node of this datacenter has handed over. */
  handedOver(envelope: Envelope): void {
    envelope.isHandedOver = true;
    this.#learnFrom(envelope);
    this.#submit(envelope, -1);
  }

  /** Takes back a stanza that could not be handed to another node of this datacenter. */
  handedBack(envelope: Envelope, reason: ReturnReason): void {
    // Only the original stanza is answered or routed again, never a copy.
    if (envelope.isCopy) return this.#drop(envelope, "returned");
    const isToGoOn = reason === "peer-restarted";
    if (this.#deps.local.takeBack?.(envelope, isToGoOn) === true) return;
    if (!isToGoOn) return this.returned(envelope, reason);
    this.#routeAnew(envelope);
  }

  /**
   * Routes stanzas that other nodes of this datacenter gave back, then those that waited behind
   * them.
   */
  resume(returned: readonly Envelope[], waiting: readonly Envelope[]): void {
    for (const envelope of returned) this.#routeAnew(envelope);
    for (const envelope of waiting) this.#submitReturned(envelope);
  }

  /** Takes back a stanza that a lane could not carry. */
  returned(envelope: Envelope, reason: ReturnReason): void {
    switch (reason) {
      case "peer-restarted":
        envelope.ttl++; // the hop was not made
        return this.#submitReturned(envelope);
      case "peer-gone":
        envelope.ttl++;
        return this.#routeAnew(envelope);
      case "full":
        return this.#refuse(envelope, "resource-constraint", "returned");
      case "expired":
        // Forgets the place, as the recipient may have moved and later stanzas must not go there
        // too.
        this.#deps.locations.forget(this.#lookupKey(envelope.stanza.to));
        return this.#refuse(envelope, "remote-server-timeout", "returned");
      case "leaving":
        // An answer cannot leave any more: its request is left open to the node that sent it.
        if (isReply(envelope.stanza) || envelope.isHeldBefore) return this.#leaveOpen(envelope);
        // It may have arrived or not: another node of this datacenter can go on trying.
        if (this.#handOn(envelope)) return;
        return this.#refuse(envelope, "service-unavailable", "returned");
      default:
        reason satisfies never;
    }
  }

  /**
   * Takes back a stanza from a session that ended without acknowledging it, and routes it to where
   * the recipient is now. Drops it if it is of no use there.
   *
   * The stanza keeps its id, so that a copy of it on another way is recognised. It is not marked as
   * a possible repeat: this node has delivered it, and it may be older than all that the next node
   * has seen from its sender. That node would then take it for a repeat.
   *
   * @param mayBeRepeat true all the same if a node to which the stanza went on may still deliver it
   */
  reroute(envelope: Envelope, mayBeRepeat = false): void {
    if (!isBounceable(envelope.stanza)) return this.#drop(envelope, "unacknowledged");
    if (envelope.isCopy) return this.#drop(envelope, "unacknowledged");
    envelope.ttl = this.#messageTtl;
    envelope.mayBeRepeat = mayBeRepeat;
    envelope.isTakenBack = true;
    envelope.isRerouted = true;
    envelope.cameFrom = undefined; // its recipient may have moved to that datacenter since
    this.memory.forgetDelivered(envelope);
    this.#submitReturned(envelope);
  }

  /**
   * Takes back a stanza that its recipient's client cannot read: the client's streams ended each
   * time it was sent. Answers the sender with an error.
   */
  giveUp(envelope: Envelope): void {
    if (envelope.isCopy) return this.#drop(envelope, "unacknowledged");
    this.#refuse(envelope, "not-acceptable", "unacknowledged");
  }

  /** Looks `to` up anew; returns its local host, or undefined when it is not in the table. */
  whereabouts(to: Jid): Promise<string | undefined> {
    const key = this.#lookupKey(to);
    this.#deps.locations.forget(key);
    return this.#deps.locations.locate(key);
  }

  /** Sends what bounces for `jid`, after the table, a login or traffic has shown where it is. */
  revealed(jid: Jid): void {
    if (this.#bounce === undefined || this.#bounce.size === 0) return;
    this.#bounce.reveal(this.#lookupKey(jid));
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
    this.#isStopping = true;
    for (const go of [...this.#paced]) go();
    await this.#workers.idle();
    for (const envelope of this.#deps.local.giveUpWaiting?.() ?? []) {
      this.#giveUpBounced(envelope, "stopping");
    }
    await this.#bounce?.stop();
    await this.#workers.idle();
  }

  #envelop(stanza: Stanza, settler?: Settler, number = 0, isSentOnce = false): Envelope {
    return new Envelope(
      {
        stanza,
        process: this.#deps.process,
        sequence: ++this.#sequence,
        origin: this.#domains.localHost,
        sentAtUs: this.#deps.clock.wallUs(),
        ttl: this.#messageTtl,
        bounces: 0,
        mayBeRepeat: false,
        isSentOnce,
      },
      settler,
      number,
    );
  }

  /** Routes a stanza after a fresh lookup, as the recipient may have moved. */
  #routeAnew(envelope: Envelope): void {
    this.#deps.locations.forget(this.#lookupKey(envelope.stanza.to));
    this.#submitReturned(envelope);
  }

  /** Routes a returned stanza anew, before all of its sender's that have not been on their way. */
  #submitReturned(envelope: Envelope): void {
    // A session that ended with its node may have had it, just as one here that gave it back.
    if (envelope.mayBeRepeat) envelope.isRerouted = true;
    if (!this.#bouncesBefore(envelope)) this.#submit(envelope, -1, true);
  }

  /** True when the stanza is dealt with: it waits before later ones of its sender that bounce. */
  #bouncesBefore(envelope: Envelope): boolean {
    if (this.#bounce === undefined || this.bouncing === 0 || envelope.isCopy) return false;
    if (this.#isStopping && this.#isBehindLeftOpen(envelope)) return false;
    const { from, to } = envelope.stanza;
    const isAlone = !this.#workers.isBusy(this.#senderOf(from));
    return this.#bounce.holdAgain(envelope, this.#lookupKey(to), isAlone);
  }

  /** @param sinceMs monotonic milliseconds when it came from a link; −1 if it did not */
  #submit(envelope: Envelope, sinceMs: number, isReturned = false): void {
    const key = this.#senderOf(envelope.stanza.from);
    if (!this.#workers.isBusy(key)) {
      // The usual case: nothing to wait for, and no queue item to make.
      const pending = this.#route(envelope);
      if (sinceMs >= 0) this.#metrics.incomingQueueTimeUs.observe(0);
      if (pending === undefined) return;
      const waiting = { envelope, sinceMs, holders: this.#holdersOf(envelope) };
      if (this.#workers.begin(key, waiting, pending, { isReturned })) return;
      if (envelope.stanza.kind === "presence") this.#turnedAway.add(envelope);
    } else {
      const waiting = { envelope, sinceMs, holders: this.#holdersOf(envelope) };
      if (this.#workers.enqueue(key, waiting, { isReturned })) return;
    }
    this.#refuseForRoom(envelope, "lookup");
  }

  /** Looks addresses of one account up again. */
  #relocate(keys: readonly Jid[]): Promise<readonly (string | undefined)[]> {
    const located = this.#deps.locations.locateAgain(keys);
    if (!this.#isLocalUser(keys[0]!)) return located; // `keys` is never empty
    // Another datacenter may have users of the same name at that host: they are other people.
    return located.then((hosts) => hosts.map((host) => host && this.#domains.localHost));
  }

  #holdersOf(envelope: Envelope): Holders {
    return holdersOf(envelope, this.#domains);
  }

  #work(waiting: Waiting): Promise<Finish> | undefined {
    if (waiting.sinceMs >= 0) {
      const waitedMs = this.#deps.clock.monotonicMs() - waiting.sinceMs;
      this.#metrics.incomingQueueTimeUs.observe(waitedMs * 1000);
    }
    return this.#route(waiting.envelope);
  }

  #route(envelope: Envelope): Promise<Finish> | undefined {
    const { from, to } = envelope.stanza;
    if (this.#isStopping) {
      if (this.#isBehindLeftOpen(envelope)) {
        this.#leaveOpen(envelope);
        return undefined;
      }
      // A direct way may be known by now, and would overtake what the other node still looks for.
      if (this.#handedOn.has(this.#senderOf(from), to.text) && this.#handOn(envelope)) {
        return undefined;
      }
    }
    const decision = decide(from, to, this.#domains);
    if (envelope.stanza.kind === "presence") {
      const noted = this.#noteSubscription(envelope, decision);
      if (noted !== undefined) return noted;
    }
    return this.#routeBy(decision, envelope);
  }

  /**
   * Has a request for a subscription kept before it is routed. Then its keeper has the duty to
   * settle it.
   */
  #noteSubscription(envelope: Envelope, decision: Decision): Promise<Finish> | undefined {
    const { requests } = this.#deps;
    const { stanza } = envelope;
    if (requests === undefined || envelope.isCopy || envelope.hasKeeper) return undefined;
    if (!isSubscription(stanza) || !(decision === "user" || decision === "local-user")) {
      return undefined;
    }
    return requests.note(stanza, envelope)?.then((keeper) => {
      if (this.#turnedAway.has(envelope)) {
        keeper?.stays(); // it was counted as refused, and comes to its contact when that appears
        return DONE;
      }
      if (keeper !== undefined) {
        envelope.settle();
        envelope.settler = keeper;
      }
      return this.#routeBy(decision, envelope) ?? DONE;
    });
  }

  #routeBy(decision: Decision, envelope: Envelope): Promise<Finish> | undefined {
    const { to } = envelope.stanza;
    if (envelope.isHandedOver) {
      this.#deliverHandedOver(envelope, decision);
      return undefined;
    }
    if (envelope.isCopy) return this.#deliverElsewhere(envelope);
    if (this.#isAnsweredHere(envelope.stanza)) {
      this.#deliverFinally(envelope);
      return undefined;
    }
    switch (decision) {
      case "local":
        return this.#deliverLocal(envelope);
      case "local-user":
        return this.#dispatchLocal(envelope, decision);
      case "other-datacenter":
        this.#forward(envelope, to.domainpart);
        return undefined;
      case "component":
      case "outside":
        if (this.#deps.local.servesDomain(to.domainpart)) {
          this.#deliverToDomain(envelope, decision);
          return undefined;
        }
        break;
      case "own-resource":
      case "user":
        break;
      default:
        decision satisfies never;
    }
    const key = this.#lookupKey(to);
    const host = this.#deps.locations.cached(key);
    if (host !== undefined && host !== envelope.cameFrom) {
      this.#dispatch(envelope, decision, key, host);
      return undefined;
    }
    // The datacenter that passed it on has already looked at home. If our cache sends it back, and
    // theirs sends it here again, it uses up its hops before either has heard of a login.
    if (host !== undefined) this.#deps.locations.expire(key);
    const waiting = this.#lookupTurn(envelope);
    const locating = waiting === undefined
      ? this.#deps.locations.locate(key)
      : waiting.then(() => this.#deps.locations.locate(key));
    return locating.then((found) => () => this.#dispatch(envelope, decision, key, found ?? null));
  }

  /** Books a lookup for a stanza; returns the wait before it, unless the router is stopping. */
  readonly #lookupTurn = (envelope: Envelope): Promise<void> | undefined => {
    // The stanza that an owed error answers pays for the error's lookup; the error's sender does
    // not.
    const waitMs = envelope.isOwed ? 0 : this.#lookupRates.bookFirst(envelope.stanza.from);
    return waitMs > 0 && !this.#isStopping ? this.#pace(waitMs) : undefined;
  };

  /** Waits until a lookup may be made, or the router is to stop. */
  #pace(waitMs: number): Promise<void> {
    this.#metrics.lookupsDelayed.first.inc();
    const { promise, resolve } = Promise.withResolvers<void>();
    const go = () => {
      cancel();
      this.#paced.delete(go);
      resolve();
    };
    const cancel = this.#deps.clock.after(waitMs, go);
    this.#paced.add(go);
    return promise;
  }

  #deliverElsewhere(envelope: Envelope): Promise<Finish> | undefined {
    const { local } = this.#deps;
    const waiting = local.prepare?.(envelope, this.#lookupTurn);
    if (waiting === undefined) local.deliverElsewhere?.(envelope);
    return waiting?.then(() => () => local.deliverElsewhere?.(envelope));
  }

  #deliverLocal(envelope: Envelope): Promise<Finish> | undefined {
    const waiting = this.#deps.local.prepare?.(envelope, this.#lookupTurn);
    if (waiting !== undefined) return waiting.then(() => () => this.#deliverFinally(envelope));
    this.#deliverFinally(envelope);
    return undefined;
  }

  /** Routes to a user whom only this datacenter can have; looks up at most the user's node. */
  #dispatchLocal(envelope: Envelope, decision: Decision): Promise<Finish> | undefined {
    const { to } = envelope.stanza;
    const dispatch = () => this.#dispatch(envelope, decision, to, this.#domains.localHost);
    const waiting = this.#deps.local.prepare?.(envelope, this.#lookupTurn);
    if (waiting !== undefined) return waiting.then(() => dispatch);
    dispatch();
    return undefined;
  }

  /** Delivers to a component that is connected here, whatever the table says. */
  #deliverToDomain(envelope: Envelope, decision: Decision): void {
    if (this.#isKeptBehind(envelope)) return;
    const key = this.#lookupKey(envelope.stanza.to);
    if (this.#bounce?.holds(key) === true && !this.#bounce.flush(key, this.#domains.localHost)) {
      return this.#bounce.hold(envelope, key);
    }
    if (!this.#deliverHere(envelope, true)) this.#noRoute(envelope, decision, key);
  }

  /**
   * Delivers a stanza that another node has placed here. If the recipient is not here, it has no
   * route.
   */
  #deliverHandedOver(envelope: Envelope, decision: Decision): void {
    const key = this.#lookupKey(envelope.stanza.to);
    const known = this.#bounce?.holds(key) === true ? this.#deps.locations.cached(key) : undefined;
    const host = known ?? this.#domains.localHost;
    if (this.#bounce?.holds(key) === true && !this.#bounce.flush(key, host)) {
      if (envelope.isCopy) return this.#drop(envelope, "returned"); // the original answers
      envelope.isHandedOver = false;
      return this.#bounce.hold(envelope, key);
    }
    if (this.#deliverHere(envelope, true)) return;
    this.#deps.locations.forget(key);
    this.#noRoute(envelope, decision, key);
  }

  /** Returns the key of the sender within whose stanzas order is kept. */
  #senderOf(from: Jid): string {
    return senderKey(from, this.#domains);
  }

  /** Returns the address to look up in the table: users by JID, everything else by domain. */
  #lookupKey(to: Jid): Jid {
    if (to.localpart === "") return to.bare;
    return isUserHost(to.domainpart, this.#domains) ? to : parseJid(to.domainpart);
  }

  /** True for a user at a host that this datacenter serves, other than the global host. */
  #isLocalUser({ localpart, domainpart }: Jid): boolean {
    const { globalHost, hosts } = this.#domains;
    return localpart !== "" && domainpart !== globalHost && hosts.has(domainpart);
  }

  /**
   * True when the stanza is dealt with: it waits for earlier ones, or was refused for lack of room.
   */
  #isKeptBehind(envelope: Envelope): boolean {
    const kept = this.#deps.local.keepBehind?.(envelope);
    if (kept === "full") this.#refuseForRoom(envelope, "handover");
    return kept === true || kept === "full";
  }

  #dispatch(envelope: Envelope, decision: Decision, key: Jid, host: string | null): void {
    if (this.#isKeptBehind(envelope)) return;
    if (decision === "own-resource") {
      if (host === null || host === this.#domains.localHost) this.#deliverFinally(envelope);
      else this.#forward(envelope, host);
      return;
    }
    if (this.#bounce?.holds(key) === true && !(host === null && envelope.hasKeeper)) {
      // With a route, presence and answers wait too, lest they overtake. Without one they find no
      // route.
      const waits = host === null ? isBounceable(envelope.stanza) : !this.#bounce.flush(key, host);
      if (waits) return this.#bounce.hold(envelope, key);
    }
    if (host === null || !this.#deliverOrForward(envelope, key, host)) {
      this.#noRoute(envelope, decision, key);
    }
  }

  /** False when the table says here but nothing here answers to the address. */
  #deliverOrForward(envelope: Envelope, key: Jid, host: string): boolean {
    if (host !== this.#domains.localHost) {
      this.#forward(envelope, host);
      return true;
    }
    if (this.#deliverHere(envelope, !this.#isLocalUser(key))) return true;
    this.#deps.locations.forget(key);
    return false;
  }

  #forward(envelope: Envelope, host: string): void {
    // The recipient had it here and has moved on since; the new place does not know of the
    // delivery.
    const mayComeTwice = envelope.mayBeRepeat || envelope.isResent;
    if (mayComeTwice && this.memory.hasDelivered(envelope, true)) {
      return this.#drop(envelope, "repeat");
    }
    if (envelope.ttl > 0) {
      envelope.ttl--;
      this.#deps.outbound.send(host, envelope);
      return;
    }
    this.#metrics.stopTtlZero.inc();
    if (!this.#deliverHere(envelope, false)) this.#refuse(envelope, "service-unavailable", "ttl");
  }

  #deliverFinally(envelope: Envelope): void {
    if (!this.#deliverHere(envelope, false)) {
      this.#refuse(envelope, "service-unavailable", "no-route");
    }
  }

  /** False when nothing here answers to the address; otherwise the envelope is dealt with. */
  #deliverHere(envelope: Envelope, isRouted: boolean): boolean {
    // A stanza that entered here can come to this place only once, unless it went to another node
    // and came back. The first node, or the lane that led to it, may have kept a copy.
    const mayComeTwice = envelope.process !== this.#deps.process || envelope.mayBeRepeat ||
      envelope.isHandedOver || envelope.isHeldBefore;
    if (this.memory.hasDelivered(envelope, mayComeTwice)) {
      this.#drop(envelope, "repeat");
      return true;
    }
    const ttl = envelope.ttl;
    const outcome = this.#deps.local.deliver(envelope);
    switch (outcome) {
      case "no-session":
        return false;
      case "handed-over":
        return true;
      case "delivered":
        if (isRouted && ttl > 0) this.#metrics.deliveredWithTtl.observe(ttl);
        // A resent stanza may overtake the first one, whose node has died.
        if (mayComeTwice || envelope.isResent) {
          this.memory.noteDelivered(envelope, this.#isForServer(envelope.stanza));
        }
        return true;
      case "ignored":
        this.#drop(envelope, "ignored");
        return true;
      default:
        this.#refuse(envelope, outcome, "ignored");
        return true;
    }
  }

  /**
   * True for stanzas that no client gets: requests to accounts, and all for hosts (RFC 6121 §8.5).
   */
  #isForServer(stanza: Stanza): boolean {
    if (!isUserHost(stanza.to.domainpart, this.#domains)) return false;
    return stanza.to.localpart === "" || ruleForAccount(stanza) !== undefined;
  }

  /**
   * True for stanzas that every datacenter answers or drops alike, wherever the account is and
   * whether or not it exists. Neither the answer nor its timing tells which.
   */
  #isAnsweredHere(stanza: Stanza): boolean {
    return this.#isPerson(stanza.to) && ruleForAccount(stanza) !== undefined;
  }

  #noRoute(envelope: Envelope, decision: Decision, key: Jid): void {
    if (decision === "outside") {
      return this.#refuse(envelope, "remote-server-not-found", "no-route");
    }
    if (this.#bounce !== undefined && isBounceable(envelope.stanza) && !envelope.hasKeeper) {
      return this.#bounce.hold(envelope, key);
    }
    this.#refuse(envelope, "service-unavailable", "no-route");
  }

  #giveUpBounced(envelope: Envelope, why: BounceFailure): void {
    if (why === "stopping" && this.#handOn(envelope)) return;
    if (why === "full") return this.#refuseForRoom(envelope, "bounce");
    this.#refuse(envelope, "service-unavailable", "no-route");
  }

  #refuseForRoom(envelope: Envelope, place: WaitingPlace): void {
    this.#metrics.noRoom[place].inc();
    this.#refuse(envelope, "resource-constraint", "refused");
  }

  /**
   * Gives the stanza to another node of this datacenter, which goes on looking for the recipient.
   */
  #handOn(envelope: Envelope): boolean {
    if (envelope.isHeldBefore) return false;
    // Each time costs a hop: nodes that all stop at once must not send it to and fro for ever.
    if (envelope.isCopy || envelope.ttl <= 1) return false;
    envelope.ttl--;
    if (this.#deps.local.handOn?.(envelope) !== true) {
      envelope.ttl++;
      return false;
    }
    const { from, to } = envelope.stanza;
    this.#handedOn.add(this.#senderOf(from), to.text);
    return true;
  }

  /** Answers the sender with an error, or counts the stanza as dropped if none may be sent. */
  #refuse(envelope: Envelope, condition: StanzaErrorCondition, reason: DropReason): void {
    if (this.#isStopping && envelope.isHeldBefore) return this.#leaveOpen(envelope);
    const { stanza } = envelope;
    // RFC 6121 §8.5.1: no error may show whether the account exists or is online.
    const isSilent = isReply(stanza) ||
      (stanza.kind === "presence" && !(isSubscription(stanza) && !this.#isPerson(stanza.to))) ||
      (condition === "service-unavailable" && this.#isHeadlineForAccount(stanza));
    const reply = isSilent ? undefined : errorReply(stanza, condition);
    if (reply === undefined) {
      const isWithoutRoom = envelope.isOwed && condition === "resource-constraint";
      return this.#drop(envelope, isWithoutRoom ? "owed" : reason);
    }
    this.#metrics.errorsSent.inc();
    this.answer(reply, envelope);
  }

  /**
   * RFC 6121 §8.5.2.2.1: no error says that a headline found nobody, as it would tell who is
   * online.
   */
  #isHeadlineForAccount({ type, to }: Stanza): boolean {
    return type === "headline" && to.localpart !== "" && !(to instanceof FullJid) &&
      isUserHost(to.domainpart, this.#domains);
  }

  #isBehindLeftOpen({ isHeldBefore, stanza: { from, to } }: Envelope): boolean {
    return isHeldBefore && this.#leftOpen.has(this.#senderOf(from), to.text);
  }

  #leaveOpen(envelope: Envelope): void {
    const { from, to } = envelope.stanza;
    this.#leftOpen.add(this.#senderOf(from), to.text);
    this.#metrics.leftOpen.inc();
    envelope.leaveOpen();
  }

  /** True for the address of a user who would log in at this datacenter, existing or not. */
  #isPerson({ localpart, domainpart }: Jid): boolean {
    return localpart !== "" && isUserHost(domainpart, this.#domains);
  }

  #drop(envelope: Envelope, reason: DropReason): void {
    if (envelope.hasKeeper) return envelope.leaveToKeeper();
    this.#metrics.dropped[reason].inc();
    this.#log.debug("routing.dropped", { reason, kind: envelope.stanza.kind });
    envelope.settle();
  }

  #learnFrom({ stanza, origin }: Envelope): void {
    // The origin is a peer's claim: it counts only if it is a datacenter of the mesh.
    if (!this.#domains.isOtherLocalHost(origin)) return;
    if (stanza.type !== "error" && stanza.type !== "unavailable") this.#learn(stanza.from, origin);
  }

  #learn(from: Jid, origin: string): void {
    const { globalHost, hosts } = this.#domains;
    const domain = from.domainpart;
    let isNews: boolean;
    if (domain === globalHost) {
      if (from.localpart === "") return;
      isNews = this.#deps.locations.learn(from, origin);
    } else {
      if (hosts.has(domain) || this.#domains.isOtherLocalHost(domain)) return;
      isNews = this.#deps.locations.learn(parseJid(domain), origin);
    }
    if (isNews && this.bouncing > 0) this.revealed(from);
  }
}

/** The work that is left for a stanza that was routed during its lookup: none. */
const DONE: Finish = () => {};

/**
 * True for stanzas worth holding: messages, IQ requests, subscriptions (docs/promises.md,
 * "Routing").
 */
function isBounceable(stanza: Stanza): boolean {
  if (isReply(stanza)) return false;
  return stanza.kind !== "presence" || isSubscription(stanza);
}
