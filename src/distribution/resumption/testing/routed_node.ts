import type { CancelTimer, Clock } from "../../../base/mod.ts";
import { SILENT_LOGGER } from "../../../observe/mod.ts";
import type { Fate, FullJid, Jid, Stanza } from "../../../xmpp/mod.ts";
import { parseJid } from "../../../xmpp/mod.ts";
import { MemoryMetrics } from "../../../xmpp/stream/testing/memory_metrics.ts";
import { Envelope } from "../../mod.ts";
import type { LocalOutcome, OwnSessions, SessionHost } from "../../routing/ports.ts";
import { Router } from "../../routing/router.ts";
import { idOf, message, TestNode } from "./nodes.ts";
import type { NodeParts, World } from "./nodes.ts";
import { TestTable } from "./test_table.ts";
import type { Claim } from "./test_table.ts";

/** A clock whose timers end with its node. */
class NodeClock implements Clock {
  isStopped = false;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  wallUs(): number {
    return this.#clock.wallUs();
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  after(delayMs: number, callback: () => void): CancelTimer {
    return this.#clock.after(delayMs, () => {
      if (!this.isStopped) callback();
    });
  }
}

/** Surroundings of a node: other nodes, senders, and time. */
interface AroundNode {
  readonly clock: Clock;
  /** Milliseconds that the database takes. */
  readonly lookupMs: number;
  nextEpoch(): number;
  note(event: string): void;
  /** Takes an error to a sender. */
  answered(stanza: Stanza): void;
  gaveUp(stanza: Stanza): void;
  /** Returns where a sender is: one whose node has died has logged in at another. */
  hostOfSender(jid: Jid): string;
  /** Puts a stanza on the lane to the node of a datacenter. */
  send(from: RoutedNode, host: string, envelope: Envelope): void;
  /** Tells the other nodes what a node has claimed. */
  announce(from: RoutedNode): void;
}

/** Returns the full JID of the sender with that number. */
export function senderJid(number: number): string {
  return `s${number}@example.com/x`;
}

/**
 * A node with its real router. Its session table is its own and learns from those of the others; the
 * lanes to other nodes are faked.
 */
export class RoutedNode {
  readonly node: TestNode;
  readonly table = new TestTable<RoutedNode>();
  /** Monotonic milliseconds until when its database answers nothing. */
  hangsUntilMs = 0;
  readonly router: Router;
  readonly #world: AroundNode;
  readonly #clock: NodeClock;
  /** Full JIDs whose place was looked up since it last changed. */
  readonly #looked = new Set<string>();
  /** Sessions in several datacenters of each account, as last looked up. */
  readonly #spread = new Map<string, readonly SessionHost[]>();

  constructor(process: number, world: AroundNode, shared: World) {
    this.#world = world;
    this.#clock = new NodeClock(shared.clock);
    const localHost = `dc${process}.example.com`;
    this.router = new Router({
      domains: {
        globalHost: "example.com",
        localHost,
        hosts: new Set(["example.com", localHost]),
        isOtherLocalHost: (domain) => domain !== localHost && /^dc\d\./.test(domain),
      },
    }, {
      process,
      clock: this.#clock,
      metrics: new MemoryMetrics(),
      log: {
        ...SILENT_LOGGER,
        debug: (event, fields) => world.note(`${localHost} ${event} ${JSON.stringify(fields)}`),
      },
      random: { unit: () => 0.5 },
      outbound: { send: (host, envelope) => world.send(this, host, envelope) },
      locations: {
        cached: (jid) => this.#cached(jid),
        locate: (jid) => this.#locate(jid),
        locateAgain: (jids) => Promise.all(jids.map((jid) => this.#locate(jid))),
        learn: () => false,
        spread: (jid) => this.#spread.get(jid.bare.text) ?? [],
        isUnplaced: () => false,
        forget: (jid) => void this.#looked.delete(jid.bare.text),
        expire: (jid) => void this.#looked.delete(jid.bare.text),
      },
      local: {
        servesDomain: () => false,
        deliver: (envelope) => this.#deliver(envelope),
        sessionsOf: (to) => this.#sessionsOf(to),
        replaceCopies: (message) => this.node.registry.replaceCopies(message),
      },
    });
    this.node = new TestNode(process, shared, { parts: () => this.#parts() });
  }

  /** True once the process has ended. */
  get isDead(): boolean {
    return this.#clock.isStopped;
  }

  /** Ends the process. */
  die(): void {
    this.#clock.isStopped = true;
    this.node.cutClients();
  }

  /** Makes a sender of this node write to a client, or to its account. */
  send(from: number, id: string, to: string, fate: Fate): void {
    this.router.accept(message(id, senderJid(from), to), fate, 0);
  }

  /** Takes what another node has said of claims. */
  learn(claims: readonly Claim<RoutedNode>[]): void {
    if (this.isDead) return;
    for (const claim of claims) if (this.table.apply(claim)) this.#changed(claim.jid);
  }

  /** Notes that a process has ended, with the sessions that it had. */
  learnDeathOf(other: RoutedNode): void {
    this.node.endedProcesses.add(other.node.process);
    this.learn(other.table.of(other).map((claim) => ({ ...claim, isLive: false })));
  }

  #parts(): NodeParts {
    const { memory } = this.router;
    return {
      clock: this.#clock,
      memory,
      opened: (jid) => this.#claim(jid),
      closed: (jid) => this.#withdraw(jid),
      reachable: (jid) => this.router.revealed(jid),
      returned: (delivery, reason) => {
        if (this.isDead) return;
        if (reason === "unreadable") this.#world.gaveUp(delivery.stanza);
        if (delivery instanceof Envelope) this.router.returned(delivery, reason);
      },
      hasMoved: (jid) => this.#hasMoved(jid),
    };
  }

  async #claim(jid: FullJid): Promise<void> {
    const claim = { jid: jid.text, at: this, epoch: this.#world.nextEpoch(), isLive: true };
    await this.#isBack();
    this.#announce(claim);
    await this.#answered();
  }

  async #withdraw(jid: FullJid): Promise<void> {
    await this.#isBack();
    const claim = this.table.claimOf(jid.text, this);
    if (claim !== undefined) this.#announce({ ...claim, isLive: false });
    await this.#answered();
  }

  #announce(claim: Claim<RoutedNode>): void {
    if (this.isDead) return;
    this.table.apply(claim);
    this.#looked.delete(parseJid(claim.jid).bare.text);
    this.#world.announce(this);
  }

  /** Answers as late as the database does. */
  async #answered(): Promise<void> {
    await this.#isBack();
    await this.#wait(this.#world.lookupMs);
  }

  /** Waits until the database does not hang. */
  async #isBack(): Promise<void> {
    const leftMs = this.hangsUntilMs - this.#world.clock.monotonicMs();
    if (leftMs > 0) await this.#wait(leftMs);
  }

  #wait(forMs: number): Promise<void> {
    return new Promise((resolve) => this.#world.clock.after(forMs, resolve));
  }

  #changed(jid: string): void {
    const full = parseJid(jid) as FullJid;
    this.#looked.delete(full.bare.text);
    const newest = this.table.newest(jid);
    const own = this.table.claimOf(jid, this);
    if (own?.isLive === true && newest!.at !== this) this.node.registry.find(full)?.end("conflict");
    this.router.revealed(full);
    this.router.revealed(full.bare);
  }

  #cached(jid: Jid): string | null | undefined {
    if (jid.localpart.startsWith("s")) return this.#world.hostOfSender(jid);
    if (this.node.resumption.follows(jid.text) !== undefined) return this.node.host;
    if (!this.#looked.has(jid.bare.text)) return undefined;
    return this.#placeOf(jid) ?? null;
  }

  async #locate(jid: Jid): Promise<string | undefined> {
    await this.#answered();
    if (jid.localpart.startsWith("s")) return this.#world.hostOfSender(jid);
    this.#looked.add(jid.bare.text);
    this.#spread.set(jid.bare.text, this.#spreadOf(jid));
    return this.#placeOf(jid);
  }

  /** Returns where a client is, or the newest login of its account. */
  #placeOf(jid: Jid): string | undefined {
    const claims = this.table.ofAccount(jid.bare.text).toSorted((one, other) =>
      other.epoch - one.epoch
    );
    return (this.table.newest(jid.text) ?? claims[0])?.at.node.host;
  }

  #spreadOf(jid: Jid): readonly SessionHost[] {
    const claims = this.table.ofAccount(jid.bare.text);
    if (claims.every(({ at }) => at === claims[0]!.at)) return [];
    return claims.map((claim) => ({
      host: claim.at.node.host,
      resourcepart: (parseJid(claim.jid) as FullJid).resourcepart,
    }));
  }

  async #hasMoved(jid: FullJid): Promise<boolean> {
    await this.#answered();
    const newest = this.table.newest(jid.text);
    const own = this.table.claimOf(jid.text, this);
    return newest !== undefined && newest.at !== this &&
      newest.epoch > (own?.isLive === true ? own.epoch : 0);
  }

  #deliver(envelope: Envelope): LocalOutcome {
    const { stanza } = envelope;
    if (stanza.to.localpart.startsWith("s")) {
      this.#world.answered(stanza);
      envelope.settle();
      return "delivered";
    }
    const outcome = this.node.registry.deliver(stanza, envelope);
    this.#world.note(
      `${this.node.host} delivers ${idOf(stanza)}: ${outcome}, kept ${envelope.isKept}`,
    );
    if (outcome === "delivered" && !envelope.isKept) envelope.settle();
    return outcome;
  }

  #sessionsOf(to: Jid): OwnSessions {
    const sessions = this.node.registry.ofAccount(to.bare.text);
    const priorities = sessions.flatMap(({ priority }) => priority ?? []);
    const priority = priorities.length > 0 ? Math.max(...priorities) : undefined;
    const isResourceHere = sessions.some(({ jid }) => jid.text === to.text);
    return { isHere: sessions.length > 0, isResourceHere, priority };
  }
}
