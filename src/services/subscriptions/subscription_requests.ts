import type { CancelTimer, Clock } from "../../base/mod.ts";
import { describeError, SystemClock } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import { SILENT_LOGGER } from "../../observe/mod.ts";
import type {
  RequestChange,
  SubscriptionRequest,
  SubscriptionRequestStore,
} from "../../storage/mod.ts";
import type { FullJid, Jid, Stanza } from "../../xmpp/mod.ts";
import { buildStanza, element, parseJid } from "../../xmpp/mod.ts";
import { KeptRequest } from "./kept_request.ts";
import { RequestMetrics } from "./request_metrics.ts";

/** Options of `SubscriptionRequests`. */
export interface SubscriptionRequestsOptions {
  /**
   * Bytes of a request that is kept whole. Of a longer request only the addresses are kept.
   * @default 4096
   */
  readonly maxBytes?: number;
}

/** Dependencies of `SubscriptionRequests`, with its options. */
export interface SubscriptionRequestsDeps extends SubscriptionRequestsOptions {
  readonly store: SubscriptionRequestStore;
  /** Returns true when this node has an account with this bare JID. */
  exists(contact: Jid): Promise<boolean>;
  /** True while the account has a session at this node. */
  isHere(contact: string): boolean;
  /** Looks up the contact's local host in the session table; undefined: nowhere. Never rejects. */
  locate(contact: Jid): Promise<string | undefined>;
  /** Routes a kept request. `kept` learns what became of it. */
  route(request: Stanza, kept: KeptRequest, entry: RequestEntry): void;
  /** Gives a stanza to a session of this node. False when the session does not take it. */
  deliver(to: FullJid, request: Stanza): boolean;
  /** Returns the sender in whose share of the room a request of `requester`, a bare JID, counts. */
  senderOf(requester: Jid): string;
  readonly metrics: Metrics;
  readonly logger?: Logger;
  readonly clock?: Clock;
}

/** Place where a request entered the mesh. */
export type RequestEntry = Pick<SubscriptionRequest, "origin" | "process" | "sequence">;

/** Default limit on the bytes of a request that is kept whole. */
export const DEFAULT_MAX_REQUEST_BYTES = 4096;
/**
 * Milliseconds for which changes are gathered into one write, so that a flood of requests costs few
 * writes.
 */
const GATHER_MS = 20;
/** Most changes in one write: the event loop stands still during a write. */
const MAX_WRITE = 64;
/** Milliseconds between two sweeps of the kept requests. */
const SWEEP_MS = 10_000;
/** Sweeps after which contacts are looked up among the accounts again: one may have been deleted. */
const SWEEPS_TO_CHECK = 6;
/** Contacts that one sweep looks up in the session table. */
const SWEEP_CONTACTS = 200;

/** A change on its way to the store. */
interface Waiting {
  readonly change: RequestChange;
  done?(isWritten: boolean): void;
}

/**
 * Keeps requests for subscriptions until their contacts have answered them (RFC 6121 §3.1.3).
 *
 * Every request is written to the store before it is routed, for existing and other contacts alike.
 * It counts as settled then, so the requester cannot tell whether the contact is online, offline or
 * does not exist. From the store the request goes to the node of the contact. That node writes it
 * to its own store, and this node forgets it: the request follows its contact. The contact's node
 * delivers the request each time one of the contact's clients becomes available, until the contact
 * answers or the requester cancels it.
 *
 * The next sweep removes and counts requests for accounts that do not exist.
 */
export class SubscriptionRequests {
  readonly #deps: SubscriptionRequestsDeps;
  readonly #store: SubscriptionRequestStore;
  readonly #metrics: RequestMetrics;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** Contacts for whom a request may be kept. The next sweep removes those without one. */
  readonly #contacts = new Set<string>();
  /** Contacts among these whose account has not been checked yet. */
  readonly #unproven = new Set<string>();
  /** Pairs whose request is on its way to another node. */
  readonly #underWay = new Set<string>();
  readonly #tasks = new Set<Promise<void>>();
  /** Changes to write, in their order. */
  readonly #waiting: Waiting[] = [];
  #isWriting = false;
  /**
   * Rises with every request that is kept, so that an older result of reading the store is
   * recognised.
   */
  #edition = 0;
  #cancelWrite: CancelTimer | undefined;
  #cancelSweep: CancelTimer | undefined;
  #sweeps = 0;
  #isClosed = false;

  constructor(deps: SubscriptionRequestsDeps) {
    this.#deps = deps;
    this.#store = deps.store;
    this.#metrics = new RequestMetrics(deps.metrics, () => this.#contacts.size);
    this.#logger = deps.logger ?? SILENT_LOGGER;
    this.#clock = deps.clock ?? new SystemClock();
    this.#maxBytes = deps.maxBytes ?? DEFAULT_MAX_REQUEST_BYTES;
  }

  /** Loads the contacts of requests kept by an earlier process. Never rejects. */
  async start(): Promise<void> {
    try {
      for (const contact of await this.#store.contacts()) this.#note(contact);
    } catch (thrown) {
      this.#fail("read", thrown);
    }
  }

  /** Writes the gathered changes, and waits for unfinished writes. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelSweep?.();
    this.#write();
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }

  /**
   * Notes presence that manages a subscription, before it is routed to an account.
   *
   * A request is kept. The promise resolves when the request is on the disk, with a `KeptRequest`
   * to report its fate to, or with undefined when it could not be kept. Never rejects. An answer or
   * a cancellation ends the request. Nobody waits for that end, because the waiting time would
   * reveal whether there was a request.
   */
  note(stanza: Stanza, entry: RequestEntry): Promise<KeptRequest | undefined> | undefined {
    const { from: { bare: from }, to: { bare: to } } = stanza;
    switch (stanza.type) {
      case "subscribe":
        return this.#keep(stanza, entry);
      case "unsubscribe":
        this.#end(from.text, to.text);
        return undefined;
      case "subscribed":
      case "unsubscribed":
        this.#end(to.text, from.text);
        return undefined;
      default:
        return undefined;
    }
  }

  /** Delivers kept requests to a client of the account that has sent its initial presence here. */
  becameAvailable(jid: FullJid): void {
    if (this.#contacts.has(jid.bare.text)) this.#spawn(this.#deliver(jid));
  }

  /** Forgets the requests of an account that was deleted, and those for it. */
  forget(account: string): void {
    if (this.#contacts.size === 0 && this.#waiting.length === 0) return;
    this.#change({ change: { kind: "remove-account", account } });
  }

  /** Tries to route the requests kept for an account of which the session table has news. */
  revealed(contact: string): void {
    if (this.#contacts.has(contact)) this.#spawn(this.#sendOn(contact));
  }

  // ---- keeping -----------------------------------------------------------------------------

  #keep(stanza: Stanza, entry: RequestEntry): Promise<KeptRequest | undefined> {
    const request = this.#requestIn(stanza, entry);
    const { promise, resolve } = Promise.withResolvers<KeptRequest | undefined>();
    this.#change({
      change: { kind: "keep", request },
      done: (isKept) => resolve(isKept ? this.#kept(request) : undefined),
    });
    return promise;
  }

  #change(waiting: Waiting): void {
    this.#waiting.push(waiting);
    this.#writeLater();
  }

  #writeLater(): void {
    if (this.#isClosed) this.#write();
    else this.#cancelWrite ??= this.#clock.after(GATHER_MS, () => this.#write());
  }

  /**
   * Writes some of the gathered changes. Writes follow one another, so that their order is kept.
   */
  #write(): void {
    this.#cancelWrite?.();
    this.#cancelWrite = undefined;
    if (this.#isWriting || this.#waiting.length === 0) return;
    this.#isWriting = true;
    this.#spawn(
      this.#writeAll(this.#waiting.splice(0, MAX_WRITE)).finally(() => {
        this.#isWriting = false;
        if (this.#waiting.length > 0) this.#writeLater();
      }),
    );
  }

  async #writeAll(waiting: readonly Waiting[]): Promise<void> {
    let isWritten = true;
    try {
      const displaced = await this.#store.change(waiting.map(({ change }) => change));
      this.#metrics.displaced.inc(displaced);
      for (const { change } of waiting) {
        if (change.kind !== "keep") continue;
        this.#metrics.kept.inc();
        this.#note(change.request.contact);
      }
    } catch (thrown) {
      isWritten = false; // at worst, a request that was not removed is delivered once more
      this.#metrics.failed.inc(waiting.length);
      this.#fail("change", thrown);
    }
    for (const { done } of waiting) done?.(isWritten);
  }

  #note(contact: string): void {
    this.#edition++;
    this.#contacts.add(contact);
    this.#unproven.add(contact);
    this.#sweepLater();
  }

  /**
   * Makes the request to keep from a stanza: all of it, unless it is long or not between bare JIDs
   * (RFC 6121 §3.1.2).
   */
  #requestIn({ from, to, bytes }: Stanza, entry: RequestEntry): SubscriptionRequest {
    const isAsItIs = bytes.length <= this.#maxBytes && from === from.bare && to === to.bare;
    const kept = isAsItIs ? bytes.slice() : bareRequest(from.bare, to.bare).bytes;
    const [requester, contact] = [from.bare.text, to.bare.text];
    const sender = this.#deps.senderOf(from.bare);
    const { origin, process, sequence } = entry;
    return { requester, contact, sender, stanza: kept, origin, process, sequence };
  }

  #kept(request: SubscriptionRequest): KeptRequest {
    const pair = pairOf(request);
    this.#underWay.add(pair);
    return new KeptRequest((isElsewhere) => {
      this.#underWay.delete(pair);
      if (!isElsewhere) return;
      this.#metrics.passedOn.inc();
      this.#change({ change: { kind: "remove-same", request } });
    });
  }

  #end(requester: string, contact: string): void {
    if (!this.#contacts.has(contact) && this.#waiting.length === 0) return;
    this.#change({ change: { kind: "remove", pair: { requester, contact } } });
  }

  // ---- bringing ----------------------------------------------------------------------------

  async #deliver(jid: FullJid): Promise<void> {
    for (const request of await this.#requestsFor(jid.bare.text)) {
      if (this.#deps.deliver(jid, stanzaOf(request))) this.#metrics.delivered.inc();
    }
  }

  /**
   * Routes the requests kept for a contact who is at another node. A contact at this node has them
   * already.
   */
  async #sendOn(contact: string): Promise<void> {
    if (this.#deps.isHere(contact)) return;
    for (const request of await this.#requestsFor(contact)) {
      if (this.#underWay.has(pairOf(request))) continue;
      this.#deps.route(stanzaOf(request), this.#kept(request), request);
    }
  }

  async #requestsFor(contact: string): Promise<readonly SubscriptionRequest[]> {
    const edition = this.#edition;
    try {
      const requests = await this.#store.ofContact(contact);
      if (requests.length === 0 && this.#edition === edition) {
        this.#contacts.delete(contact);
        this.#unproven.delete(contact);
      }
      return requests;
    } catch (thrown) {
      this.#fail("read", thrown);
      return [];
    }
  }

  // ---- looking again -----------------------------------------------------------------------

  #sweepLater(): void {
    if (this.#isClosed || this.#cancelSweep !== undefined) return;
    this.#cancelSweep = this.#clock.after(SWEEP_MS, () => {
      this.#cancelSweep = undefined;
      this.#spawn(
        this.#sweep().then(() => {
          if (this.#contacts.size > 0) this.#sweepLater();
        }),
      );
    });
  }

  async #sweep(): Promise<void> {
    await this.#dropStrangers();
    const isCheck = ++this.#sweeps % SWEEPS_TO_CHECK === 0;
    const contacts: string[] = [];
    for (const contact of this.#contacts) {
      if (contacts.length >= SWEEP_CONTACTS) break;
      contacts.push(contact);
    }
    await Promise.all(contacts.map(async (contact) => {
      // Contacts just looked up go to the end of the queue.
      this.#contacts.delete(contact);
      this.#contacts.add(contact);
      if (isCheck) this.#unproven.add(contact);
      if (this.#deps.isHere(contact)) return;
      if (await this.#deps.locate(parseJid(contact)) !== undefined) await this.#sendOn(contact);
      else await this.#requestsFor(contact); // forgets a contact without requests
    }));
  }

  /** Forgets requests kept for accounts that do not exist (RFC 6121 §8.5.1). */
  async #dropStrangers(): Promise<void> {
    try {
      for (const contact of [...this.#unproven].slice(0, SWEEP_CONTACTS)) {
        const isPerson = this.#deps.isHere(contact) ||
          await this.#deps.exists(parseJid(contact));
        this.#unproven.delete(contact);
        if (isPerson) continue;
        const requests = await this.#store.ofContact(contact);
        this.#metrics.ignored.inc(requests.length);
        for (const request of requests) this.#change({ change: { kind: "remove-same", request } });
      }
    } catch (thrown) {
      this.#fail("check", thrown); // the next sweep checks the rest
    }
  }

  #fail(what: string, thrown: unknown): void {
    this.#logger.warn("subscriptions.store-failed", { what, error: describeError(thrown) });
  }

  /** Runs `work` in the background. `close` waits for it. */
  #spawn(work: Promise<void>): void {
    const task: Promise<void> = work
      .catch((thrown) => this.#logger.error("subscriptions.bug", { error: describeError(thrown) }))
      .finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }
}

function pairOf({ requester, contact }: SubscriptionRequest): string {
  return `${requester} ${contact}`; // no bare JID has a space in it
}

function bareRequest(from: Jid, to: Jid): Stanza {
  return buildStanza(element("presence", { type: "subscribe" }), { from, to });
}

function stanzaOf({ requester, contact, stanza: bytes }: SubscriptionRequest): Stanza {
  const [from, to] = [parseJid(requester), parseJid(contact)];
  return { kind: "presence", type: "subscribe", from, to, bytes };
}
