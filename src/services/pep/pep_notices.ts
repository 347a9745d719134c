import { describeError, FairShares, randomHex } from "../../base/mod.ts";
import { seesPresence } from "../../storage/mod.ts";
import type { Jid, Stanza } from "../../xmpp/mod.ts";
import { FullJid, parseJid, readdress, recipientHolders, stanzaId, Turns } from "../../xmpp/mod.ts";
import { NodeConfig } from "./node_config.ts";
import { admits, relationOf } from "./pep_access.ts";
import type { ArrivedEvent, NodeChange } from "./pep_events.ts";
import { eventStanza, readEvent } from "./pep_events.ts";
import type { ToldChange } from "./last_items.ts";
import type { PepMetrics } from "./pep_metrics.ts";
import type { PepDeps } from "./pep_ports.ts";

/**
 * Bytes of a payload that goes along with its notification. A larger one is read by those nodes
 * that have an interested client: most notifications of large items interest nobody.
 */
export const MAX_INLINE_BYTES = 4_096;

/** Notifications that one client may have waiting until its interests are known. */
const MAX_HELD = 20;
/** Bytes of such notifications for all clients, of which each account has a fair share. */
const MAX_HELD_BYTES = 4 * 1_048_576;

/** One or several attempts to tell of a change. */
export interface Telling {
  /** True when the change had to wait, so that its node may be another one by now. */
  readonly isLate: boolean;
  /** True to tell sessions elsewhere later: earlier changes wait for the session table. */
  readonly isForThoseHere: boolean;
  /** Recipients that were told by earlier attempts, each with the node that it was told of. */
  readonly told: Set<string>;
}

/** Collaborators of `PepNotices`. */
export interface PepNoticesDeps extends PepDeps {
  readonly counters: PepMetrics;
  /** Returns the nodes that a session here wants to hear of; undefined while that is not known. */
  interests(jid: FullJid): ReadonlySet<string> | undefined;
  /** Called when a session here is told of a change. */
  told(jid: FullJid, owner: Jid, change: ToldChange): void;
  /** Called with each notification that an account's own session here gets. */
  seen(account: Jid, event: ArrivedEvent): void;
}

/**
 * Notifications of changes, from the node where something is published to interested clients.
 *
 * The node of the publisher knows who may see a change: the owner's sessions, and those of contacts
 * with a subscription to the owner's presence. It sends one notification to each of their sessions
 * in all datacenters. Only the node of a session knows whether its client is interested, and drops
 * the notification if not. So no node has to know the capabilities of clients elsewhere, and a
 * session that moves is followed as for every other stanza.
 */
export class PepNotices {
  readonly #deps: PepNoticesDeps;
  /** Each client hears of one node's changes in their order, also while an item of it is read. */
  readonly #turns = new Turns();
  /** Items that are read, by the notification that they are read for: it comes for many sessions. */
  readonly #items = new Map<string, Promise<FoundItem | undefined>>();
  /** Notifications for clients whose interests are not known yet, by full JID, in their order. */
  readonly #held = new Map<string, Stanza[]>();
  readonly #room = new FairShares({ maxBytes: MAX_HELD_BYTES });
  /** Two processes must not use one id: their notifications would share the reading of an item. */
  readonly #idPrefix = `pep-${randomHex(6)}`;
  #count = 0;

  constructor(deps: PepNoticesDeps) {
    this.#deps = deps;
  }

  /**
   * Tells all whom a change of a node concerns, or nobody.
   *
   * @returns false when sessions elsewhere are to be told by another attempt
   * @throws CausewayError with a code `storage/…`
   */
  async tell(
    owner: Jid,
    { node, config, change }: {
      readonly node: string;
      readonly config: NodeConfig;
      readonly change: NodeChange;
    },
    telling: Telling,
  ): Promise<boolean> {
    const isInternal = change.kind === "configuration";
    const hides = isInternal
      ? undefined
      : (await this.#deps.hosts.hiders?.([owner]))?.get(owner.text);
    const all = isInternal ? [] : await this.#contactsFor(owner, config);
    const contacts = hides === undefined ? all : all.filter((contact) => !hides(contact));
    return await this.#send([owner, ...contacts], owner, { node, change, telling });
  }

  /**
   * Sends the last items of nodes to all sessions of one contact, who may see them.
   * @returns false when sessions elsewhere are to be told by another attempt
   */
  async tellContact(
    owner: Jid,
    contact: Jid,
    items: readonly {
      readonly node: string;
      readonly config: NodeConfig;
      readonly id: string;
      readonly xml: string | undefined;
    }[],
    telling: Telling,
  ): Promise<boolean> {
    let hasToldAll = true;
    for (const { node, config, id, xml } of items) {
      const change = reduced({ kind: "item", id, xml }, config);
      const hasTold = await this.#send([contact], owner, { node, change, telling });
      hasToldAll &&= hasTold;
    }
    return hasToldAll;
  }

  /**
   * Takes a notification that arrives for an account of this node. Undefined for another stanza,
   * and for one that is delivered as every other.
   */
  arrived(stanza: Stanza): "delivered" | "ignored" | undefined {
    return this.#take(stanza, { hasWaited: false });
  }

  #take(
    stanza: Stanza,
    { hasWaited }: { readonly hasWaited: boolean },
  ): "delivered" | "ignored" | undefined {
    const { hosts, sessions, counters } = this.#deps;
    const { from, to } = stanza;
    if (from !== from.bare || from.localpart === "") return undefined;
    const { domainpart } = from;
    if (hosts.store(domainpart) === undefined && !hosts.isElsewhere(domainpart)) return undefined;
    const event = readEvent(stanza);
    if (event === undefined) return undefined;
    // One that is moving away keeps what comes for it, which follows it.
    const here = sessions.here(to.bare.text).filter(({ isOpen }) => isOpen);
    const addressed = to instanceof FullJid ? here.filter(({ jid }) => jid.text === to.text) : here;
    if (addressed.length === 0) return undefined; // the session may be elsewhere by now
    if (from.text === to.bare.text) this.#deps.seen(from, event);
    if (event.isInternal) return "ignored";
    const available = addressed.filter(({ lastPresence }) => lastPresence !== undefined);
    const wanted = available.filter(({ jid }) => this.#deps.interests(jid)?.has(event.node));
    const told = { node: event.node, hasItem: event.item !== undefined };
    for (const { jid } of wanted) this.#deps.told(jid, from, told);
    let held = 0;
    for (const { jid } of available) {
      if (this.#deps.interests(jid) === undefined && this.#hold(jid, stanza)) held++;
    }
    if (wanted.length === 0) {
      if (held > 0) return "delivered";
      counters.unwanted.inc();
      return "ignored";
    }
    const { item } = event;
    const isServed = hosts.store(domainpart) !== undefined;
    const isRead = item !== undefined && isServed &&
      (item.payload === undefined || (hasWaited && this.#mayBeHidden(stanza, event)));
    const mustWait = isRead || wanted.some(({ jid }) => this.#turns.has(turnOf(jid, from, event)));
    if (!mustWait && to instanceof FullJid) return undefined;
    for (const { jid } of wanted) this.#tellInTurn(jid, stanza, { event, isRead });
    return "delivered";
  }

  /** Delivers, or drops, what has waited for a client whose interests are known now. */
  released(jid: FullJid): void {
    for (const stanza of this.#takeHeld(jid)) {
      if (this.#take(stanza, { hasWaited: true }) === undefined) {
        this.#deps.routes.deliver(jid, stanza);
      }
    }
  }

  /** Drops what waits for a client that is no longer available. */
  unavailable(jid: FullJid): void {
    this.#takeHeld(jid);
  }

  /**
   * Sends what waits for a client after its session, which has moved away. The session's node takes a
   * payload for one that has just been sent, so it is asked here who may see it.
   */
  moved(jid: FullJid): void {
    for (const stanza of this.#takeHeld(jid)) {
      const { from } = stanza;
      const event = readEvent(stanza)!; // it was one when it began to wait
      const isRead = this.#mayBeHidden(stanza, event);
      if (isRead || this.#turns.has(turnOf(jid, from, event))) {
        this.#tellInTurn(jid, stanza, { event, isRead });
      } else this.#deps.routes.route(stanza);
    }
  }

  /** Tells one client of a change, behind earlier ones of the same node. */
  #tellInTurn(
    jid: FullJid,
    stanza: Stanza,
    { event, isRead }: { readonly event: ArrivedEvent; readonly isRead: boolean },
  ): void {
    const addressed = readdress(stanza, jid);
    const { node, item } = event;
    const turn = turnOf(jid, stanza.from, event);
    const isAsked = isRead || (this.#turns.has(turn) && this.#mayBeHidden(stanza, event));
    const tell = isAsked && item !== undefined
      ? () => this.#fill(jid, addressed, { node, id: item.id })
      : () => Promise.resolve(this.#deliver(jid, addressed, addressed));
    void this.#turns.run(turn, tell); // it never rejects
  }

  /**
   * True for a notification with a payload that its recipient may not see any more once it has waited.
   * The owner's own clients see all of it, and another datacenter's nodes cannot be read here.
   */
  #mayBeHidden({ from, to }: Stanza, { item }: ArrivedEvent): boolean {
    return item?.payload !== undefined && from.text !== to.bare.text &&
      this.#deps.hosts.store(from.domainpart) !== undefined;
  }

  #takeHeld(jid: FullJid): readonly Stanza[] {
    const held = this.#held.get(jid.text) ?? [];
    this.#held.delete(jid.text);
    const holders = recipientHolders(jid.bare.text);
    for (const { bytes } of held) this.#room.release(holders, bytes.length);
    return held;
  }

  /** Waits until all payloads that are to be read have been read. */
  async settled(): Promise<void> {
    await this.#turns.settled();
  }

  /**
   * Keeps a notification until the interests of its client are known. The last items that the client
   * gets then tell neither of retracted items nor of nodes that send none. The oldest make room: a last
   * item that is told here is not sent again, so that nothing newer may be missing behind it. False when
   * it cannot wait.
   */
  #hold(jid: FullJid, stanza: Stanza): boolean {
    if (this.#deps.hosts.store(jid.domainpart) === undefined) return false; // nobody asks its client
    const addressed = readdress(stanza, jid);
    const { bytes: { length } } = addressed;
    const held = this.#held.get(jid.text) ?? [];
    const holders = recipientHolders(jid.bare.text);
    const hasRoom = () => held.length < MAX_HELD && this.#room.mayHold(holders, length);
    while (held.length > 0 && !hasRoom()) this.#room.release(holders, held.shift()!.bytes.length);
    if (hasRoom()) {
      held.push(addressed);
      this.#room.hold(holders, length);
    }
    if (held.length > 0) this.#held.set(jid.text, held);
    else this.#held.delete(jid.text);
    return held.length > 0;
  }

  /**
   * Delivers a notification with the payload that the store has. An item that is gone by now is not
   * told: another notification says so. Never rejects.
   */
  async #fill(
    client: FullJid,
    stanza: Stanza,
    { node, id }: { readonly node: string; readonly id: string },
  ): Promise<void> {
    const { counters, log } = this.#deps;
    const { from } = stanza;
    const withPayload = (xml: string | undefined) =>
      eventStanza({ node, change: { kind: "item", id, xml } }, {
        from,
        to: client,
        id: this.#newId(),
      });
    let told: Stanza;
    let came = stanza;
    try {
      const found = await this.#itemOf(stanza, { node, id });
      // The item may be newer than the notification, and hidden from the client by now.
      if (found === undefined || !await this.#isAdmitted(stanza, found.config)) return;
      const { config, xml } = found;
      if (xml === undefined && config.persists) return;
      if (!config.deliversPayloads) told = withPayload(undefined);
      else told = xml === undefined ? stanza : withPayload(xml);
    } catch (thrown) {
      // The client can ask for the item itself, and a node that follows the session reads it.
      came = told = withPayload(undefined);
      counters.failures.inc();
      log.warn("pep.payload-unread", { error: describeError(thrown) });
    }
    this.#deliver(client, told, came);
  }

  /** Delivers a notification. A session that has moved is followed, by the stanza that came for it. */
  #deliver(to: FullJid, told: Stanza, came: Stanza): void {
    const { sessions, routes } = this.#deps;
    if (routes.deliver(to, told)) return;
    const here = sessions.here(to.bare.text);
    const isHere = here.some(({ jid, isOpen }) => isOpen && jid.text === to.text);
    if (!isHere) routes.route(came); // its node reads the payload again
  }

  /** Reads an item, once for all sessions here that the same notification is for. */
  #itemOf(
    stanza: Stanza,
    { node, id }: { readonly node: string; readonly id: string },
  ): Promise<FoundItem | undefined> {
    const { from } = stanza;
    const key = JSON.stringify([from.text, stanzaId(stanza), node, id]);
    let reading = this.#items.get(key);
    if (reading === undefined) {
      const store = this.#deps.hosts.store(from.domainpart)!; // asked before
      const read = async () => {
        try {
          const [item] = await store.items(from.localpart, node, [id]);
          // Read behind the item, which may have been published once the node was hidden.
          const found = await store.node(from.localpart, node);
          return found && { config: NodeConfig.decode(found.config), xml: item?.xml };
        } finally {
          this.#items.delete(key);
        }
      };
      this.#items.set(key, reading = read());
    }
    return reading;
  }

  /** True for a recipient who may see the node by now. */
  async #isAdmitted({ from, to }: Stanza, config: NodeConfig): Promise<boolean> {
    return from.text === to.bare.text ||
      admits(config, await relationOf(this.#deps.hosts, from, to));
  }

  /** Returns false when sessions elsewhere were not told, as nobody knows them. */
  async #send(
    accounts: readonly Jid[],
    owner: Jid,
    { telling, ...event }: {
      readonly node: string;
      readonly change: NodeChange;
      readonly telling: Telling;
    },
  ): Promise<boolean> {
    const { hosts, sessions, routes, counters } = this.#deps;
    const [served, others]: [Jid[], Jid[]] = [[], []];
    for (const each of accounts) {
      const isServed = hosts.store(each.domainpart) !== undefined ||
        hosts.rosters(each.domainpart) !== undefined;
      (isServed ? served : others).push(each);
    }
    // Other datacenters take nothing from us in the name of people of our further hosts.
    const { globalHost, localHost } = hosts;
    const mayLeave = owner.domainpart === globalHost || owner.domainpart === localHost;
    const stanza = eventStanza(event, { from: owner, to: owner, id: this.#newId() });
    const { told, isForThoseHere } = telling;
    const isFirst = (recipient: string) => {
      const key = `${recipient}\n${event.node}`; // no JID has a line break in it
      const isNew = !told.has(key);
      told.add(key);
      return isNew;
    };
    const found = isForThoseHere
      ? undefined
      : await sessions.everywhere(served.map(({ text }) => text));
    for (const account of served) {
      const isGlobal = mayLeave && account.domainpart === globalHost;
      const places = new Map<string, string>();
      for (const { host, resourcepart } of found?.get(account.text) ?? []) {
        // Accounts of other hosts have sessions at this datacenter alone.
        if (isGlobal || host === localHost) places.set(resourcepart, host);
      }
      for (const { jid } of sessions.here(account.text)) {
        places.set(jid.resourcepart, localHost);
      }
      for (const [resourcepart, host] of places) {
        const recipient = `${account.text}/${resourcepart}`;
        if (!isFirst(recipient)) continue;
        counters.notified.inc();
        // The place is known: no lookup is charged to the owner, whose messages do not wait.
        routes.sendTo(host, readdress(stanza, parseJid(recipient)));
      }
    }
    for (const account of others) {
      if (!mayLeave || !hosts.isElsewhere(account.domainpart) || !isFirst(account.text)) continue;
      counters.notified.inc();
      routes.route(readdress(stanza, account));
    }
    return found !== undefined;
  }

  /** Returns the contacts who may see a node, apart from those who ask by themselves. */
  async #contactsFor(owner: Jid, config: NodeConfig): Promise<readonly Jid[]> {
    const rosters = this.#deps.hosts.rosters(owner.domainpart);
    const { accessModel, affiliations } = config;
    const hasMembers = [...affiliations.values()].includes("member");
    if (rosters === undefined || (accessModel === "whitelist" && !hasMembers)) return [];
    if (accessModel === "roster") {
      const { items } = await rosters.read(owner.text);
      return items.filter(({ jid, subscription, groups }) =>
        seesPresence(subscription) && affiliations.get(jid) !== "outcast" &&
        config.rosterGroups.some((group) => groups.includes(group))
      ).map(({ jid }) => parseJid(jid));
    }
    // A member who may not see the presence can read the node, and is sent nothing unasked.
    const contacts = await rosters.contacts(owner.text);
    const subscribers = contacts.filter(({ jid, subscription }) =>
      seesPresence(subscription) && affiliations.get(jid) !== "outcast" &&
      (accessModel !== "whitelist" || affiliations.get(jid) === "member")
    ).map(({ jid }) => parseJid(jid));
    if (accessModel !== "whitelist") return subscribers;
    const creations = await this.#deps.hosts.creations(subscribers);
    return subscribers.filter(({ text }) =>
      config.affiliationOf(text, creations.get(text)) === "member"
    );
  }

  #newId(): string {
    return `${this.#idPrefix}-${(++this.#count).toString(36)}`;
  }
}

/** The configuration of a node with the payload of one item. */
interface FoundItem {
  readonly config: NodeConfig;
  /** Undefined when the node has no such item. */
  readonly xml: string | undefined;
}

/** Returns the turn in which a client is told of the changes of one node. */
function turnOf(client: FullJid, owner: Jid, { node }: ArrivedEvent): string {
  return JSON.stringify([client.text, owner.text, node]);
}

/** Returns a change as it is sent: large payloads stay behind, where others can read them. */
export function reduced(change: NodeChange, config: NodeConfig): NodeChange {
  if (change.kind !== "item" || change.xml === undefined) return change;
  const isLarge = config.persists && new TextEncoder().encode(change.xml).length > MAX_INLINE_BYTES;
  return isLarge || !config.deliversPayloads ? { ...change, xml: undefined } : change;
}
