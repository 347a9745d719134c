import type { FairShares } from "../../base/mod.ts";
import type { Metrics } from "../../observe/mod.ts";
import { isRoomDomain, isRoomNews } from "../mod.ts";
import { FullJid } from "../../xmpp/mod.ts";
import type { Jid } from "../../xmpp/mod.ts";
import type { Envelope } from "../envelope.ts";
import { isUser, lookupKey } from "./addresses.ts";
import { copyEnvelope } from "./copy_envelope.ts";
import type { Domains } from "./decision.ts";
import { HandoverOrder } from "./handover_order.ts";
import type { HandoverOrderOptions, ReturnWaiting } from "./handover_order.ts";
import { spreadToUser } from "./spread_to_user.ts";
import type { Spread } from "./spread_to_user.ts";
import type {
  CarbonCopies,
  Handover,
  LocalDelivery,
  LocalOutcome,
  NodeSide,
  OwnSessions,
  Placement,
  Placements,
} from "./ports.ts";

/** The parts that `DatacenterSide` works with. */
export interface DatacenterSideDeps {
  readonly domains: Domains;
  /** This node's own sessions, components and services. */
  readonly node: NodeSide;
  readonly placements: Placements;
  readonly handover: Handover;
  /** Routes stanzas that `keepBehind` and `takeBack` took over. */
  readonly returned: ReturnWaiting;
  /** @default no session is told of messages for another */
  readonly carbons?: CarbonCopies;
  readonly metrics: Metrics;
  /** A wider bound that all waiting stanzas count for too. @default no bound */
  readonly budget?: FairShares;
}

/**
 * All nodes of this datacenter as one local side. It delivers to sessions here, and hands over to
 * the node that has the session or component (docs/architecture.md, "Several nodes in one
 * datacenter").
 *
 * A stanza that was handed over once is not handed over again, whether it can be delivered or not:
 * two nodes that know different things must not send it to and fro.
 */
export class DatacenterSide implements LocalDelivery {
  readonly #deps: DatacenterSideDeps;
  readonly #order: HandoverOrder;
  /** The node that was handed stanzas on last. */
  #heir: string | undefined;

  /** @param bounds of the stanzas that wait for earlier ones at another node */
  constructor(deps: DatacenterSideDeps, bounds: HandoverOrderOptions = {}) {
    this.#deps = deps;
    this.#order = new HandoverOrder(deps.domains, deps.returned, bounds, deps.budget);
    deps.metrics.gauge({
      name: "causeway_handover_queue_size",
      help: "Stanzas that wait until another node has settled earlier stanzas of their sender",
    }, () => this.#order.waiting);
    deps.metrics.gauge({
      name: "causeway_handover_queue_bytes",
      help: "Bytes of the stanzas that wait for earlier stanzas at another node",
    }, () => this.#order.waitingBytes);
  }

  servesDomain(domain: string): boolean {
    return this.#deps.node.servesDomain(domain);
  }

  sessionsOf(to: Jid): OwnSessions {
    const { node, placements } = this.#deps;
    const own = node.ownSessions(to);
    if (!placements.hasNeighbours) return own;
    let { isHere, isResourceHere, priority } = own;
    for (const placed of this.#living(to)) {
      isHere = true;
      if (to instanceof FullJid && placed.resourcepart === to.resourcepart) isResourceHere = true;
      if (placed.priority === undefined) continue;
      if (priority === undefined || placed.priority > priority) priority = placed.priority;
    }
    return { isHere, isResourceHere, priority };
  }

  replaceCopies(message: Envelope): boolean {
    return this.#deps.node.replaceCopies?.(message) === true;
  }

  prepare(
    envelope: Envelope,
    turn: (envelope: Envelope) => Promise<void> | undefined,
  ): Promise<unknown> | undefined {
    const { placements, domains } = this.#deps;
    const { to } = envelope.stanza;
    if (!placements.hasNeighbours || !isUser(to, domains)) return undefined;
    if (!placements.isUnplaced(to)) return undefined;
    const waiting = turn(envelope);
    return waiting === undefined
      ? placements.locate(to)
      : waiting.then(() => placements.locate(to));
  }

  deliver(envelope: Envelope): LocalOutcome {
    const { node, placements, domains } = this.#deps;
    if (envelope.arrival === "handed-over") return this.#deliverHandedOver(envelope);
    if (!placements.hasNeighbours) return node.deliver(envelope);
    const { to } = envelope.stanza;
    if (isUser(to, domains)) return this.#deliverToUser(envelope);
    if (isRoomNews(envelope.stanza, domains)) return this.#tellNodes(envelope);
    const isServedHere = domains.hosts.has(to.domainpart) ||
      isRoomDomain(to.domainpart, domains) || node.servesDomain(to.domainpart);
    return isServedHere ? node.deliver(envelope) : this.#deliverToComponent(envelope);
  }

  handOn(envelope: Envelope): boolean {
    const { placements, handover } = this.#deps;
    const isHeir = (node: string) => !handover.isGone(node) && !handover.isGivenUp(node);
    // The same heir for all stanzas keeps their order, whoever joins the datacenter meanwhile.
    if (this.#heir === undefined || !isHeir(this.#heir)) {
      this.#heir = [...placements.neighbours].filter(isHeir).toSorted()[0];
    }
    if (this.#heir === undefined) return false;
    handover.send(this.#heir, envelope);
    return true;
  }

  keepBehind(envelope: Envelope): boolean | "full" {
    const kept = this.#order.keepBehind(envelope, (node) => this.#isAt(envelope.stanza.to, node));
    if (kept === undefined || kept === "full") return kept ?? false;
    this.#deps.handover.reconsider(kept.node);
    return true;
  }

  takeBack(envelope: Envelope, isToGoOn: boolean): boolean {
    return this.#order.takeBack(envelope, isToGoOn);
  }

  giveUpWaiting(): readonly Envelope[] {
    return this.#order.drain();
  }

  deliverElsewhere(envelope: Envelope): void {
    const { placements } = this.#deps;
    if (!placements.hasNeighbours) return envelope.settle();
    this.#sendCopies(envelope, nodesOf(this.#living(envelope.stanza.to)));
    envelope.settle();
  }

  mayBeElsewhere(account: Jid): boolean {
    const { placements } = this.#deps;
    if (!placements.hasNeighbours) return false;
    return placements.isUnplaced(account) || this.#living(account).length > 0;
  }

  #deliverHandedOver(envelope: Envelope): LocalOutcome {
    const outcome = this.#deps.node.deliver(envelope);
    // If it is routed again, this node decides anew. A session may have given it back already.
    if (envelope.arrival === "handed-over") envelope.arrived("here");
    // The original stanza answers for the copy.
    return envelope.isCopy && outcome !== "delivered" ? "ignored" : outcome;
  }

  #deliverToUser(envelope: Envelope): LocalOutcome {
    const { node } = this.#deps;
    const { stanza } = envelope;
    const placements = this.#living(stanza.to);
    if (placements.length === 0) return node.deliver(envelope);
    if (stanza.type === "probe") return this.#probe(envelope, placements);
    if (envelope.isCarbon) return this.#tellAll(envelope, placements);
    const own = node.ownSessions(stanza.to);
    const spread = spreadToUser(
      stanza,
      own,
      placements,
      envelope.isRerouted,
      isRoomDomain(stanza.from.domainpart, this.#deps.domains),
    );
    if (spread.isTaken) this.#tellOthers(envelope, placements, { spread, own });
    // A copy that no session takes is a carbon for all.
    const isForAll = envelope.isCopy && !spread.isTaken;
    const { isHere, nodes } = isForAll
      ? { isHere: own.isHere, nodes: nodesOf(placements) }
      : spread;
    const [first, ...others] = nodes;
    if (first === undefined) return node.deliver(envelope);
    if (isHere) return this.#deliverHereFirst(envelope, nodes);
    this.#sendCopies(envelope, others);
    return this.#handOver(envelope, first);
  }

  /** Hands an allowed probe to all nodes with sessions of the account: each answers for its own. */
  #probe(envelope: Envelope, placements: readonly Placement[]): LocalOutcome {
    this.#sendCopies(envelope, nodesOf(placements));
    return this.#deps.node.deliver(envelope);
  }

  /** Makes all nodes with sessions of the account give them their carbons. */
  #tellAll(envelope: Envelope, placements: readonly Placement[]): LocalOutcome {
    this.#sendCopies(envelope, nodesOf(placements));
    return this.#deps.node.deliver(envelope);
  }

  /** Makes the nodes that do not get a message give their sessions of the account their carbons. */
  #tellOthers(
    envelope: Envelope,
    placements: readonly Placement[],
    { spread, own }: { readonly spread: Spread; readonly own: OwnSessions },
  ): void {
    const { carbons, node, handover } = this.#deps;
    const { stanza } = envelope;
    if (carbons === undefined || stanza.kind !== "message") return;
    const nodes = new Set(placements.map((placed) => placed.node));
    for (const taken of spread.nodes) nodes.delete(taken);
    // It may come back from a node that has died. Other nodes recognise a second carbon by its id.
    const tellsHere = !spread.isHere && own.isHere && !envelope.isTold;
    if ((nodes.size === 0 && !tellsHere) || !carbons.copies(stanza)) return;
    const copies = [...copyEnvelope(envelope, nodes.size + (tellsHere ? 1 : 0))];
    for (const copy of copies) copy.isCarbon = true;
    if (tellsHere) {
      envelope.isTold = true;
      const copy = copies.pop()!;
      if (node.deliver(copy) !== "delivered") copy.settle();
    }
    for (const [i, other] of [...nodes].entries()) handover.send(other, copies[i]!);
  }

  /**
   * Delivers here first. The first node that takes the stanza answers for it: this one, else
   * `nodes[0]`.
   */
  #deliverHereFirst(envelope: Envelope, nodes: readonly string[]): LocalOutcome {
    const copies = copyEnvelope(envelope, nodes.length);
    const outcome = this.#deps.node.deliver(envelope);
    if (outcome !== "delivered") copies[0]!.settle(); // the envelope itself goes to that node
    for (let i = outcome === "delivered" ? 0 : 1; i < nodes.length; i++) {
      this.#deps.handover.send(nodes[i]!, copies[i]!);
    }
    return outcome === "delivered" ? outcome : this.#handOver(envelope, nodes[0]!);
  }

  #sendCopies(envelope: Envelope, nodes: readonly string[]): void {
    if (nodes.length === 0) return;
    const copies = copyEnvelope(envelope, nodes.length);
    for (let i = 0; i < nodes.length; i++) this.#deps.handover.send(nodes[i]!, copies[i]!);
  }

  #handOver(envelope: Envelope, node: string): "handed-over" {
    this.#order.handed(envelope, node);
    this.#deps.handover.send(node, envelope);
    return "handed-over";
  }

  /** Makes all nodes of this datacenter take what the nodes of another tell of rooms. */
  #tellNodes(envelope: Envelope): LocalOutcome {
    const { node, placements, handover } = this.#deps;
    this.#sendCopies(envelope, [...placements.neighbours].filter((each) => !handover.isGone(each)));
    return node.deliver(envelope);
  }

  /** Hands to the first of the component's nodes: the same for all stanzas keeps their order. */
  #deliverToComponent(envelope: Envelope): LocalOutcome {
    const { node } = this.#deps;
    const { to } = envelope.stanza;
    const [first] = this.#living(lookupKey(to, this.#deps.domains));
    if (first === undefined) return node.deliver(envelope);
    return this.#handOver(envelope, first.node);
  }

  /**
   * True when the resource is at `node`. For a resource that is nowhere: when its account or
   * component is.
   */
  #isAt(to: Jid, node: string): boolean {
    const { domains, node: own } = this.#deps;
    // A node whose process has ended has no sessions, even if the table still names it.
    const all = this.#living(lookupKey(to, domains));
    if (to instanceof FullJid && isUser(to, domains)) {
      if (own.ownSessions(to).isResourceHere) return false;
      const placed = all.find(({ resourcepart }) => resourcepart === to.resourcepart);
      if (placed !== undefined) return placed.node === node;
    }
    return all.some((each) => each.node === node);
  }

  #living(key: Jid): readonly Placement[] {
    const { placements, handover } = this.#deps;
    const all = placements.placements(key);
    for (let i = 0; i < all.length; i++) {
      if (handover.isGone(all[i]!.node)) return all.filter(({ node }) => !handover.isGone(node));
    }
    return all;
  }
}

/** Returns each node that has some of the sessions, once. */
function nodesOf(placements: readonly Placement[]): readonly string[] {
  return [...new Set(placements.map(({ node }) => node))];
}
