import type { Buffer } from "node:buffer";
import { CompiledQuery } from "kysely";
import type { Key } from "./keys.ts";
import type { NamedQuery } from "./named_query.ts";
import { bigintArray, byteaArray, textArray } from "./engines/postgres_arrays.ts";

/** An archive that takes messages, as its row is expected to be. */
export interface StepArchive {
  /** Key of its row. */
  readonly key: Key;
  readonly owner: Key;
  /** As the row has them; null: none were set. */
  readonly preferences: Uint8Array | null;
  /** Messages that it takes. */
  readonly messages: number;
  /** Time at which the oldest of them was sent, in milliseconds. */
  readonly oldestSentAt: number;
}

/** A message for one of these archives. */
export interface StepMessage {
  /** Key of the archive's row, and the place of the archive among the others, from 0. */
  readonly key: Key;
  readonly archive: number;
  /** Place of the message among those that its archive takes, from 1. */
  readonly nth: number;
  readonly process: number;
  readonly sequence: number;
  readonly peer: Key;
  readonly peerResource: Uint8Array;
  readonly sentAt: number;
  readonly stanza: Uint8Array;
  /** Words by which a search finds it, with a space between them. Undefined: none. */
  readonly words: string | undefined;
}

/** Messages that one statement adds, with their archives in the order of their keys. */
export interface StepValues {
  readonly archives: readonly StepArchive[];
  readonly messages: readonly StepMessage[];
  readonly nowMs: number;
}

/**
 * Way to add messages to archives by one statement, which is a transaction of its own.
 *
 * The statement locks the rows of its archives in the order of their keys, and looks at each behind
 * the lock. It changes as many rows as there are archives, or none: then some row is not there, is
 * not as it is expected to be, or its archive has had no message yet. A message that its archive has
 * already, as another node has stored it, is left out, and its position stays free.
 */
export interface ArchiveStep {
  statement(values: StepValues): CompiledQuery;
}

/** Rows of the archives, locked, as arrays: in a join the planner would count on few of them. */
const EXPECTED =
  "with locked as (select account_key, owner_key, preferences, last_position, visible_at " +
  "from archives where account_key = any($1::bytea[]) order by account_key for update), " +
  "found as (select array_agg(account_key) as keys, array_agg(owner_key) as owners, " +
  "array_agg(preferences) as preferences, array_agg(last_position) as positions, " +
  "array_agg(greatest(visible_at, $6::bigint)) as visible from locked), " +
  "expected as (select positions, visible from found where keys = $1::bytea[] " +
  "and owners = $2::bytea[] and preferences = $3::bytea[] and not 0 = any(positions)), ";

const ADDED = "added as (insert into archive_messages (account_key, position, process, sequence, " +
  "peer_key, peer_resource, sent_at, visible_at, stanza) select message.key, " +
  "expected.positions[message.archive::integer] + message.nth, message.process, " +
  "message.sequence, message.peer, message.resource, message.sent_at, " +
  "expected.visible[message.archive::integer], message.stanza from expected cross join " +
  "unnest($7::bytea[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bytea[], " +
  "$13::bytea[], $14::bigint[], $15::bytea[]) as message " +
  "(key, archive, nth, process, sequence, peer, resource, sent_at, stanza) " +
  "on conflict (process, sequence, account_key) do nothing returning account_key, position)";

/**
 * Words of the messages that were added. `is true` keeps the planner from a join, which compares each
 * text with each message: it counts on few of them. Versions without words leave those of messages
 * that they remove.
 */
const WORDS = ", words as (insert into archive_texts (account_key, position, words) " +
  "select text.key, expected.positions[text.archive::integer] + text.nth, text.words::tsvector " +
  "from expected cross join unnest($16::bytea[], $17::bigint[], $18::bigint[], $19::text[]) " +
  "as text (key, archive, nth, words) " +
  "where ((text.key, expected.positions[text.archive::integer] + text.nth) in " +
  "(select account_key, position from added)) is true " +
  "on conflict (account_key, position) do update set words = excluded.words)";

/**
 * The change of the rows has nothing to do with what was inserted. PostgreSQL computes it again for a
 * row that another transaction changed while this statement waited for the lock.
 */
const CHANGED = " update archives set last_position = last_position + change.messages, " +
  "visible_at = greatest(visible_at, $6::bigint), " +
  "most_late = greatest(most_late, greatest(visible_at, $6::bigint) - change.oldest), " +
  "oldest_sent_at = least(oldest_sent_at, change.oldest) " +
  "from unnest($1::bytea[], $4::bigint[], $5::bigint[]) as change (key, messages, oldest) " +
  "where account_key = change.key and exists (select 1 from expected)";

/** Whole texts: the driver compares the text of each statement with that which it has prepared. */
const [WITHOUT_WORDS, WITH_WORDS] = [
  EXPECTED + ADDED + CHANGED,
  EXPECTED + ADDED + WORDS + CHANGED,
];

/** One statement of PostgreSQL, prepared, with a list for each column. */
export const POSTGRES_STEP: ArchiveStep = {
  statement: ({ archives, messages, nowMs }): NamedQuery => {
    const texts = messages.filter(({ words }) => words !== undefined);
    const [text, name] = texts.length === 0
      ? [WITHOUT_WORDS, "archive_step"]
      : [WITH_WORDS, "archive_step_words"];
    const values = [
      byteaArray(archives.map(({ key }) => key)),
      byteaArray(archives.map(({ owner }) => owner)),
      byteaArray(archives.map(({ preferences }) => preferences)),
      bigintArray(archives.map((archive) => archive.messages)),
      bigintArray(archives.map(({ oldestSentAt }) => oldestSentAt)),
      nowMs,
      ...placesOf(messages),
      bigintArray(messages.map(({ process }) => process)),
      bigintArray(messages.map(({ sequence }) => sequence)),
      byteaArray(messages.map(({ peer }) => peer)),
      byteaArray(messages.map(({ peerResource }) => peerResource)),
      bigintArray(messages.map(({ sentAt }) => sentAt)),
      byteaArray(messages.map(({ stanza }) => stanza)),
      ...(texts.length === 0
        ? []
        : [...placesOf(texts), textArray(texts.map(({ words }) => words!))]),
    ];
    return { ...CompiledQuery.raw(text, values), name };
  },
};

/** Lists of the archives of messages, and of their places there. */
function placesOf(messages: readonly StepMessage[]): readonly Buffer[] {
  return [
    byteaArray(messages.map(({ key }) => key)),
    bigintArray(messages.map(({ archive }) => archive + 1)), // arrays of PostgreSQL begin with 1
    bigintArray(messages.map(({ nth }) => nth)),
  ];
}
