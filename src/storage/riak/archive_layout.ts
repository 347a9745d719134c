import { createHash } from "node:crypto";
import type { ArchivedMessage, ArchiveFilter, ArchiveId, ArchivePeer } from "../archive_store.ts";
import type { DocumentChange, DocumentState } from "./document_state.ts";
import { nameOf } from "./places.ts";
import type { RiakPlace } from "./places.ts";

/**
 * Layout of the archives in Riak. Pure.
 *
 * An archive is a numbered document, its head, that gives each message a position: one above that of
 * the message before. The newest messages are listed in the head, and the others in chunks, which are
 * numbered documents too: chunk k lists the positions from k·`CHUNK` + 1 to (k + 1)·`CHUNK`. A message
 * itself is a map of its own, found by its id. Whoever reads the head thus sees all positions up to the
 * last one, and none of them changes any more.
 */

/** Positions of a chunk. */
export const CHUNK = 128;

/** Entries of the head, and the only one of a chunk. */
const [PREFERENCES, STATE, RUN_PREFIX, LIST] = ["p", "s", "r", "list"];

/** One message in the list of a head or a chunk. */
export interface ListedMessage extends ArchiveId {
  readonly position: number;
  readonly sentAtMs: number;
  /** Digests of the other side. */
  readonly peer: string;
  readonly resource: string;
}

/** A message as documents have it. */
type Row = readonly [
  position: number,
  process: number,
  sequence: number,
  sentAtMs: number,
  peer: string,
  resource: string,
];

/** Positions of an archive. */
interface Positions {
  /** Messages up to here were removed. */
  readonly first: number;
  /** Messages up to here are in chunks. */
  readonly flushed: number;
  readonly last: number;
}

/** An archive as one read of its head shows it. */
export interface ArchiveHead extends Positions {
  /** As the preferences were stored; undefined when there are none. */
  readonly preferences: string | undefined;
  /**
   * Messages that are in no chunk, in their order. Their positions are above `flushed`, apart from
   * those that another cluster has added before it replicated.
   */
  readonly newest: readonly ListedMessage[];
}

/** Returns the name of an archive in keys, whatever is in the archive's own key. */
export function archiveNameOf(archive: string): string {
  return createHash("sha256").update(archive).digest("hex");
}

/** Returns the place of the head of an archive. */
export function headPlace(archiveName: string): RiakPlace {
  return { type: "causeway", bucket: nameOf("archives"), key: nameOf(archiveName) };
}

/** Returns the place of a chunk. */
export function chunkPlace(archiveName: string, chunk: number): RiakPlace {
  return { ...headPlace(archiveName), key: nameOf(`${archiveName} ${chunk}`) };
}

/** Returns the place of the list of the archives of a bare JID. */
export function archivesPlace(bareJid: string): RiakPlace {
  return { ...headPlace(archiveNameOf(bareJid)), bucket: nameOf("archive keys") };
}

/** Returns the place of a message. */
export function messagePlace(archiveName: string, { process, sequence }: ArchiveId): RiakPlace {
  const key = nameOf(`${archiveName} ${process} ${sequence}`);
  return { type: "mam_yz", bucket: nameOf("messages"), key };
}

/** Returns the archive's name and the id in the key of a message. */
export function parseMessageKey(
  key: string,
): { readonly archiveName: string; readonly id: ArchiveId } {
  const [archiveName = "", process, sequence] = key.slice(nameOf("").length).split(" ");
  return { archiveName, id: { process: Number(process), sequence: Number(sequence) } };
}

/** Returns the number of the chunk that has a position. */
export function chunkOf(position: number): number {
  return Math.floor((position - 1) / CHUNK);
}

/** Returns the digest by which one text of the other side is compared. */
export function digestOf(text: string): string {
  return createHash("sha256").update(text).digest().subarray(0, 12).toString("base64");
}

/** Reads the head of an archive. */
export function parseHead({ entries }: DocumentState): ArchiveHead {
  const stored = entries.get(STATE);
  const { first, flushed, last } = stored === undefined
    ? { first: 0, flushed: 0, last: 0 }
    : JSON.parse(stored.value) as Positions; // this program wrote it
  const newest = [...entries].filter(([name]) => name.startsWith(RUN_PREFIX))
    .flatMap(([, { value }]) => parseRows(value))
    .filter(({ position }) => position > first)
    .sort(inOrder);
  return {
    first,
    flushed,
    // Clusters that merged may have given positions above that.
    last: Math.max(last, newest.at(-1)?.position ?? 0),
    preferences: entries.get(PREFERENCES)?.value,
    newest,
  };
}

/**
 * Returns the entries that add messages to the newest ones of a head.
 *
 * @param run name that no other addition has, in this cluster or another
 */
export function appending(
  state: DocumentState,
  added: readonly ListedMessage[],
  run: string,
): DocumentChange["entries"] {
  const { first, flushed } = parseHead(state);
  return [
    [`${RUN_PREFIX}${run}`, rowsText(added)],
    [STATE, stateText({ first, flushed, last: added.at(-1)!.position })],
  ];
}

/** Returns the entries that set the preferences of an archive. */
export function preferring(text: string): DocumentChange["entries"] {
  return [[PREFERENCES, text]];
}

/** Returns the entries that leave an archive empty, without preferences. */
export function clearing(state: DocumentState): DocumentChange["entries"] | undefined {
  if (state.entries.size === 0) return undefined;
  const { flushed, last } = parseHead(state);
  const gone = [...state.entries.keys()].filter((name) => name !== STATE);
  return [
    ...gone.map((name) => [name, null] as const),
    [STATE, stateText({ first: last, flushed, last })],
  ];
}

/** Returns the entries that take messages out of the newest ones; undefined when none is there. */
export function removingFromHead(
  state: DocumentState,
  isRemoved: (message: ListedMessage) => boolean,
): DocumentChange["entries"] | undefined {
  const changes = [...state.entries].filter(([name]) => name.startsWith(RUN_PREFIX))
    .flatMap(([name, { value }]): [string, string | null][] => {
      const rows = parseRows(value);
      const left = rows.filter((row) => !isRemoved(row));
      if (left.length === rows.length) return [];
      return [[name, left.length === 0 ? null : rowsText(left)]];
    });
  if (changes.length === 0) return undefined;
  const { first, flushed, last } = parseHead(state);
  return [...changes, [STATE, stateText({ first, flushed, last })]];
}

/**
 * Returns the entries that forget messages which are in a chunk now, and those below `first`.
 *
 * @param moved true for a message that is in the chunk
 */
export function flushing(
  state: DocumentState,
  { first, flushed }: Pick<Positions, "first" | "flushed">,
  moved: (message: ListedMessage) => boolean,
): DocumentChange["entries"] {
  const { last } = parseHead(state);
  const changes = removingFromHead(
    state,
    (message) => message.position <= first || moved(message),
  ) ?? [];
  return [
    ...changes.filter(([name]) => name !== STATE),
    [STATE, stateText({ first, flushed, last })],
  ];
}

/** A chunk, and the version of the head that its list was made from. */
export interface ChunkList {
  readonly madeFrom: number;
  readonly messages: readonly ListedMessage[];
}

/** Reads a chunk; undefined when there is none. */
export function parseChunk({ entries }: DocumentState): ChunkList | undefined {
  const entry = entries.get(LIST);
  if (entry === undefined) return undefined;
  const [madeFrom, rows] = JSON.parse(entry.value) as [number, Row[]]; // this program wrote it
  return { madeFrom, messages: rows.map(messageIn) };
}

/** Returns the entries that make a chunk. */
export function chunking({ madeFrom, messages }: ChunkList): DocumentChange["entries"] {
  return [[LIST, JSON.stringify([madeFrom, messages.map(rowOf)])]];
}

/** Returns a message as it is listed. */
export function listed(
  { process, sequence, peer }: ArchivedMessage,
  { position, sentAtMs }: Pick<ListedMessage, "position" | "sentAtMs">,
): ListedMessage {
  return {
    position,
    process,
    sequence,
    sentAtMs,
    peer: digestOf(peer.bare),
    resource: digestOf(peer.resourcepart),
  };
}

/** Returns the condition on the lists that a filter makes, apart from ids and words. */
export function matcherOf(
  { peer, startMs = -Infinity, endMs = Infinity }: ArchiveFilter,
): (message: ListedMessage) => boolean {
  const wanted = peer && digestsOf(peer);
  return (message) =>
    message.sentAtMs >= startMs && message.sentAtMs <= endMs &&
    (wanted === undefined || (message.peer === wanted.peer &&
      (wanted.resource === undefined || message.resource === wanted.resource)));
}

/** Returns the digests of the other side; without a resource for a bare JID. */
export function digestsOf({ bare, resourcepart }: ArchivePeer) {
  return {
    peer: digestOf(bare),
    resource: resourcepart === "" ? undefined : digestOf(resourcepart),
  };
}

/** Compares messages by their positions. */
export function inOrder(one: ListedMessage, other: ListedMessage): number {
  return one.position - other.position || one.process - other.process ||
    one.sequence - other.sequence;
}

function stateText(positions: Positions): string {
  return JSON.stringify(positions);
}

function rowsText(messages: readonly ListedMessage[]): string {
  return JSON.stringify(messages.map(rowOf));
}

function parseRows(text: string): readonly ListedMessage[] {
  return (JSON.parse(text) as Row[]).map(messageIn); // this program wrote it
}

function rowOf(
  { position, process, sequence, sentAtMs, peer, resource }: ListedMessage,
): Row {
  return [position, process, sequence, sentAtMs, peer, resource];
}

function messageIn([position, process, sequence, sentAtMs, peer, resource]: Row): ListedMessage {
  return { position, process, sequence, sentAtMs, peer, resource };
}
