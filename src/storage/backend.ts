import type { ServerVersion } from "./sql/sql_dialect.ts";

/** Result of checking a backend. */
export interface BackendReport {
  /** Undefined when the backend could not be reached. */
  readonly server: ServerVersion | undefined;
  /** Version of the schema that this program uses; undefined where there is none. */
  readonly schemaVersion: number | undefined;
  /** Newest version of the schema that an SQL database has; undefined where it has none. */
  readonly foundVersion?: number | undefined;
  /** One text for each thing that is wrong; none: the backend can be used. */
  readonly problems: readonly string[];
  /** One text for each thing that was found and is worth showing. @default none */
  readonly facts?: readonly string[];
}

/** Options of a check. */
export interface BackendCheckOptions {
  /** JID of an account whose data in directories are shown. @default nobody's */
  readonly user?: string | undefined;
}

/** Options of a preparation. */
export interface PrepareOptions {
  /**
   * True changes the database's isolation too, where `check` objects to it; that waits until nobody
   * else uses the database. @default false
   */
  readonly fixesIsolation?: boolean | undefined;
  /**
   * Program with its first arguments that prepares what no client of the database may, such as
   * `sudo riak-admin`. @default none
   */
  readonly adminCommand?: string | undefined;
  /** Called when a step begins. */
  progress?: ((step: PrepareStep) => void) | undefined;
}

/** A step of a preparation. */
export interface PrepareStep {
  /** Steps before it, and all that there are. */
  readonly done: number;
  readonly total: number;
  readonly statement: string;
}

/** One database that a configuration uses, for the commands that prepare and check it. */
export interface Backend {
  /** `internal`, or the kind of its pool and the tag: `rdbms.default`. */
  readonly name: string;
  /** Name for messages, without secrets. */
  readonly place: string;
  /** Returns the statements that `prepare` would run, and changes nothing. */
  plan(): Promise<readonly string[]>;
  /** Creates or migrates the schema and returns the statements that were run. Safe to repeat. */
  prepare(options?: PrepareOptions): Promise<readonly string[]>;
  /**
   * Returns the commands that are left for somebody to run at the database itself, once `prepare` has
   * done its part. @default none
   */
  leftover?(): Promise<readonly string[]>;
  /** Checks that the backend can be reached and used. Never rejects. */
  check(options?: BackendCheckOptions): Promise<BackendReport>;
}
