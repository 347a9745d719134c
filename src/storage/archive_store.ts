/** The id of a message in every archive that has it: that of the stanza inside Causeway. */
export interface ArchiveId {
  /** Incarnation of the process where the stanza entered the mesh; an integer in [1, 2^52). */
  readonly process: number;
  /** Running number that this process gave it. */
  readonly sequence: number;
}

/** The other side of a conversation. */
export interface ArchivePeer {
  /** Bare JID. */
  readonly bare: string;
  /** Empty for a bare JID. */
  readonly resourcepart: string;
}

/** A message for one archive. */
export interface ArchivedMessage extends ArchiveId {
  /** Key of the archive, as `archiveKeyOf` makes it. */
  readonly archive: string;
  readonly peer: ArchivePeer;
  /** Wall-clock milliseconds when the server accepted it. */
  readonly sentAtMs: number;
  /**
   * Wall-clock milliseconds when an archive from which the message is copied had it. Searches for times
   * are fast in SQL databases where messages became visible soon after they were sent.
   * @default now
   */
  readonly visibleAtMs?: number;
  readonly stanza: Uint8Array;
  /** Text that a search finds it by: its bodies. Empty, as without it, for a message that has none. */
  readonly text?: string | undefined;
  /**
   * True when the account's roster has the peer. Undefined: it has not been asked, which an account
   * without a wish for contacts needs not.
   */
  readonly isContact?: boolean | undefined;
  /**
   * True for a message of another archive that this one is a copy of: whatever its owner wishes by now,
   * it was wanted when it came.
   */
  readonly isCopied?: boolean;
}

/**
 * Outcome for one message.
 *
 * | outcome | meaning |
 * | --- | --- |
 * | `stored` | the archive has it, from now on or from before |
 * | `unwanted` | the account's preferences keep it out |
 * | `ask-roster` | the preferences ask whether the peer is a contact: not stored yet |
 */
export type ArchiveOutcome = "stored" | "unwanted" | "ask-roster";

/** Messages that an account wants in its archive (XEP-0441). */
export interface ArchivePreferences {
  /** Messages that neither list names: all, none, or those of contacts. */
  readonly byDefault: "always" | "never" | "roster";
  /** Normalised JIDs. A bare JID stands for all of its resources too. */
  readonly always: readonly string[];
  readonly never: readonly string[];
}

/** Preferences of an account that has set none. */
export const DEFAULT_ARCHIVE_PREFERENCES: ArchivePreferences = {
  byDefault: "always",
  always: [],
  never: [],
};

/** Messages that a query wants. Every part that is given narrows it. */
export interface ArchiveFilter {
  /** Without a resource: the messages of all resources. */
  readonly peer?: ArchivePeer | undefined;
  /** Wall-clock milliseconds at which a message was sent, both included. */
  readonly startMs?: number | undefined;
  readonly endMs?: number | undefined;
  /** Messages that became visible behind this one. */
  readonly afterId?: ArchiveId | undefined;
  /** Messages that became visible before this one. */
  readonly beforeId?: ArchiveId | undefined;
  /** These messages alone; at most `MAX_ARCHIVE_IDS`. */
  readonly ids?: readonly ArchiveId[] | undefined;
  /** Words that all are in a message's text. Only for a store that `searchesText`. */
  readonly text?: string | undefined;
}

/** Ids that one query may name. */
export const MAX_ARCHIVE_IDS = 100;

/** One page of the result of a query. */
export interface ArchivePageRequest {
  /** Messages; at least 1. */
  readonly limit: number;
  /** The first ones of the result, or the last ones. */
  readonly from: "start" | "end";
  /** The first ones behind this message. */
  readonly after?: ArchiveId | undefined;
  /** The last ones before this message. */
  readonly before?: ArchiveId | undefined;
}

/** A message as it lies in an archive. */
export interface StoredMessage extends ArchiveId {
  readonly sentAtMs: number;
  readonly stanza: Uint8Array;
}

/** One page, in the order in which its messages became visible. */
export interface ArchivePage {
  readonly messages: readonly StoredMessage[];
  /** True when the page is the end of the result in its direction. */
  readonly isComplete: boolean;
}

/** A message at one end of an archive. */
export interface ArchiveEnd extends ArchiveId {
  readonly sentAtMs: number;
}

/** Messages that are too old. */
export interface ArchiveAge {
  /** Wall-clock milliseconds. Messages that were sent before are removed. */
  readonly sentBeforeMs: number;
  /** Domainpart of the archives' bare JIDs. @default archives of all domains */
  readonly host?: string | undefined;
  /** Key of the only archive that is meant. @default all of them */
  readonly archive?: string | undefined;
  /** Ends the removal between two of its steps. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Returns the key of an archive.
 *
 * An account that was deleted and made again has another archive than the one before, whatever is
 * written late to the latter. So the key has the account's creation behind its bare JID.
 *
 * @param creation `AccountCredentials.creation`. Empty for an account whose store has nothing of the
 * kind
 */
export function archiveKeyOf(bareJid: string, creation: string): string {
  return creation === "" ? bareJid : `${bareJid} ${creation}`;
}

/** Returns the key of the archive of a room, which another room of its name has not. */
export function roomArchiveKeyOf(
  room: string,
  { creation }: { readonly creation: number },
): string {
  return archiveKeyOf(room, creation.toString(36));
}

/** Returns the bare JID in the key of an archive: no bare JID has a space. */
export function bareJidOfArchive(archive: string): string {
  const end = archive.indexOf(" ");
  return end === -1 ? archive : archive.slice(0, end);
}

/**
 * Archives of messages (XEP-0313) of people and rooms, by the keys that `archiveKeyOf` makes. JIDs are
 * normalised. The store does not know which accounts exist.
 *
 * An archive has an order of its own: that in which its messages became visible to readers. A reader
 * who has read up to some message, and later asks for those behind it, gets each other message of
 * the archive once, however many nodes write at the same time. Times do not matter for that: a
 * message that arrives late is behind those that were there before it, with its own time.
 *
 * Every method rejects with a `CausewayError` whose code begins with `storage/` when the backend
 * cannot do it. A change that was reported as done is on the disk.
 */
export interface ArchiveStore {
  /** True when it finds messages by words of their text. */
  readonly searchesText: boolean;
  /** Messages of one batch that suit it, where many wait. @default 256 */
  readonly batchMessages?: number;
  /**
   * Adds messages, all in one step, those of one archive in their order. A message that its archive
   * has already is left as it is, whoever added it. Resolves to the outcome of each.
   *
   * @param nowMs wall-clock milliseconds
   */
  append(
    messages: readonly ArchivedMessage[],
    nowMs: number,
  ): Promise<readonly ArchiveOutcome[]>;
  /** Returns a page of an archive; undefined when it lacks a message that the request names. */
  read(
    archive: string,
    filter: ArchiveFilter,
    page: ArchivePageRequest,
  ): Promise<ArchivePage | undefined>;
  /**
   * Counts the messages that a query wants, up to `limit`. Undefined when the archive lacks a message
   * that the filter names.
   */
  count(archive: string, filter: ArchiveFilter, limit: number): Promise<number | undefined>;
  /** Returns the first and the last message of an archive; undefined for an empty one. */
  ends(
    archive: string,
  ): Promise<{ readonly first: ArchiveEnd; readonly last: ArchiveEnd } | undefined>;
  /** Returns the preferences of an archive's owner, who may have set none. */
  preferences(archive: string): Promise<ArchivePreferences | undefined>;
  /** Sets the preferences of an archive's owner. Messages that are added later obey them, but for copies. */
  setPreferences(archive: string, preferences: ArchivePreferences): Promise<void>;
  /**
   * Removes all archives of a bare JID, with their preferences, whatever creation their keys have
   * behind it.
   *
   * @param keep returns the key of an archive that stays, if any. It is called when the archives have
   * been found, and before any of them is removed: one that is made later stays too. It may be called
   * several times
   */
  removeAll(bareJid: string, keep?: () => Promise<string | undefined>): Promise<void>;
  /**
   * Keeps the archive that version 0.1.0 made for a bare JID from the next account of that name, if no
   * account has taken it since. Its messages stay. For a store that version 0.1.0 knew.
   */
  closeUnowned?(bareJid: string): Promise<void>;
  /** True while there are archives that version 0.1.0 made: `removeBefore` finds them by their keys alone. */
  hasUnowned?(): Promise<boolean>;
  /**
   * Removes at most `limit` messages that are too old. Preferences stay. Resolves to their number: 0
   * when no more are left. Harmless when several nodes call it at once.
   *
   * An archive that fails is left out, and the others lose their messages. The failure is thrown by a
   * call that finds nothing else to remove.
   */
  removeBefore(age: ArchiveAge, limit: number): Promise<number>;
  /**
   * Returns the wall clock of the database in milliseconds, to the second at least. Undefined, or not
   * there, when the database tells no time.
   */
  clockMs?(): Promise<number | undefined>;
}

/**
 * Returns whether preferences want a message; `ask-roster` when that depends on the roster. An entry
 * for a full JID counts before one for a bare JID, and `never` before `always`. Pure.
 */
export function isArchiveWanted(
  preferences: ArchivePreferences | undefined,
  { peer, isContact, isCopied = false }: Pick<ArchivedMessage, "peer" | "isContact" | "isCopied">,
): boolean | "ask-roster" {
  if (preferences === undefined || isCopied) return true;
  const { always, never, byDefault } = preferences;
  const full = peer.resourcepart === "" ? undefined : `${peer.bare}/${peer.resourcepart}`;
  for (const jid of full === undefined ? [peer.bare] : [full, peer.bare]) {
    if (never.includes(jid)) return false;
    if (always.includes(jid)) return true;
  }
  if (byDefault !== "roster") return byDefault === "always";
  return isContact ?? "ask-roster";
}
