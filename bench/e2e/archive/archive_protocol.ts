/** Databases that the archive is measured with. */
export const ARCHIVE_DATABASES = [
  "sqlite",
  "postgresql",
  "mariadb",
  "mysql",
  "elasticsearch",
  "opensearch",
  "cassandra",
] as const;
export type ArchiveDatabase = typeof ARCHIVE_DATABASES[number];

/** Messages that wait for the writer at all times: it always finds a whole batch. */
export const WAITING_INSERTIONS = 4_096;

/** Place of the archives, for a process that opens them. */
export interface ArchivePlace {
  readonly database: ArchiveDatabase;
  /** File of the built-in store. Other databases leave it without archives. */
  readonly file: string;
  /** Port of the server on loopback; 0 for SQLite. */
  readonly port: number;
  /** Name of an SQL server's database. */
  readonly name: string;
  readonly username: string;
  readonly password: string;
  /** True: messages come with their text, for the search index of databases that have one. */
  readonly hasSearch: boolean;
}

/** Argument of the process that uses the archives of the product, and of that with the bare driver. */
export interface ArchivePlan {
  readonly place: ArchivePlace;
}

/** Commands to the process with the product's archives. */
export type ArchiveCommand =
  | { readonly do: "insert"; readonly warmUpMs: number; readonly measureMs: number }
  | { readonly do: "fill"; readonly entries: number }
  /** The large archive has so many messages by now: the bench itself has added some. */
  | { readonly do: "note"; readonly entries: number }
  | { readonly do: "read"; readonly page: PageName; readonly times: number }
  | { readonly do: "count"; readonly count: CountName; readonly times: number }
  | { readonly do: "remove"; readonly removal: RemovalName };

/** Events of both processes. Times are milliseconds. */
export type ArchiveEvent =
  | { readonly event: "ready" }
  | { readonly event: "inserted"; readonly messages: number; readonly elapsedMs: number }
  | { readonly event: "filled"; readonly elapsedMs: number }
  | { readonly event: "noted" }
  | { readonly event: "read"; readonly p50Ms: number; readonly p99Ms: number }
  | { readonly event: "counted"; readonly p50Ms: number; readonly p99Ms: number }
  | { readonly event: "removed"; readonly messages: number; readonly elapsedMs: number };

/** Pages of 50 messages of a large archive. */
export const PAGES = [
  "first",
  "middle",
  "last",
  "first with a peer",
  "middle with a peer",
  "last with a peer",
  "behind a time",
  "before a time",
  "before a time with a peer",
] as const;
export type PageName = typeof PAGES[number];

/** Counts of messages of a large archive, up to the number beyond which a node counts no further. */
export const COUNTS = ["all", "with a peer"] as const;
export type CountName = typeof COUNTS[number];

/** Removals from a large archive, in their order: a tenth of it by its age, and then the rest. */
export const REMOVALS = ["by age", "whole"] as const;
export type RemovalName = typeof REMOVALS[number];
