/** An error as SQL Server reports it, by its number. */
export class TdsError extends Error {
  override readonly name = "TdsError";
  readonly number: number;
  /** Severity: from 11 on an error of the statement, from 20 on the end of the session. */
  readonly severity: number;

  constructor(number: number, message: string, severity = 16) {
    super(message);
    this.number = number;
    this.severity = severity;
  }
}

/** The error of a statement that the double does not understand, as of one that is no T-SQL. */
export function syntaxError(near: string): TdsError {
  return new TdsError(102, `Incorrect syntax near '${near}'.`, 15);
}
