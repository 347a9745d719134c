/** Options of every error of ours. Callers rely on its stable code, never on its message. */
export interface CausewayErrorOptions extends ErrorOptions {
  /** True when a retry may succeed. @default false */
  readonly retryable?: boolean;
}

/**
 * Base of the errors that callers match on.
 *
 * `code` is `area/what` in kebab case, such as `"link/frame-too-large"`. Subclasses add fields
 * for numbers a caller needs.
 */
export class CausewayError extends Error {
  override readonly name: string = "CausewayError";
  readonly code: string;
  readonly retryable: boolean;

  constructor(code: string, message: string, options: CausewayErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.retryable = options.retryable ?? false;
  }
}

/** Returns the message of anything that was thrown, for a log field. */
export function describeError(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Texts for what keeps people from a file, by the code of the operating system. */
const FILE_PROBLEMS: ReadonlyMap<unknown, string> = new Map([
  ["ENOENT", "there is no such file or folder"],
  ["ENOTDIR", "a part of its path is no folder"],
  ["EISDIR", "it is a folder"],
  ["EACCES", "permission denied"],
]);

/** Describes a failure to use a file that the message around it names already. */
export function describeFileError(thrown: unknown): string {
  // Each way to open a file has another wording, with a name of its own for the step.
  const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
  return FILE_PROBLEMS.get(code) ?? describeError(thrown);
}
