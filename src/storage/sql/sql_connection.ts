/**
 * One row of a result: its columns are to be read by their names. They need not be properties of the row
 * itself, which a copy of it would have.
 */
export type SqlRow = Readonly<Record<string, unknown>>;

/** Result of one statement. */
export interface SqlResult {
  /** Empty for statements that return no rows. */
  readonly rows: readonly SqlRow[];
  /** Rows that a change matched; 0 for other statements. */
  readonly affectedRows: number;
}

/**
 * One session at a database server, or one open file. It runs one statement at a time. Errors are
 * those of the driver: `SqlDialect.failureOf` names them.
 */
export interface SqlConnection {
  /** False once it is closed or was lost. It never becomes true again. */
  readonly isOpen: boolean;
  /**
   * Runs one statement with its parameters.
   * @param name of a statement that is executed often; always the same one for one text
   */
  execute(sql: string, values?: readonly unknown[], name?: string): Promise<SqlResult>;
  /** Takes leave of the server. Never rejects. */
  close(): Promise<void>;
  /** Cuts the connection at once, also during a statement. */
  destroy(): void;
}
