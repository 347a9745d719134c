import type { PepStore } from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { parseJid, serialize } from "../../xmpp/mod.ts";
import { AvatarPhotos } from "./avatar_photos.ts";
import { ClientCaps } from "./client_caps.ts";
import type { FormValues } from "./data_form.ts";
import { LastItems } from "./last_items.ts";
import { AVATAR_METADATA } from "./namespaces.ts";
import type { Affiliation } from "./node_config.ts";
import { ACCESS_MODEL, NodeConfig } from "./node_config.ts";
import { admits, relationOf } from "./pep_access.ts";
import type { NodeChange } from "./pep_events.ts";
import { PepMetrics } from "./pep_metrics.ts";
import { PepNotices, reduced } from "./pep_notices.ts";
import type { PepDeps, PepHosts, PepOutcome, Publication, StillCheck } from "./pep_ports.ts";
import { UntoldChanges } from "./untold_changes.ts";

/** Attempts at a change of a node that others change at the same moment. */
const MAX_ATTEMPTS = 8;
/** Milliseconds of items that clients may have missed while datacenters were cut off. */
const MISSED_WITHIN_MS = 86_400_000;
/** Milliseconds by which clocks of nodes may differ, and which a session takes to move. */
const CLOCKS_MS = 60_000;
/** Bytes of an item that no node stores: all sessions of all contacts are sent it. */
const MAX_TRANSIENT_BYTES = 16_384;
/** Nodes of one query. */
const NODES_AT_ONCE = 100;

/** Place of a change: one node of an account. */
interface ChangePlace {
  readonly owner: Jid;
  readonly node: string;
  readonly isStill: StillCheck | undefined;
}

/** A node as it was found in the store. */
interface FoundNode {
  readonly text: string;
  readonly config: NodeConfig;
}

/** A change that has been written. */
interface Written {
  /** The configuration that the node has now. */
  readonly config: NodeConfig;
  /** The news of it for others. */
  readonly change: NodeChange;
}

/** Outcome of one attempt at a change; `changed`: others have changed the node in between. */
type Attempted = Written | Exclude<PepOutcome, "done"> | "changed";

/** Personal eventing of the accounts of this datacenter's hosts (XEP-0163). */
export class PepServer {
  readonly hosts: PepHosts;
  /** The conversion between avatars and the photos of vCards. */
  readonly photos: AvatarPhotos;
  readonly #deps: PepDeps;
  readonly #counters: PepMetrics;
  readonly #caps: ClientCaps;
  readonly #notices: PepNotices;
  readonly #last: LastItems;
  readonly #untold: UntoldChanges;

  constructor(deps: PepDeps) {
    this.#deps = deps;
    this.hosts = deps.hosts;
    const { routes, clock, metrics } = deps;
    const counters = this.#counters = new PepMetrics(metrics);
    this.#untold = new UntoldChanges({ ...deps, counters });
    this.#last = new LastItems({ ...deps, counters });
    this.#caps = new ClientCaps({
      deliver: (to, stanza) => routes.deliver(to, stanza),
      interested: (jid, nodes, sinceMs) => {
        if (sinceMs === undefined) this.#last.send(jid, nodes);
        else this.#last.sendMissed(jid, nodes, sinceMs - CLOCKS_MS);
      },
      learned: (jid) => this.#notices.released(jid),
      clock,
      metrics,
    });
    this.photos = new AvatarPhotos({
      ...deps,
      publish: (...change) => this.publish(...change),
    });
    this.#notices = new PepNotices({
      ...deps,
      counters,
      interests: (jid) => this.#caps.interests(jid),
      told: (jid, owner, change) => this.#last.told(jid, owner, change),
      seen: (account, event) => {
        if (event.node === AVATAR_METADATA) this.photos.changed(account);
      },
    });
  }

  /** Takes the presence that a session of this node has broadcast. */
  presenceChanged(jid: FullJid, presence: Stanza): void {
    if (this.#deps.hosts.store(jid.domainpart) === undefined) return;
    this.#caps.presence(jid, presence);
    if (presence.type === "available") return;
    // A client that comes back at once gets all last items again (XEP-0163 §4.3.4).
    this.#last.closed(jid);
    this.#notices.unavailable(jid);
  }

  /** A session was bound at this node, and has not sent presence yet. */
  opened(jid: FullJid): void {
    this.photos.opened(jid);
  }

  /**
   * A session came from another node, with this presence.
   * @param isNew true when it may not have been sent the last items there
   */
  arrived(jid: FullJid, presence: Stanza | undefined, isNew: boolean): void {
    this.photos.opened(jid);
    if (presence === undefined || this.#deps.hosts.store(jid.domainpart) === undefined) return;
    this.#caps.presence(jid, presence, !isNew);
  }

  /** True while a session here may still be sent the last items, as it has become available. */
  isSending(jid: FullJid): boolean {
    return this.#caps.isUnserved(jid) || this.#last.isSending(jid);
  }

  /** A session has ended, or has moved away: then it has sent no unavailable presence before. */
  closed(jid: FullJid): void {
    this.#caps.closed(jid);
    this.#last.closed(jid);
    this.#notices.moved(jid);
    this.photos.closed(jid);
  }

  /** Takes a client's answer to a question of this server; false for another stanza. */
  answered(stanza: Stanza): boolean {
    return this.#caps.answered(stanza);
  }

  /**
   * Takes a notification that arrives for an account of this node. Undefined for another stanza,
   * and for one that is delivered as every other.
   */
  notified(stanza: Stanza): "delivered" | "ignored" | undefined {
    return this.#notices.arrived(stanza);
  }

  /** Sends clients here what they may have missed while a datacenter was cut off. */
  datacenterBack(): void {
    this.photos.readAgain();
    const sinceMs = this.#deps.clock.wallMs() - MISSED_WITHIN_MS;
    for (const { jid } of this.#deps.sessions.all()) {
      const interests = this.#caps.interests(jid);
      if (interests !== undefined && interests.size > 0) {
        this.#last.sendMissed(jid, interests, sinceMs);
      }
    }
  }

  /** Sends somebody who may see the presence of `owner` from now on the last items of `owner`. */
  approved(owner: Jid, contact: Jid): void {
    this.#untold.tell({ owner, bytes: 0 }, async (telling) => {
      const { hosts } = this.#deps;
      const store = hosts.store(owner.domainpart);
      if (store === undefined) return true;
      const relation = await relationOf(hosts, owner, contact);
      const configs = new Map<string, NodeConfig>();
      for (const { name, config: text } of await store.nodes(owner.localpart)) {
        const config = NodeConfig.decode(text);
        if (config.sendsLast === "never" || !config.delivers) continue;
        if (admits(config, relation)) configs.set(name, config);
      }
      const names = [...configs.keys()];
      let hasToldAll = true;
      for (let start = 0; start < names.length; start += NODES_AT_ONCE) {
        const found = await store.lastItems({
          localparts: [owner.localpart],
          nodes: names.slice(start, start + NODES_AT_ONCE),
          maxPayloadBytes: 0, // the nodes of interested clients read them
        });
        const items = found.map(({ node: { name: node }, id, xml }) => ({
          node,
          config: configs.get(node)!, // it was asked for
          id,
          xml,
        }));
        const hasTold = await this.#notices.tellContact(owner, contact, items, telling);
        hasToldAll &&= hasTold;
      }
      return hasToldAll;
    });
  }

  /**
   * Publishes an item. A node that is missing is made. Resolves once the item is durable; the
   * notifications follow.
   *
   * @param isStill asked before the item is written, and once more where that has made the node: the
   * next owner of the name must not have it
   * @throws CausewayError with a code `storage/…`
   */
  async publish(
    owner: Jid,
    { node, id, payload, options = new Map() }: Publication,
    isStill?: StillCheck,
  ): Promise<PepOutcome> {
    const limits = this.#deps.hosts.limits(owner.domainpart);
    const xml = serialize(payload);
    const bytes = new TextEncoder().encode(xml).length;
    if (bytes > limits.maxItemBytes) return "too-large";
    const outcome = await this.#change({ owner, node, isStill }, async (store, found) => {
      if (found !== undefined && !found.config.meets(options, limits)) {
        return "precondition-not-met";
      }
      const config = found?.config ?? NodeConfig.newOf(node).with(options, limits);
      if (config === undefined) return refusalOf(options);
      if (!config.persists && config.deliversPayloads && bytes > MAX_TRANSIENT_BYTES) {
        return "too-large";
      }
      if (config.persists || found === undefined) {
        const result = await store.publish(owner.localpart, {
          node,
          expected: found?.text,
          config: config.encode(),
          item: config.persists ? { id, xml } : undefined,
          maxItems: config.maxItems(limits),
        }, limits);
        if (result !== "published") return result;
      }
      return { config, change: { kind: "item", id, xml } };
    });
    if (outcome === "done") this.#counters.published.inc();
    return outcome;
  }

  /**
   * Makes a node without an item.
   *
   * @param isStill see `publish`
   * @throws CausewayError with a code `storage/…`
   */
  async create(
    owner: Jid,
    node: string,
    options: FormValues,
    isStill?: StillCheck,
  ): Promise<PepOutcome> {
    const limits = this.#deps.hosts.limits(owner.domainpart);
    return await this.#change({ owner, node, isStill }, async (store, found) => {
      if (found !== undefined) return "exists";
      const config = NodeConfig.newOf(node).with(options, limits);
      if (config === undefined) return refusalOf(options);
      const result = await store.publish(owner.localpart, {
        node,
        expected: undefined,
        config: config.encode(),
        item: undefined,
        maxItems: 1,
      }, limits);
      if (result !== "published") return result;
      return { config, change: { kind: "configuration" } };
    });
  }

  /**
   * Changes the configuration of a node.
   *
   * @param isStill see `publish`
   * @throws CausewayError with a code `storage/…`
   */
  async configure(
    owner: Jid,
    node: string,
    values: FormValues,
    isStill?: StillCheck,
  ): Promise<PepOutcome> {
    const limits = this.#deps.hosts.limits(owner.domainpart);
    return await this.#reconfigure(
      { owner, node, isStill },
      (config) => config.with(values, limits) ?? refusalOf(values),
    );
  }

  async #reconfigure(
    place: ChangePlace,
    changed: (config: NodeConfig) => NodeConfig | Exclude<PepOutcome, "done">,
  ): Promise<PepOutcome> {
    const { owner, node } = place;
    const limits = this.#deps.hosts.limits(owner.domainpart);
    return await this.#changeFound(place, async (store, found) => {
      const config = changed(found.config);
      if (typeof config === "string") return config;
      const isEmptied = found.config.persists && !config.persists;
      if (isEmptied) await this.#removing(owner, node);
      const isDone = await store.configure(owner.localpart, {
        node,
        expected: found.text,
        config: config.encode(),
        // Items published from now on are not kept: an older item must not pass for the last one.
        maxItems: config.persists ? config.maxItems(limits) : 0,
      });
      return isDone ? { config, change: { kind: "configuration" } } : "changed";
    });
  }

  /**
   * Changes affiliations of accounts with a node, by their bare JIDs. The next owner of a member's
   * name is no member.
   *
   * @param isStill see `publish`
   * @throws CausewayError with a code `storage/…`
   */
  async affiliate(
    owner: Jid,
    node: string,
    changes: ReadonlyMap<string, Affiliation | "none">,
    isStill?: StillCheck,
  ): Promise<PepOutcome> {
    const members = [...changes].filter(([, affiliation]) => affiliation === "member");
    const creations = await this.#deps.hosts.creations(members.map(([jid]) => parseJid(jid)));
    return await this.#reconfigure(
      { owner, node, isStill },
      (config) => config.affiliate(changes, creations) ?? "full",
    );
  }

  /**
   * Removes items of a node.
   *
   * @param isTold true to notify others even where the node does not say so
   * @param isStill see `publish`
   * @throws CausewayError with a code `storage/…`
   */
  async retract(
    owner: Jid,
    node: string,
    { ids, isTold }: { readonly ids: readonly string[]; readonly isTold: boolean },
    isStill?: StillCheck,
  ): Promise<PepOutcome> {
    return await this.#changeFound({ owner, node, isStill }, async (store, { text, config }) => {
      await this.#removing(owner, node);
      const count = await store.retract(owner.localpart, { node, expected: text, ids });
      if (count === undefined) return "changed";
      if (count === 0) return "no-item";
      this.#counters.retracted.inc(count);
      const isSilent = !isTold && !config.notifiesRetract;
      return { config, change: isSilent ? { kind: "configuration" } : { kind: "retract", ids } };
    });
  }

  /**
   * Removes all items of a node.
   *
   * @param isStill see `publish`
   * @throws CausewayError with a code `storage/…`
   */
  async purge(owner: Jid, node: string, isStill?: StillCheck): Promise<PepOutcome> {
    return await this.#changeFound({ owner, node, isStill }, async (store, { text, config }) => {
      await this.#removing(owner, node);
      const count = await store.retract(owner.localpart, { node, expected: text });
      if (count === undefined) return "changed";
      this.#counters.retracted.inc(count);
      return { config, change: { kind: config.notifiesRetract ? "purge" : "configuration" } };
    });
  }

  /**
   * Removes a node with its items.
   *
   * @param isStill see `publish`
   * @throws CausewayError with a code `storage/…`
   */
  async remove(owner: Jid, node: string, isStill?: StillCheck): Promise<PepOutcome> {
    return await this.#changeFound({ owner, node, isStill }, async (store, { text, config }) => {
      await this.#removing(owner, node);
      if (!await store.remove(owner.localpart, { node, expected: text })) return "changed";
      return { config, change: { kind: config.notifiesDelete ? "delete" : "configuration" } };
    });
  }

  /**
   * Waits until all that has happened so far is told, as `settled` does. What cannot be told now is not
   * told any more, so that this ends also without a database.
   */
  async close(): Promise<void> {
    this.#untold.close();
    await this.settled();
  }

  /** Waits until all that has happened so far is told. */
  async settled(): Promise<void> {
    await this.#untold.settled();
    await this.#last.settled();
    await this.#notices.settled();
    await this.photos.settled();
  }

  /** Attempts a change of a node that is there. */
  #changeFound(
    place: ChangePlace,
    attempt: (store: PepStore, found: FoundNode) => Promise<Attempted>,
  ): Promise<PepOutcome> {
    return this.#change(
      place,
      async (store, found) => found === undefined ? "no-node" : await attempt(store, found),
    );
  }

  /**
   * Attempts a change of a node until none of others comes in between. An attempt changes the node that
   * it is given, or none: a node of the name's next owner has another configuration.
   */
  async #change(
    { owner, node, isStill }: ChangePlace,
    attempt: (store: PepStore, found: FoundNode | undefined) => Promise<Attempted>,
  ): Promise<PepOutcome> {
    const store = this.#storeOf(owner);
    for (let count = 0; count < MAX_ATTEMPTS; count++) {
      const text = (await store.node(owner.localpart, node))?.config;
      const found = text === undefined ? undefined : { text, config: NodeConfig.decode(text) };
      if (await isStill?.() === false) return "former"; // the node may be that of the next owner
      const outcome = await attempt(store, found);
      if (outcome === "changed") continue;
      if (typeof outcome === "string") return outcome;
      const { config, change } = outcome;
      if (found === undefined && await isStill?.() === false) {
        // A next owner loses what they have published there in this moment.
        await store.remove(owner.localpart, { node, expected: config.encode() });
        // The nodes of the next owner's sessions may have read an avatar meanwhile.
        this.#tell(owner, node, config, { kind: "configuration" });
        return "former";
      }
      this.#tell(owner, node, config, change);
      return "done";
    }
    return "contended";
  }

  async #removing(owner: Jid, node: string): Promise<void> {
    if (node === AVATAR_METADATA) await this.photos.removing(owner);
  }

  #tell(owner: Jid, node: string, config: NodeConfig, change: NodeChange): void {
    const isSilent = !config.delivers || change.kind === "configuration";
    // The nodes of the owner's sessions have the avatar in presence: they hear of it in any case.
    if (isSilent && node !== AVATAR_METADATA) return;
    const told = isSilent ? { kind: "configuration" } as const : reduced(change, config);
    const isOfContent = told.kind !== "configuration" && told.kind !== "delete";
    this.#untold.tell({ owner, bytes: bytesOf(told) }, async (telling) => {
      const mustAsk = telling.isLate && isOfContent;
      const current = mustAsk ? await this.#currentOf(owner, node, config) : config;
      if (current === undefined) return true;
      return await this.#notices.tell(owner, { node, config: current, change: told }, telling);
    });
  }

  /** Returns the configuration of a node by now; undefined for a node that is gone. */
  async #currentOf(owner: Jid, node: string, before: NodeConfig): Promise<NodeConfig | undefined> {
    const found = await this.#storeOf(owner).node(owner.localpart, node);
    const config = found && NodeConfig.decode(found.config);
    return config?.isOfSameNode(before) === true ? config : undefined;
  }

  #storeOf({ domainpart }: Jid): PepStore {
    const store = this.#deps.hosts.store(domainpart);
    if (store === undefined) throw new TypeError(`Cannot use nodes of ${domainpart}: it has none`);
    return store;
  }
}

/** Returns the bytes of what a change brings, at one a character. */
function bytesOf(change: NodeChange): number {
  if (change.kind === "item") return change.id.length + (change.xml?.length ?? 0);
  if (change.kind !== "retract") return 0;
  return change.ids.reduce((sum, id) => sum + id.length, 0);
}

/** Returns why a configuration cannot have these values. */
function refusalOf(values: FormValues): Exclude<PepOutcome, "done"> {
  const [model] = values.get(ACCESS_MODEL) ?? [];
  return model === "authorize" ? "no-access-model" : "not-acceptable";
}
