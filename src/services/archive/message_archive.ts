import type { Holders } from "../../base/mod.ts";
import { describeError, FairShares, RETAINED_OVERHEAD_BYTES } from "../../base/mod.ts";
import type { Logger, Metrics } from "../../observe/mod.ts";
import type {
  ArchivedMessage,
  ArchiveId,
  ArchiveOutcome,
  ArchiveStore,
} from "../../storage/mod.ts";
import { archiveKeyOf, searchableText } from "../../storage/mod.ts";
import type { BareJid, Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { FullJid, recipientHolders, senderHolders } from "../../xmpp/mod.ts";
import { AbsentAccounts } from "./absent_accounts.ts";
import type { AbsentAccountsDeps } from "./absent_accounts.ts";
import type { ArchivableOptions } from "./archive_form.ts";
import { isArchivable, withArchiveId } from "./archive_form.ts";
import { archiveIdText } from "./archive_id.ts";
import { ArchiveRetention } from "./archive_retention.ts";
import { ArchiveMetrics } from "./archive_metrics.ts";
import type { ArchiveEntry } from "./archive_writer.ts";
import { ArchiveWriter, GRACE_MS } from "./archive_writer.ts";
import { ContactQuestions } from "./contact_questions.ts";
import { DepartedAccounts } from "./departed_accounts.ts";
import type { DepartedAccountsDeps } from "./departed_accounts.ts";
import { HeldMessage } from "./held_message.ts";
import type { ArchiveSide, Noting } from "./held_message.ts";
import { RetryPauses } from "./retry_pauses.ts";
import { WaitsForRoom } from "./waits_for_room.ts";

/** Options of the archives of one host. */
export interface ArchiveHostOptions extends ArchivableOptions {
  /** Messages of a page, if the client names no number, and at most. */
  readonly defaultLimit: number;
  readonly maxLimit: number;
  /** Clients are told the id of a message that they get (XEP-0359). */
  readonly hasStanzaIds: boolean;
  /** People may search for words, where the store can. */
  readonly isSearched: boolean;
  /** Milliseconds for which a message is kept; Infinity: for ever. */
  readonly maxAgeMs: number;
}

/** A message on its way, as archives see it. */
export interface ArchivableMessage extends ArchiveId {
  readonly stanza: Stanza;
  /** Wall-clock microseconds when it was accepted. */
  readonly sentAtUs: number;
}

/** Objects behind the archives. */
export interface MessageArchiveDeps
  extends
    Omit<AbsentAccountsDeps, "creationOf">,
    Pick<DepartedAccountsDeps, "existing" | "keepsAll"> {
  /** Hosts whose accounts have archives, with their options. */
  readonly hosts: ReadonlyMap<string, ArchiveHostOptions>;
  /** Returns the archives of such a host: the same object for hosts that share one. */
  storeOf(domainpart: string): ArchiveStore;
  /**
   * Returns who is at this node of a message's recipient: nobody, sessions whose lists all keep the
   * message out, or others.
   */
  here(message: Stanza): "nobody" | "blocked" | "somebody";
  /**
   * Returns the `LocalSession.creation` of the sessions at this node that a JID names. Undefined
   * without such a session, or when they are of accounts that had the name one after another.
   */
  creationHere(jid: Jid): string | undefined;
  /** True when the roster of an account has a contact. */
  isContact(account: BareJid, contact: BareJid): Promise<boolean>;
  isUserHost(domainpart: string): boolean;
  /** Bound on the memory of messages that are being written. */
  readonly budget: FairShares;
  readonly metrics: Metrics;
  readonly logger: Logger;
}

/**
 * Bytes and number of the messages that may wait for a store that is late. They have gone on, and are
 * unsettled: the lanes that they came by keep them, and have to keep room for other stanzas.
 */
const [LATE_BYTES, MOST_LATE] = [4_194_304, 16_384];
/**
 * Milliseconds after which the sender of a message is answered: of one for somebody offline while the
 * store fails, and of one for which there is no room.
 */
const ANSWER_MS = 5_000;

/** Bytes of one UTF-16 unit of a text in memory, at most. */
const BYTES_PER_UNIT = 2;

/**
 * Archives the messages of accounts (XEP-0313).
 *
 * The sender's archive has a message where it enters the mesh. The message goes on meanwhile, and is
 * unsettled until it is durable. The recipient's archive has it where it is about to be delivered, or
 * where it turns out that nobody is there: by then its place among the others that reach the account
 * is certain. It goes on when it is durable there. The store knows it by its id inside Causeway, so
 * that two nodes, or one node twice, may write the same.
 *
 * While the store is slow or fails, messages go on after a second, and stay unsettled until they are
 * durable. Their number is bounded. Beyond that a message waits for room, and its session or component
 * is not read meanwhile. It gets `resource-constraint` when that takes too long.
 */
export class MessageArchive {
  readonly metrics: ArchiveMetrics;
  readonly #deps: MessageArchiveDeps;
  readonly #writers = new Map<ArchiveStore, ArchiveWriter>();
  readonly #absent: AbsentAccounts;
  readonly #departed: DepartedAccounts;
  readonly #retention: ArchiveRetention;
  /** The bound of messages while their store is late. All of them count for it at all times. */
  readonly #late: FairShares;
  readonly #rosters: ContactQuestions;
  readonly #pauses: RetryPauses;
  /** Messages about which the roster, or the store of accounts, is being asked. */
  readonly #asked = new Set<HeldMessage>();
  readonly #waits: WaitsForRoom;

  constructor(deps: MessageArchiveDeps) {
    this.#deps = deps;
    this.#absent = new AbsentAccounts({
      ...deps,
      creationOf: async ({ localpart, domainpart }) =>
        (await deps.existing(domainpart, [localpart])).get(localpart),
    });
    this.#pauses = new RetryPauses(deps.clock);
    this.#rosters = new ContactQuestions({ ...deps, pauses: this.#pauses });
    this.#late = new FairShares({
      maxBytes: LATE_BYTES,
      maxItems: MOST_LATE,
      within: deps.budget,
    });
    this.#waits = new WaitsForRoom(deps.clock, GRACE_MS);
    this.metrics = new ArchiveMetrics(deps.metrics, {
      pending: () => this.pending,
      waiting: () => this.waiting,
    });
    const { gone, old } = this.metrics.removed;
    this.#departed = new DepartedAccounts({ ...deps, removed: gone });
    const ages = [...deps.hosts].map(([host, { maxAgeMs }]) => [host, maxAgeMs] as const);
    const maxAgeMs = new Map(ages.filter(([, ageMs]) => ageMs < Infinity));
    this.#retention = new ArchiveRetention({ ...deps, maxAgeMs, removed: old });
  }

  /** Begins to remove messages that are too old. */
  start(): void {
    this.#retention.start();
  }

  /** Messages that wait to be written. */
  get pending(): number {
    let pending = this.#rosters.waiting;
    for (const writer of this.#writers.values()) pending += writer.pending;
    return pending;
  }

  /** Messages that wait for room. Their senders are not read meanwhile. */
  get waiting(): number {
    return this.#waits.size;
  }

  /** True for a host whose accounts have archives. */
  serves(host: string): boolean {
    return this.#deps.hosts.has(host);
  }

  /** Returns the options of a host whose accounts have archives. */
  optionsOf(host: string): ArchiveHostOptions | undefined {
    return this.#deps.hosts.get(host);
  }

  /** True for a host whose accounts may search their archives by words. */
  searchesText(host: string): boolean {
    return this.optionsOf(host)?.isSearched === true && this.storeOf(host).searchesText;
  }

  storeOf(host: string): ArchiveStore {
    return this.#deps.storeOf(host);
  }

  /** Waits until everything is written. What the stores do not take now is counted as failed. */
  async close(): Promise<void> {
    this.#pauses.close();
    for (const writer of this.#writers.values()) writer.begin();
    await this.#whenSettled([...this.#asked]);
    this.#rosters.close();
    await Promise.all([...this.#writers.values()].map((writer) => writer.close()));
    await Promise.all([this.#departed.close(), this.#retention.stop()]);
  }

  /**
   * Returns a message as its recipient gets it: without ids that others have made up, and with that of
   * the recipient's archive, if it has one.
   */
  stamped(
    message: ArchiveId & { readonly stanza: Stanza; readonly isArchived: boolean },
  ): Stanza {
    const { stanza } = message;
    const options = this.#deps.hosts.get(stanza.to.domainpart);
    if (options === undefined || stanza.to.localpart === "") return stanza;
    const id = message.isArchived && options.hasStanzaIds ? archiveIdText(message) : undefined;
    const bytes = withArchiveId(stanza, stanza.to.bare.text, id);
    return bytes === stanza.bytes ? stanza : { ...stanza, bytes };
  }

  /** True when this node has sessions that may get a message for a person. */
  isHere({ stanza }: ArchivableMessage): boolean {
    return this.#deps.here(stanza) === "somebody";
  }

  /**
   * Has an archive take a message. Undefined when it does not. Otherwise the message waits, or there
   * is no room for it.
   * @param isEarly true when the router asks again in the end, if there is no room now
   */
  note(
    message: ArchivableMessage,
    side: ArchiveSide,
    isEarly = false,
  ): Noting | "resource-constraint" | undefined {
    const { stanza } = message;
    const [own, peer] = side === "sender" ? [stanza.from, stanza.to] : [stanza.to, stanza.from];
    const account = this.#accountOf(own, stanza);
    if (account === undefined) return undefined;
    const creation = side === "absent" ? undefined : this.#deps.creationHere(own);
    const held = this.#hold({ account, creation, peer, side, message });
    if (held === undefined) {
      if (!isEarly) this.metrics.refused.inc();
      return "resource-constraint";
    }
    if (side === "absent") void this.#writeIfTaken(held, stanza);
    else if (creation === undefined) void this.#writeIfThere(held);
    else this.#write(held);
    return held;
  }

  /**
   * Has a message wait for which `note` has found no room, until `attempt` finds some. A session waits
   * for five seconds at the most. A component speaks for many, so the others' messages wait behind this
   * one for no longer than for an archive.
   * @returns false when the message is refused. Never rejects
   */
  async whenRoom(
    { stanza }: ArchivableMessage,
    { side, sinceMs, attempt }: {
      readonly side: ArchiveSide;
      /** Monotonic milliseconds since which the message waits. */
      readonly sinceMs: number;
      attempt(): boolean;
    },
  ): Promise<boolean> {
    const holders = this.#holdersOf(stanza);
    const { bare } = side === "sender" ? stanza.from : stanza.to;
    const isCrowd = holders.crowds.length > 0;
    const isTaken = await this.#waits.add({
      dueMs: sinceMs + (isCrowd ? GRACE_MS : ANSWER_MS),
      mayFit: () => this.#mayHold(bare, holders, leastCostOf(stanza)),
      attempt,
    });
    if (!isTaken) this.metrics.refused.inc();
    return isTaken;
  }

  /** Has messages wait for room for a second at the most from now on, as the node stops. */
  hurry(): void {
    this.#waits.hurry();
  }

  /**
   * Takes over a message for which its sender would get an error because nobody is there. Returns false
   * for a message that is not kept. Otherwise calls one of `kept` and `refused`.
   */
  keep(
    message: ArchivableMessage,
    outcome: { kept(isStored: boolean): void; refused(condition: StanzaErrorCondition): void },
  ): boolean {
    const { stanza } = message;
    const account = this.#accountOf(stanza.to, stanza);
    if (account === undefined || stanza.type === "groupchat") return false;
    const part: Part = { account, creation: undefined, peer: stanza.from, side: "absent", message };
    void this.#keep(part, outcome);
    return true;
  }

  /**
   * Waits until an archive has what this node has taken for it so far: people find what they have
   * written. It waits for a second at most, and not at all for a store that is late. Never rejects.
   * @param archive its key
   */
  async caughtUp(account: BareJid, archive: string): Promise<void> {
    const writer = this.#writerFor(account);
    if (writer.isLate || this.#rosters.isLate(account)) return;
    const open = writer.entriesOf(archive).map((entry) => (entry as HeldEntry).held);
    for (const held of this.#asked) if (held.account.text === account.text) open.push(held);
    if (open.length === 0) return;
    writer.begin();
    await this.#whenSettled(open);
  }

  /** Waits until messages are settled, for a second at most. */
  async #whenSettled(open: readonly HeldMessage[]): Promise<void> {
    if (open.length === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#deps.clock.after(GRACE_MS, resolve);
    let left = open.length;
    for (const held of open) {
      held.isAwaited = true;
      held.whenSettled(() => --left === 0 && resolve());
    }
    await promise;
    cancel();
  }

  /** Never rejects. */
  async #keep(part: Part, outcome: Parameters<MessageArchive["keep"]>[1]): Promise<void> {
    const held = this.#hold(part);
    if (held === undefined) {
      this.metrics.refused.inc();
      return outcome.refused("resource-constraint");
    }
    const cancel = this.#deps.clock.after(ANSWER_MS, () => {
      this.metrics.failed.inc();
      held.giveUp("internal-server-error");
    });
    void this.#writeIfTaken(held, part.message.stanza);
    const condition = await held.answer;
    cancel();
    if (condition === undefined) outcome.kept(held.isStored);
    else outcome.refused(condition);
  }

  /** Writes a message for an account that may not be there. Never rejects. */
  async #writeIfTaken(held: HeldMessage, stanza: Stanza): Promise<void> {
    const { logger, clock } = this.#deps;
    const cancel = clock.after(GRACE_MS, () => held.goOn());
    try {
      const reception = await this.#absent.receptionOf(held.account, stanza);
      if (held.isGivenUp) held.end();
      else if (reception.kind === "taken") {
        held.archived = inArchive(held, reception.creation);
        this.#write(held);
      } // Its sender sees no difference between an account that has blocked them and another one.
      else held.end(reception.kind === "missing" ? "service-unavailable" : undefined);
    } catch (thrown) {
      logger.debug("archive.not-asked", { error: describeError(thrown) });
      held.end("internal-server-error");
    }
    cancel();
  }

  /** Writes a message for an account whose session has gone meanwhile. Never rejects. */
  async #writeIfThere(held: HeldMessage): Promise<void> {
    this.#markAsked(held);
    const cancel = this.#deps.clock.after(GRACE_MS, () => held.goOn());
    const found = await this.#creationOf(held);
    if (found === "failed") {
      this.#count("failed");
      held.end("internal-server-error");
    } else if (found === undefined || held.isGivenUp) held.end();
    else {
      held.archived = inArchive(held, found.creation);
      this.#write(held);
    }
    cancel();
  }

  /**
   * Returns the creation of a message's account, once the database tells it. Undefined when there is
   * no such account, or nobody waits for the message any more. `failed`: the node stops before.
   */
  async #creationOf(
    held: HeldMessage,
  ): Promise<{ readonly creation: string } | undefined | "failed"> {
    while (!held.isGivenUp) {
      try {
        const creation = await this.#absent.creationOf(held.account);
        return creation === undefined ? undefined : { creation };
      } catch (thrown) {
        this.#deps.logger.debug("archive.not-asked", { error: describeError(thrown) });
        if (this.#pauses.isClosed) return "failed";
        await this.#pauses.pause();
      }
    }
    return undefined;
  }

  /** Returns the account whose archive takes a message from or to `side`. */
  #accountOf({ bare, localpart, domainpart }: Jid, stanza: Stanza): BareJid | undefined {
    const options = localpart === "" ? undefined : this.#deps.hosts.get(domainpart);
    return options !== undefined && isArchivable(stanza, options) ? bare : undefined;
  }

  #holdersOf({ from, to }: Stanza): Holders {
    const own = senderHolders(from, this.#deps.isUserHost(from.domainpart));
    const theirs = recipientHolders(to.bare.text);
    return { ...own, singles: [...own.singles, ...theirs.singles] };
  }

  /** Returns undefined when there is no room for a message. */
  #hold(part: Part): HeldMessage | undefined {
    const { account, message } = part;
    const holders = this.#holdersOf(message.stanza);
    if (!this.#mayHold(account, holders, leastCostOf(message.stanza))) return undefined;
    const archived = archivedOf(part, this.searchesText(account.domainpart));
    const { stanza: { length }, text = "" } = archived;
    const cost = length + BYTES_PER_UNIT * text.length + RETAINED_OVERHEAD_BYTES;
    if (!this.#mayHold(account, holders, cost)) return undefined;
    this.#late.hold(holders, cost);
    return new HeldMessage(part, archived, () => this.#late.release(holders, cost));
  }

  #mayHold(account: BareJid, holders: Holders, cost: number): boolean {
    const isLate = this.#writerFor(account).isLate || this.#rosters.isLate(account);
    return (isLate ? this.#late : this.#deps.budget).mayHold(holders, cost);
  }

  #write(held: HeldMessage): void {
    const writer = this.#writerFor(held.account);
    const entry: HeldEntry = {
      held,
      message: held.archived,
      isAwaited: held.isAwaited,
      late: () => {
        this.metrics.late.inc();
        // Its owner's preferences may keep it out: nobody is told an id that may not be there.
        held.goOn();
      },
      done: (outcome) => {
        if (outcome === "ask-roster") return this.#askRoster(held);
        if (outcome === "failed" && held.isGivenUp) return held.end(); // counted by who gave it up
        this.#count(outcome);
        if (outcome === "stored") {
          this.#departed.note(held.account, held.archived.archive);
          held.stored();
        } else held.end(outcome === "failed" ? "internal-server-error" : "service-unavailable");
      },
    };
    held.leaveWriter = () => writer.cancel(entry);
    writer.add(entry);
  }

  /** Notes that something is being asked about a message, until it is settled. */
  #markAsked(held: HeldMessage): void {
    this.#asked.add(held);
    held.whenSettled(() => this.#asked.delete(held));
  }

  /** Writes a message again, once it is known whether it is from or for a contact. */
  #askRoster(held: HeldMessage): void {
    if (held.isGivenUp) return held.end();
    this.#markAsked(held);
    const cancelGrace = this.#deps.clock.after(GRACE_MS, () => held.goOn());
    const takeBack = this.#rosters.ask(held.account, held.peer.bare, (isContact) => {
      cancelGrace();
      if (isContact === undefined) {
        this.#count("failed");
        return held.end("internal-server-error");
      }
      held.archived = { ...held.archived, isContact };
      this.#write(held);
    });
    if (held.isSettled) return; // it was answered within the call
    held.leaveWriter = () => {
      cancelGrace();
      takeBack();
      return true;
    };
  }

  #count(outcome: Exclude<ArchiveOutcome, "ask-roster"> | "failed"): void {
    this.metrics[outcome].inc();
  }

  #writerFor({ domainpart }: BareJid): ArchiveWriter {
    const store = this.#deps.storeOf(domainpart);
    let writer = this.#writers.get(store);
    if (writer === undefined) {
      const { logger, clock } = this.#deps;
      const freed = () => this.#waits.freed();
      this.#writers.set(store, writer = new ArchiveWriter({ store, logger, clock, freed }));
    }
    return writer;
  }
}

/** An entry of a writer, with its message. */
interface HeldEntry extends ArchiveEntry {
  readonly held: HeldMessage;
}

/** A message for one archive. */
interface Part {
  readonly account: BareJid;
  /** That of the account. Undefined: it has to be asked for. */
  readonly creation: string | undefined;
  /** The other side. */
  readonly peer: Jid;
  readonly side: ArchiveSide;
  readonly message: ArchivableMessage;
}

/** Returns the bytes that a message takes at the least while it is held: without its words. */
function leastCostOf({ bytes }: Stanza): number {
  return bytes.length + RETAINED_OVERHEAD_BYTES;
}

function inArchive({ account, archived }: HeldMessage, creation: string): ArchivedMessage {
  return { ...archived, archive: archiveKeyOf(account.text, creation) };
}

function archivedOf(
  { account, creation = "", peer, message }: Part,
  isSearched: boolean,
): ArchivedMessage {
  const { process, sequence, sentAtUs, stanza } = message;
  return {
    archive: archiveKeyOf(account.text, creation),
    process,
    sequence,
    peer: {
      bare: peer.bare.text,
      resourcepart: peer instanceof FullJid ? peer.resourcepart : "",
    },
    sentAtMs: Math.trunc(sentAtUs / 1000),
    // The bytes may lie in a read buffer, and the message may be gone before they are written.
    stanza: withArchiveId(stanza, account.text, undefined).slice(),
    ...(isSearched ? { text: searchableText(stanza) } : {}),
  };
}
