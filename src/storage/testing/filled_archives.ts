import type { ArchivedMessage, ArchiveFilter, ArchiveStore } from "../archive_store.ts";
import { bareJidOfArchive } from "../archive_store.ts";

/** Time of the first message. */
export const FILLED_AT_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const PROCESS = 2 ** 52 - 7;

/** Bare JIDs of the other sides, in turn. */
export const FILLED_PEERS = ["bob@example.com", "\u00fcnal@example.org"] as const;
/** Nicknames in rooms, in turn. */
const FILLED_NICKNAMES = ["1st Witch", "d\u00fcne", "\u{1f600}"];

/** Returns a message of an archive, as a node stores it: hour `i` from or to one of two people. */
export function filledMessage(archive: string, i: number): ArchivedMessage {
  const owner = bareJidOfArchive(archive);
  const bare = FILLED_PEERS[i % 2]!;
  const peer = { bare, resourcepart: i % 3 === 0 ? "d\u00fcne" : "" };
  const other = peer.resourcepart === "" ? bare : `${bare}/${peer.resourcepart}`;
  const [from, to] = i % 4 < 2 ? [`${owner}/desk`, other] : [other, owner];
  const body = `number ${i} ${i % 5 === 0 ? "fifth" : "other"} \u00df\u{1f600} &amp; &lt;b&gt;`;
  return {
    archive,
    process: PROCESS - (i % 7),
    sequence: i,
    peer,
    sentAtMs: FILLED_AT_MS + i * HOUR_MS,
    stanza: new TextEncoder().encode(
      `<message from='${from}' to='${to}' type='chat' id='${i}'><body>${body}</body></message>`,
    ),
    text: `number ${i} ${i % 5 === 0 ? "fifth" : "other"} \u00df\u{1f600} & <b>`,
  };
}

/** Returns a message of the archive of a room: hour `i` by one of three people. */
export function filledRoomMessage(archive: string, i: number): ArchivedMessage {
  const room = bareJidOfArchive(archive);
  const nickname = FILLED_NICKNAMES[i % 3]!;
  const { text, sentAtMs } = filledMessage(archive, i);
  const body = text!.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return {
    archive,
    process: 1,
    sequence: FILLED_AT_MS + i,
    peer: { bare: room, resourcepart: nickname },
    sentAtMs,
    stanza: new TextEncoder().encode(
      `<message from='${room}/${nickname}' type='groupchat' id='${i}'><body>${body}</body></message>`,
    ),
    text,
  };
}

/** Adds messages to an archive, each hour one. */
export async function fillArchive(
  store: ArchiveStore,
  archive: string,
  { from = 0, count, message = filledMessage }: {
    readonly from?: number;
    readonly count: number;
    /** @default a message of somebody's archive */
    readonly message?: typeof filledMessage;
  },
): Promise<void> {
  for (let i = from; i < from + count; i += 500) {
    const some = Array.from(
      { length: Math.min(500, from + count - i) },
      (_, j) => message(archive, i + j),
    );
    await store.append(some, FILLED_AT_MS + (from + count) * HOUR_MS);
  }
}

/** Returns what readers find in the archive of a room, as `archiveContentOf`. */
export async function roomArchiveContentOf(
  store: ArchiveStore,
  archive: string,
): Promise<unknown> {
  return await archiveContentOf(store, archive, bareJidOfArchive(archive));
}

/**
 * Returns what readers find in an archive: messages, and the results of several queries.
 *
 * @param peer bare JID of somebody who has written some of them
 */
export async function archiveContentOf(
  store: ArchiveStore,
  archive: string,
  peer: string = FILLED_PEERS[1],
): Promise<unknown> {
  const texts = async (filter: ArchiveFilter) => {
    const page = await store.read(archive, filter, { limit: 1_000, from: "start" });
    return page!.messages.map(({ process, sequence, sentAtMs, stanza }) =>
      `${process} ${sequence} ${sentAtMs} ${new TextDecoder().decode(stanza)}`
    );
  };
  const day = 24 * HOUR_MS;
  const preferences = await store.preferences(archive);
  return {
    all: await texts({}),
    ofPeer: await texts({ peer: { bare: peer, resourcepart: "" } }),
    ofResource: await texts({ peer: { bare: peer, resourcepart: "d\u00fcne" } }),
    ofTime: await texts({ startMs: FILLED_AT_MS + day, endMs: FILLED_AT_MS + 2 * day }),
    preferences: preferences ?? null,
  };
}
