import type { ArchivedMessage } from "../../../src/storage/mod.ts";

/** Domain of all accounts. */
export const DOMAIN = "example.com";
/** Archive that pages are read from. */
export const LARGE_ARCHIVE = `reader@${DOMAIN}`;
/** Bytes of a stanza. */
export const STANZA_BYTES = 300;
/** Archives that insertions go to in turn. */
export const ARCHIVES = 10;

/** People with whom the owner of an archive talks in turn. */
export const PEERS = 100;
const SENT_AT_MS = 1_750_000_000_000;
const PROCESS = 4_242;
const WORDS = (
  "tomorrow meeting lunch train release database archive message garden window river coffee " +
  "answer question station ticket music weather morning evening project deadline holiday picture " +
  "dinner friend bridge market street number"
).split(" ");
const ENCODER = new TextEncoder();

/** Returns the time at which the message of a number was sent: one each millisecond. */
export function sentAtOf(sequence: number): number {
  return SENT_AT_MS + sequence;
}

/** Returns the JID of somebody with whom the archives' owners talk. */
export function peerOf(sequence: number): string {
  return `friend${sequence % PEERS}@${DOMAIN}`;
}

/** Returns the number of messages from `first` on, before `end`; `peer`: of those with `peerOf(peer)`. */
export function countOf(first: number, end: number, peer?: number): number {
  if (peer === undefined) return Math.max(0, end - first);
  const below = (sequence: number) => Math.ceil((sequence - peer % PEERS) / PEERS);
  return Math.max(0, below(end) - below(first));
}

/**
 * Returns the message behind which a page begins: at `part` of the archive, or as near as a whole page
 * is behind it. In a small archive that is the first message.
 * @param page messages of a page; `hasPeer`: of one peer alone
 */
export function placeOf(
  part: number,
  { entries, page, hasPeer }: {
    readonly entries: number;
    readonly page: number;
    readonly hasPeer: boolean;
  },
): number {
  const last = entries - 1 - page * (hasPeer ? PEERS : 1);
  return Math.max(0, Math.min(Math.floor(part * entries), last));
}

/** Returns a message's text: some words, others for each number. */
export function textOf(sequence: number): string {
  let text = "";
  for (let i = 1, seed = sequence; i <= 8; i++) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    text += `${WORDS[seed % WORDS.length]} `;
  }
  return `${text}${sequence}`;
}

/** Returns the archive that the message of a number goes to. */
export function archiveOf(sequence: number): string {
  return `owner${sequence % ARCHIVES}@${DOMAIN}`;
}

/** Returns a message of 300 bytes, the same for the same number, with its text where it is searched. */
export function messageOf(
  sequence: number,
  { archive = archiveOf(sequence), hasSearch }: {
    readonly archive?: string;
    readonly hasSearch: boolean;
  },
): ArchivedMessage {
  const text = textOf(sequence);
  const peer = { bare: peerOf(sequence), resourcepart: "phone" };
  const stanza = `<message xmlns='jabber:client' type='chat' id='m${sequence}' ` +
    `from='${peer.bare}/phone' to='${archive}'><body>${text}</body></message>`;
  return {
    archive,
    process: PROCESS,
    sequence,
    peer,
    sentAtMs: sentAtOf(sequence),
    stanza: ENCODER.encode(stanza.padEnd(STANZA_BYTES)),
    text: hasSearch ? text : undefined,
    isContact: true,
  };
}

/** Returns the id of such a message. */
export function idOf(sequence: number): { readonly process: number; readonly sequence: number } {
  return { process: PROCESS, sequence };
}
