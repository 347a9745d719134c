import { describeError } from "../../base/mod.ts";
import type { RosterContact } from "../../storage/mod.ts";
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
const ACCOUNTS_AT_ONCE = 100;
const NODES_AT_ONCE = 100;
const ITEMS_AT_ONCE = 1_000;
/** Clients whose last items are read at once, and clients that may wait for that. */
const MAX_RUNNING = 10;
const MAX_WAITING = 100_000;

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
  readonly #waiting: (() => Promise<void>)[] = [];
  readonly #readings = new Set<Reading>();
  /** Full JIDs of clients that wait for what they may have missed: once is enough for them. */
  readonly #missing = new Set<string>();
  #running = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  constructor(deps: LastItemsDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a client of this node the last items of these nodes: its own account's, and those of the
   * contacts whose presence its owner may see.
   *
   * @param sinceMs wall-clock milliseconds: only items published since then
   */
  send(jid: FullJid, nodes: ReadonlySet<string>, sinceMs?: number): void {
    if (sinceMs !== undefined && this.#missing.has(jid.text)) return;
    if (this.#waiting.length >= MAX_WAITING) return this.#deps.counters.failures.inc();
    if (sinceMs !== undefined) this.#missing.add(jid.text);
    this.#waiting.push(async () => {
      if (sinceMs !== undefined) this.#missing.delete(jid.text);
      if (!this.#isThere(jid)) return;
      const reading = { to: jid, nodes: [...nodes], sinceMs, told: new Set<string>() };
      this.#readings.add(reading);
      try {
        await this.#send(reading);
      } catch (thrown) {
        this.#deps.counters.failures.inc();
        this.#deps.log.warn("pep.last-items-failed", { error: describeError(thrown) });
      } finally {
        this.#readings.delete(reading);
      }
    });
    this.#run();
  }

  /**
   * Notes that a client is told of a change. What was read before that is not sent any more: it
   * would come behind what is newer.
   */
  told(jid: FullJid, owner: Jid, node: string): void {
    for (const { to, told } of this.#readings) {
      if (to.text === jid.text) told.add(nodeKey(owner, node));
    }
  }

  /** Waits until all clients have got theirs. */
  async settled(): Promise<void> {
    if (this.#running === 0) return;
    this.#idle ??= Promise.withResolvers();
    await this.#idle.promise;
  }

  #run(): void {
    while (this.#running < MAX_RUNNING) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
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
    const { hosts } = this.#deps;
    const { to: jid } = reading;
    const own = { jid: jid.bare, reverse: undefined };
    let left = MAX_AT_ONCE - await this.#sendFrom(reading, MAX_AT_ONCE, [own]);
    const contacts = await hosts.rosters(jid.domainpart)?.contacts(jid.bare.text) ?? [];
    const byDomain = new Map<string, Contact[]>();
    for (const { jid: text, subscription, reverse } of contacts) {
      if (!isSeen(subscription)) continue;
      const contact = parseJid(text);
      const { domainpart } = contact;
      if (hosts.store(domainpart) === undefined) continue;
      const others = byDomain.get(domainpart) ?? [];
      others.push({ jid: contact, reverse });
      byDomain.set(domainpart, others);
    }
    const nodesAtOnce = Math.min(reading.nodes.length, NODES_AT_ONCE);
    const atOnce = Math.min(ACCOUNTS_AT_ONCE, Math.max(1, Math.floor(ITEMS_AT_ONCE / nodesAtOnce)));
    for (const accounts of byDomain.values()) {
      for (let start = 0; start < accounts.length && left > 0; start += atOnce) {
        const some = accounts.slice(start, start + atOnce);
        left -= await this.#sendFrom(reading, left, some);
      }
    }
  }

  /** Returns the number of items that were sent. */
  async #sendFrom(
    { to, nodes, sinceMs, told }: Reading,
    left: number,
    accounts: readonly Contact[],
  ): Promise<number> {
    const { hosts, routes, counters } = this.#deps;
    const store = hosts.store(accounts[0]!.jid.domainpart); // all have one domain
    if (store === undefined) return 0;
    const byLocalpart = new Map(accounts.map((each) => [each.jid.localpart, each]));
    let sent = 0;
    for (let start = 0; start < nodes.length; start += NODES_AT_ONCE) {
      const found = await store.lastItems({
        localparts: [...byLocalpart.keys()],
        nodes: nodes.slice(start, start + NODES_AT_ONCE),
        maxPayloadBytes: MAX_LAST_ITEM_BYTES,
        ...sinceMs !== undefined && { sinceMs },
      });
      const owners = new Set(found.map(({ localpart }) => byLocalpart.get(localpart)!.jid));
      const others = [...owners].filter(({ text }) => text !== to.bare.text);
      const hiders = others.length === 0 ? undefined : await hosts.hiders?.(others);
      for (const { localpart, node, id, xml } of found) {
        const owner = byLocalpart.get(localpart)!; // it was asked for
        if (hiders?.get(owner.jid.text)?.(to) === true) continue;
        const config = NodeConfig.decode(node.config);
        if (config.sendsLast !== "on_sub_and_presence") continue;
        if (!await this.#maySee(to, owner, config)) continue;
        if (sent >= left) return sent;
        if (!this.#isThere(to)) return left;
        const payload = config.deliversPayloads ? xml : undefined;
        if (told.has(nodeKey(owner.jid, node.name))) continue;
        const change = { kind: "item", id, xml: payload } as const;
        routes.deliver(to, eventStanza({ node: node.name, change }, { from: owner.jid, to }));
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

  async #maySee(asker: FullJid, { jid, reverse }: Contact, config: NodeConfig): Promise<boolean> {
    if (jid.text === asker.bare.text) return true;
    const affiliation = config.affiliationOf(asker.bare.text);
    if (affiliation === "outcast") return false;
    // Nobody is sent anything unasked who may not see the presence.
    if (config.accessModel === "whitelist" && (affiliation === undefined || !seesIt(reverse))) {
      return false;
    }
    if (config.accessModel === "open") return true;
    if (config.accessModel === "presence" && reverse !== undefined) return seesPresence(reverse);
    return admits(config, await relationOf(this.#deps.hosts, jid, asker));
  }
}

/** False for a subscription that certainly does not show the presence. */
function seesIt(reverse: Contact["reverse"]): boolean {
  return reverse === undefined || seesPresence(reverse);
}

function nodeKey(owner: Jid, node: string): string {
  return `${owner.text} ${node}`; // no bare JID has a space in it
}

/** The last items of one client, while they are read. */
interface Reading {
  readonly to: FullJid;
  readonly nodes: readonly string[];
  readonly sinceMs: number | undefined;
  /** Nodes of which the client has heard meanwhile. */
  readonly told: Set<string>;
}

/** An account whose items a client may be interested in. */
interface Contact extends Pick<RosterContact, "reverse"> {
  readonly jid: Jid;
}
