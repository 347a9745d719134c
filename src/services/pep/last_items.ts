import type { CancelTimer } from "../../base/mod.ts";
import { CausewayError, describeError } from "../../base/mod.ts";
import type { LastPepItem, RosterContact, Subscription } from "../../storage/mod.ts";
import { isSeen, seesPresence } from "../../storage/mod.ts";
import type { FullJid, Jid } from "../../xmpp/mod.ts";
import { parseJid } from "../../xmpp/mod.ts";
import { NodeConfig } from "./node_config.ts";
import { admits, relationOf } from "./pep_access.ts";
import { eventStanza } from "./pep_events.ts";
import type { PepMetrics } from "./pep_metrics.ts";
import type { PepDeps } from "./pep_ports.ts";

/** Bytes of a payload that is sent unasked; a client can ask for a larger one. */
export const MAX_LAST_ITEM_BYTES = 16_384;
/** Last items that one client is sent at once. It keeps none of them from reading on. */
const MAX_AT_ONCE = 1_000;
/** Accounts, and nodes, of one query; their product bounds what it returns. */
const ACCOUNTS_AT_ONCE = 250;
const NODES_AT_ONCE = 100;
const ITEMS_AT_ONCE = 1_000;
/** Clients whose last items are read at once, and clients that may wait for that. */
const MAX_RUNNING = 10;
const MAX_WAITING = 100_000;
/** Milliseconds that last items wait after a login: the presence of its contacts comes first. */
export const PAUSE_MS = 500;
/** Milliseconds after which last items that could not be read are read again. */
export const RETRY_MS = 5_000;
/**
 * Bytes in memory of contacts that were read for presence. The contacts of other clients are read
 * again. One of them costs its JID, at one or two bytes a character, and its objects.
 */
const MAX_KEPT_BYTES = 16 * 1_048_576;
const CONTACT_OVERHEAD_BYTES = 128;

/** Collaborators of `LastItems`. */
export interface LastItemsDeps extends PepDeps {
  readonly counters: PepMetrics;
}

/**
 * Sends clients the last items of the nodes that they are interested in, when they become available
 * (XEP-0163 §4.3.4). The node of the client reads them from the store that all nodes share, so
 * nobody else has to do anything.
 */
export class LastItems {
  readonly #deps: LastItemsDeps;
  /** Readings that wait for their turn, in their order. */
  readonly #waiting = new Set<() => Promise<void>>();
  /** Readings under way for clients that are still there. */
  readonly #readings = new Set<Reading>();
  /** Full JIDs of clients that wait for what they may have missed: once is enough for them. */
  readonly #missing = new Set<string>();
  /** Clients whose last items are not read yet, for the pause or for their turn, by full JID. */
  readonly #paused = new Map<string, Pause>();
  #keptBytes = 0;
  /** True once a reading has failed, until the next one that does not. */
  #hasFailed = false;
  #running = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(deps: LastItemsDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a client of this node the last items of these nodes, after a pause: its own account's, and
   * those of the contacts whose presence its owner may see.
   */
  send(jid: FullJid, nodes: ReadonlySet<string>): void {
    const pause = this.#pause(jid, nodes, PAUSE_MS);
    if (pause !== undefined) void this.#keepContacts(jid, pause); // never rejects
  }

  /** Begins a pause. Undefined when there is one, which brings these nodes too, and without room. */
  #pause(jid: FullJid, nodes: Iterable<string>, pauseMs: number): Pause | undefined {
    const paused = this.#paused.get(jid.text);
    if (paused !== undefined) {
      for (const node of nodes) paused.nodes.add(node);
      return undefined;
    }
    if (!this.#hasRoom) return void this.#deps.counters.failures.inc();
    const pause: Pause = {
      nodes: new Set(nodes),
      told: new Set(),
      contacts: undefined,
      cancel: this.#deps.clock.after(pauseMs, () => {
        pause.cancel = this.#await(() => {
          this.#paused.delete(jid.text);
          const { nodes, contacts, told } = pause;
          return { to: jid, nodes: [...nodes], contacts, told, sinceMs: undefined };
        });
      }),
    };
    this.#paused.set(jid.text, pause);
    return pause;
  }

  /**
   * Sends a client of this node, without a pause, those last items of these nodes that were published
   * since `sinceMs`, in wall-clock milliseconds.
   */
  sendMissed(jid: FullJid, nodes: ReadonlySet<string>, sinceMs: number): void {
    const paused = this.#paused.get(jid.text)?.nodes;
    if (this.#missing.has(jid.text) || paused?.isSupersetOf(nodes) === true) return;
    if (!this.#hasRoom) return this.#deps.counters.failures.inc();
    this.#missing.add(jid.text);
    this.#await(() => {
      this.#missing.delete(jid.text);
      return { to: jid, nodes: [...nodes], contacts: undefined, told: new Set(), sinceMs };
    });
  }

  /** True while a client is yet to be sent the last items after its login. */
  isSending({ text }: FullJid): boolean {
    return this.#paused.has(text) ||
      [...this.#readings].some(({ to, sinceMs }) => to.text === text && sinceMs === undefined);
  }

  /** Sends a client that is gone, or no longer available, nothing any more. */
  closed({ text }: FullJid): void {
    for (const each of this.#readings) if (each.to.text === text) this.#readings.delete(each);
    const paused = this.#paused.get(text);
    if (paused === undefined) return;
    this.#paused.delete(text);
    paused.cancel();
    this.#keptBytes -= bytesOf(paused.contacts);
  }

  /**
   * Notes that a client is told of a change. What was read before that is not sent any more: it
   * would come behind what is newer. What would be read after that says nothing new.
   */
  told(jid: FullJid, owner: Jid, { node, hasItem }: ToldChange): void {
    const key = nodeKey(owner, node);
    const paused = this.#paused.get(jid.text)?.told;
    if (hasItem) paused?.add(key);
    else paused?.delete(key); // a retraction does not say what the last item is
    for (const { to, told } of this.#readings) if (to.text === jid.text) told.add(key);
  }

  /** Waits until all clients have got theirs. */
  async settled(): Promise<void> {
    if (this.#running === 0) return;
    this.#idle ??= Promise.withResolvers();
    await this.#idle.promise;
  }

  /** Keeps the contacts that presence is told, so that a login reads them once. */
  async #keepContacts(jid: FullJid, pause: Pause): Promise<void> {
    const contacts = await this.#deps.contactsTold(jid);
    if (contacts === undefined || this.#paused.get(jid.text) !== pause) return;
    // Without their requests, each of which may have kilobytes.
    const seen = contacts.filter(({ subscription }) => isSeen(subscription))
      .map(({ jid, subscription }) => ({ jid, subscription }));
    const bytes = bytesOf(seen);
    if (this.#keptBytes + bytes > MAX_KEPT_BYTES) return;
    this.#keptBytes += bytes;
    pause.contacts = seen;
  }

  get #hasRoom(): boolean {
    return this.#paused.size + this.#missing.size < MAX_WAITING;
  }

  /** Makes a reading wait for its turn, when `begin` says what is read. Returns a function that ends that. */
  #await(begin: () => Reading): () => void {
    const task = () => this.#read(begin());
    this.#waiting.add(task);
    this.#run();
    return () => void this.#waiting.delete(task);
  }

  /** Never rejects. */
  async #read(reading: Reading): Promise<void> {
    const { to: jid, contacts } = reading;
    this.#readings.add(reading);
    try {
      await this.#deps.paced.run(async () => {
        if (!this.#isThere(jid)) return;
        await this.#send(reading);
        this.#hasFailed = false;
      });
    } catch (thrown) {
      this.#deps.counters.failures.inc();
      const error = describeError(thrown);
      if (!this.#hasFailed) this.#deps.log.warn("pep.last-items-failed", { error });
      this.#hasFailed = true;
      if (thrown instanceof CausewayError && thrown.retryable) this.#sendLater(reading);
    } finally {
      this.#readings.delete(reading);
      this.#keptBytes -= bytesOf(contacts);
    }
  }

  /** Sends a client later what a failed reading has not sent it. */
  #sendLater(reading: Reading): void {
    const { to, nodes, told, sinceMs } = reading;
    if (sinceMs !== undefined || !this.#readings.has(reading)) return;
    this.#pause(to, nodes, RETRY_MS);
    for (const each of told) this.#paused.get(to.text)?.told.add(each);
  }

  #run(): void {
    for (const next of this.#waiting) {
      if (this.#running >= MAX_RUNNING) break;
      this.#waiting.delete(next);
      this.#running++;
      void next().finally(() => { // it never rejects
        this.#running--;
        this.#run();
      });
    }
    if (this.#running > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  async #send(reading: Reading): Promise<void> {
    const { to: jid, nodes } = reading;
    let failure: unknown;
    const contacts = await this.#contactsOf(reading).catch((thrown) => {
      failure = thrown; // the items of the account itself need no roster
      return [];
    });
    const byDomain = Map.groupBy(
      [jid.bare, ...contacts],
      ({ domainpart }) => domainpart,
    );
    const nodesAtOnce = Math.min(nodes.length, NODES_AT_ONCE);
    const atOnce = Math.min(ACCOUNTS_AT_ONCE, Math.max(1, Math.floor(ITEMS_AT_ONCE / nodesAtOnce)));
    let left = MAX_AT_ONCE;
    for (const accounts of byDomain.values()) {
      for (let start = 0; start < accounts.length && left > 0; start += atOnce) {
        const some = accounts.slice(start, start + atOnce);
        left -= await this.#sendFrom(reading, left, some);
      }
    }
    if (failure !== undefined) throw failure;
  }

  /** Returns the contacts whose presence a client's owner sees, and whose items lie here. */
  async #contactsOf({ to: jid, contacts }: Reading): Promise<readonly Jid[]> {
    const { hosts } = this.#deps;
    const found = contacts ?? await hosts.rosters(jid.domainpart)?.contacts(jid.bare.text) ?? [];
    return found.filter(({ subscription }) => isSeen(subscription))
      .map(({ jid: text }) => parseJid(text))
      .filter(({ domainpart }) => hosts.store(domainpart) !== undefined);
  }

  /** Returns the number of items that were sent. */
  async #sendFrom(
    reading: Reading,
    left: number,
    accounts: readonly Jid[],
  ): Promise<number> {
    const { hosts, routes, counters } = this.#deps;
    const { to, nodes, sinceMs, told } = reading;
    const store = hosts.store(accounts[0]!.domainpart); // all have one domain
    if (store === undefined) return 0;
    const byLocalpart = new Map(accounts.map((each) => [each.localpart, each]));
    let sent = 0;
    for (let start = 0; start < nodes.length; start += NODES_AT_ONCE) {
      const found = await store.lastItems({
        localparts: [...byLocalpart.keys()],
        nodes: nodes.slice(start, start + NODES_AT_ONCE),
        maxPayloadBytes: MAX_LAST_ITEM_BYTES,
        ...sinceMs !== undefined && { sinceMs },
      });
      const owners = new Set(found.map(({ localpart }) => byLocalpart.get(localpart)!));
      const others = [...owners].filter(({ text }) => text !== to.bare.text);
      // Read behind the items, which may have been published once their owner was hidden.
      const [hiders, subscriptions] = others.length === 0
        ? []
        : await Promise.all([hosts.hiders?.(others), this.#subscriptionsTo(to.bare, others)]);
      const isOwn = ({ localpart }: LastPepItem) =>
        byLocalpart.get(localpart)!.text === to.bare.text; // it was asked for
      const ownFirst = found.toSorted((one, other) => Number(isOwn(other)) - Number(isOwn(one)));
      for (const { localpart, node, id, xml } of ownFirst) {
        const owner = byLocalpart.get(localpart)!; // it was asked for
        if (hiders?.get(owner.text)?.(to) === true) continue;
        const config = NodeConfig.decode(node.config);
        if (config.sendsLast !== "on_sub_and_presence") continue;
        const subscription = subscriptions?.get(owner.text);
        if (!await this.#maySee(to, { owner, config, subscription })) continue;
        if (sent >= left) return sent;
        if (!this.#readings.has(reading)) return left; // the client is gone
        const payload = config.deliversPayloads ? xml : undefined;
        const key = nodeKey(owner, node.name);
        if (told.has(key)) continue;
        told.add(key);
        const change = { kind: "item", id, xml: payload } as const;
        routes.deliver(to, eventStanza({ node: node.name, change }, { from: owner, to }));
        counters.lastItems.inc();
        sent++;
      }
    }
    return sent;
  }

  #isThere({ bare, text }: FullJid): boolean {
    return this.#deps.sessions.here(bare.text).some(({ jid, lastPresence }) =>
      jid.text === text && lastPresence !== undefined
    );
  }

  /** Returns what the rosters of some accounts of one host say of a client's account. */
  async #subscriptionsTo(
    { text }: Jid,
    owners: readonly Jid[],
  ): Promise<ReadonlyMap<string, Subscription> | undefined> {
    const rosters = this.#deps.hosts.rosters(owners[0]!.domainpart); // there is one at least
    return await rosters?.subscriptions(owners.map((owner) => owner.text), text);
  }

  /** @param node `subscription`: what the owner's roster says of the asker */
  async #maySee(
    asker: FullJid,
    { owner, config, subscription }: {
      readonly owner: Jid;
      readonly config: NodeConfig;
      readonly subscription: Subscription | undefined;
    },
  ): Promise<boolean> {
    if (owner.text === asker.bare.text) return true;
    const { accessModel } = config;
    const affiliation = config.affiliationOf(asker.bare.text);
    if (affiliation === "outcast") return false;
    if (accessModel === "open") return true;
    // Nobody is sent anything unasked who may not see the presence.
    if (!seesPresence(subscription)) return false;
    return accessModel === "presence" ||
      admits(config, await relationOf(this.#deps.hosts, owner, asker));
  }
}

function nodeKey(owner: Jid, node: string): string {
  return `${owner.text} ${node}`; // no bare JID has a space in it
}

function bytesOf(contacts: readonly KeptContact[] = []): number {
  let bytes = 0;
  for (const { jid } of contacts) bytes += 2 * jid.length + CONTACT_OVERHEAD_BYTES;
  return bytes;
}

/** A contact as it is kept between a login and the reading of its last items. */
type KeptContact = Pick<RosterContact, "jid" | "subscription">;

/** A change that a client is told of. */
export interface ToldChange {
  readonly node: string;
  /** True when it brings an item. */
  readonly hasItem: boolean;
}

/** The time until a client's last items are read: a pause, and a wait for their turn. */
interface Pause {
  readonly nodes: Set<string>;
  /** Nodes of which the client has got an item meanwhile. */
  readonly told: Set<string>;
  /** The contacts that were told the client's presence, where they are kept. */
  contacts: readonly KeptContact[] | undefined;
  /** Ends the pause, or the wait for a turn behind it. */
  cancel: CancelTimer;
}

/** The last items of one client, while they are read. */
interface Reading {
  readonly to: FullJid;
  readonly nodes: readonly string[];
  /** Undefined: they are read from the roster. */
  readonly contacts: readonly KeptContact[] | undefined;
  readonly sinceMs: number | undefined;
  /** Nodes of which the client has heard meanwhile, from others or by this reading. */
  readonly told: Set<string>;
}
