import { CompiledQuery, sql as raw } from "kysely";
import type { RawBuilder } from "kysely";
import { insertionPortions } from "./insertion_portions.ts";
import type { NamedQuery } from "./named_query.ts";

/** Words of one message. */
export interface TextRow {
  readonly account_key: Uint8Array;
  readonly position: number;
  /** As `wordsOf` and `wordOfArchive` make them. */
  readonly words: readonly string[];
}

/** Messages that a search looks at. */
export interface TextScope {
  readonly account_key: Uint8Array;
  /** Positions between which it looks, both left out. */
  readonly after: number;
  readonly before: number;
}

/** The way in which one SQL engine finds messages by words: rows of `archive_texts`. */
export interface TextSearch {
  /** Returns statements that add rows, in place of those that messages before have left there. */
  insertions(rows: readonly TextRow[]): readonly CompiledQuery[];
  /** Returns a query in parentheses for the positions of the rows that have all words. */
  positions(words: readonly string[], scope: TextScope): RawBuilder<number>;
}

/** Rows of one insertion in PostgreSQL, whose statement is prepared. */
const PREPARED_ROWS = 250;
/** Rows of one insertion in MySQL, which prepares each size anew. */
const MYSQL_ROWS = 64;

/** A column of the type `tsvector` with a GIN index. The words are lexemes already. */
export const POSTGRES_SEARCH: TextSearch = {
  insertions: (rows) =>
    [...insertionPortions(rows, PREPARED_ROWS, bytesOf)].map((some): NamedQuery => {
      const values = some.map((_, i) => `($${3 * i + 1}, $${3 * i + 2}, $${3 * i + 3}::tsvector)`);
      return {
        ...inserting(
          values,
          some,
          "on conflict (account_key, position) do update set words = excluded.words",
        ),
        name: some.length === PREPARED_ROWS ? "archive_texts" : undefined,
      };
    }),
  positions: (words, { account_key: key, after, before }) => {
    const query = words.join(" & ");
    // OFFSET makes PostgreSQL look for the words first. Otherwise it might read the archive from one
    // end and look for the words of each message, which takes long for rare words.
    return raw<
      number
    >`(select position from archive_texts where account_key = ${key} and position > ${after} and position < ${before} and words @@ ${query}::tsquery offset 0)`;
  },
};

/** A FULLTEXT index of InnoDB. */
export const MYSQL_SEARCH: TextSearch = {
  insertions: (rows) =>
    [...insertionPortions(rows, MYSQL_ROWS, bytesOf)].map((some) =>
      inserting(some.map(() => "(?, ?, ?)"), some, "on duplicate key update words = values(words)")
    ),
  positions: (words, { account_key: key, after, before }) => {
    const query = words.map((word) => `+${word}`).join(" ");
    return raw<
      number
    >`(select position from archive_texts where account_key = ${key} and position > ${after} and position < ${before} and match (words) against (${query} in boolean mode))`;
  },
};

/** A table of FTS5, which keeps no texts. Its rows go with those of `archive_texts`. */
export const SQLITE_SEARCH: TextSearch = {
  insertions: (rows) =>
    rows.flatMap(({ account_key: key, position, words }) => [
      CompiledQuery.raw("delete from archive_texts where account_key = ? and position = ?", [
        key,
        position,
      ]),
      CompiledQuery.raw("insert into archive_texts (account_key, position) values (?, ?)", [
        key,
        position,
      ]),
      CompiledQuery.raw(
        "insert into archive_words (rowid, words) values (last_insert_rowid(), ?)",
        [words.join(" ")],
      ),
    ]),
  positions: (words, { account_key: key, after, before }) => {
    const query = words.join(" AND ");
    return raw<
      number
    >`(select position from archive_texts where account_key = ${key} and position > ${after} and position < ${before} and id in (select rowid from archive_words where archive_words match ${query}))`;
  },
};

function inserting(
  values: readonly string[],
  rows: readonly TextRow[],
  replacing: string,
): CompiledQuery {
  return CompiledQuery.raw(
    `insert into archive_texts (account_key, position, words) values ${values.join(", ")} ` +
      replacing,
    rows.flatMap(({ account_key: key, position, words }) => [key, position, words.join(" ")]),
  );
}

/** Returns the bytes of a row's words, which are ASCII, with a space behind each. */
function bytesOf({ words }: TextRow): number {
  return words.reduce((sum, word) => sum + word.length + 1, 0);
}
