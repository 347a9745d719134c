import { isReply } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import type { ReturnReason } from "../mod.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { isBounceable } from "./dispatcher.ts";
import type { Lookups } from "./lookups.ts";
import type { LocalDelivery } from "./ports.ts";
import type { Refusals } from "./refusals.ts";
import type { StopOrder } from "./stop_order.ts";

/** Collaborators of `ReturnedStanzas`. */
export interface ReturnedStanzasDeps {
  readonly local: Pick<LocalDelivery, "takeBack">;
  readonly dispatcher: Dispatcher;
  readonly lookups: Lookups;
  readonly refusals: Refusals;
  readonly stop: StopOrder;
  /** Returns the datacenter hops that a stanza which enters here may take. */
  messageTtl(): number;
  /** True while stanzas of its sender wait. */
  isBusy(envelope: Envelope): boolean;
  /** Routes a stanza before all of its sender's that have not been on their way. */
  submit(envelope: Envelope): void;
}

/**
 * Stanzas that come back to the router: from lanes, sessions and other nodes that could not bring them to
 * their end. The reason says whether a stanza looks for another way, is answered, or is dropped.
 */
export class ReturnedStanzas {
  readonly #deps: ReturnedStanzasDeps;

  constructor(deps: ReturnedStanzasDeps) {
    this.#deps = deps;
  }

  /** Takes back a stanza that did not come to its end where the router had sent it. */
  take(envelope: Envelope, reason: ReturnReason): void {
    envelope.trace?.note("returned", { reason });
    const { local, dispatcher, lookups, refusals, stop } = this.#deps;
    switch (reason) {
      case "unacknowledged":
      case "passed-on":
      case "perhaps-delivered":
        // Everything else that is noted of the stanza is right: its session has come back with it, or another
        // session of the account here has had a copy.
        envelope.rememberedBy?.forgetDelivered(envelope);
        return this.#rerouted(envelope, reason === "perhaps-delivered");
      case "unreadable":
        if (envelope.isCopy) return refusals.drop(envelope, "unacknowledged");
        return refusals.refuse(envelope, "not-acceptable", "unacknowledged");
      case "waited":
        return this.#submitReturned(envelope);
    }
    if (envelope.isCopy) return this.#returnedCopy(envelope, reason);
    if (local.takeBack?.(envelope, reason === "node-gone") === true) return;
    switch (reason) {
      case "peer-restarted":
        envelope.ttl++; // the hop was not made
        return this.#submitReturned(envelope);
      case "peer-gone":
        envelope.ttl++;
        return this.#routeAnew(envelope);
      case "node-gone":
        return this.#routeAnew(envelope);
      case "full":
        return refusals.refuse(envelope, "resource-constraint", "returned");
      case "expired":
        // Forgets the place, as the recipient may have moved and later stanzas must not go there
        // too.
        lookups.forget(envelope.stanza.to);
        // Another datacenter may have delivered its copy: the sender gets an error from there, if any.
        if (dispatcher.fanOut.hasCopies(envelope)) return this.#submitReturned(envelope);
        return refusals.refuse(envelope, "remote-server-timeout", "returned");
      case "leaving":
        // An answer cannot leave any more: its request is left open to the node that sent it.
        if (isReply(envelope.stanza) || envelope.isHeldBefore) {
          return stop.leaveOpen(envelope);
        }
        // It may have arrived or not: another node of this datacenter can go on trying.
        if (stop.handOn(envelope)) return;
        return refusals.refuse(envelope, "service-unavailable", "returned");
      default:
        reason satisfies never;
    }
  }

  /**
   * Only the original stanza is answered or looks for another way. A copy for a datacenter that is
   * reached otherwise goes there again.
   */
  #returnedCopy(envelope: Envelope, reason: ReturnReason): void {
    const isUnsent = reason === "peer-restarted" || reason === "peer-gone";
    if (envelope.copyFor === undefined || !isUnsent) {
      return this.#deps.refusals.drop(envelope, "returned");
    }
    envelope.ttl++; // the hop was not made
    if (reason === "peer-gone") this.#deps.lookups.forget(envelope.stanza.to);
    this.#deps.submit(envelope);
  }

  /**
   * Routes a stanza that a session's client has not acknowledged to where the recipient is now.
   * Drops it if it is of no use there.
   *
   * The stanza keeps its id, so that a copy of it on another way is recognised. It is not marked as
   * a possible repeat: this node has delivered it, and it may be older than all that the next node
   * has seen from its sender. That node would then take it for a repeat.
   *
   * @param mayBeRepeat true all the same if a node to which the stanza went on may still deliver it
   */
  #rerouted(envelope: Envelope, mayBeRepeat: boolean): void {
    if (envelope.isCopy || !isBounceable(envelope.stanza)) {
      return this.#deps.refusals.drop(envelope, "unacknowledged");
    }
    envelope.ttl = this.#deps.messageTtl();
    envelope.mayBeRepeat = mayBeRepeat;
    envelope.arrived("taken-back"); // no longer from a link: its recipient may have moved there
    envelope.isRerouted = true;
    this.#submitReturned(envelope);
  }

  /** Routes a stanza after a fresh lookup, as the recipient may have moved. */
  #routeAnew(envelope: Envelope): void {
    this.#deps.lookups.forget(envelope.stanza.to);
    this.#submitReturned(envelope);
  }

  /** Routes a returned stanza anew, before all of its sender's that have not been on their way. */
  #submitReturned(envelope: Envelope): void {
    // A session that ended with its node may have had it, just as one here that gave it back.
    if (envelope.mayBeRepeat) envelope.isRerouted = true;
    if (!this.#bouncesBefore(envelope)) this.#deps.submit(envelope);
  }

  /** True when the stanza is dealt with: it waits before later ones of its sender that bounce. */
  #bouncesBefore(envelope: Envelope): boolean {
    const { dispatcher: { bounce }, lookups, stop, isBusy } = this.#deps;
    if (bounce === undefined || bounce.size === 0 || envelope.isCopy) return false;
    if (stop.isStopping && stop.isBehindLeftOpen(envelope)) return false;
    return bounce.holdAgain(envelope, lookups.keyOf(envelope.stanza.to), !isBusy(envelope));
  }
}
