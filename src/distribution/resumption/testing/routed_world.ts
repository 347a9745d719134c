import { ManualClock } from "../../../base/mod.ts";
import type { Jid, Stanza } from "../../../xmpp/mod.ts";
import type { Envelope } from "../../mod.ts";
import { idOf } from "./nodes.ts";
import type { World } from "./nodes.ts";
import { RoutedNode } from "./routed_node.ts";
import { TestLane } from "./test_lane.ts";
import { TestLink } from "./test_link.ts";

/** Milliseconds between the end of a link and a new one, and between looks at a node that has ended. */
const REDIAL_MS = 100;
const GONE_MS = 200;
/** Milliseconds between two steps of time. */
const STEP_MS = 25;

/** A message on its way to the client. */
export interface SentMessage {
  readonly sender: number;
  readonly at: RoutedNode;
  /** True once its sender may forget it, whichever node dies. */
  isCovered: boolean;
  isSettled: boolean;
}

/** Nodes of as many datacenters, linked by two links each pair, one dialled by each side. */
export class RoutedWorld {
  readonly clock = new ManualClock();
  readonly nodes: readonly RoutedNode[];
  /** Milliseconds that the database takes. */
  readonly lookupMs: number;
  readonly sent = new Map<string, SentMessage>();
  /** Ids of messages that came back to their senders as errors. */
  readonly refused = new Set<string>();
  /** Ids of messages that were withdrawn because streams ended over them. */
  readonly withdrawn = new Set<string>();
  /** Events so far, for a failed test. */
  readonly story: string[] = [];
  readonly #lanes = new Map<string, TestLane>();
  readonly #links = new Map<string, TestLink>();
  /** Milliseconds that things take from one node to another. */
  readonly #delays = new Map<string, number>();
  /** Times until which pairs of nodes cannot link. */
  readonly #cutUntil = new Map<string, number>();
  #epoch = 0;

  constructor(count: number, lookupMs: number) {
    this.lookupMs = lookupMs;
    const shared: World = { clock: this.clock, claims: new Map() };
    this.nodes = Array.from({ length: count }, (_, at) => new RoutedNode(at + 1, this, shared));
    for (const [from, to] of this.#ways()) {
      this.#lanes.set(keyOf(from, to), new TestLane(from, to));
      this.#dial(from, to);
    }
  }

  get living(): readonly RoutedNode[] {
    return this.nodes.filter(({ isDead }) => !isDead);
  }

  nextEpoch(): number {
    return ++this.#epoch;
  }

  note(event: string): void {
    this.story.push(`${this.clock.monotonicMs()} ${event}`);
  }

  /**
   * Makes a sender write to a client, or to its account.
   * @returns the id of the message; undefined when the sender's node has ended
   */
  write(sender: number, to: string): string | undefined {
    const at = this.nodes[sender % this.nodes.length]!;
    if (at.isDead) return undefined;
    const id = `m${this.sent.size + 1}`;
    const message = { sender, at, isCovered: false, isSettled: false };
    this.sent.set(id, message);
    this.note(`s${sender} writes ${id} at ${at.node.host} to ${to}`);
    at.send(sender, id, to, {
      settle: () => {
        message.isCovered = true;
        message.isSettled = true;
        this.note(`${id} is settled`);
      },
      held: () => {
        message.isCovered = true;
      },
    });
    return id;
  }

  /** Takes an error to a sender. */
  answered(stanza: Stanza): void {
    this.note(`error for ${idOf(stanza)}`);
    this.refused.add(idOf(stanza));
  }

  gaveUp(stanza: Stanza): void {
    this.withdrawn.add(idOf(stanza));
  }

  /** Returns where a sender is: one whose node has died has logged in at another. */
  hostOfSender(jid: Jid): string {
    const node = this.nodes[Number(jid.localpart.slice(1)) % this.nodes.length]!;
    return (node.isDead ? this.living[0]! : node).node.host;
  }

  /** Puts a stanza on the lane to the node of a datacenter. */
  send(from: RoutedNode, host: string, envelope: Envelope): void {
    const to = this.nodes.find(({ node }) => node.host === host)!;
    if (!from.node.endedProcesses.has(to.node.process)) {
      return this.#lanes.get(keyOf(from, to))!.append(envelope);
    }
    this.clock.after(GONE_MS, () => {
      if (!from.isDead) from.router.returned(envelope, "peer-gone");
    });
  }

  /** Tells the other nodes what a node has claimed. */
  announce(from: RoutedNode): void {
    for (const to of this.nodes) if (to !== from) this.#tellClaims(from, to);
  }

  /** Delays what goes from one node to another from now on. */
  delay(from: RoutedNode, to: RoutedNode, delayMs: number): void {
    this.#delays.set(keyOf(from, to), delayMs);
  }

  /** Cuts all links between two nodes, which learn of it and are linked again later. */
  cut(
    [one, other]: readonly [RoutedNode, RoutedNode],
    learnMs: readonly [number, number],
    healMs: number,
  ): void {
    this.#cutUntil.set(pairOf(one, other), this.clock.monotonicMs() + healMs);
    for (const key of [keyOf(one, other), keyOf(other, one)]) {
      this.#links.get(key)?.sever((node) => learnMs[node === one.node ? 0 : 1]);
    }
  }

  /** Ends the process of a node; the others learn of it later. */
  kill(node: RoutedNode, learnMs: number): void {
    if (node.isDead) return;
    node.die();
    for (const other of this.living) {
      for (const key of [keyOf(node, other), keyOf(other, node)]) {
        this.#links.get(key)?.sever((each) => each === node.node ? Infinity : learnMs);
      }
      this.clock.after(learnMs + GONE_MS, () => {
        if (other.isDead) return;
        other.learnDeathOf(node);
        const lane = this.#lanes.get(keyOf(other, node))!;
        for (const envelope of lane.takeAll()) other.router.returned(envelope, "peer-gone");
      });
    }
  }

  /** Makes the database of a node answer nothing for a while. */
  hang(node: RoutedNode, forMs: number): void {
    node.hangsUntilMs = this.clock.monotonicMs() + forMs;
  }

  /** Ends all delays and cuts. */
  heal(): void {
    this.#delays.clear();
    this.#cutUntil.clear();
    for (const [from, to] of this.#ways()) this.#dial(from, to);
  }

  /** Lets `forMs` pass, with all that is due and all that follows. */
  async pass(forMs: number, between: () => void = () => {}): Promise<void> {
    for (let left = forMs; left > 0; left -= STEP_MS) {
      await settle();
      between();
      this.clock.advance(Math.min(STEP_MS, left));
    }
    await settle();
  }

  async end(): Promise<void> {
    const ends = this.nodes.map(({ node }) => node.end());
    await this.pass(200);
    await Promise.all(ends);
  }

  *#ways(): Iterable<[RoutedNode, RoutedNode]> {
    for (const from of this.nodes) for (const to of this.nodes) if (from !== to) yield [from, to];
  }

  #dial(from: RoutedNode, to: RoutedNode): void {
    const key = keyOf(from, to);
    if (this.#links.get(key)?.isOpenAt(from.node) === true || from.isDead || to.isDead) return;
    const leftMs = (this.#cutUntil.get(pairOf(from, to)) ?? 0) - this.clock.monotonicMs();
    if (leftMs > 0) return void this.clock.after(leftMs, () => this.#dial(from, to));
    const link = new TestLink(from.node, to.node);
    this.#links.set(key, link);
    const ways = [keyOf(from, to), keyOf(to, from)] as const;
    link.delayMs = (node) => this.#delays.get(ways[node === from.node ? 0 : 1]) ?? 0;
    link.ended = (node) => {
      if (node === from.node) this.clock.after(REDIAL_MS, () => this.#dial(from, to));
    };
    this.#lanes.get(key)!.linked(link);
    this.#tellClaims(from, to);
  }

  #tellClaims(from: RoutedNode, to: RoutedNode): void {
    const claims = from.table.of(from);
    this.#links.get(keyOf(from, to))?.carry(from.node, () => to.learn(claims));
  }
}

/** Lets all that is in memory arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 8; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

function keyOf(from: RoutedNode, to: RoutedNode): string {
  return `${from.node.process}-${to.node.process}`;
}

function pairOf(one: RoutedNode, other: RoutedNode): string {
  return one.node.process < other.node.process ? keyOf(one, other) : keyOf(other, one);
}
