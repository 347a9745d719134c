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

/** What keeping subscription requests needs of the node. */
export interface SubscriptionRequestsOptions {
  readonly store: SubscriptionRequestStore;
  /** True when this node's accounts have one of this bare JID. */
  exists(contact: Jid): Promise<boolean>;
  /** True while the account has a session at this node. */
  isHere(contact: string): boolean;
  /** Where the session table places the contact; undefined: nowhere. Never rejects. */
  locate(contact: Jid): Promise<string | undefined>;
  /** Routes a request that is kept; `kept` is told what became of it. */
  route(request: Stanza, kept: KeptRequest, entry: RequestEntry): void;
  /** Gives a stanza to a session of this node; false when it does not take it. */
  deliver(to: FullJid, request: Stanza): boolean;
  /** Whose share of the room a request of `requester`, a bare JID, takes. */
  senderOf(requester: Jid): string;
  readonly metrics: Metrics;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** Bytes of a request that is kept as it came; of a longer one the addresses are. @default 4096 */
  readonly maxBytes?: number;
}

/** Where a request entered the mesh. */
export type RequestEntry = Pick<SubscriptionRequest, "origin" | "process" | "sequence">;

/** Bytes of a request that is kept as it came, unless configured. */
export const DEFAULT_MAX_REQUEST_BYTES = 4096;
/** Milliseconds for which requests are gathered, so that a flood of them costs few writes. */
const GATHER_MS = 20;
/** Changes in one write: the event loop stands still for it. */
const MAX_WRITE = 64;
/** Milliseconds between looks at what is kept. */
const SWEEP_MS = 10_000;
/** Contacts that one look asks the session table for. */
const SWEEP_CONTACTS = 200;

/** A change on its way to the store. */
interface Waiting {
  readonly change: RequestChange;
  done?(isWritten: boolean): void;
}

/**
 * Keeps requests for subscriptions until their contacts have answered them (RFC 6121 §3.1.3).
 *
 * Every request is written to the store before it is routed, whoever it is for: then it counts as
 * settled, so that its requester cannot tell whether the contact is online, offline or does not exist.
 * From the store it goes to where the contact is. The node there writes it to its own store, and this
 * one forgets it: the request follows its contact. A node that has the contact delivers it each time one
 * of the contact's clients becomes available, until the contact answers or the requester takes it back.
 *
 * What is kept for accounts that do not exist goes with the next look at the store, and is counted.
 */
export class SubscriptionRequests {
  readonly #options: SubscriptionRequestsOptions;
  readonly #store: SubscriptionRequestStore;
  readonly #metrics: RequestMetrics;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #maxBytes: number;
  /** Everybody for whom something may be kept; what is too much goes with the next look. */
  readonly #contacts = new Set<string>();
  /** Of those, the ones whose account has not been looked for. */
  readonly #unproven = new Set<string>();
  /** Pairs whose request is on its way to another node. */
  readonly #underWay = new Set<string>();
  readonly #tasks = new Set<Promise<void>>();
  /** Changes to write, in their order. */
  readonly #waiting: Waiting[] = [];
  #isWriting = false;
  /** Rises with every request that is kept, so that an older look at the store is known. */
  #edition = 0;
  #cancelWrite: CancelTimer | undefined;
  #cancelSweep: CancelTimer | undefined;
  #isClosed = false;

  constructor(options: SubscriptionRequestsOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#metrics = new RequestMetrics(options.metrics, () => this.#contacts.size);
    this.#logger = options.logger ?? SILENT_LOGGER;
    this.#clock = options.clock ?? new SystemClock();
    this.#maxBytes = options.maxBytes ?? DEFAULT_MAX_REQUEST_BYTES;
  }

  /** Takes up what was kept when the process ended. Never rejects. */
  async start(): Promise<void> {
    try {
      for (const contact of await this.#store.contacts()) this.#note(contact);
    } catch (thrown) {
      this.#fail("read", thrown);
    }
  }

  /** Writes what is gathered, and waits for what is under way to the store. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelSweep?.();
    this.#write();
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
  }

  /**
   * Takes note of presence that manages a subscription, before it is routed to a person.
   *
   * A request is kept: the promise resolves when it is on the disk, with what is to be told of its further
   * way, or with undefined when it could not be kept. Never rejects. An answer, or the requester's taking it
   * back, ends it, and nobody waits for that: whether there was a request would show in the time.
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

  /** A client of the account has sent its initial presence here. */
  becameAvailable(jid: FullJid): void {
    if (this.#contacts.has(jid.bare.text)) this.#spawn(this.#deliver(jid));
  }

  /** The session table has news of an account: what is kept for it may have somewhere to go. */
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

  /** Writes some of what is gathered; one write after another, so that their order is kept. */
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
      isWritten = false; // what was not removed comes once more, at worst
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

  /** What is kept of a stanza: all of it, unless it is long or not between bare JIDs (RFC 6121 §3.1.2). */
  #requestIn({ from, to, bytes }: Stanza, entry: RequestEntry): SubscriptionRequest {
    const isAsItIs = bytes.length <= this.#maxBytes && from === from.bare && to === to.bare;
    const kept = isAsItIs ? bytes.slice() : bareRequest(from.bare, to.bare).bytes;
    const [requester, contact] = [from.bare.text, to.bare.text];
    const sender = this.#options.senderOf(from.bare);
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
      if (this.#options.deliver(jid, stanzaOf(request))) this.#metrics.delivered.inc();
    }
  }

  /** Routes what is kept for a contact who is not at this node, who would have it already. */
  async #sendOn(contact: string): Promise<void> {
    if (this.#options.isHere(contact)) return;
    for (const request of await this.#requestsFor(contact)) {
      if (this.#underWay.has(pairOf(request))) continue;
      this.#options.route(stanzaOf(request), this.#kept(request), request);
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
    const contacts: string[] = [];
    for (const contact of this.#contacts) {
      if (contacts.length >= SWEEP_CONTACTS) break;
      contacts.push(contact);
    }
    await Promise.all(contacts.map(async (contact) => {
      // Those that were looked for go behind the others.
      this.#contacts.delete(contact);
      this.#contacts.add(contact);
      if (this.#options.isHere(contact)) return;
      if (await this.#options.locate(parseJid(contact)) !== undefined) await this.#sendOn(contact);
      else await this.#requestsFor(contact); // forgets one who has none any more
    }));
  }

  /** Forgets what is kept for accounts that do not exist (RFC 6121 §8.5.1). */
  async #dropStrangers(): Promise<void> {
    try {
      for (const contact of [...this.#unproven].slice(0, SWEEP_CONTACTS)) {
        const isPerson = this.#options.isHere(contact) ||
          await this.#options.exists(parseJid(contact));
        this.#unproven.delete(contact);
        if (isPerson) continue;
        const requests = await this.#store.ofContact(contact);
        this.#metrics.ignored.inc(requests.length);
        for (const request of requests) this.#change({ change: { kind: "remove-same", request } });
      }
    } catch (thrown) {
      this.#fail("check", thrown); // the rest with the next look
    }
  }

  #fail(what: string, thrown: unknown): void {
    this.#logger.warn("subscriptions.store-failed", { what, error: describeError(thrown) });
  }

  /** `close` waits for it. */
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
