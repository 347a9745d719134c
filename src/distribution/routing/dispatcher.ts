import { MATH_RANDOM } from "../../base/mod.ts";
import { FullJid, isReply, isSubscription, ruleForAccount } from "../../xmpp/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { isFromRoom, senderKey } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { isLocalUser, isUser } from "./addresses.ts";
import { ArchiveWaits } from "./archive_waits.ts";
import { Archiving } from "./archiving.ts";
import { BounceStore } from "./bounce_store.ts";
import type { BounceFailure, BounceOptions } from "./bounce_options.ts";
import { decide } from "./decision.ts";
import type { Decision, Domains } from "./decision.ts";
import { Delivery } from "./delivery.ts";
import type { DeliveryDeps } from "./delivery.ts";
import { FanOut } from "./fan_out.ts";
import { holdersOf } from "./holders_of.ts";
import type { LookupRates } from "./lookup_rates.ts";
import type { Lookups } from "./lookups.ts";
import type { Refusals } from "./refusals.ts";
import type { RouterDeps } from "./router_options.ts";
import { whenOver } from "./sender_workers.ts";
import type { Finish, Pending } from "./sender_workers.ts";
import type { StopOrder } from "./stop_order.ts";

/** The parts that `Dispatcher` works with. */
export interface DispatcherDeps extends
  DeliveryDeps,
  Pick<
    RouterDeps,
    "locations" | "carbons" | "requests" | "presence" | "archive" | "clock" | "random" | "budget"
  > {
  readonly lookups: Lookups;
  readonly rates: LookupRates;
  readonly stop: StopOrder;
  /** Slows the sender of a stanza that waits for something scarce. */
  slow(envelope: Envelope): void;
}

/**
 * Sends one stanza, when its sender's order allows, to a session here, to another node, into the
 * bounce store, or back to its sender as an error.
 */
export class Dispatcher {
  /** Stanzas without a known route; undefined while bouncing is off. */
  readonly bounce: BounceStore | undefined;
  /** Stanzas for accounts with sessions in several datacenters. */
  readonly fanOut: FanOut;
  readonly #deps: DispatcherDeps;
  readonly #domains: Domains;
  readonly #delivery: Delivery;
  readonly #lookups: Lookups;
  readonly #refusals: Refusals;
  /** Undefined where no host has archives. */
  readonly #archiving: Archiving | undefined;
  readonly #waits: ArchiveWaits | undefined;
  /** Requests for subscriptions that found no room while their keeper was writing them. */
  readonly #turnedAway = new WeakSet<Envelope>();

  /** @param bounce undefined turns bouncing off */
  constructor(bounce: BounceOptions | undefined, deps: DispatcherDeps) {
    this.#deps = deps;
    this.#domains = deps.domains;
    const delivery = this.#delivery = new Delivery(deps);
    this.#lookups = deps.lookups;
    this.#refusals = deps.refusals;
    const { archive } = deps;
    const archiving = this.#archiving = archive && new Archiving({
      ...deps,
      archive,
      isToldHere: (envelope) => this.fanOut.isToldHere(envelope),
    });
    const waits = this.#waits = archiving &&
      new ArchiveWaits(archiving, deps.refusals, (envelope) => deps.slow(envelope));
    const store = this.bounce = bounce && this.#bounceStore(bounce);
    this.fanOut = new FanOut({ ...deps, delivery, bounce: store, waits });
  }

  /**
   * Routes a stanza. When it has to wait, for a lookup or an archive, returns the wait for the rest of
   * the work.
   */
  route(envelope: Envelope): Pending | undefined {
    const { from, to } = envelope.stanza;
    // A message that entered here goes to its sender's archive first: no other node sees to that.
    const isForArchive = this.#archiving !== undefined && envelope.arrival === "here" &&
      envelope.stanza.kind === "message";
    if (!isForArchive && this.#followsOnStop(envelope)) return undefined;
    if (envelope.arrival === "link" && !this.fanOut.isFair(envelope)) {
      return void this.#refusals.drop(envelope, "ignored");
    }
    const decision = decide(from, to, this.#domains);
    switch (envelope.stanza.kind) {
      case "presence":
        return this.#routePresence(envelope, decision);
      case "message":
        return this.#routeMessage(envelope, decision);
      default:
        return this.#routeBy(decision, envelope);
    }
  }

  /** True when the node stops, and a stanza goes where earlier ones of its sender have gone. */
  #followsOnStop(envelope: Envelope): boolean {
    const { stop } = this.#deps;
    return stop.isStopping && stop.follows(envelope);
  }

  /** Makes the sender's archive begin with a message that waits behind others of its sender. */
  foresee(envelope: Envelope): void {
    if (envelope.stanza.kind === "message") this.#archiving?.foresee(envelope);
  }

  /**
   * Makes the recipient's archive begin with a message that waits behind others of its sender: `head`
   * waits for that archive, and the archive has begun with all others up to `before`, too.
   * @returns false when the message cannot be foreseen, such as one that needs a lookup
   */
  foreseeDelivery(envelope: Envelope, before: Envelope, head: Envelope): boolean {
    const { stanza: { kind, to } } = envelope;
    return kind === "message" && this.#archiving !== undefined && this.#isPlaced(to) &&
      this.#archiving.foreseeDelivery(envelope, before, head);
  }

  /** True when a message to a person needs no lookup. Devices that log in make one necessary. */
  #isPlaced(to: Jid): boolean {
    if (isLocalUser(to, this.#domains)) return true;
    const { locations } = this.#deps;
    return typeof locations.cached(this.#lookups.keyOf(to)) === "string" &&
      !locations.isUnplaced(to.bare);
  }

  /** Routes a message once its sender's archive has begun with it. */
  #routeMessage(envelope: Envelope, decision: Decision): Pending | undefined {
    if (this.#waits === undefined) return this.#routeBy(decision, envelope);
    if (!this.#waits.askSender(envelope)) {
      return this.#waits.forSenderRoom(envelope, () => this.#routeMessage(envelope, decision));
    }
    return this.#followsOnStop(envelope) ? undefined : this.#routeBy(decision, envelope);
  }

  /**
   * Sends presence of the server's own to an account at the datacenter `host`, wherever else the
   * account may be.
   */
  routeTo(host: string, envelope: Envelope): void {
    if (host !== this.#domains.localHost) return this.#delivery.forward(envelope, host);
    envelope.isSpread = true; // the other datacenters are told by stanzas of their own
    const pending = this.#dispatchLocal(envelope, "local-user");
    if (pending !== undefined) whenOver(pending, (finish) => void finish());
  }

  /** Makes messages wait only briefly for room in archives from now on. */
  hurry(): void {
    this.#deps.archive?.hurry();
  }

  /** Notes that a stanza is refused while its `route` still waits. */
  turnAway(envelope: Envelope): void {
    const { kind } = envelope.stanza;
    if (kind === "presence") this.#turnedAway.add(envelope);
    else if (kind === "message") this.#archiving?.takeBack(envelope);
  }

  /** As `Archiving.takeBackAbsent`. */
  takeBackAbsent(envelope: Envelope): boolean {
    return this.#archiving === undefined || this.#archiving.takeBackAbsent(envelope);
  }

  /** Hands a bounced stanza that cannot be held any longer to another node, or refuses it. */
  giveUpBounced(envelope: Envelope, why: BounceFailure): void {
    if (why === "stopping" && this.#deps.stop.handOn(envelope)) return;
    if (why === "full") return this.#refusals.refuseForRoom(envelope, "bounce");
    if (why === "out-of-retries" && this.#goesBack(envelope)) return;
    this.#refusals.refuse(envelope, "service-unavailable", "no-route");
  }

  #bounceStore(options: BounceOptions): BounceStore {
    const { metrics, rates, local, locations, clock, random, budget } = this.#deps;
    const domains = this.#domains;
    return new BounceStore(options, {
      cached: (key) =>
        isLocalUser(key, domains) || local.servesDomain(key.domainpart)
          ? domains.localHost
          : locations.cached(key),
      relocate: (keys) => this.#lookups.relocate(keys),
      release: (envelope, key, host) => this.#release(envelope, key, host),
      ...(this.#archiving !== undefined && {
        taken: (envelope) => this.#archiving!.forAbsent(envelope),
        waitFor: (envelope) => this.#waits!.inBounce(envelope),
      }),
      giveUp: (envelope, why) => this.giveUpBounced(envelope, why),
      senderOf: ({ stanza }) => senderKey(stanza.from, domains),
      holdersOf: (envelope) => holdersOf(envelope, domains),
      payerOf: (envelope) => rates.payerOf(causeOf(envelope)),
      takeRetry: (envelope) => rates.takeRetry(causeOf(envelope)),
      bookRetry: (envelope) => rates.bookRetry(causeOf(envelope)),
    }, {
      metrics,
      clock,
      random: random ?? MATH_RANDOM,
      ...(budget !== undefined && { budget: budget.bounce }),
    });
  }

  /** Sends a bounced stanza on its way; false when nobody answers to its address after all. */
  #release(envelope: Envelope, key: Jid, host: string): boolean {
    if (this.#delivery.isHidden(envelope)) return this.#delivery.deliverHere(envelope, true);
    if (this.#delivery.isKeptBehind(envelope)) return true;
    // All that a message may wait for is over.
    if (this.#waits?.noteDelivery(envelope) === "resource-constraint") {
      this.#refusals.refuseForRoom(envelope, "archive");
      return true;
    }
    return this.#deliverOrForward(envelope, key, host);
  }

  #routePresence(envelope: Envelope, decision: Decision): Pending | undefined {
    const { presence } = this.#deps;
    const { stanza, arrival } = envelope;
    if (presence === undefined || !presence.serves(stanza.to.domainpart)) {
      if (stanza.type === "probe" && decision === "user" && arrival === "here") {
        if (!envelope.isCopy) return this.#dropUnchecked(envelope);
      }
      return this.#noteSubscription(envelope, decision) ?? this.#routeBy(decision, envelope);
    }
    const isForAccount = stanza.to === stanza.to.bare && !envelope.isCopy &&
      arrival !== "handed-over" && (decision === "user" || decision === "local-user");
    if (!isForAccount) return this.#routeBy(decision, envelope);
    if (isSubscription(stanza)) {
      envelope.trace?.note("taken", { source: "roster" });
      presence.take(envelope);
      return undefined;
    }
    // The datacenter where a stanza enters sends one to each datacenter of the account, and has
    // seen that a probe is allowed. Rosters of a local host lie at its own datacenter.
    const isSpread = arrival === "link" && decision === "user";
    if (isSpread) return this.#dispatchLocal(envelope, decision);
    if (stanza.type !== "probe") return this.#routeBy(decision, envelope);
    envelope.trace?.note("taken", { source: "roster" });
    presence.take(envelope);
    return undefined;
  }

  /**
   * Drops a probe that enters where the account's host has no rosters. No client gets a probe, and a
   * datacenter whose configuration has rosters would take this one for allowed.
   */
  #dropUnchecked(probe: Envelope): undefined {
    this.#refusals.drop(probe, "no-route");
  }

  /**
   * Keeps a request for a subscription before it is routed. Then its keeper has the duty to
   * settle it.
   */
  #noteSubscription(envelope: Envelope, decision: Decision): Pending | undefined {
    const { requests } = this.#deps;
    const { stanza } = envelope;
    if (requests === undefined || envelope.isCopy || envelope.hasKeeper) return undefined;
    if (!isSubscription(stanza) || !(decision === "user" || decision === "local-user")) {
      return undefined;
    }
    return requests.note(stanza, envelope)?.then((keeper) => {
      if (this.#turnedAway.has(envelope)) {
        keeper?.stays(); // it was counted as refused, and reaches its contact once that appears
        return () => {};
      }
      if (keeper !== undefined) {
        envelope.settle();
        envelope.fate = keeper;
      }
      return () => this.#routeBy(decision, envelope);
    });
  }

  #routeBy(decision: Decision, envelope: Envelope): Pending | undefined {
    const { to } = envelope.stanza;
    if (envelope.arrival === "handed-over") {
      return this.#deliverHandedOver(envelope, decision);
    }
    if (envelope.isCopy) return this.fanOut.routeCopy(envelope);
    if (this.#isAnsweredHere(envelope.stanza)) return this.#deliverFinally(envelope);
    switch (decision) {
      case "local":
        return this.#isForOwnDevices(envelope)
          ? this.#deliverToOwnDevices(envelope)
          : this.#deliverLocal(envelope);
      case "local-user":
        return this.#dispatchLocal(envelope, decision);
      case "other-datacenter":
        this.#delivery.forward(envelope, to.domainpart);
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
    const key = this.#lookups.keyOf(to);
    if (this.fanOut.isSpreadHere(envelope)) return this.#dispatchLocal(envelope, decision);
    const host = this.#lookups.cached(envelope, key);
    const isForDevices = typeof host === "string" &&
      this.fanOut.mayHaveDevicesElsewhere(envelope, key);
    if (isForDevices && !this.#isForeseen(envelope)) {
      return this.#findDevices(envelope, decision, key, host);
    }
    if (host !== undefined) {
      envelope.trace?.note("looked-up", { place: host ?? undefined, source: "cache" });
      return this.#dispatch(envelope, decision, key, host);
    }
    return this.#isForeseen(envelope)
      ? this.#dispatch(envelope, decision, key, this.#domains.localHost)
      : this.#findRecipient(envelope, decision, key);
  }

  /** True for a message that must not wait for a lookup: a later one may be delivered meanwhile. */
  #isForeseen(envelope: Envelope): boolean {
    return this.#archiving?.isForeseen(envelope) === true;
  }

  /** A method of its own: a message whose recipient is cached costs no closure. */
  #findRecipient(envelope: Envelope, decision: Decision, key: Jid): Promise<Finish> {
    return this.#lookups.find(envelope, key).then((found) => {
      envelope.trace?.note("looked-up", { place: found, source: "redis" });
      return () => this.#dispatch(envelope, decision, key, found ?? null);
    });
  }

  /** Finds the other devices of the recipient before a message goes to the one at `host`. */
  #findDevices(
    envelope: Envelope,
    decision: Decision,
    key: Jid,
    host: string,
  ): Promise<Finish> {
    return this.#lookups.find(envelope, key.bare).then(() => {
      const now = this.#lookups.cached(envelope, key) ?? host;
      envelope.trace?.note("looked-up", { place: now, source: "redis" });
      return () => this.#dispatch(envelope, decision, key, now);
    });
  }

  /** True for a message to the sender's own account, whose sessions may be anywhere. */
  #isForOwnDevices({ stanza: { kind, to } }: Envelope): boolean {
    return kind === "message" && to.localpart !== "" &&
      to.domainpart === this.#domains.globalHost;
  }

  /** Delivers a message to the sender's own account: here, and wherever else it has sessions. */
  #deliverToOwnDevices(envelope: Envelope): Pending | undefined {
    const { locations } = this.#deps;
    const key = this.#lookups.keyOf(envelope.stanza.to);
    const deliver = () =>
      locations.spread(key).length === 0
        ? this.#deliverFinally(envelope)
        : this.#dispatch(envelope, "user", key, this.#domains.localHost, true);
    if (this.#lookups.cached(envelope, key) === undefined) {
      return this.#lookups.find(envelope, key).then(() => deliver);
    }
    return deliver();
  }

  #deliverLocal(envelope: Envelope): Pending | undefined {
    const waiting = this.#deps.local.prepare?.(envelope, this.#lookups.turn);
    if (waiting !== undefined) return waiting.then(() => () => this.#deliverFinally(envelope));
    return this.#deliverFinally(envelope);
  }

  /** Routes to a user whom only this datacenter can have; looks up at most the user's node. */
  #dispatchLocal(envelope: Envelope, decision: Decision): Pending | undefined {
    const { to } = envelope.stanza;
    const dispatch = () => this.#dispatch(envelope, decision, to, this.#domains.localHost, true);
    const waiting = this.#deps.local.prepare?.(envelope, this.#lookups.turn);
    return waiting === undefined ? dispatch() : waiting.then(() => dispatch);
  }

  /** Delivers to a component that is connected here, whatever the table says. */
  #deliverToDomain(envelope: Envelope, decision: Decision): void {
    if (this.#delivery.isKeptBehind(envelope)) return;
    const key = this.#lookups.keyOf(envelope.stanza.to);
    if (this.bounce?.holds(key) === true && !this.bounce.flush(key, this.#domains.localHost)) {
      return this.bounce.hold(envelope, key);
    }
    if (!this.#delivery.deliverHere(envelope, true)) this.#noRoute(envelope, decision, key);
  }

  #deliverHandedOverArchived(
    envelope: Envelope,
    decision: Decision,
  ): Pending | undefined {
    return this.#waits!.beforeDelivery(envelope, () => this.#deliverHandedOver(envelope, decision));
  }

  /**
   * Delivers a stanza that another node has placed here. If the recipient is not here, it has no
   * route.
   */
  #deliverHandedOver(envelope: Envelope, decision: Decision): Pending | undefined {
    const key = this.#lookups.keyOf(envelope.stanza.to);
    const known = this.bounce?.holds(key) === true ? this.#deps.locations.cached(key) : undefined;
    const host = known ?? this.#domains.localHost;
    // A copy is for sessions here alone, and goes past what waits for others.
    if (this.bounce?.holds(key) === true && !this.bounce.flush(key, host) && !envelope.isCopy) {
      envelope.arrived("here");
      return void this.bounce.hold(envelope, key);
    }
    const waiting = this.#waits && this.#deliverHandedOverArchived(envelope, decision);
    if (waiting !== undefined) return waiting;
    if (this.#delivery.deliverHere(envelope, true)) return undefined;
    if (!this.#delivery.isHidden(envelope)) this.#deps.locations.forget(key);
    this.#noRoute(envelope, decision, key);
    return undefined;
  }

  /** A method of its own: without archives, a message costs no closure. */
  #dispatchArchived(
    envelope: Envelope,
    decision: Decision,
    key: Jid,
    host: string | null,
    isFixed: boolean,
  ): Pending | undefined {
    return this.#waits!.beforeDelivery(envelope, () => {
      // The recipient may have moved.
      const known = isFixed ? undefined : this.#lookups.cached(envelope, key);
      return this.#dispatch(envelope, decision, key, known === undefined ? host : known, isFixed);
    });
  }

  /** @param isFixed true when `host` does not come from the table: default false */
  #dispatch(
    envelope: Envelope,
    decision: Decision,
    key: Jid,
    host: string | null,
    isFixed = false,
  ): Pending | undefined {
    if (this.#delivery.isKeptBehind(envelope)) return undefined;
    const isOwn = decision === "own-resource";
    if (!isOwn && this.bounce?.holds(key) === true && !(host === null && envelope.hasKeeper)) {
      // With a route, presence and answers wait too, lest they overtake. Without one they are not
      // held: they have no route.
      const waits = host === null ? mayWait(envelope) : !this.bounce.flush(key, host);
      if (waits) return void this.bounce.hold(envelope, key);
    }
    if (this.#waits !== undefined) {
      const waiting = this.#dispatchArchived(envelope, decision, key, host, isFixed);
      if (waiting !== undefined) return waiting;
    }
    if (isOwn) {
      return host === null || host === this.#domains.localHost
        ? this.#deliverFinally(envelope)
        : void this.#delivery.forward(envelope, host);
    }
    if (host === null || !this.#deliverOrForward(envelope, key, host)) {
      this.#noRoute(envelope, decision, key);
    }
    return undefined;
  }

  /**
   * Delivers here or sends on, as `host` says. False when `host` is ours but nothing here answers
   * to the address.
   */
  #deliverOrForward(envelope: Envelope, key: Jid, host: string): boolean {
    const isTaken = this.fanOut.send(envelope, key, host);
    if (isTaken === true) return true;
    if (isTaken === undefined) {
      if (host !== this.#domains.localHost) {
        this.#delivery.forward(envelope, host);
        return true;
      }
      if (this.#delivery.deliverHere(envelope, !isLocalUser(key, this.#domains))) return true;
    }
    if (!this.#delivery.isHidden(envelope)) this.#deps.locations.forget(key);
    return false;
  }

  #deliverFinallyArchived(envelope: Envelope): Pending | undefined {
    return this.#waits!.beforeDelivery(envelope, () => this.#deliverFinally(envelope));
  }

  #deliverFinally(envelope: Envelope): Pending | undefined {
    const waiting = this.#waits && this.#deliverFinallyArchived(envelope);
    if (waiting === undefined && !this.#delivery.deliverHere(envelope, false)) {
      this.#refusals.refuse(envelope, "service-unavailable", "no-route");
    }
    return waiting;
  }

  /**
   * True for stanzas that every datacenter answers or drops alike, wherever the account is and
   * whether or not it exists. Neither the answer nor its timing tells which.
   */
  #isAnsweredHere(stanza: Stanza): boolean {
    return ruleForAccount(stanza) !== undefined && isUser(stanza.to, this.#domains) &&
      !isFromRoom(stanza, this.#domains);
  }

  /** True for a subscription stanza that the roster has seen already, on its way to one client. */
  #isForClient(stanza: Stanza): boolean {
    return stanza.to !== stanza.to.bare && isSubscription(stanza) &&
      this.#deps.presence?.serves(stanza.to.domainpart) === true;
  }

  /**
   * True when an owed error is on its way to where the stanza had entered that it answers. The table
   * may not know of its recipient, such as after a partition, and that datacenter still does.
   */
  #goesBack(envelope: Envelope): boolean {
    const host = envelope.answersTo;
    envelope.answersTo = undefined; // once: it may come back
    if (host === undefined || !this.#domains.isOtherLocalHost(host)) return false;
    this.#delivery.forward(envelope, host);
    return true;
  }

  #noRoute(envelope: Envelope, decision: Decision, key: Jid): void {
    if (decision === "outside") {
      return this.#refusals.refuse(envelope, "remote-server-not-found", "no-route");
    }
    // A room has many occupants who are offline, and sends them nothing later.
    const isUnheld = this.#isForClient(envelope.stanza) ||
      isFromRoom(envelope.stanza, this.#domains);
    if (isUnheld) return this.#refusals.drop(envelope, "no-route");
    if (this.#goesBack(envelope)) return;
    if (this.bounce !== undefined && mayWait(envelope) && !envelope.hasKeeper) {
      const isHidden = this.#delivery.isHidden(envelope);
      return this.bounce.hold(envelope, isHidden ? absentResourceOf(key) : key);
    }
    this.#refusals.refuse(envelope, "service-unavailable", "no-route");
  }
}

/** The account or component that pays for the lookups of a stanza. */
function causeOf({ isOwed, stanza: { from, to } }: Envelope): Jid {
  return isOwed ? to : from;
}

/**
 * True for a stanza that is held while nothing is known of its recipient. That is true of an owed
 * error too: its recipient hears nothing else.
 */
function mayWait({ isOwed, stanza }: Envelope): boolean {
  return isOwed || isBounceable(stanza);
}

/**
 * Returns the address of a resource that the account of `key` cannot have (RFC 7622 §3.4). A request
 * to a client that must seem not to be there waits for it. It goes through the retries of a request
 * to a client that is not there, with the same lookups, and nothing else waits behind it.
 */
function absentResourceOf(key: Jid): Jid {
  return key instanceof FullJid ? new FullJid(key.bare, `${key.resourcepart}\0`) : key;
}

/**
 * True for stanzas worth holding: messages, IQ requests, subscriptions (docs/promises.md,
 * "Routing").
 */
export function isBounceable(stanza: Stanza): boolean {
  if (isReply(stanza)) return false;
  return stanza.kind !== "presence" || isSubscription(stanza);
}
