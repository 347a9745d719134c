import { FullJid } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import { isRoomDomain } from "../mod.ts";
import type { Envelope } from "../envelope.ts";
import { isLocalUser, isUser } from "./addresses.ts";
import type { ArchiveWaits } from "./archive_waits.ts";
import type { BounceStore } from "./bounce_store.ts";
import { copyEnvelope } from "./copy_envelope.ts";
import type { Domains } from "./decision.ts";
import type { Delivery } from "./delivery.ts";
import type { Lookups } from "./lookups.ts";
import type { SessionHost } from "./ports.ts";
import type { Refusals } from "./refusals.ts";
import type { RouterDeps } from "./router_options.ts";
import type { Pending } from "./sender_workers.ts";
import { isConnected, nextDatacenter, spreadOverDatacenters } from "./spread_over_datacenters.ts";

/** The parts that `FanOut` works with. */
export interface FanOutDeps
  extends Pick<RouterDeps, "outbound" | "locations" | "local" | "carbons" | "presence"> {
  readonly domains: Domains;
  readonly lookups: Lookups;
  readonly refusals: Refusals;
  readonly delivery: Delivery;
  /** Undefined while bouncing is off. */
  readonly bounce: Pick<BounceStore, "holds" | "flush"> | undefined;
  /** Undefined where no host has archives. */
  readonly waits: Pick<ArchiveWaits, "beforeDelivery"> | undefined;
}

const NO_SPREAD: readonly SessionHost[] = [];

/**
 * Fan-out of stanzas for accounts with sessions in several datacenters: messages and their carbons, and
 * presence.
 *
 * A message goes out once as itself, and as copies for the other datacenters. The datacenter that gets
 * the message itself answers for it. If that one cannot, the message goes on to one that has a copy.
 * All copies between datacenters leave and arrive here.
 */
export class FanOut {
  readonly #deps: FanOutDeps;
  readonly #domains: Domains;
  readonly #lookups: Lookups;
  readonly #refusals: Refusals;
  readonly #delivery: Delivery;

  constructor(deps: FanOutDeps) {
    this.#deps = deps;
    this.#domains = deps.domains;
    this.#lookups = deps.lookups;
    this.#refusals = deps.refusals;
    this.#delivery = deps.delivery;
  }

  /**
   * Sends a stanza to all datacenters of its account, if it is for all of them. Otherwise sends at most
   * what the others get besides the stanza itself: carbons, or presence of their own.
   *
   * @param key address under which the table knows the recipient
   * @param host datacenter that the table names for it
   * @returns undefined when the stanza itself still has to go to `host`; otherwise true, or false when
   *   nobody within reach gets it
   */
  send(envelope: Envelope, key: Jid, host: string): boolean | undefined {
    if (this.#isForAllClients(envelope, key)) this.#sendPresenceElsewhere(envelope, key, host);
    const spread = this.#spreadOf(envelope, key);
    const hosts = spread.length === 0 ? undefined : this.#datacentersOf(envelope, spread, host);
    if (hosts !== undefined) {
      return this.#deliverToAll(envelope, hosts) || this.#passOn(envelope, spread);
    }
    if (envelope.isSpread) this.#tellHere(envelope, host);
    else this.#copyToDevices(envelope, spread, host);
    return undefined;
  }

  /**
   * Delivers or sends a message to several datacenters. The first of `hosts` answers for it, or the
   * second if the first is ours and nobody here gets it after all.
   * @returns false when the only one within reach is ours and nobody here gets it
   */
  #deliverToAll(envelope: Envelope, hosts: readonly string[]): boolean {
    const { localHost } = this.#domains;
    const [first, ...others] = hosts;
    // All have been asked, or enough of them. It waits for somebody to become available here.
    if (envelope.isSpread && envelope.ttl === 0) {
      return this.#delivery.deliverHere(envelope, true, true);
    }
    if (others.length === 0 && first === localHost) {
      return this.#delivery.deliverHere(envelope, true, true);
    }
    if (others.length > 0) envelope.isSpread = true;
    const copies = others.length === 0 ? [] : [...copyEnvelope(envelope, others.length)];
    if (first !== localHost) this.#delivery.forward(envelope, first!);
    else if (!this.#delivery.deliverHere(envelope, true, true)) {
      copies.shift()!.settle(); // the envelope itself goes there
      this.#delivery.forward(envelope, others.shift()!);
    }
    for (const [i, copy] of copies.entries()) this.#sendCopy(copy, others[i]!);
    return true;
  }

  /**
   * Sends on a message that the sessions here could not take, and that other datacenters have copies
   * of. The next one drops it if somebody there has it: then the sender gets no error.
   * @returns false when there is no such datacenter
   */
  #passOn(envelope: Envelope, spread: readonly SessionHost[]): boolean {
    if (!envelope.isSpread || envelope.ttl === 0) return false;
    const next = nextDatacenter(envelope, { localHost: this.#domains.localHost, spread });
    if (next === undefined) return false;
    this.#delivery.forward(envelope, next);
    return true;
  }

  /** True for a message that other datacenters have copies of, and that may still go to them. */
  hasCopies({ isSpread, isCopy, ttl, stanza: { kind } }: Envelope): boolean {
    return kind === "message" && isSpread && !isCopy && ttl > 0;
  }

  /**
   * Sends a message that this datacenter, or the one of the newest login, cannot take to another one
   * that has a copy. If none is known here, sends it back to where it entered, which has sent copies.
   * @returns false when there is no such datacenter, or the session here that the message names does
   *   not take it: the others have its carbon alone
   */
  passBy(envelope: Envelope): boolean {
    const { locations, local } = this.#deps;
    if (!this.hasCopies(envelope)) return false;
    if (local.sessionsOf(envelope.stanza.to).isResourceHere) return false;
    const key = this.#lookups.keyOf(envelope.stanza.to);
    const full = locations.cached(key);
    const others = locations.spread(key).filter(({ host }) => host !== full);
    if (this.#passOn(envelope, others)) return true;
    if (!this.#domains.isOtherLocalHost(envelope.origin)) return false;
    this.#delivery.forward(envelope, envelope.origin);
    return true;
  }

  /** Sessions of a message's recipient that are in several datacenters; none for other stanzas. */
  #spreadOf({ stanza: { kind }, isCopy }: Envelope, key: Jid): readonly SessionHost[] {
    if (kind !== "message" || isCopy) return NO_SPREAD;
    const spread = this.#deps.locations.spread(key);
    if (spread.length === 0) return spread;
    return isUser(key, this.#domains) && !isLocalUser(key, this.#domains) ? spread : NO_SPREAD;
  }

  /** Datacenters of a message for an account with sessions in several; else undefined. */
  #datacentersOf(
    envelope: Envelope,
    spread: readonly SessionHost[],
    host: string,
  ): readonly string[] | undefined {
    const { localHost } = this.#domains;
    const own = this.#deps.local.sessionsOf(envelope.stanza.to);
    const isFromRoom = isRoomDomain(envelope.stanza.from.domainpart, this.#domains);
    return spreadOverDatacenters(envelope, { localHost, host, spread, own, isFromRoom });
  }

  /** True for a message that other datacenters have too, and that a session here can get. */
  isSpreadHere({ isSpread, arrival, stanza: { to } }: Envelope): boolean {
    if (!isSpread || arrival !== "link" || to !== to.bare) return false;
    if (!isUser(to, this.#domains)) return false;
    const { priority } = this.#deps.local.sessionsOf(to);
    return priority !== undefined && priority >= 0;
  }

  /**
   * True for presence that a client or component here sends to an account: it is for all available
   * resources (RFC 6121 §8.5.2.1.2). A datacenter takes what comes over a link as its own share, if it
   * has rosters.
   */
  #isForAllClients({ isSpread, isCopy, arrival, stanza }: Envelope, key: Jid): boolean {
    const { kind, type } = stanza;
    if (kind !== "presence" || (type !== "available" && type !== "unavailable")) return false;
    if (isSpread || isCopy || arrival === "link" || key !== key.bare) return false;
    return isUser(key, this.#domains) && !isLocalUser(key, this.#domains) &&
      this.#deps.presence?.serves(key.domainpart) === true;
  }

  /** Sends presence to the account's sessions in all datacenters but `host`, which gets it itself. */
  #sendPresenceElsewhere(envelope: Envelope, key: Jid, host: string): void {
    const { locations, local } = this.#deps;
    const { localHost } = this.#domains;
    const hosts = new Set(locations.spread(key).map((session) => session.host));
    // Sessions here are known before the table has them.
    if (local.sessionsOf(key).isHere) hosts.add(localHost);
    hosts.delete(host);
    if (hosts.size === 0) return;
    envelope.isSpread = true; // if it comes back, the others have had it
    const copies = copyEnvelope(envelope, hosts.size);
    for (const [i, each] of [...hosts].entries()) {
      const copy = copies[i]!;
      copy.isCopy = false; // each is as good as the first: another datacenter drops copies of presence
      if (each !== localHost) this.#delivery.forward(copy, each);
      else if (!this.#delivery.deliverHere(copy, true)) this.#refusals.drop(copy, "no-route");
    }
  }

  /**
   * True for a message to one device of an account, as long as memory does not know where the others
   * are that are due its carbon. A device logs in without anybody asking where the others are.
   */
  mayHaveDevicesElsewhere({ isSpread, stanza }: Envelope, key: Jid): boolean {
    if (stanza.kind !== "message" || isSpread || key === key.bare) return false;
    if (!this.#deps.locations.isUnplaced(key.bare)) return false;
    return isUser(key, this.#domains) && !isLocalUser(key, this.#domains) &&
      this.#deps.carbons?.copies(stanza) === true;
  }

  /**
   * True for a message of which sessions here get carbons alone, because those that get the message are
   * in other datacenters.
   */
  isToldHere(envelope: Envelope): boolean {
    const { carbons, local } = this.#deps;
    const { stanza } = envelope;
    if (envelope.isSpread) return false;
    const own = local.sessionsOf(stanza.to);
    if (!own.isHere) return false;
    const spread = this.#spreadOf(envelope, this.#lookups.keyOf(stanza.to));
    if (spread.length === 0 || carbons?.copies(stanza) !== true) return false;
    return !(stanza.to instanceof FullJid) || isConnected(stanza.to, { spread, own });
  }

  /**
   * Gives the account's sessions here the carbon of a message for a session that has moved away. They
   * were to get it from that session's node, and no other datacenter has sent them one.
   */
  #tellHere(envelope: Envelope, host: string): void {
    const { carbons, local } = this.#deps;
    const { localHost } = this.#domains;
    const { stanza, arrival, isCopy } = envelope;
    if (arrival !== "link" || isCopy || host === localHost || stanza.to === stanza.to.bare) return;
    if (carbons?.copies(stanza) !== true || !local.sessionsOf(stanza.to).isHere) return;
    const [copy] = copyEnvelope(envelope, 1);
    copy!.isCarbon = true;
    this.#sendCopy(copy!, localHost);
  }

  /** Makes the account's sessions in other datacenters than `host` get carbons of a message. */
  #copyToDevices(envelope: Envelope, spread: readonly SessionHost[], host: string): void {
    if (spread.length === 0) return;
    const { carbons, local } = this.#deps;
    const { stanza } = envelope;
    if (carbons?.copies(stanza) !== true) return;
    // A message that no session gets comes back to its sender, and is no part of a conversation.
    if (!isConnected(stanza.to, { spread, own: local.sessionsOf(stanza.to) })) return;
    envelope.isSpread = true;
    this.#sendCarbons(envelope, spread, host);
  }

  /**
   * Makes a message that a session here has just sent bring its carbon to another datacenter of the
   * sender's account.
   * @returns that datacenter, and whether all sessions elsewhere get the carbon so; undefined when
   *   none does
   */
  bringCarbon(
    sender: Jid,
    id: Pick<Envelope, "process" | "sequence">,
  ): { readonly host: string; readonly isAll: boolean } | undefined {
    const { locations, local, outbound } = this.#deps;
    const account = sender.bare;
    if (outbound.bringCarbon === undefined || account.domainpart !== this.#domains.globalHost) {
      return undefined;
    }
    // The table must have been asked: only then does it know the account's datacenters.
    if (typeof locations.cached(account) !== "string") return undefined;
    const spread = locations.spread(account);
    const { localHost } = this.#domains;
    let host: string | undefined;
    for (const each of spread) {
      if (each.host === localHost || !outbound.bringCarbon(each.host, sender, id)) continue;
      host = each.host;
      break;
    }
    if (host === undefined) return undefined;
    const isElsewhere = spread.some((each) => each.host !== localHost && each.host !== host);
    return { host, isAll: !isElsewhere && local.mayBeElsewhere?.(account) !== true };
  }

  /** Sends a carbon copy to each datacenter in `spread` but one. */
  #sendCarbons(envelope: Envelope, spread: readonly SessionHost[], but: string): void {
    const hosts: string[] = [];
    const { boundAs, broughtTo } = envelope;
    for (const { host } of spread) {
      if (host !== but && host !== broughtTo && !hosts.includes(host)) hosts.push(host);
    }
    if (hosts.length === 0) return;
    const copies = copyEnvelope(envelope, hosts.length);
    for (let i = 0; i < hosts.length; i++) {
      const copy = copies[i]!;
      copy.isCarbon = true;
      copy.isSpread = true;
      copy.boundAs = boundAs;
      this.#sendCopy(copy, hosts[i]!);
    }
  }

  #sendCopy(copy: Envelope, host: string): void {
    copy.copyFor = host;
    if (host === this.#domains.localHost) this.#deliverCopy(copy);
    else this.#delivery.forward(copy, host);
  }

  /**
   * False for a copy that no datacenter sends: only messages for people of the global host are copied
   * between datacenters. A peer that marks anything else as a copy wants it handled unchecked, as the
   * nodes of one datacenter handle each other's copies.
   */
  isFair({ isCopy, isCarbon, stanza: { kind, to } }: Envelope): boolean {
    if (!isCopy) return !isCarbon;
    return kind === "message" && to.localpart !== "" &&
      to.domainpart === this.#domains.globalHost;
  }

  /** Routes a copy: to the sessions here, to the datacenter that it is for, or to other nodes. */
  routeCopy(envelope: Envelope): Pending | undefined {
    const { copyFor } = envelope;
    const { local, locations } = this.#deps;
    if (copyFor === this.#domains.localHost) return void this.#deliverCopy(envelope);
    if (copyFor !== undefined) {
      const key = this.#lookups.keyOf(envelope.stanza.to);
      const sendAgain = (host: string | null | undefined) => {
        const isThere = host === copyFor ||
          locations.spread(key).some((session) => session.host === copyFor);
        if (isThere) this.#delivery.forward(envelope, copyFor);
        else this.#refusals.drop(envelope, "returned");
      };
      const host = this.#lookups.cached(envelope, key);
      if (host !== undefined) return void sendAgain(host);
      return this.#lookups.find(envelope, key).then((found) => () => sendAgain(found));
    }
    if (envelope.arrival !== "link") {
      return envelope.isCarbon ? this.#tellElsewhere(envelope) : this.#deliverElsewhere(envelope);
    }
    const waiting = local.prepare?.(envelope, this.#lookups.turn);
    if (waiting !== undefined) return waiting.then(() => () => this.#deliverLinkedCopy(envelope));
    return this.#deliverLinkedCopy(envelope);
  }

  /** Delivers a copy that came from another datacenter. */
  #deliverLinkedCopy(envelope: Envelope): Pending | undefined {
    const { waits } = this.#deps;
    const waiting = waits &&
      waits.beforeDelivery(envelope, () => this.#deliverLinkedCopy(envelope));
    if (waiting === undefined) this.#deliverCopy(envelope);
    return waiting;
  }

  /** Delivers a copy to the sessions of this datacenter. The original answers for it. */
  #deliverCopy(envelope: Envelope): void {
    if (this.#delivery.isKeptBehind(envelope)) return;
    const { bounce } = this.#deps;
    const key = this.#lookups.keyOf(envelope.stanza.to);
    if (bounce?.holds(key) === true) bounce.flush(key, this.#domains.localHost);
    if (!this.#delivery.deliverHere(envelope, true)) this.#refusals.drop(envelope, "no-route");
  }

  /** Sends a carbon to the account's other nodes, in this datacenter and in others. */
  #tellElsewhere(envelope: Envelope): Pending | undefined {
    const { locations, local } = this.#deps;
    const { to } = envelope.stanza;
    if (isLocalUser(to, this.#domains)) return this.#deliverElsewhere(envelope);
    const tell = () => {
      this.#sendCarbons(envelope, locations.spread(to), this.#domains.localHost);
      if (local.deliverElsewhere === undefined) envelope.settle();
      else local.deliverElsewhere(envelope);
    };
    if (this.#lookups.cached(envelope, to) === undefined) {
      return this.#lookups.find(envelope, to).then(() => tell);
    }
    tell();
    return undefined;
  }

  #deliverElsewhere(envelope: Envelope): Pending | undefined {
    const { local } = this.#deps;
    const waiting = local.prepare?.(envelope, this.#lookups.turn);
    if (waiting === undefined) local.deliverElsewhere?.(envelope);
    return waiting?.then(() => () => local.deliverElsewhere?.(envelope));
  }
}
