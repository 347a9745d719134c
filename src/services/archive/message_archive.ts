import type { FairShares } from "../../base/mod.ts";
import type { Metrics } from "../../observe/mod.ts";
import type { ArchivedMessage, ArchiveId, ArchiveStore } from "../../storage/mod.ts";
import { archiveKeyOf, searchableText } from "../../storage/mod.ts";
import type { BareJid, Jid, Stanza, StanzaErrorCondition } from "../../xmpp/mod.ts";
import { FullJid } from "../../xmpp/mod.ts";
import type { ArchivableOptions } from "./archive_form.ts";
import { isArchivable, withArchiveId } from "./archive_form.ts";
import { archiveIdText } from "./archive_id.ts";
import { ArchiveMetrics } from "./archive_metrics.ts";
import { ArchiveRetention } from "./archive_retention.ts";
import { ArchiveRoom } from "./archive_room.ts";
import { ArchiveWays } from "./archive_ways.ts";
import type { ArchiveWaysDeps } from "./archive_ways.ts";
import { HeldMessage } from "./held_message.ts";
import type { ArchiveSide, Noting } from "./held_message.ts";

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
export interface MessageArchiveDeps extends Omit<ArchiveWaysDeps, "metrics" | "freed"> {
  /** Hosts whose accounts have archives, with their options. */
  readonly hosts: ReadonlyMap<string, ArchiveHostOptions>;
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
  isUserHost(domainpart: string): boolean;
  /** Bound on the memory of messages that are being written. */
  readonly budget: FairShares;
  readonly metrics: Metrics;
}

/** Milliseconds after which the sender of a message for somebody offline is answered while the store fails. */
const ANSWER_MS = 5_000;

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
  readonly #room: ArchiveRoom;
  readonly #ways: ArchiveWays;
  readonly #retention: ArchiveRetention;

  constructor(deps: MessageArchiveDeps) {
    this.#deps = deps;
    const metrics = this.metrics = new ArchiveMetrics(deps.metrics, {
      pending: () => this.pending,
      waiting: () => this.waiting,
    });
    const room = this.#room = new ArchiveRoom({
      ...deps,
      isLate: (account) => ways.isLate(account),
    });
    const ways = this.#ways = new ArchiveWays({ ...deps, metrics, freed: () => room.freed() });
    const ages = [...deps.hosts].map(([host, { maxAgeMs }]) => [host, maxAgeMs] as const);
    const maxAgeMs = new Map(ages.filter(([, ageMs]) => ageMs < Infinity));
    this.#retention = new ArchiveRetention({ ...deps, maxAgeMs, removed: metrics.removed.old });
  }

  /** Begins to remove messages that are too old. */
  start(): void {
    this.#retention.start();
  }

  /** Messages that wait to be written. */
  get pending(): number {
    return this.#ways.pending;
  }

  /** Messages that wait for room. Their senders are not read meanwhile. */
  get waiting(): number {
    return this.#room.waiting;
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
    await Promise.all([this.#ways.close(), this.#retention.stop()]);
  }

  /**
   * Returns a message as its recipient gets it: without ids that others have made up, and with that of
   * the recipient's archive, if it has one.
   */
  stamped(
    message: ArchiveId & { readonly stanza: Stanza; readonly isArchived: boolean },
  ): Stanza {
    const { stanza, isArchived } = message;
    return this.#withId(stanza, isArchived ? archiveIdText(message) : undefined);
  }

  /** Returns a message that no archive of people takes, without ids that others have made up. */
  unclaimed(stanza: Stanza): Stanza {
    return this.#withId(stanza, undefined);
  }

  /** @param id the id that the recipient's archive has given the message, if any */
  #withId(stanza: Stanza, id: string | undefined): Stanza {
    const options = this.#deps.hosts.get(stanza.to.domainpart);
    if (options === undefined || stanza.to.localpart === "") return stanza;
    const told = options.hasStanzaIds ? id : undefined;
    const bytes = withArchiveId(stanza, stanza.to.bare.text, told);
    return bytes === stanza.bytes ? stanza : { ...stanza, bytes };
  }

  /** True when this node has sessions that may get a message for a person. */
  isHere({ stanza }: ArchivableMessage): boolean {
    return this.#deps.here(stanza) === "somebody";
  }

  /**
   * Makes an archive take a message. Undefined when it does not. Otherwise the message waits, or there
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
    if (side === "absent") void this.#ways.writeIfTaken(held, stanza);
    else if (creation === undefined) void this.#ways.writeIfThere(held);
    else this.#ways.write(held);
    return held;
  }

  /**
   * Makes a message for which `note` has found no room wait until `attempt` finds some. Never rejects.
   * @returns false when the message is refused
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
    const { bare } = side === "sender" ? stanza.from : stanza.to;
    const isTaken = await this.#room.whenRoom(bare, stanza, { sinceMs, attempt });
    if (!isTaken) this.metrics.refused.inc();
    return isTaken;
  }

  /** From now on, messages wait for room for at most a second, as the node stops. */
  hurry(): void {
    this.#room.hurry();
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
    await this.#ways.caughtUp(account, archive);
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
    void this.#ways.writeIfTaken(held, part.message.stanza);
    const condition = await held.answer;
    cancel();
    if (condition === undefined) outcome.kept(held.isStored);
    else outcome.refused(condition);
  }

  /** Returns the account whose archive takes a message from or to `side`. */
  #accountOf({ bare, localpart, domainpart }: Jid, stanza: Stanza): BareJid | undefined {
    const options = localpart === "" ? undefined : this.#deps.hosts.get(domainpart);
    return options !== undefined && isArchivable(stanza, options) ? bare : undefined;
  }

  /** Returns undefined when there is no room for a message. */
  #hold(part: Part): HeldMessage | undefined {
    const { account, message: { stanza } } = part;
    const isSearched = this.searchesText(account.domainpart);
    const taken = this.#room.take(account, stanza, () => archivedOf(part, isSearched));
    return taken && new HeldMessage(part, taken.archived, taken.release);
  }
}

/** A message for one archive. */
interface Part {
  readonly account: BareJid;
  /** Creation of the account. Undefined: it has to be asked for. */
  readonly creation: string | undefined;
  /** The other side. */
  readonly peer: Jid;
  readonly side: ArchiveSide;
  readonly message: ArchivableMessage;
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
