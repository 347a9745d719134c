import { ruleForAccount } from "../../xmpp/mod.ts";
import type { Stanza } from "../../xmpp/mod.ts";
import { isRoomDomain, isUserHost } from "../mod.ts";
import type { StanzaTrace } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import type { Domains } from "./decision.ts";
import type { DeliveryMemory } from "./delivery_memory.ts";
import type { LocalOutcome } from "./ports.ts";
import type { Refusals } from "./refusals.ts";
import type { RouterDeps } from "./router_options.ts";
import type { RoutingMetrics } from "./routing_metrics.ts";

/** The parts that `Delivery` works with. */
export interface DeliveryDeps extends Pick<RouterDeps, "process" | "outbound" | "local"> {
  readonly domains: Domains;
  readonly memory: DeliveryMemory;
  readonly refusals: Refusals;
  readonly metrics: RoutingMetrics;
}

/**
 * Last step of a stanza in the router: it is delivered to whoever is here, or takes a hop to another
 * datacenter.
 *
 * The stanza itself, its copies and what has bounced all come through here. So no other part asks
 * whether a stanza was delivered before, whether it has hops left, or whether it waits behind earlier
 * ones within this datacenter.
 */
export class Delivery {
  readonly #deps: DeliveryDeps;
  readonly #memory: DeliveryMemory;
  readonly #refusals: Refusals;
  /** Requests to clients that are here and must seem not to be. */
  readonly #hidden = new WeakSet<Envelope>();

  constructor(deps: DeliveryDeps) {
    this.#deps = deps;
    this.#memory = deps.memory;
    this.#refusals = deps.refusals;
  }

  /** True for a request that has found its client here, which must seem not to be here. */
  isHidden(envelope: Envelope): boolean {
    return this.#hidden.has(envelope);
  }

  /**
   * True when the stanza is dealt with: it waits for earlier ones, or was refused for lack of room.
   */
  isKeptBehind(envelope: Envelope): boolean {
    const kept = this.#deps.local.keepBehind?.(envelope);
    if (kept === "full") this.#refusals.refuseForRoom(envelope, "handover");
    return kept === true || kept === "full";
  }

  /** Sends to another datacenter. A stanza without hops left is delivered here, or refused. */
  forward(envelope: Envelope, host: string): void {
    // The recipient got it here and has moved since. The new place does not know of the delivery.
    // A copy is for other sessions than those that got it here.
    const mayComeTwice = !envelope.isCopy &&
      (envelope.mayBeRepeat || envelope.entry === "resent");
    if (mayComeTwice && this.#memory.hasDelivered(envelope, true)) return this.#repeated(envelope);
    if (envelope.ttl > 0) {
      envelope.ttl--;
      this.#deps.outbound.send(host, envelope);
      return;
    }
    this.#deps.metrics.stopTtlZero.inc();
    if (envelope.isCopy) return this.#refusals.drop(envelope, "ttl");
    if (!this.deliverHere(envelope, false)) {
      this.#refusals.refuse(envelope, "service-unavailable", "ttl");
    }
  }

  /**
   * Delivers here. False when nothing here answers to the address; otherwise the envelope is dealt
   * with.
   * @param isRouted true when the hops that the stanza has left are observed
   * @param isSpread true when other datacenters get it too: what fails here is then no error
   */
  deliverHere(envelope: Envelope, isRouted: boolean, isSpread = false): boolean {
    // A stanza that entered here can come to this place only once, unless it went to another node
    // and came back. The first node, or the lane that led to it, may have kept a copy. So may
    // another datacenter that got it too. A carbon is made anew when its message comes back.
    const mayComeTwice = isSpread || envelope.isCarbon || envelope.isRerouted ||
      envelope.process !== this.#deps.process || envelope.mayBeRepeat ||
      envelope.arrival === "handed-over" || envelope.isHeldBefore;
    if (this.#memory.hasDelivered(envelope, mayComeTwice)) {
      this.#repeated(envelope);
      return true;
    }
    if (envelope.stanza.kind === "message") envelope.isTold ||= this.#memory.hasTold(envelope);
    const wasTold = envelope.isTold;
    const ttl = envelope.ttl;
    const { trace } = envelope; // it loses that when it is settled within the call
    const outcome = this.#deps.local.deliver(envelope);
    if (trace !== undefined) noteOutcome(trace, outcome);
    if (envelope.isTold && !wasTold) this.#memory.noteTold(envelope);
    switch (outcome) {
      case "no-session":
        return false;
      case "hidden":
        this.#hidden.add(envelope);
        return false;
      case "handed-over":
        return true;
      case "delivered":
        if (isRouted && ttl > 0) this.#deps.metrics.deliveredWithTtl.observe(ttl);
        // No session has got it yet, and its person may move before one does.
        if (envelope.isHeldForOrder) return true;
        // A resent stanza may overtake the first one, whose node has died.
        if (mayComeTwice || envelope.entry === "resent") {
          this.#memory.noteDelivered(envelope, this.#isForServer(envelope.stanza));
        }
        return true;
      case "ignored":
        this.#refusals.drop(envelope, "ignored");
        return true;
      default:
        if (isSpread || envelope.isCopy) return false;
        this.#refusals.refuse(envelope, outcome, "ignored");
        return true;
    }
  }

  /** Drops what was delivered here, or keeps a message in the place of a copy that was. */
  #repeated(envelope: Envelope): void {
    const { stanza: { kind }, isCopy } = envelope;
    if (kind === "message" && !isCopy && this.#deps.local.replaceCopies?.(envelope) === true) {
      return;
    }
    this.#refusals.drop(envelope, "repeat");
  }

  /**
   * True for stanzas that no client gets: requests to accounts, and all for hosts (RFC 6121 §8.5).
   */
  #isForServer(stanza: Stanza): boolean {
    const { domains } = this.#deps;
    if (isRoomDomain(stanza.to.domainpart, domains)) return true;
    if (!isUserHost(stanza.to.domainpart, domains)) return false;
    return stanza.to.localpart === "" || ruleForAccount(stanza) !== undefined;
  }
}

/** Notes what became of a stanza at its place. An error, or its end, is noted where it is made. */
function noteOutcome(trace: StanzaTrace, outcome: LocalOutcome): void {
  if (outcome === "delivered") trace.note("delivered");
  else if (outcome === "no-session") trace.note("not-delivered", { reason: "nobody is here" });
  else if (outcome === "hidden") {
    trace.note("not-delivered", { reason: "the sender must not learn who is here" });
  }
}
