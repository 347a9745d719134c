import { describeError } from "../../base/mod.ts";
import type { RosterContact } from "../../storage/mod.ts";
import type { Fate, Jid, Stanza } from "../../xmpp/mod.ts";
import {
  buildStanza,
  element,
  errorReply,
  findChild,
  FullJid,
  isSubscription,
  readdress,
  stanzaSource,
} from "../../xmpp/mod.ts";
import type { AccountUse, IqService } from "../iq_service.ts";
import { AccountReach } from "./account_reach.ts";
import { AccountTurns } from "./account_turns.ts";
import { ContactPresence } from "./contact_presence.ts";
import { ContactSights } from "./contact_sights.ts";
import { InboundRetries } from "./inbound_retries.ts";
import { LostEnds } from "./lost_ends.ts";
import { MissedChanges } from "./missed_changes.ts";
import { PresenceBroadcasts } from "./presence_broadcasts.ts";
import { AGAIN_PAYLOAD, readSignal } from "./presence_signal.ts";
import { probe } from "./presence_stanzas.ts";
import type { PresenceOrigin } from "./remote_presence.ts";
import { RemotePresence } from "./remote_presence.ts";
import { RosterMetrics } from "./roster_metrics.ts";
import type { PresenceView, RosterDeps } from "./roster_ports.ts";
import { ROSTER_NAMESPACE } from "./roster_query.ts";
import { RosterChangeService, RosterGet } from "./roster_services.ts";
import { Rosters } from "./rosters.ts";
import { SubscriptionServer } from "./subscription_server.ts";
import type { SubscriptionError } from "./subscription_server.ts";
import { ToldVersions } from "./told_versions.ts";

/** Steps that may wait for the database or the session table at once. */
const MAX_WAITING = 100_000;
/** Bytes of their stanzas. Each account that sends them has a share of both. */
const MAX_WAITING_BYTES = 64 * 1_048_576;
/** Steps that may run at once: less than half of what may wait for a pool's connections. */
const MAX_RUNNING = { prompt: 100, portioned: 100, patient: 200 };

/** Dependencies of `RosterServer`. */
export interface RosterServerDeps extends RosterDeps {
  /** Bytes of a request that is kept whole. */
  readonly maxRequestBytes: number;
  /**
   * Returns a function that is true while the account of a client here exists. It is called before and
   * after the client changes the roster, and as it becomes available. It never rejects. @default it always does
   */
  isCurrent?(client: Jid, use: AccountUse): () => Promise<boolean>;
}

/** Holder of the duty for a stanza, as far as rosters need it. */
export interface Taken {
  readonly stanza: Stanza;
  settle(): void;
}

/**
 * Rosters, subscriptions and presence of the accounts of this datacenter's hosts.
 *
 * The node where a subscription stanza enters applies it to the sender's roster, and then, as the
 * database is shared, to the recipient's. The recipient's clients get it wherever they are.
 */
export class RosterServer {
  /** Services for the roster requests of clients. */
  readonly services: readonly IqService[];
  readonly #deps: RosterServerDeps;
  readonly #turns = new AccountTurns({
    maxWaiting: MAX_WAITING,
    maxBytes: MAX_WAITING_BYTES,
    maxRunning: MAX_RUNNING,
    failed: (thrown) => this.#failed(thrown),
  });
  readonly #metrics: RosterMetrics;
  readonly #broadcasts: PresenceBroadcasts;
  readonly #presence: ContactPresence;
  readonly #rosters: Rosters;
  readonly #subscriptions: SubscriptionServer;
  readonly #remote: RemotePresence;
  readonly #retries: InboundRetries;
  readonly #missed: MissedChanges;
  readonly #lostEnds: LostEnds;
  /** Clients here that get roster pushes. */
  readonly #interested = new ToldVersions();

  constructor(deps: RosterServerDeps) {
    this.#deps = deps;
    const turns = this.#turns;
    const metrics = this.#metrics = new RosterMetrics(deps.metrics, () => turns.waiting);
    const reach = new AccountReach(deps);
    const common = { ...deps, metrics, turns, reach };
    const sights = new ContactSights({
      ...common,
      asks: (owner, contact) => this.#remote.asks(owner.text, contact.text),
    });
    const broadcasts = this.#broadcasts = new PresenceBroadcasts({
      ...common,
      sights,
      toldTo: (session) => this.#remote.toldTo(session),
    });
    const presence = this.#presence = new ContactPresence({ ...common, sights, broadcasts });
    const missed = this.#missed = new MissedChanges(common);
    this.#lostEnds = new LostEnds({
      ...common,
      isAvailableTo: (session, to) => broadcasts.isAvailableTo(session, to),
    });
    const rosters = this.#rosters = new Rosters({
      ...common,
      told: (client, version) => this.#interested.told(client, version),
      changed: (owner, contact, version) =>
        missed.note(owner, contact, { isVisible: true, version }),
      parted: (owner, contact, before) => this.#subscriptions.part(owner, contact, before),
    });
    this.#subscriptions = new SubscriptionServer({ ...common, rosters, presence, missed });
    this.#retries = new InboundRetries({
      clock: deps.clock,
      apply: (stanza) => this.#subscriptions.inbound(stanza),
      run: (account, step) => turns.runAlways(account, step),
      gaveUp: () => metrics.counted("failed"),
    });
    const { sessions, routes } = deps;
    this.#remote = new RemotePresence({
      ...common,
      metrics: deps.metrics,
      hosts: () => sessions.hosts(),
      hasSessions: (domain) => domain === deps.hosts.globalHost,
      here: (account) => sessions.here(account),
      liveProcesses: (hosts) => sessions.liveProcesses(hosts),
      processesOf: async (accounts) => {
        const found = new Map<string, number[]>();
        const sessionsOf = await sessions.everywhere(accounts);
        if (sessionsOf === undefined) return undefined;
        for (const [account, places] of sessionsOf) {
          for (const { resourcepart, process } of places) {
            const jid = `${account}/${resourcepart}`;
            const processes = found.get(jid);
            if (processes === undefined) found.set(jid, [process]);
            else processes.push(process);
          }
        }
        return found;
      },
      deliver: (to, stanza) => routes.deliver(to, stanza),
      probe: (asker, account) => {
        // Presence of the account's own resources needs no leave.
        if (asker.text === account.text) void presence.forward(asker, account);
        else routes.route(probe(asker, account));
      },
      askForDirected: (account, resource) => {
        // Nobody else's node knows the request.
        if (this.serves(resource.domainpart)) reach.pushTo(resource, account, AGAIN_PAYLOAD);
      },
      announce: (host) => {
        deps.datacenterBack?.();
        this.tellAgain(host);
      },
    });
    this.services = [
      new RosterGet(rosters, (client) => this.#asked(client)),
      new RosterChangeService(rosters, deps.bounds),
    ];
  }

  /** True for a host whose accounts have rosters here. */
  serves(domain: string): boolean {
    return this.#deps.hosts.store(domain) !== undefined;
  }

  /** True for presence of a client or component that `entered` takes. */
  handles(stanza: Stanza): boolean {
    if (stanza.kind !== "presence") return false;
    return (isSubscription(stanza) || stanza.type === "probe") &&
      (this.serves(stanza.from.domainpart) || this.serves(stanza.to.domainpart));
  }

  /**
   * Takes a subscription stanza or a probe of a client or component, before it is routed. Its
   * addresses may be full JIDs.
   *
   * @param answer full JID of the client, which gets the error if there is one
   * @param fate told once the sender may forget the stanza: as soon as its own roster is written,
   * so that the time says nothing of the recipient
   */
  entered(stanza: Stanza, answer: Jid, fate?: Fate, number = 0): void {
    const between = betweenAccounts(stanza);
    const { from, to } = between;
    let isSettled = false;
    const settle = () => {
      if (!isSettled) fate?.settle(number);
      isSettled = true;
    };
    if (!isSubscription(stanza) || !this.serves(from.domainpart) || from.text === to.text) {
      settle();
      if (from.text !== to.text) this.#deps.routes.route(between);
      return;
    }
    const fail = (condition: NonNullable<SubscriptionError>) => {
      const error = errorReply(between, condition);
      if (error !== undefined) this.#deps.routes.route(readdress(error, answer));
    };
    const isCurrent = this.#deps.isCurrent?.(answer, "change");
    const isTaken = this.#turns.run(from.text, async () => {
      const isFormer = await isCurrent?.() === false; // the name may have another owner
      const error = isFormer
        ? "registration-required"
        : await this.#subscriptions.outbound(between, settle, isCurrent);
      settle();
      if (error !== undefined) fail(error);
    }, { payer: from.text, bytes: between.bytes.length });
    if (isTaken) return;
    settle();
    fail("resource-constraint");
  }

  /** Takes a subscription stanza or a probe to an account of one of our hosts, and settles it. */
  take(taken: Taken): void {
    const { stanza } = taken;
    const { from, to } = stanza;
    const step = stanza.type === "probe"
      ? () => this.#probe(from, to).then(() => true)
      : () => this.#inbound(taken);
    const isTaken = this.#turns.run(to.text, async () => {
      const isOver = await step().catch((thrown) => {
        this.#failed(thrown);
        return true;
      });
      if (isOver) taken.settle();
    }, { payer: from.bare.text, bytes: stanza.bytes.length });
    if (isTaken) return;
    this.#metrics.failures.inc();
    taken.settle();
  }

  /** Applies a subscription stanza; false when it waits for the database, and is settled later. */
  async #inbound(taken: Taken): Promise<boolean> {
    const { stanza } = taken;
    if (!this.#retries.holdsBack(stanza) && await this.#subscriptions.inbound(stanza)) return true;
    if (this.#retries.add(this.#subscriptions.shortened(stanza), () => taken.settle())) {
      return false;
    }
    this.#metrics.counted("failed");
    return true;
  }

  /**
   * True while a resource of an account is available, as far as the asker knows: it is at this node and
   * does not hide from the asker, or the asker's account here was told of it. Whoever may not see the
   * presence is to be refused before.
   */
  isSeenOnline(account: Jid, asker: Jid): boolean {
    return this.#presence.shownTo(asker, account).length > 0 ||
      this.#remote.isTold(asker.bare.text, account.text);
  }

  /** Answers an allowed probe for the account's sessions at this node. */
  probed(probe: Stanza): void {
    this.#presence.answer(probe.from, probe.to.bare);
  }

  /** Begins to watch the processes whose presence sessions here know of. */
  start(): void {
    this.#remote.start();
  }

  close(): void {
    this.#remote.close();
    this.#broadcasts.close();
    this.#presence.close();
    this.#missed.close();
    this.#lostEnds.close();
    this.#retries.close();
  }

  /**
   * Notes that a datacenter is linked again.
   * @param awayMs milliseconds without a link
   */
  linkedAgain(host: string, awayMs: number): void {
    this.#remote.linkedAgain(host, awayMs);
    // Its own stanzas for this node may have been given up as well.
    if (awayMs >= this.#deps.leaseMs) this.#deps.datacenterBack?.();
  }

  /** Notes that presence did not reach a datacenter, or a node of this one. */
  lost(host: string, { type, from, to }: Stanza, { process, sentAtUs }: PresenceOrigin): void {
    const isOurs = process === this.#deps.process && this.serves(from.domainpart);
    if (type !== "unavailable" || !isOurs || !(from instanceof FullJid)) return;
    this.#lostEnds.note(host, { session: from, to, sinceUs: sentAtUs });
  }

  /**
   * Tells a linked datacenter of the presence of all sessions here, of ends of presence that have not reached
   * it, and of roster changes: what it was sent before may be lost. This datacenter stands for its other
   * nodes.
   */
  tellAgain(host: string): void {
    this.#lostEnds.tell(host);
    this.#presence.announceAll(host);
    this.#missed.tell(host);
  }

  /** Notes presence before it is delivered here; false when it is outdated, and dropped. */
  saw(stanza: Stanza, origin: PresenceOrigin): boolean {
    const isNews = this.#remote.saw(stanza, origin);
    const isPresence = stanza.type === "available" || stanza.type === "unavailable";
    if (isNews && isPresence) this.#broadcasts.heard(stanza);
    return isNews;
  }

  /** As `saw`, for presence of a session here that goes to the account's own resources here. */
  isNews(presence: Stanza): boolean {
    const { process, clock, hosts } = this.#deps;
    if (!this.serves(presence.from.domainpart)) return true;
    const sentAtUs = presence.sinceUs ?? clock.wallUs();
    return this.saw(presence, { origin: hosts.localHost, process, sentAtUs });
  }

  /** Notes presence that the privacy lists here keep from its recipient. */
  refused(stanza: Stanza, origin: PresenceOrigin): void {
    this.#remote.refused(stanza, origin);
  }

  /**
   * Takes an IQ for a session here that is not for its client: a request of another node, or a roster
   * push that the client has not asked for. False for all others.
   */
  takes(iq: Stanza): boolean {
    const signal = readSignal(iq);
    if (signal !== undefined) return this.#presence.asked(signal);
    if (this.isUnwantedPush(iq)) return true;
    if (iq.type === "set" && iq.from.text === iq.to.bare.text) this.#rosters.pushed(iq);
    return false;
  }

  /** Returns an IQ that `takes` leaves to a client as it gets it: a roster push may tell less. */
  asTold(iq: Stanza): Stanza {
    const isPush = iq.type === "set" && iq.from === iq.from.bare &&
      iq.from.text === iq.to.bare.text;
    return isPush ? this.#interested.asTold(iq) : iq;
  }

  /** True for a roster push to a client that has not asked for the roster. */
  isUnwantedPush({ kind, type, from, to, bytes }: Stanza): boolean {
    if (kind !== "iq" || type !== "set" || from !== from.bare || from.text !== to.bare.text) {
      return false;
    }
    if (to === to.bare || this.#interested.has(to.text)) return false;
    return findChild(stanzaSource(bytes), "query", ROSTER_NAMESPACE) !== undefined;
  }

  /** Broadcasts what a session of this node has told the account's resources here. */
  presenceChanged(jid: FullJid, presence: Stanza): void {
    this.#broadcasts.changed(jid, presence);
  }

  /**
   * Returns the contacts of a session of this node, once its presence has been told to them. Some of
   * them may have sent a request and nothing else. Undefined when nothing is being told, or that
   * failed. Never rejects.
   */
  contactsTold(jid: FullJid): Promise<readonly RosterContact[] | undefined> {
    return this.#broadcasts.contactsTold(jid);
  }

  /** True while contacts may still be told of the last presence of a session here. */
  isTelling(jid: FullJid): boolean {
    return this.#broadcasts.isTelling(jid);
  }

  /** The privacy list that applies to a session here has changed. */
  privacyChanged(
    jid: FullJid,
    change: { readonly before: PresenceView; readonly after: PresenceView },
  ): void {
    this.#broadcasts.reviewed(jid, change);
  }

  /** A session came from another node: whether its client has asked for the roster is not known. */
  arrived(
    jid: FullJid,
    { isAvailable, isNew }: { readonly isAvailable: boolean; readonly isNew: boolean },
  ): void {
    this.#interested.follow(jid);
    if (isAvailable) this.#broadcasts.arrived(jid, isNew);
  }

  /** A session has ended, or has moved away. */
  closed(jid: FullJid): void {
    this.#interested.forget(jid);
    this.#broadcasts.left(jid);
    this.#remote.closed(jid);
    const account = jid.bare.text;
    const isLast = this.#deps.sessions.here(account).every((each) => each.jid.text === jid.text);
    if (isLast) this.#remote.left(account);
  }

  /**
   * Ends all that an account, which is about to be deleted, shares with its contacts, and tells them
   * (XEP-0077 §3.2). Safe to repeat.
   *
   * @throws CausewayError with a code `storage/…`
   */
  async leave(account: Jid): Promise<void> {
    const store = this.#deps.hosts.store(account.domainpart);
    if (store !== undefined) await this.#subscriptions.leave(account, store);
  }

  /**
   * Notes that the account of these sessions here was deleted elsewhere, and its roster with it: their
   * end is told to those who were told of their presence.
   */
  gone(sessions: readonly FullJid[]): void {
    this.#broadcasts.gone(sessions);
  }

  /** Waits until all that was taken has had its effect. */
  settled(): Promise<void> {
    return this.#turns.settled();
  }

  /** Notes that a client gets pushes, unless it is gone or only a peer speaks of it. */
  #asked(client: FullJid): void {
    const here = this.#deps.sessions.here(client.bare.text);
    if (here.some(({ jid }) => jid.text === client.text)) this.#interested.follow(client);
  }

  #failed(thrown: unknown): void {
    this.#deps.log.error("roster.bug", { error: describeError(thrown) });
  }

  async #probe(asker: Jid, account: Jid): Promise<void> {
    const { hosts, log } = this.#deps;
    const store = hosts.store(account.domainpart);
    // A probe of a session was allowed before. It came back from a node that is gone.
    if (store === undefined || asker !== asker.bare) return;
    try {
      if (!await this.#subscriptions.allows(asker, account, store)) {
        return this.#metrics.probes.refused.inc();
      }
    } catch (thrown) {
      this.#metrics.failures.inc();
      log.warn("roster.probe-failed", { error: describeError(thrown) });
      return;
    }
    this.#metrics.probes.answered.inc();
    await this.#presence.forward(asker, account);
  }
}

/** Returns the stanza as one between bare JIDs (RFC 6121 §3, §4.3). */
function betweenAccounts(stanza: Stanza): Stanza {
  const { from, to, type } = stanza;
  if (stanza.type === "probe") {
    return probe(from.bare, to.bare);
  }
  if (from === from.bare && to === to.bare) return stanza;
  return from === from.bare
    ? readdress(stanza, to.bare)
    : buildStanza(element("presence", { type }), { from: from.bare, to: to.bare });
}
